"""Brand detection, and the cost of reading the tables of an OLT."""
