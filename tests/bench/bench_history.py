"""What history costs: bytes and CPU per value, and the time that one ONU's series takes. Run it; it is not a test.

The default jobs of a brand, with random values: state and two counters every 5 minutes, three powers and the
temperature every 30. 60 % of the powers change by 0.05 to 0.3 dB between two runs, counters grow by what a household
uses, 1 % of the ONUs are dark. The first OLTs are written run by run, as pollers do it; then whole OLTs are copied
inside the database, so that indexes are as deep as those of a large installation.

python tests/bench/bench_history.py [--onus 1000] [--days 31] [--olts 2] [--copies 50]
python tests/servers.py python tests/bench/bench_history.py      on PostgreSQL
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 3, 1, tzinfo=UTC)
FIVE = timedelta(minutes=5)
DAY = timedelta(days=1)
POWERS = ("rx_dbm", "tx_dbm", "olt_rx_dbm")
# Values per ONU and day: state and two counters 288 times, three powers and the temperature 48 times.
A_DAY = 3 * 288 + 4 * 48


def installed(folder: str) -> None:
    url = os.environ.get("FACHO_TEST_POSTGRES_URL")
    for name in [name for name in os.environ if name.startswith("FACHO_") or name == "DATABASE_URL"]:
        del os.environ[name]
    os.environ |= {"FACHO_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "facho.runtime.settings"}
    if url:
        os.environ["DATABASE_URL"] = url
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


class Plant:
    """The ONUs of one OLT, and what they would answer."""

    def __init__(self, count: int) -> None:
        self.states = ["los" if number % 100 == 0 else "online" for number in range(count)]
        self.powers = {
            name: [random.randrange(*bounds) for _ in range(count)]
            for name, bounds in zip(POWERS, ((-2700, -1500), (150, 300), (-2900, -1700)), strict=True)
        }
        self.temperatures = [random.randrange(35, 60) for _ in range(count)]
        self.counters = [[random.randrange(10**12) for _ in range(count)] for _ in range(2)]
        # Most households use little at a time, some much.
        self.usage = [random.lognormvariate(15, 2) for _ in range(count)]

    def traffic(self) -> dict[str, list[Any]]:
        for counter, share in zip(self.counters, (0.1, 1.0), strict=True):
            counter[:] = [
                value + int(mean * share * random.expovariate(1))
                for value, mean in zip(counter, self.usage, strict=True)
            ]
        return {"in_octets": list(self.counters[0]), "out_octets": list(self.counters[1])}

    def optics(self) -> dict[str, list[Any]]:
        cells: dict[str, list[Any]] = {}
        for name, codes in self.powers.items():
            codes[:] = [
                code + random.choice((-1, 1)) * random.randrange(5, 31) if random.random() < 0.6 else code
                for code in codes
            ]
            cells[name] = [
                None if state == "los" else code / 100 for code, state in zip(codes, self.states, strict=True)
            ]
        self.temperatures = [t + random.choice((-1, 0, 0, 0, 1)) for t in self.temperatures]
        return {**cells, "temperature_c": list(self.temperatures)}


def runs(plant: Plant, day: datetime) -> Iterator[tuple[datetime, dict[str, list[Any]]]]:
    for number in range(288):
        # A run ends some seconds after its slot, and never at a whole one.
        at = day + number * FIVE + timedelta(microseconds=random.randrange(8_000_000))
        yield at, {"state": list(plant.states)}
        yield at + timedelta(seconds=1.3), plant.traffic()
        if number % 6 == 0:
            yield at + timedelta(seconds=61.7), plant.optics()


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of CPU and of the clock that work takes."""
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - clock


def size(*tables: str) -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM FULL " + ", ".join(tables))
            cursor.execute("SELECT " + " + ".join(f"pg_total_relation_size('{table}')" for table in tables))
        else:
            names = ", ".join(f"'{table}'" for table in tables)
            cursor.execute(
                "SELECT sum(pgsize) FROM dbstat WHERE aggregate = 1 AND name IN (SELECT name FROM sqlite_master "  # noqa: S608
                f"WHERE tbl_name IN ({names}))"
            )
        return int(cursor.fetchone()[0] or 0)


def write_olt(onus: int, days: int, report: dict[str, float]) -> int:
    """Write days of one OLT as pollers do, close each as the chore does, and return its id."""
    from django.db import transaction

    from facho.apps.inventory.models import Olt
    from facho.apps.telemetry.history import RAW
    from facho.apps.telemetry.models import Onu
    from facho.store.history import append, close

    number = Olt.objects.count()
    olt = Olt.objects.create(name=f"OLT-{number}", brand="huawei", host=f"127.0.{number // 200}.{number % 200 + 1}")
    rows = Onu.objects.bulk_create(
        Onu(olt=olt, index=f"1.{n}", first_seen_at=START, read_at=START) for n in range(onus)
    )
    ids, plant = [row.pk for row in rows], Plant(onus)
    for day in range(days):
        made = list(runs(plant, START + day * DAY))
        for at, columns in made:
            with transaction.atomic():
                cpu, _ = measured(lambda at=at, columns=columns: append(olt.pk, at, ids, columns))  # type: ignore[misc]
            report["append"] += cpu
        if "open" not in report:
            report["open"] = size("onu_history_runs")
        cpu, _ = measured(lambda day=day: close(RAW, olt.pk, START + day * DAY))  # type: ignore[misc]
        report["close"] += cpu
        report["values"] += onus * A_DAY
    return olt.pk


