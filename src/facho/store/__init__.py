"""Storage: the only place that converts between engine values and Django rows. Sync Django, called once per batch."""
