"""What an OLT owes to the hour: quotas, the plan of the hour, durations."""
