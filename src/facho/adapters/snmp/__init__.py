"""SNMP: `client.SnmpByVersion` is the port of the engine; the other modules are its parts."""
