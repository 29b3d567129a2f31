"""Simulated OLTs on loopback UDP, with the quirks of real ones, for the demo and tests."""
