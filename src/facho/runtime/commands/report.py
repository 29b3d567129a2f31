"""JSON output of the commands, with stable keys and without secrets."""

import json
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from facho.engine.brand import Brand
from facho.engine.detect.detect import Identity
from facho.engine.model import Collected, Reading, Traffic
from facho.engine.oid import text as oid_text
from facho.engine.snmp import Agent

if TYPE_CHECKING:
    # Only a probe measures; the other commands need not load it.
    from facho.engine.detect.cost import Measured

# Keys of every ONU, in this order, null without a value; other values follow.
ONU_KEYS = (
    "index",
    "slot",
    "port",
    "onu",
    "name",
    "serial",
    "state",
    "rx_dbm",
    "tx_dbm",
    "olt_rx_dbm",
    "distance_m",
    "in_octets",
    "out_octets",
    "model",
)


def dump(report: dict[str, Any]) -> str:
    return json.dumps(report, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    """Return a value as plain JSON."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def collection(agent: Agent, identity: Identity, brand: Brand, collected: Collected, cost: dict[str, float]) -> str:
    """Return a collection. `cost` has its seconds and CPU seconds."""
    values = sum(value is not None for reading in collected.readings for value in reading.values.values())
    return dump(
        {
            "olt": olt(agent, identity),
            "brand": brand.id,
            "completeness": collected.completeness.value,
            "stats": {**cost, **_stats(collected.traffic), "values": values},
            "onus": [onu(reading) for reading in collected.readings],
            "coverage": [asdict(each) | {"completeness": each.completeness.value} for each in collected.coverage],
            "failed_onus": list(collected.failed_onus),
            "errors": list(collected.errors),
        }
    )


def failure(agent: Agent, sentence: str) -> str:
    """Return the result of a command without any answer: the keys of a collection, empty."""
    return dump(
        {
            "olt": olt(agent, Identity(None)),
            "brand": None,
            "completeness": None,
            "stats": None,
            "onus": [],
            "coverage": [],
            "failed_onus": [],
            "errors": [sentence],
        }
    )


def probing(agent: Agent, identity: Identity, measured: "Measured | None") -> str:
    """Return the result of a probe."""
    brand = identity.brand
    found: dict[str, Any] = {
        "olt": olt(agent, identity),
        "brand": brand.id if brand else None,
        "label": brand.label if brand else None,
        "experimental": brand.experimental if brand else None,
        "remark": identity.remark or None,
    }
    if measured is not None:
        found |= {
            "onus": measured.onus,
            "onus_are_more": measured.onus_are_more,
            "seconds_a_row": measured.seconds_a_row(optical=False),
            "seconds_an_optical_row": measured.seconds_a_row(optical=True),
            "tables": [asdict(each) | {"seconds_a_row": each.seconds_a_row} for each in measured.tables],
            "allowed": [asdict(each) for each in measured.allowed],
            "stats": _stats(measured.traffic),
        }
    return dump(found)


def olt(agent: Agent, identity: Identity) -> dict[str, Any]:
    """Return the OLT, and the cost of its detection."""
    return {
        "host": agent.host,
        "port": agent.port,
        "sys_name": identity.sys_name or None,
        "sys_descr": identity.sys_descr or None,
        "sys_object_id": identity.sys_object_id or None,
        "uptime": identity.uptime,
        "identify_pdus": identity.traffic.pdus,
    }


def onu(reading: Reading) -> dict[str, Any]:
    """Return one ONU, flat."""
    place = {"index": reading.index, "slot": reading.slot, "port": reading.port, "onu": reading.onu}
    return dict.fromkeys(ONU_KEYS) | dict(reading.values) | place


def _stats(traffic: Traffic) -> dict[str, Any]:
    stats = {each.name: getattr(traffic, each.name) for each in fields(traffic)}
    return stats | {"sizes": dict(traffic.sizes)}


def brand(brand: Brand) -> dict[str, Any]:
    """Return the fields that a brand provides."""
    return {
        "id": brand.id,
        "label": brand.label,
        "experimental": brand.experimental,
        "columns": {name: oid_text(column.oid) for name, column in brand.columns.items()},
    }
