"""Which brand an OLT is, and how often its tables can be read."""
