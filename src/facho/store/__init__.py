"""The only meeting of engine values and Django rows. Plain sync Django, crossed once a batch."""
