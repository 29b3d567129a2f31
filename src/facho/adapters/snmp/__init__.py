"""SNMP: `dispatch.SnmpByVersion` is the port that the engine gets, the other modules are what it is made of."""
