"""OLTs made of Python on loopback UDP, with the quirks of real ones: for the demonstration and for tests."""
