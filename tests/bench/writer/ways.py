"""The ways to keep a harvest, and what each takes on the database of this process."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

T0 = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
VALUES = {"state": "online", "rx_dbm": -21.53, "tx_dbm": 2.1}

Way = Callable[[int, int, datetime], None]


def installed(folder: str, url: str) -> None:
    """Make a database of our own, as an installation has it; SQLite in the folder where there is no URL."""
    for name in [name for name in os.environ if name.startswith("FACHO_") or name == "DATABASE_URL"]:
        del os.environ[name]
    os.environ |= {"FACHO_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "facho.runtime.settings"}
    if url:
        os.environ["DATABASE_URL"] = url
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def ways() -> dict[str, Way]:
    """Return the ways that the database of this process knows; the first is what the others are compared with."""
    from django.db import connection

    known = {"bulk_create": by_bulk_create, "executemany": by_statements}
    return {**known, "COPY": by_copy} if connection.vendor == "postgresql" else known


def by_statements(olt_id: int, rows: int, now: datetime) -> None:
    with patch("facho.store.bulk.is_copied", lambda rows: False):
        as_the_store_does(olt_id, rows, now)


def by_copy(olt_id: int, rows: int, now: datetime) -> None:
    with patch("facho.store.bulk.is_copied", lambda rows: True):
        as_the_store_does(olt_id, rows, now)


def as_the_store_does(olt_id: int, rows: int, now: datetime) -> None:
    from django.db import transaction

    from facho.engine.model import Reading
    from facho.store.writer import write_readings

    with transaction.atomic():
        write_readings(olt_id, [Reading(f"1.{n}", 0, 1, n, VALUES) for n in range(rows)], now)


def by_bulk_create(olt_id: int, rows: int, now: datetime) -> None:
    """Keep the same as Django would do it."""
    from django.db import transaction

    from facho.apps.telemetry.models import Onu, OnuHistory

    times = {"read_at": now, "state_at": now, "power_at": now}
    onus = [
        Onu(olt_id=olt_id, index=f"1.{n}", slot=0, port=1, onu=n, first_seen_at=now, **times, **VALUES)
        for n in range(rows)
    ]
    updated = ["slot", "port", "onu", *times, *VALUES]
    with transaction.atomic():
        Onu.objects.bulk_create(onus, update_conflicts=True, unique_fields=["olt", "index"], update_fields=updated)
        ids = dict(Onu.objects.filter(olt_id=olt_id).values_list("index", "id"))
        OnuHistory.objects.bulk_create(OnuHistory(onu_id=ids[onu.index], at=now, **VALUES) for onu in onus)


def measure(rows: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return for each way the seconds of the first harvest of an OLT, and those of the quickest behind it."""
    from facho.apps.inventory.models import Olt

    known = ways()
    olts = {
        name: Olt.objects.create(name=f"{name} {rows}", brand="huawei", host="127.0.0.1", community="public").pk
        for name in known
    }
    for name, keep in known.items():
        # What is imported and prepared only once.
        keep(olts[name], 1, T0 - timedelta(minutes=5))
    took: dict[str, list[float]] = {name: [] for name in known}
    for number in range(rounds + 1):
        # In turns: the machine does other things too, and none of them should meet only one way.
        for name, keep in known.items():
            before = time.perf_counter()
            keep(olts[name], rows, T0 + number * timedelta(minutes=5))
            took[name].append(time.perf_counter() - before)
    return {name: (first, min(again)) for name, (first, *again) in took.items()}
