"""A database of an earlier version: the times of ONUs move to their ports, and none is lost on the way or back."""

import pytest
from builders import MIN, T0
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from facho.apps.telemetry.models import Onu, PonPort
from facho.runtime.upgrade import without_idle_limit

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("telemetry", "0006_repair_replaced_onus")]
TIMES = ("read_at", "state_at", "power_at")

# Slot, port, and the minutes at which it, its state and its power were read.
ONUS = [
    (0, 1, (9, 9, 9)),
    (0, 1, (9, 9, 4)),
    (0, 1, (9, 4, None)),
    (0, 1, (2, None, None)),
    (0, 2, (7, None, None)),
    (0, 2, (7, None, 3)),
    (None, None, (5, 5, 5)),
    (None, None, (6, 6, None)),
    (None, 4, (1, 1, 1)),
]


def migrate(target):
    with without_idle_limit():
        return MigrationExecutor(connection).migrate(target).apps


def at(minutes):
    return None if minutes is None else T0 + minutes * MIN


def test_times_are_the_same_before_after_and_on_the_way_back():
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        old = migrate(BEFORE)
        olts = [
            old.get_model("inventory", "Olt").objects.create(name=f"OLT-{n}", host=f"127.0.0.{n}", port=161)
            for n in (1, 2)
        ]
        rows = old.get_model("telemetry", "Onu").objects
        for olt in olts:
            for number, (slot, port, minutes) in enumerate(ONUS):
                times = dict(zip(TIMES, map(at, minutes), strict=True))
                rows.create(olt=olt, index=f"1.{number}", slot=slot, port=port, first_seen_at=T0, **times)
        before = list(rows.order_by("id").values_list("id", *TIMES))

        migrate(latest)
        after = list(Onu.objects.with_freshness().order_by("id").values_list("id", *TIMES))
        ports = list(PonPort.objects.filter(olt=olts[0].pk).order_by("id").values_list("slot", "port", *TIMES))
        exceptions = Onu.objects.filter(olt=olts[0].pk).exclude(own_read_at=None, own_state_at=None, own_power_at=None)
        numbers = sorted(int(index.split(".")[1]) for index in exceptions.values_list("index", flat=True))
        is_placed = not Onu.objects.filter(pon_port=None).exists()

        back = list(migrate(BEFORE).get_model("telemetry", "Onu").objects.order_by("id").values_list("id", *TIMES))
    finally:
        migrate(latest)

    assert after == before
    assert back == before
    assert sorted(ports, key=str) == sorted(
        [
            (0, 1, at(9), at(9), at(9)),
            (0, 2, at(7), None, at(3)),
            (None, None, at(6), at(6), at(5)),
            (None, 4, at(1), at(1), at(1)),
        ],
        key=str,
    )
    assert numbers == [1, 2, 3, 4, 6, 7]
    assert is_placed
