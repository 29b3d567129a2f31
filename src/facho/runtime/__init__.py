"""Puts the parts together. The only place that knows the mode Facho runs in."""
