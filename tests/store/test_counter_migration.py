"""A database of an earlier version: ports get their counters, and each state the start that is known of it."""

from datetime import timedelta

import pytest
from builders import MIN, T0
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

import port_counts
from facho.apps.telemetry.models import Onu
from facho.runtime.upgrade import without_idle_limit

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("telemetry", "0010_history_labels")]
DAY = timedelta(days=1)
OLD, NEW = T0 - 90 * DAY, T0 - 2 * DAY

# Columns of an ONU, its events in minutes from T0 (time, old state, new state), and the start of its state.
ONUS = {
    "event": ({"state": "los", "last_down": T0 - DAY}, [(1, "online", "los")], T0 + MIN),
    "the last event": ({"state": "online"}, [(1, "online", "los"), (9, "los", "online")], T0 + 9 * MIN),
    "dark all the time": (
        {"state": "dying_gasp", "rx_dbm": -30.0},
        [(1, "online", "los"), (9, "los", "dying_gasp")],
        T0 + MIN,
    ),
    "down as reported": ({"state": "offline", "last_down": T0, "last_up": T0 - DAY}, [], T0),
    "up as reported": ({"state": "online", "last_down": T0 - DAY, "last_up": T0, "rx_dbm": -27.5}, [], T0),
    "reported for another outage": ({"state": "los", "last_down": T0 - DAY, "last_up": T0, "misses": 1}, [], None),
    "reported in the future": ({"state": "online", "last_up": T0 + 10_000 * DAY, "rx_dbm": -27.0}, [], None),
    "nothing since it was found": ({"state": "online", "first_seen_at": NEW}, [], NEW),
    "found before there were events": ({"state": "online"}, [], None),
    "not known": ({"state": "unknown", "first_seen_at": NEW}, [], None),
    "missing": ({"state": "online", "missing_since": T0, "rx_dbm": -30.0, "first_seen_at": NEW}, [], NEW),
}


def migrate(target):
    with without_idle_limit():
        return MigrationExecutor(connection).migrate(target).apps


def test_counters_and_starts_are_filled_from_what_is_stored():
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        old = migrate(BEFORE)
        olt = old.get_model("inventory", "Olt").objects.create(name="OLT-CENTRAL-01", host="127.0.0.1", port=161)
        ports = [old.get_model("telemetry", "PonPort").objects.create(olt=olt, slot=0, port=n) for n in (1, 2, 3)]
        events = old.get_model("telemetry", "OnuEvent").objects
        for number, (name, (columns, changes, _since)) in enumerate(ONUS.items()):
            row = {"first_seen_at": OLD, "index": f"1.{number}", "name": name, "pon_port": ports[number % 2]}
            onu = old.get_model("telemetry", "Onu").objects.create(olt=olt, **row | columns)
            for minutes, was, state in changes:
                events.create(onu=onu, olt=olt, at=T0 + minutes * MIN, field="state", old=was, new=state)
            if onu.first_seen_at == NEW:
                events.create(onu=onu, olt=olt, at=NEW, field="presence", old="", new="present")
    finally:
        migrate(latest)

    assert dict(Onu.objects.values_list("name", "state_since")) == {name: since for name, (*_, since) in ONUS.items()}
    assert port_counts.stored() == port_counts.scanned()
    assert sorted(row["total"] for row in port_counts.stored().values()) == [0, 5, 6]
    assert sum(row["weak"] for row in port_counts.stored().values()) == 1