def copy_olt(olt_id: int) -> None:
    """Let another OLT have the same chunks, with ids of ONUs that no series asks for."""
    from django.db import connection

    from facho.apps.inventory.models import Olt

    number = Olt.objects.count()
    olt = Olt.objects.create(name=f"OLT-{number}", brand="huawei", host=f"127.0.{number // 200}.{number % 200 + 1}")
    columns = "field, start, last_at, first_onu, last_onu, data"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO onu_history_chunks (olt_id, {columns}) "  # noqa: S608
            f"SELECT %s, {columns} FROM onu_history_chunks WHERE olt_id = %s",
            [olt.pk, olt_id],
        )


def best(work: Callable[[], Any], times: int = 5) -> tuple[float, int]:
    """Return the milliseconds that the quickest of some tries takes, and how many rows it gives."""
    took, rows = [], 0
    for _ in range(times):
        begun = time.perf_counter()
        rows = len(work())
        took.append(time.perf_counter() - begun)
    return min(took) * 1000, rows


def make_year(olt_id: int) -> None:
    """Repeat the daily values of a month for a year."""
    from facho.apps.telemetry.history import DAYS, start_of_month
    from facho.apps.telemetry.models import HistoryDay
    from facho.store.history import close

    days = list(HistoryDay.objects.filter(olt_id=olt_id).order_by("at"))
    for number in range(len(days), 365):
        HistoryDay.objects.create(olt_id=olt_id, at=START + number * DAY, data=days[number % len(days)].data)
    for month in sorted({start_of_month(START + number * DAY) for number in range(330)}):
        close(DAYS, olt_id, month)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--onus", type=int, default=1000)
    parser.add_argument("--days", type=int, default=31)
    parser.add_argument("--olts", type=int, default=2)
    parser.add_argument("--copies", type=int, default=50)
    wanted = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        installed(folder)
        measure(wanted.onus, wanted.days, wanted.olts, wanted.copies)


def measure(onus: int, days: int, olts: int, copies: int) -> None:
    from django.db import connection

    from facho.apps.telemetry.history import series
    from facho.apps.telemetry.models import HistoryChunk, Onu
    from facho.engine.chunks import FIELDS

    report: dict[str, float] = {"append": 0.0, "close": 0.0, "values": 0.0}
    written = [write_olt(onus, days, report) for _ in range(olts)]
    values = report["values"]
    print(
        f"{connection.vendor}, {olts} OLTs x {onus} ONUs x {days} days, {values:,.0f} values, Python {sys.version[:6]}"
    )
    print(f"append  {report['append'] / values * 1e6:.3f} us of CPU per value, without the commit")
    print(f"close   {report['close'] / values * 1e6:.3f} us of CPU per value, with its transaction")
    by_field = {
        field: sum(len(data) for data in HistoryChunk.objects.filter(field=field).values_list("data", flat=True))
        for field in FIELDS
    }
    cells = dict.fromkeys(FIELDS, 288) | dict.fromkeys((*POWERS, "temperature_c"), 48)
    for field, packed in by_field.items():
        print(f"        {field:14} {packed / olts / onus / days / cells[field]:.3f} bytes per value")
    total = size("onu_history_chunks")
    daily = size("onu_history_days")
    a_day = total / olts / onus / days
    powers = sum(by_field[name] for name in POWERS) / olts / onus / days / 48
    print(f"tables  {total / values:.2f} bytes per value; {powers:.2f} per reading of 3 powers")
    print(
        f"        1 M ONUs: {a_day / 1000:.2f} GB a day, and {daily / olts / onus / days / 1000:.3f} GB of daily values"
    )
    print(f"        runs of the open day: {report['open'] / onus / 1000:.2f} GB")
    for _ in range(copies):
        copy_olt(written[0])
    make_year(written[0])
    onu_id = Onu.objects.filter(olt_id=written[0]).order_by("pk")[onus // 2].pk
    shown = min(days, 30)
    month = START, START + shown * DAY
    print(f"series of one ONU, with the chunks of {(olts + copies) * onus:,} ONUs x {days} days in the table:")
    for what, fields, span, step in (
        (f"{shown} days, powers and state (chart)", ("state", *POWERS), month, None),
        (f"{shown} days, all fields", tuple(FIELDS), month, None),
        (f"{shown} days, counters by the hour", ("in_octets", "out_octets"), month, timedelta(hours=1)),
        ("a year of powers, by the day", ("state", *POWERS), (START, START + 364 * DAY), DAY),
    ):
        took, rows = best(lambda fields=fields, span=span, step=step: series(onu_id, fields, *span, step))  # type: ignore[misc]
        print(f"        {what:36} {took:6.1f} ms, {rows:,} rows")
    plant, open_day = Plant(onus), START + days * DAY
    fill_open(written[0], plant, open_day)
    took, rows = best(lambda: series(onu_id, ("state", *POWERS), open_day, open_day + DAY))
    print(f"        {'a day that is open, powers and state':36} {took:6.1f} ms, {rows:,} rows")


def fill_open(olt_id: int, plant: Plant, day: datetime) -> None:
    from facho.apps.telemetry.models import Onu
    from facho.store.history import append

    ids = list(Onu.objects.filter(olt_id=olt_id).order_by("pk").values_list("pk", flat=True))
    for at, columns in runs(plant, day):
        append(olt_id, at, ids, columns)


if __name__ == "__main__":
    main()
