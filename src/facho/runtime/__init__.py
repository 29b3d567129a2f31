"""Assembly of the parts. The only place that knows the mode."""
