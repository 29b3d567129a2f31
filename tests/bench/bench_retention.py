"""How long sweeping out old readings keeps others from writing, on SQLite. Run it; it is not a test.

python tests/bench/bench_retention.py [ROWS]
"""

import asyncio
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event as EventType

ROWS = 1_000_000
ONUS = 2000
# What is too old, of all rows.
SHARE = 0.6
# What nobody should have to wait for, in seconds.
LIMIT = 0.1
NOW = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def installed(folder: str) -> None:
    """Make a database of our own, as an installation has it."""
    for name in [name for name in os.environ if name.startswith("FACHO_") or name == "DATABASE_URL"]:
        del os.environ[name]
    os.environ |= {"FACHO_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "facho.runtime.settings"}
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def fill(rows: int) -> None:
    """Write readings as runs do: all ONUs at one time, then all of them at the next."""
    from django.db import connection, transaction

    from facho.apps.inventory.models import Olt
    from facho.apps.telemetry.models import Onu

    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    Onu.objects.bulk_create(Onu(olt=olt, index=f"1.{n}", first_seen_at=NOW, read_at=NOW) for n in range(ONUS))
    ids = list(Onu.objects.values_list("pk", flat=True))
    runs = rows // ONUS
    first = NOW - timedelta(days=90) - runs * SHARE * timedelta(minutes=5)
    for run in range(runs):
        at = (first + run * timedelta(minutes=5)).replace(tzinfo=None)
        with transaction.atomic(), connection.cursor() as cursor:
            values = [(onu, at, "online", -21.53, 2.1) for onu in ids]
            cursor.executemany(
                "INSERT INTO onu_history (onu_id, at, state, rx_dbm, tx_dbm) VALUES (%s, %s, %s, %s, %s)", values
            )


def rival(path: str, enough: EventType, waits: "Queue[list[float]]") -> None:
    """Be another process that writes, again and again, and note how long the lock was to be waited for."""
    connection = sqlite3.connect(path, timeout=20, isolation_level=None)
    waited = []
    while not enough.wait(0.002):
        before = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        waited.append(time.perf_counter() - before)
        connection.execute("ROLLBACK")
    connection.close()
    waits.put(waited)


async def queue_behind(thread: "DbThread", waits: list[float]) -> None:  # noqa: F821 - needs an installation first
    """Be the engine: give the store's thread a small job every few milliseconds."""
    while True:
        before = time.perf_counter()
        await thread.run(lambda: None)
        waits.append(time.perf_counter() - before)
        await asyncio.sleep(0.005)


def timed(function: Callable[..., int], took: list[float]) -> Callable[..., int]:
    """Return a function that notes how long it took. What the rival waits is rounded up: SQLite looks now and then."""

    def wrapped(*arguments: object) -> int:
        before = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            took.append(time.perf_counter() - before)

    return wrapped


async def sweep(jobs: list[float], held: list[float]) -> float:
    """Sweep until nothing is left, and return how long that took."""
    from facho.adapters.clock import SystemClock
    from facho.apps.telemetry.models import OnuHistory
    from facho.store import retention
    from facho.store.retention import Sweep, rules
    from facho.store.threads import DbThread

    retention._delete = timed(retention._delete, held)
    thread = DbThread("store-write")
    sweeping = Sweep(thread=thread, clock=SystemClock(), rules=rules(logs=7, executions=30, history=90))
    engine = asyncio.create_task(queue_behind(thread, jobs))
    begun = time.perf_counter()
    old = OnuHistory.objects.filter(at__lt=NOW - timedelta(days=90))
    while await thread.run(old.exists):
        await sweeping.run(NOW)
    took = time.perf_counter() - begun
    engine.cancel()
    thread.close()
    return took


def show(name: str, waits: Sequence[float]) -> None:
    ordered = sorted(waits)
    middle, late = (ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
    shown = "  ".join(f"{1000 * each:8.1f} ms" for each in (middle, late, ordered[-1]))
    over = sum(each > LIMIT for each in waits)
    sys.stdout.write(f"{name:<46}{shown}{over:>8} of {len(waits)}\n")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as folder:
        installed(folder)
        fill(rows)
        from facho.apps.telemetry.models import OnuHistory

        jobs: list[float] = []
        held: list[float] = []
        processes = multiprocessing.get_context("spawn")
        enough, waits = processes.Event(), processes.Queue()
        other = processes.Process(target=rival, args=(os.path.join(folder, "facho.sqlite3"), enough, waits))
        other.start()
        took = asyncio.run(sweep(jobs, held))
        enough.set()
        locks = waits.get()
        other.join()
        gone = rows - OnuHistory.objects.count()
    sys.stdout.write(f"{gone} of {rows} readings went in {took:.1f} s: {gone / took:.0f} a second\n")
    sys.stdout.write(f"{'':<46}{'median':>11}{'99 %':>13}{'longest':>13}   over {LIMIT} s\n")
    show("a batch held the write lock", held)
    show("another process waited for the write lock", locks)
    show("a job of the engine waited for its thread", jobs)


if __name__ == "__main__":
    main()
