"""Demo: simulated OLTs in their own process, and a complete Facho that polls them."""

USER = PASSWORD = "demo"  # noqa: S105 - printed on the screen; the demonstration listens on loopback only
