"""A profile that can be used, for tests to change."""

import copy

ROOT = "1.3.6.1.4.1.99999"
PROFILE = {
    "id": "acme_gpon",
    "label": "ACME G-8000",
    "base": ROOT,
    "match": {"sys_object_ids": [f"{ROOT}.1"], "sys_descr": "^ACME", "probe": "2.1"},
    "index": {"onu": ["slot:8 port:8", "onu"], "optics": ["slot:8 port:8", "onu", 1]},
    "columns": {
        "serial": {"oid": "2.1", "read": "serial"},
        "name": {"oid": "2.2", "read": "text"},
        "state": {"oid": "2.3", "read": "choice", "words": {1: "online", 2: "offline"}, "needs": ["down_cause"]},
        "down_cause": {"oid": "2.4", "read": "cause", "words": {1: "los"}},
        "rx_dbm": {"oid": 5, "read": "power", "scale": "0.01", "space": "optics", "optical": True, "floor": "15m"},
        "in_octets": {"oid": "1.3.6.1.2.1.31.1.1.1.6", "read": "counter"},
    },
    "extra": {"uptime_s": {"oid": "2.9", "read": "number", "scale": 0.01}},
    "discovery": ["serial", "name"],
    "rules": ["disabled_by_admin", {"state_by_cause": {"los": "los"}}, "no_optics_when_off"],
}


def profile(**changes):
    """Return a valid profile with these keys replaced; a key with None is omitted."""
    changed = {**copy.deepcopy(PROFILE), **changes}
    return {key: value for key, value in changed.items() if value is not None}


def with_column(name, **options):
    return profile(columns={**PROFILE["columns"], name: options})
