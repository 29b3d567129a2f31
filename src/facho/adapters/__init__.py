"""Adapters without Django. A folder is a port, a file in it a technology."""
