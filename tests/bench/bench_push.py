"""CPU of this process per value that is pushed to a time series store.

    .venv/bin/python tests/bench/bench_push.py [--onus 1024] [--olts 16] [--rounds 5]

Runs are in the outbox of a SQLite file; the sender reads, encodes, posts and deletes them as in an installation. The
store is a VictoriaMetrics if there is one, in a process of its own, else a server of a few lines. For comparison the
same runs are measured while they are written to the database, with and without the outbox.
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SINK = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    line, _ = server.accept()
    file = line.makefile("rb")
    while True:
        length = 0
        while (header := file.readline().strip()):
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        if not length:
            break
        file.read(length)
        line.sendall(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--onus", type=int, default=1024, help="ONUs per OLT (%(default)s)")
    parser.add_argument("--olts", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind per OLT and measurement (%(default)s)")
    parser.add_argument("--sink", action="store_true", help="do not use VictoriaMetrics")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as folder:
        os.environ["FACHO_DATA_DIR"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "facho.runtime.settings"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        measure(arguments)


def measure(arguments: argparse.Namespace) -> None:
    from server_victoria import LaunchedVictoria, victoria

    if victoria() is not None and not arguments.sink:
        with LaunchedVictoria() as store:
            print("store: VictoriaMetrics")
            Bench(arguments, store.url).run()
        return
    with subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True) as sink:
        assert sink.stdout is not None
        print("store: a server that only reads")
        Bench(arguments, f"http://127.0.0.1:{sink.stdout.readline().strip()}/api/v1/write").run()
        sink.kill()


class Bench:
    """A fleet whose runs are stored, and a sender."""

    def __init__(self, arguments: argparse.Namespace, url: str) -> None:
        from django.conf import settings

        from facho.apps.inventory.models import Olt
        from facho.store.inventory import Inventory

        self._onus, self._rounds, self._url = arguments.onus, arguments.rounds, url
        self._off = settings.CONFIG
        self._on = replace(settings.CONFIG, tsdb_url=url)
        self._chance = random.Random(1)
        self._at = datetime.now(UTC) - timedelta(days=1)
        self._inventories = [
            Inventory.load(Olt.objects.create(name=f"OLT-{n:03}", brand="huawei", host=f"10.0.0.{n}", community="c").pk)
            for n in range(arguments.olts)
        ]

    def run(self) -> None:
        from django.conf import settings

        for name, columns in (("state", self._states), ("optics", self._powers), ("traffic", self._octets)):
            settings.CONFIG = self._off
            self._store(columns, 1)
            without = self._store(columns, self._rounds)
            settings.CONFIG = self._on
            self._store(columns, 1)
            self._send()
            beside = self._store(columns, self._rounds)
            pushed, values = self._send()
            again = self._store(columns, self._rounds)
            second, _ = self._send()
            append = max(statistics.mean((beside, again)) - without, 0.0)
            push = min(pushed, second)
            stored, appended, sent = (seconds / values * 1e6 for seconds in (without, append, push))
            print(
                f"{name:8} {values:8,} values: store {stored:.2f} us, outbox {appended:+.2f} us, push {sent:.2f} us"
                f" per value; push is {push / without:.0%} of storing",
                flush=True,
            )

    def _store(self, columns: Callable[[], dict[str, list[object]]], rounds: int) -> float:
        """Store runs, and return the seconds of CPU."""
        from django.db import transaction

        from facho.engine.batch import Batch, BatchLayout
        from facho.engine.model import Collected, Completeness, JobKind, Node
        from facho.engine.presence import USUAL_RULES
        from facho.store.runs import write_collected

        spent = 0.0
        indexes = tuple(f"{n // 64}.{n % 64}" for n in range(self._onus))
        layout = BatchLayout(
            indexes,
            (0,) * self._onus,
            tuple(n // 64 for n in range(self._onus)),
            tuple(n % 64 for n in range(self._onus)),
        )
        for _ in range(rounds):
            self._at += timedelta(minutes=1)
            for number, inventory in enumerate(self._inventories):
                serials = [f"HWTC{number:03X}{n:05X}" for n in range(self._onus)]
                batch = Batch(layout, {"serial": serials, **columns()})
                collected = Collected(Completeness.COMPLETE, batch)
                node = Node(1, inventory.olt_id, "", JobKind.TABLE, timedelta(minutes=5))
                began = time.process_time()
                with transaction.atomic():
                    write_collected(inventory, node, collected, USUAL_RULES, self._at)
                spent += time.process_time() - began
        return spent

    def _send(self) -> tuple[float, int]:
        """Send what is in the outbox, and return the seconds of CPU and the number of values."""
        from facho.adapters.clock import SystemClock
        from facho.adapters.tsdb.remote_write import RemoteWrite
        from facho.apps.telemetry.models import OutboxRun
        from facho.engine.observer import Observer
        from facho.store.database import DbThread
        from facho.store.push import Push

        class Tally(Observer):
            values = 0

            def values_pushed(self, values: int, seconds: float) -> None:
                self.values += values

        async def send() -> tuple[float, int]:
            thread, tally = DbThread("store-push"), Tally()
            push = self._push = getattr(self, "_push", None) or Push(
                client=RemoteWrite(self._url), thread=thread, clock=SystemClock(), hours=168, observer=tally
            )
            push._thread, push._observer = thread, tally
            began = time.process_time()
            while await push.step() == 0.0:
                pass
            await thread.run(lambda: OutboxRun.objects.filter(pk__in=list(push._sent)).delete())
            spent = time.process_time() - began
            thread.close()
            push._sent.clear()
            return spent, tally.values

        return asyncio.run(send())

    def _states(self) -> dict[str, list[object]]:
        return {"state": self._chance.choices(["online", "offline", "los"], [97, 2, 1], k=self._onus)}

    def _powers(self) -> dict[str, list[object]]:
        def around(mean: float) -> list[object]:
            return [round(mean + self._chance.gauss(0, 2), 2) for _ in range(self._onus)]

        return {
            "rx_dbm": around(-21),
            "tx_dbm": around(2),
            "olt_rx_dbm": around(-23),
            "temperature_c": [self._chance.randint(30, 60) for _ in range(self._onus)],
            "voltage_v": around(3.3),
        }

    def _octets(self) -> dict[str, list[object]]:
        def counters() -> list[object]:
            return [self._chance.randint(10**9, 10**12) for _ in range(self._onus)]

        return {"in_octets": counters(), "out_octets": counters()}


if __name__ == "__main__":
    main()
