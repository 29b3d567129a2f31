"""How long pages and lists of the API take in a large installation. Run it; it is not a test.

It fills an empty database with OLTs of 1,000 ONUs on 16 ports each, as two runs write them: 93 % online, 0.5 % missing,
1 % weak, states that changed an hour ago. Every OLT has its usual jobs and a day of executions and quotas. Then each
page is requested several times in this process, by a user who sees everything or by one with a scope of a tenth of the
OLTs. A page that is slower than its target is marked. The CPU, with that of the database, is about the same on a busy
machine. With --polling, another process stores readings at the same time, as many as if every OLT was read once in five
minutes.

python tests/bench/bench_pages.py [--onus 100000] [--only TEXT] [--data FOLDER] [--polling]
python tests/bench/bench_pages.py --database URL [--onus 1000000]
python tests/servers.py python tests/bench/bench_pages.py                on a PostgreSQL of its own
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from bench_olts import installed

ONUS_PER_OLT, PORTS = 1000, 16
# Masters and links of one OLT in a day that are made up: fewer than a real one has, as they are not what is measured.
EXECUTIONS_PER_OLT = 60
SITES = ("Lima", "Cusco", "Arequipa", "Madrid", "Piura", "Tacna", "Trujillo", "Puno", "Ica", "Huaraz")
STATES = ("online",) * 93 + ("los",) * 3 + ("dying_gasp",) * 2 + ("offline",) * 2
# Share of ONUs whose state is another one in the second run.
CHANGED = 0.01
SEED = 20250601
# With --polling: how often each OLT is read, and how many of them are in turn.
POLL_SECONDS, POLLED_OLTS = 300, 20


@dataclass(frozen=True)
class Page:
    """A page or a list, the median time that it may take in milliseconds, and whose request it is."""

    url: str
    target: int = 300
    user: str = "all"


# Names in braces are those of rows in the middle of the installation.
PAGES = (
    Page("/", 100),
    Page("/", 100, "scope"),
    Page("/?tv"),
    Page("/olts/"),
    Page("/olts/", user="scope"),
    Page("/olts/{olt}/"),
    Page("/onus/"),
    Page("/onus/", user="scope"),
    Page("/onus/?page=1000"),
    Page("/onus/?olt={olt}"),
    Page("/onus/?olt={olt}&port=0/7"),
    Page("/onus/?port=0/7"),
    Page("/onus/?site=Cusco"),
    *(Page(f"/onus/?state={state}") for state in ("dark", "weak", "missing", "present", "online", "los")),
    Page("/onus/?state=dark", user="scope"),
    Page("/onus/?state=weak", user="scope"),
    *(Page(f"/onus/?sort={sort}") for sort in ("name", "rx_dbm", "-rx_dbm", "olt_rx_dbm", "distance_m", "power_at")),
    Page("/onus/?sort=rx_dbm", user="scope"),
    Page("/onus/?q={serial}"),
    Page("/onus/?q=0/7/12"),
    Page("/onus/?q=quispe"),
    Page("/search/?q={serial}", 100),
    Page("/search/?q=quispe", 100),
    Page("/search/suggestions/?q=quispe+lima", 100),
    Page("/api/v1/search/?q={serial}", 100),
    Page("/api/v1/search/?q=0/7/12", 100),
    Page("/onus/{onu}/"),
    Page("/onus/{onu}/events/"),
    Page("/onus/{onu}/history/?range=30d"),
    Page("/nodes/{node}/"),
    Page("/executions/"),
    Page("/executions/?olt={olt}"),
    Page("/executions/?status=FAILED"),
    Page("/changes/"),
    Page("/forecast/"),
    Page("/api/v1/onus/summary/", 100),
    Page("/api/v1/onus/summary/", 100, "scope"),
    Page("/api/v1/onus/"),
    Page("/api/v1/onus/?olt={olt}"),
    Page("/api/v1/onus/?state=los"),
    Page("/api/v1/onus/?is_missing=true"),
    Page("/api/v1/onus/?rx_dbm__lt=-27"),
    Page("/api/v1/onus/?ordering=rx_dbm"),
    Page("/api/v1/onus/?ordering=-last_down"),
    Page("/api/v1/onus/?serial={serial}"),
    Page("/api/v1/onus/?search={serial}"),
    Page("/api/v1/onus/{onu}/"),
    Page("/api/v1/onus/{onu}/events/"),
    Page("/api/v1/onus/{onu}/history/"),
    Page("/api/v1/events/"),
    Page("/api/v1/events/?olt={olt}"),
    Page("/api/v1/olts/"),
    Page("/api/v1/olts/?ordering=-onus_total"),
    Page("/api/v1/olts/{olt}/"),
    Page("/api/v1/olts/{olt}/stats/"),
    Page("/api/v1/nodes/"),
    Page("/api/v1/executions/"),
    Page("/api/v1/quotas/"),
    Page("/api/v1/violations/"),
    Page("/api/v1/alerts/"),
    Page("/api/v1/logs/"),
    Page("/api/v1/pollers/"),
    Page("/api/v1/pollers/stats/"),
    Page("/admin/inventory/olt/"),
    Page("/admin/telemetry/onu/"),
    Page("/admin/polling/execution/"),
)


def fill(total: int, now: datetime) -> None:
    """Add OLTs until there are so many ONUs."""
    from facho.apps.inventory.models import Olt, Site
    from facho.apps.jobs.models import WorkflowNode
    from facho.apps.jobs.templates import propose

    sites = Site.objects.bulk_create(Site(name=name) for name in SITES)
    jobs = propose("huawei")
    olts = Olt.objects.bulk_create(
        Olt(
            name=f"OLT-{sites[number % len(sites)].name.upper()}-{number:04}",
            brand="huawei",
            host=f"127.{number // 62500}.{number // 250 % 250}.{number % 250 + 1}",
            site=sites[number % len(sites)],
            community="public",
            reachability="reachable",
        )
        for number in range(-(-total // ONUS_PER_OLT))
    )
    for number, olt in enumerate(olts):
        add_onus(olt, number, min(ONUS_PER_OLT, total - number * ONUS_PER_OLT), now)
        if number % 10 == 9:
            progress(f"{(number + 1) * ONUS_PER_OLT:,} ONUs")
    nodes = WorkflowNode.objects.bulk_create(WorkflowNode(olt=olt, job=job) for olt in olts for job in jobs)
    add_runs(nodes, len(jobs), now)
    vacuum()


def add_onus(olt: Any, number: int, total: int, now: datetime) -> None:
    """Store a run that finds the ONUs of an OLT, and a discovery in which some states and powers changed."""
    from django.db import transaction

    from facho.engine.batch import Batch
    from facho.engine.model import Collected, Completeness, JobKind, Node
    from facho.engine.presence import Rules
    from facho.store.inventory import Inventory
    from facho.store.runs import write_collected

    dice = random.Random(SEED + number)
    rows = list(readings(dice, number, total, now))
    missing = {row.index for row in rows if dice.random() < 0.005}
    node = Node(id=1, olt_id=olt.pk, name="Discovery", kind=JobKind.DISCOVERY, interval=timedelta(minutes=15))
    with transaction.atomic():
        inventory = Inventory.load(olt.pk)
        for at, gone in ((now - timedelta(hours=1), set[str]()), (now - timedelta(minutes=dice.random() * 5), missing)):
            batch = Batch.of([row for row in rows if row.index not in gone])
            collected = Collected(Completeness.COMPLETE, batch, absent=tuple(gone))
            write_collected(inventory, node, collected, Rules(misses=1, mass=100), at)
            rows = [changed(dice, row) for row in rows]


def readings(dice: random.Random, olt: int, total: int, now: datetime) -> Iterator[Any]:
    from facho.engine.batch import Reading

    for number in range(total):
        port, onu = number % PORTS, number // PORTS
        state = dice.choice(STATES)
        down, up = (now - timedelta(minutes=dice.expovariate(1 / 20_000)) for _ in range(2))
        power = round(min(max(dice.gauss(-21.5, 2.3), -35.0), -12.0), 2)
        yield Reading(
            f"{4194304000 + port * 256}.{onu}",
            0,
            port,
            onu,
            {
                "serial": f"HWTC{olt:04X}{number:04X}",
                "name": f"{dice.choice(('Ana', 'José', 'Luis', 'Rosa'))} {dice.choice(('Quispe', 'Flores', 'Núñez'))}",
                "description": f"Av. {dice.choice(('Arequipa', 'Grau', 'Brasil'))} {number}, cliente {olt}-{number}",
                "state": state,
                "rx_dbm": power if state == "online" or dice.random() < 0.5 else None,
                "tx_dbm": 2.1,
                "olt_rx_dbm": round(power - 1.7, 2),
                "distance_m": float(dice.randrange(100, 15_000)),
                "last_up": max(up, down) if state == "online" else min(up, down),
                "last_down": min(up, down) if state == "online" else max(up, down),
                "model": dice.choice(("HG8245H", "HG8546M", "EG8145V5")),
            },
        )


def changed(dice: random.Random, row: Any) -> Any:
    """Return the next reading of an ONU: most powers move a little, some states change."""
    from facho.engine.batch import Reading

    values = dict(row.values)
    if values["rx_dbm"] is not None:
        values["rx_dbm"] = round(values["rx_dbm"] + dice.gauss(0, 0.1), 2)
    if dice.random() < CHANGED:
        values["state"] = "los" if values["state"] == "online" else "online"
    return Reading(row.index, row.slot, row.port, row.onu, values)


def poll(now: datetime) -> None:
    """Store readings of some OLTs in turn, at the pace of the whole installation, until the process is killed."""
    from django.db import transaction

    from facho.apps.inventory.models import Olt
    from facho.engine.batch import Batch
    from facho.engine.model import Collected, Completeness, JobKind, Node
    from facho.engine.presence import Rules
    from facho.store.inventory import Inventory
    from facho.store.runs import write_collected

    dice = random.Random(SEED)
    olts = list(Olt.objects.order_by("pk"))
    pause = POLL_SECONDS / len(olts)
    fleet = []
    for number, olt in enumerate(olts[:POLLED_OLTS]):
        node = Node(id=1, olt_id=olt.pk, name="State", kind=JobKind.TABLE, interval=timedelta(seconds=POLL_SECONDS))
        fleet.append((node, Inventory.load(olt.pk), list(readings(dice, number, ONUS_PER_OLT, now))))
    sys.stdout.write("polling\n")
    sys.stdout.flush()
    due = time.monotonic()
    for turn in count():
        node, inventory, rows = fleet[turn % len(fleet)]
        rows[:] = [changed(dice, row) for row in rows]
        with transaction.atomic():
            collected = Collected(Completeness.COMPLETE, Batch.of(rows))
            write_collected(inventory, node, collected, Rules(misses=1, mass=100), datetime.now(UTC))
        due += pause
        time.sleep(max(due - time.monotonic(), 0))


@contextmanager
def polled(chosen: argparse.Namespace, folder: str) -> Iterator[None]:
    """Store readings in another process meanwhile, if that was asked for."""
    if not chosen.polling:
        yield
        return
    command = [sys.executable, __file__, "--poll", "--data", folder]
    command += ["--database", chosen.database] if chosen.database else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as poller:
        try:
            if poller.stdout is None or poller.stdout.readline() != "polling\n":
                sys.exit("The process that polls did not start.")
            yield
            if poller.poll() is not None:
                sys.exit("The process that polls ended too early.")
        finally:
            poller.kill()


def add_runs(nodes: Sequence[Any], per_olt: int, now: datetime) -> None:
    """Add executions and quotas of the last day."""
    from facho.apps.coordinator.models import QuotaTracker
    from facho.apps.polling.models import Execution

    dice, hour = random.Random(SEED), now.replace(minute=0, second=0, microsecond=0)
    for first in range(0, len(nodes), 100 * per_olt):
        some = nodes[first : first + 100 * per_olt]
        Execution.objects.bulk_create(
            Execution(
                olt_id=node.olt_id, node=node, node_name=node.job.name, slot=at, claimed_at=at, started_at=at,
                ended_at=at + timedelta(seconds=20), status=dice.choice(("SUCCESS",) * 9 + ("FAILED",)), readings=1000,
            )
            for step in range(EXECUTIONS_PER_OLT // per_olt)
            for at in [now - timedelta(minutes=20 * step)]
            for node in some
        )  # fmt: skip
        QuotaTracker.objects.bulk_create(
            QuotaTracker(
                olt_id=node.olt_id, node=node, task_type=node.job.name, period_start=start,
                period_end=start + timedelta(hours=1), quota_required=12, quota_completed=12, status="COMPLETED",
            )
            for start in (hour - timedelta(hours=back) for back in range(24))
            for node in some
        )  # fmt: skip
        progress(f"executions of {(first + len(some)) // per_olt:,} OLTs")


def vacuum() -> None:
    """Do what PostgreSQL does by itself after a while. SQLite has no such statistics in production either."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def clients() -> dict[str, Any]:
    from django.contrib.auth.models import Permission, User
    from django.test import Client

    from facho.apps.inventory.models import Scope, Site

    boss, _ = User.objects.get_or_create(username="boss", is_superuser=True, is_staff=True)
    scoped, is_new = User.objects.get_or_create(username="scoped", is_staff=True)
    if is_new:
        scoped.user_permissions.set(Permission.objects.all())
        Scope.objects.create(user=scoped).sites.set(Site.objects.filter(name=SITES[1]))
    found = {"all": Client(), "scope": Client()}
    for client, user in zip(found.values(), (boss, scoped), strict=True):
        client.force_login(user)
    return found


