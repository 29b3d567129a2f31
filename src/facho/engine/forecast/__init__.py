"""Forecast: the same engine on a virtual clock."""
