"""Quotas of the hour, the plan of the hour, and expected durations."""
