"""Facho: collects ONUs from OLTs over SNMP on a strict schedule, and explains every run and every missed run."""

__version__ = "0.5.0"
