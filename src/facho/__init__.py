"""Facho collects ONUs from OLTs over SNMP, on a strict schedule, and says what ran, what did not, and why."""

__version__ = "0.5.0"
