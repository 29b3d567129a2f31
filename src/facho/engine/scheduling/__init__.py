"""What runs when, and in which poller."""
