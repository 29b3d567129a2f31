"""Channels that messages are taken to: each file one kind of them, on the standard library alone."""
