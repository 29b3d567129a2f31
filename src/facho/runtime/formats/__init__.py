"""Number formats that differ from Django's defaults."""
