"""Scheduling: due times, queue, pollers, retries and breakers."""
