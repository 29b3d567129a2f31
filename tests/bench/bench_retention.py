"""How long sweeping out old history keeps others from writing, on SQLite. Run it; it is not a test.

What the disk and the machine take by themselves is measured in the same run: without that a noisy machine looks
like a sweep that holds the lock for too long. Where SQLite makes a checkpoint of its own within a commit, that counts
as held although the lock is free by then: the other process knows better.

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
from typing import TypeVar

T = TypeVar("T")

ROWS = 20_000
# Of an OLT with 1,000 ONUs, in bytes. Chunks of powers have 4 kB, those of counters 100.
CHUNKS_A_DAY = 56
CHUNK_SIZE = 32_000
# What is too old, of all rows.
SHARE = 0.6
# What nobody should have to wait for, in seconds.
LIMIT = 0.1
# A batch as the disk sees it: pages that are written one behind the other, and one fsync.
PAGE = b"\0" * 4096
PAGES = 500
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
    """Write chunks of a usual size, those of a day one after the other."""
    from facho.apps.inventory.models import Olt
    from facho.apps.telemetry.models import HistoryChunk

    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    days = rows // CHUNKS_A_DAY
    first = NOW - timedelta(days=90 + int(days * SHARE))
    for day in range(days):
        at = first + timedelta(days=day)
        HistoryChunk.objects.bulk_create(
            HistoryChunk(
                olt=olt, field="rx_dbm", start=at, last_at=at, first_onu=n, last_onu=n, data=os.urandom(CHUNK_SIZE)
            )
            for n in range(CHUNKS_A_DAY)
        )


def fsyncs(folder: str, count: int = 300) -> list[float]:
    """Return how long the disk takes for such writes when nobody else asks for anything."""
    took = []
    with open(os.path.join(folder, "fsync"), "wb", buffering=0) as file:
        for _ in range(count):
            before = time.perf_counter()
            file.seek(0)
            for _ in range(PAGES):
                file.write(PAGE)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - before)
            time.sleep(0.02)
    return took


def rival(path: str, enough: EventType, waits: "Queue[tuple[list[float], list[float]]]") -> None:
    """Be another process that writes, again and again, and note how long the lock was to be waited for.

    It asks every half millisecond. SQLite asks less often the longer it waits, and would round up.
    """
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    waited, late = [], []
    while True:
        asleep = time.perf_counter()
        if enough.wait(0.002):
            break
        before = time.perf_counter()
        late.append(before - asleep - 0.002)
        while not locked(connection):
            time.sleep(0.0005)
        waited.append(time.perf_counter() - before)
        connection.execute("ROLLBACK")
    connection.close()
    waits.put((waited, late))


def locked(connection: sqlite3.Connection) -> bool:
    """Return whether the write lock was to be had."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return False
    return True


async def queue_behind(thread: "DbThread", waits: list[float]) -> None:  # noqa: F821 - needs an installation first
    """Be the engine: give the store's thread a small job every few milliseconds."""
    while True:
        before = time.perf_counter()
        await thread.run(lambda: None)
        waits.append(time.perf_counter() - before)
        await asyncio.sleep(0.005)


def noted(function: Callable[..., T], note: Callable[[T, float], None]) -> Callable[..., T]:
    """Return a function that passes on what it returned, and how long it took."""

    def wrapped(*arguments: object) -> T:
        before = time.perf_counter()
        result = function(*arguments)
        note(result, time.perf_counter() - before)
        return result

    return wrapped


async def sweep(jobs: list[float], held: list[float], moved: list[float]) -> float:
    """Sweep until nothing is left, and return how long that took."""
    from facho.adapters.clock import SystemClock
    from facho.apps.telemetry.models import HistoryChunk
    from facho.store import retention
    from facho.store.database import DbThread
    from facho.store.retention import Sweep, rules

    Sweep._batch = noted(Sweep._batch, lambda batch, _: held.append(batch.held) if batch.rows else None)
    retention._checkpoint = noted(retention._checkpoint, lambda _, took: moved.append(took))
    thread = DbThread("store-write")
    sweeping = Sweep(
        thread=thread, clock=SystemClock(), rules=rules(logs=7, executions=30, history=90, daily=730, changes=730)
    )
    engine = asyncio.create_task(queue_behind(thread, jobs))
    begun = time.perf_counter()
    old = HistoryChunk.objects.filter(last_at__lt=NOW - timedelta(days=90))
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
    sys.stdout.write(f"{name:<50}{shown}{over:>8} of {len(waits)}\n")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as folder:
        installed(folder)
        fill(rows)
        from facho.apps.telemetry.models import HistoryChunk

        stored = HistoryChunk.objects.count()
        alone = fsyncs(folder)
        jobs: list[float] = []
        held: list[float] = []
        moved: list[float] = []
        processes = multiprocessing.get_context("spawn")
        enough, waits = processes.Event(), processes.Queue()
        other = processes.Process(target=rival, args=(os.path.join(folder, "facho.sqlite3"), enough, waits))
        other.start()
        took = asyncio.run(sweep(jobs, held, moved))
        enough.set()
        locks, late = waits.get()
        other.join()
        alone += fsyncs(folder)
        gone = stored - HistoryChunk.objects.count()
    sys.stdout.write(f"{gone} of {stored} chunks went in {took:.1f} s: {gone / took:.0f} a second\n")
    sys.stdout.write(f"{'':<50}{'median':>11}{'99 %':>13}{'longest':>13}   over {LIMIT} s\n")
    show("a batch held the write lock", held)
    show("another process waited for the write lock", locks)
    show("a checkpoint took, without the lock", moved)
    show("a job of the engine waited for its thread", jobs)
    show(f"for comparison: the disk took for {PAGES} pages", alone)
    show("for comparison: the other process woke up late by", late)


if __name__ == "__main__":
    main()
