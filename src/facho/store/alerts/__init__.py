"""Alerts as rows: what fires now, what becomes of it, and the outbox that its messages leave from."""
