"""How long a search takes, and what its index costs. Run it; it is not a test.

Customers of 250 OLTs have a first name, two surnames, a street and a contract number. Each search runs as on the page
of the search, with its three groups, and as the list of ONUs in the API, with its count. A run renames ONUs as
discoveries do.

python tests/bench/bench_search.py [--onus 100000]
python tests/servers.py python tests/bench/bench_search.py --onus 1000000      on PostgreSQL
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

from bench_history import installed, measured, size

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OLTS = 250
REPEATS = 15
NAMES = (
    *("María", "José", "Juan", "Luis", "Carlos", "Ana", "Rosa", "Jorge", "Carmen", "Pedro", "Elena", "Miguel"),
    *("Sofía", "Diego", "Lucía", "Martín", "Andrés", "Paula", "Julio", "Teresa", "Ramón", "Inés", "Óscar", "Nuria"),
    *("Víctor", "Alba", "Hugo", "Irene", "Raúl", "Silvia", "Darío", "Noa"),
)
SURNAMES = (
    *("María", "José", "Juan", "Luis", "Carlos", "Ana", "Rosa", "Jorge", "Carmen", "Pedro", "Elena", "Miguel"),
    *("Sofía", "Diego", "Lucía", "Martín", "Andrés", "Paula", "Julio", "Teresa", "Ramón", "Inés", "Óscar", "Nuria"),
    *("Víctor", "Alba", "Hugo", "Irene", "Raúl", "Silvia", "Darío", "Noa"),
)
SURNAMES = [
    first + last
    for first in ("Gar", "Mar", "Fern", "Lóp", "Sánch", "Pér", "Góm", "Ru", "Rod", "Qu")
    for last in ("cía", "tín", "ández", "ez", "ero", "iz", "ríguez", "ispe", "illo", "oga")
]
STREETS = ("Jr. Los Álamos", "Av. La Marina", "Calle Real", "Psje. San Martín", "Urb. El Sol")
VENDORS = ("HWTC", "ZTEG", "ALCL", "FHTT")

COLUMNS = (
    *("olt_id", "pon_port_id", "index", "slot", "port", "onu", "serial", "mac", "name", "description"),
    *("state", "extra", "misses", "moved_from", "place_taken", "first_seen_at"),
)
CONSTANTS = ("online", "{}", 0, "", False)


def row(port: Any, onu: int, number: int) -> tuple[Any, ...]:
    name = f"{random.choice(NAMES)} {random.choice(SURNAMES)} {random.choice(SURNAMES)}"
    street = f"{random.choice(STREETS)} {random.randrange(1, 2000)} cliente {number:07}"
    mac = f"{random.getrandbits(48):012x}"
    serial = f"{random.choice(VENDORS)}{random.getrandbits(32):08X}"
    pairs = ":".join(mac[at : at + 2] for at in range(0, 12, 2))
    place = (port.olt_id, port.pk, f"{port.pk}.{onu}", port.slot, port.port, onu)
    return (*place, serial, pairs, name, street, *CONSTANTS, NOW)


def fill(onus: int) -> None:
    """Write the ONUs, and their texts and index by the migration."""
    from django.core.management import call_command
    from django.db import connection, transaction

    from facho.apps.inventory.models import Olt
    from facho.apps.telemetry.models import Onu, PonPort
    from facho.store import sql

    call_command("migrate", "telemetry", "0011", verbosity=0)
    olts = [Olt(name=f"OLT-{NAMES[n % 32]}-{n:03}", host=f"127.1.{n}.2", community="public") for n in range(OLTS)]
    places = [(slot, port) for slot in (1, 2) for port in range(16)]
    per_port = max(onus // OLTS // len(places), 1)
    numbers = count()
    with transaction.atomic():
        for olt in Olt.objects.bulk_create(olts):
            ports = [PonPort(olt=olt, slot=slot, port=port, read_at=NOW) for slot, port in places]
            written = PonPort.objects.bulk_create(ports)
            rows = [row(port, onu, next(numbers)) for port in written for onu in range(per_port)]
            sql.write(Onu, COLUMNS, [tuple(map(sql.adapted, each)) for each in rows])
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    _, seconds = measured(lambda: call_command("migrate", "telemetry", verbosity=0))
    sys.stdout.write(f"{Onu.objects.count():,} ONUs, migrated in {seconds:.1f} s\n")
    tables = ["onu_search"] if connection.vendor == "postgresql" else ["onu_search", "onu_search_index"]
    mega = size(*tables) / 1e6
    if connection.vendor == "sqlite":
        mega = sum(size(f"onu_search{part}") for part in ("", "_index_data", "_index_docsize", "_index_idx")) / 1e6
    sys.stdout.write(f"texts and index: {mega:.0f} MB\n")


def searches() -> dict[str, str]:
    from facho.apps.telemetry.models import Onu

    onu = Onu.objects.order_by("pk")[Onu.objects.count() // 3]
    serial, mac = str(onu.serial), str(onu.mac)
    return {
        "rare word (contract)": str(onu.description).rsplit(" ", 1)[1],
        "common word": "maría",
        "word of all": "cliente",
        "two words": f"{str(onu.name).split()[0]} {str(onu.name).split()[1]}",
        "complete name": str(onu.name),
        "common words, no hit": "cliente maría 1234567x",
        "serial": serial,
        "serial in hex": serial[:4].encode().hex() + serial[4:],
        "part of a serial": serial[5:10],
        "MAC": mac,
        "part of a MAC": mac[3:11],
        "place": f"{onu.slot}/{onu.port}/{onu.onu}",
        "place of a port": f"{onu.slot}/{onu.port}",
        "OLT and place": f"{onu.olt.name} {onu.slot}/{onu.port}/{onu.onu}",
        "name of an OLT": onu.olt.name,
        "OLT and word": f"{onu.olt.name} {str(onu.name).split()[1]}",
        "no hit": "xyzzyplugh",
        "one letter": "q",
        "two letters": "qu",
        "two letters, no hit": "xj",
        "name and a letter": f"{str(onu.name).split()[1]} q",
    }


def timed(work: Callable[[], Any]) -> list[float]:
    work()
    took = []
    for _ in range(REPEATS):
        before = time.perf_counter()
        work()
        took.append(1000 * (time.perf_counter() - before))
    return took


def read() -> None:
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from rest_framework.test import APIClient

    settings.ALLOWED_HOSTS = ["testserver"]
    api = APIClient()
    api.force_authenticate(get_user_model().objects.create_superuser("boss", password="-"))
    sys.stdout.write(f"\n{'milliseconds':<24}{'search':>24}{'list of ONUs':>28}\n")
    sys.stdout.write(f"{'':<24}{'found':>8}{'median':>8}{'worst':>8}{'found':>12}{'median':>8}{'worst':>8}\n")
    for name, text in searches().items():
        found = api.get("/api/v1/search/", {"q": text}).data["onus"]["count"]
        listed = api.get("/api/v1/onus/", {"search": text}).data["count"]
        search = timed(partial(api.get, "/api/v1/search/", {"q": text}))
        onus = timed(partial(api.get, "/api/v1/onus/", {"search": text}))
        line = f"{name:<24}{found:>8,}{statistics.median(search):8.1f}{max(search):8.1f}"
        sys.stdout.write(f"{line}{listed:>12,}{statistics.median(onus):8.1f}{max(onus):8.1f}\n")
        sys.stdout.flush()


def in_transaction(work: Callable[[Any], Any], argument: Any) -> None:
    from django.db import transaction

    with transaction.atomic():
        work(argument)


def write() -> None:
    """Write a run of an OLT that changes nothing of the texts, one that renames all ONUs, and one that finds them."""
    from django.db import connection

    from facho.apps.inventory.models import Olt
    from facho.store.inventory import Columns, Inventory, compare

    olt = Olt.objects.create(name="OLT-NEW", host="10.2.0.1", community="public")
    indexes = [f"9.{number}" for number in range(1000)]
    places = {"slot": [9] * 1000, "port": [n // 64 for n in range(1000)], "onu": [n % 64 for n in range(1000)]}
    runs = {
        "new ONUs": {"serial": [f"HWTC{number:08X}" for number in range(1000)]},
        "first names": {"name": [f"{NAMES[n % 32]} {SURNAMES[n % 100]} {n}" for n in range(1000)]},
        "other names": {"name": [f"{NAMES[n % 31]} {SURNAMES[n % 99]} {n}" for n in range(1000)]},
        "powers only": {"rx_dbm": [-20 - n / 100 for n in range(1000)]},
    }
    sys.stdout.write("\na run of 1,000 ONUs, milliseconds      with texts   without\n")
    took: dict[str, list[float]] = {name: [] for name in runs}
    for with_texts in (True, False):
        whole = Inventory._write_texts
        if not with_texts:
            Inventory._write_texts = lambda self, changes: None  # type: ignore[method-assign]
        inventory = Inventory.load(olt.pk)
        for name, values in runs.items():
            inventory.ensure(values)
            changes = compare(inventory, Columns(indexes, places, values), NOW)

            took[name].append(1000 * measured(partial(in_transaction, inventory.apply, changes))[1])
        Inventory._write_texts = whole  # type: ignore[method-assign]
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM onu_events")
            cursor.execute("DELETE FROM onu_search WHERE olt_id = %s", [olt.pk])
            cursor.execute("DELETE FROM onu_data WHERE olt_id = %s", [olt.pk])
    for name, (texts, none) in took.items():
        sys.stdout.write(f"{name:<38}{texts:11.1f}{none:10.1f}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onus", type=int, default=100_000)
    options = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as folder:
        installed(folder)
        fill(options.onus)
        read()
        write()


if __name__ == "__main__":
    main()
