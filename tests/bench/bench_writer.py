"""What keeping a harvest costs with `executemany`, beside Django's `bulk_create`, on SQLite. Run it; it is not a test.

python tests/bench/bench_writer.py
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

ROWS = 5000
ROUNDS = 5
T0 = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def installed(folder: str) -> None:
    """Make a database of our own, as an installation has it."""
    for name in [name for name in os.environ if name.startswith("FACHO_") or name == "DATABASE_URL"]:
        del os.environ[name]
    os.environ |= {"FACHO_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "facho.runtime.settings"}
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def by_executemany(olt_id: int, rows: int, now: datetime) -> None:
    """Keep a harvest as the store does it."""
    from django.db import transaction

    from facho.engine.model import Reading
    from facho.store import writer

    readings = [Reading(f"1.{n}", 0, 1, n, {"state": "online", "rx_dbm": -21.53, "tx_dbm": 2.1}) for n in range(rows)]
    with transaction.atomic():
        writer._write_onus(olt_id, readings, now)
        writer._write_history(olt_id, readings, now)


def by_bulk_create(olt_id: int, rows: int, now: datetime) -> None:
    """Keep the same as Django would do it."""
    from django.db import transaction

    from facho.apps.telemetry.models import Onu, OnuHistory

    onus = [
        Onu(
            olt_id=olt_id,
            index=f"1.{n}",
            slot=0,
            port=1,
            onu=n,
            state="online",
            rx_dbm=-21.53,
            tx_dbm=2.1,
            first_seen_at=now,
            read_at=now,
            state_at=now,
            power_at=now,
        )
        for n in range(rows)
    ]
    updated = ["slot", "port", "onu", "state", "rx_dbm", "tx_dbm", "read_at", "state_at", "power_at"]
    with transaction.atomic():
        Onu.objects.bulk_create(onus, update_conflicts=True, unique_fields=["olt", "index"], update_fields=updated)
        ids = dict(Onu.objects.filter(olt_id=olt_id).values_list("index", "id"))
        history = [
            OnuHistory(onu_id=ids[onu.index], at=now, state=onu.state, rx_dbm=onu.rx_dbm, tx_dbm=onu.tx_dbm)
            for onu in onus
        ]
        OnuHistory.objects.bulk_create(history)


def seconds(keep: Callable[[int, int, datetime], None], olt_id: int) -> Sequence[float]:
    """Return what the first harvest cost, and the quickest of those behind it."""
    took = []
    for number in range(ROUNDS + 1):
        before = time.perf_counter()
        keep(olt_id, ROWS, T0 + number * timedelta(minutes=5))
        took.append(time.perf_counter() - before)
    return took[0], min(took[1:])


def measure() -> dict[str, Sequence[float]]:
    from facho.apps.inventory.models import Olt

    costs = {}
    for name, keep in (("bulk_create", by_bulk_create), ("executemany", by_executemany)):
        olt = Olt.objects.create(name=name, brand="huawei", host="127.0.0.1", community="public")
        costs[name] = seconds(keep, olt.pk)
    return costs


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as folder:
        installed(folder)
        costs = measure()
    plain = costs["bulk_create"]
    sys.stdout.write(f"{ROWS} ONUs with state and power, and their history\n")
    sys.stdout.write(f"{'':<14}{'met first':>22}{'read again':>22}\n")
    for name, (first, again) in costs.items():
        shown = [f"{ROWS / cost:8.0f}/s {base / cost:5.2f} x" for cost, base in zip((first, again), plain, strict=True)]
        sys.stdout.write(f"{name:<14}{shown[0]:>22}{shown[1]:>22}\n")


if __name__ == "__main__":
    main()