def rows_in_the_middle() -> dict[str, Any]:
    from facho.apps.inventory.models import Olt
    from facho.apps.telemetry.models import Onu

    olts = Olt.objects.order_by("pk")
    olt = olts[olts.count() // 2]
    onu = Onu.objects.filter(olt=olt, slot=0, port=7).order_by("onu")[3]
    return {"olt": olt.pk, "node": olt.nodes.order_by("pk")[1].pk, "onu": onu.pk, "serial": onu.serial}


def cpu() -> float:
    """Return the seconds of CPU of this process, and of the server of its connection if that is on this machine."""
    from django.db import connection

    seconds = time.process_time()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            with suppress(FileNotFoundError):
                stat = Path(f"/proc/{cursor.fetchone()[0]}/stat").read_text().rsplit(")", 1)[1].split()
                seconds += (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def measured(client: Any, url: str, times: int) -> tuple[float, float]:
    """Return the median time of a request, and the mean of the CPU, in milliseconds. The first one is not counted."""
    answer = client.get(url)
    if answer.status_code != 200:
        sys.exit(f"{url} is answered with {answer.status_code}.")
    took, before = [], cpu()
    for _ in range(times):
        begun = time.perf_counter()
        client.get(url)
        took.append(time.perf_counter() - begun)
        if sum(took) > 5:
            break
    return 1000 * median(took), 1000 * (cpu() - before) / len(took)


def progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}\x1b[K")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onus", type=int, help="number of ONUs (default 100,000; 1,000,000 on PostgreSQL)")
    parser.add_argument("--database", metavar="URL", default=os.environ.get("FACHO_TEST_POSTGRES_URL"))
    parser.add_argument("--data", metavar="FOLDER", help="keep the installation here, and use it again if it is there")
    parser.add_argument("--only", metavar="TEXT", default="", help="only pages whose URL contains this")
    parser.add_argument("--polling", action="store_true", help="store readings in another process at the same time")
    parser.add_argument("--poll", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--times", type=int, default=7, help="requests of each page (default %(default)s)")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    total = chosen.onus or (1_000_000 if chosen.database else 100_000)
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as temporary:
        folder = chosen.data or temporary
        installed(folder, chosen.database)
        from django.db import connection
        from django.utils import timezone

        from facho.apps.telemetry.models import Onu

        if chosen.poll:
            poll(timezone.now())
        if not Onu.objects.exists():
            begun = time.perf_counter()
            fill(total, timezone.now())
            sys.stdout.write(f"filled in {time.perf_counter() - begun:.0f} s\n")
        sys.stdout.write(f"{Onu.objects.count():,} ONUs on {connection.vendor}\n\n")
        with polled(chosen, folder):
            measure_pages(chosen)


def measure_pages(chosen: argparse.Namespace) -> None:
    sys.stdout.write(f"{'page':<44}{'user':<7}{'CPU':>11}{'median':>11}{'target':>9}\n")
    users, names, slow = clients(), rows_in_the_middle(), 0
    for page in PAGES:
        if chosen.only in page.url:
            took, used = measured(users[page.user], page.url.format(**names), chosen.times)
            slow += took > page.target
            mark = "  slow" if took > page.target else ""
            sys.stdout.write(f"{page.url:<44}{page.user:<7}{used:>8.0f} ms{took:>8.0f} ms{page.target:>6} ms{mark}\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{slow} are slower than their target.\n")


if __name__ == "__main__":
    main()
