"""Runs of an OLT with more or fewer changes, and what writing each of them takes on the database of this process."""

import os
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

T0 = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
PORTS = 16
POWERS = ("rx_dbm", "tx_dbm", "olt_rx_dbm")
COLUMNS = ("state", "name", "description", *POWERS, "distance_m", "temperature_c")


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


def first_columns(onus):
    return {
        "state": ["online"] * onus,
        "name": [f"client-{n}" for n in range(onus)],
        "description": [f"street {n}" for n in range(onus)],
        **{name: [-20.0 - n % 100 / 10 for n in range(onus)] for name in POWERS},
        "distance_m": [1000.0 + n for n in range(onus)],
        "temperature_c": [40.0] * onus,
    }


def unchanged(columns, number):
    return {name: list(values) for name, values in columns.items()}


def powers_changed(columns, number):
    """Change 60 % of the powers by some hundredths."""
    chance = random.Random(number)
    moved = {name: [v + 0.01 if chance.random() < 0.6 else v for v in columns[name]] for name in POWERS}
    return {**columns, **moved}


def everything_changed(columns, number):
    words = {name: [f"{value.split()[0]} {number}" for value in columns[name]] for name in ("name", "description")}
    numbers = {name: [value + 0.01 for value in columns[name]] for name in (*POWERS, "distance_m", "temperature_c")}
    return {"state": [("online", "los")[number % 2]] * len(columns["state"]), **words, **numbers}


CASES = {"nothing changed": unchanged, "60 % of powers": powers_changed, "everything": everything_changed}


def cpu() -> tuple[float, float]:
    """Return the seconds of CPU of this process, and of the server's process that works for it."""
    from django.db import connection

    server = 0.0
    if connection.vendor == "postgresql":
        stat = Path(f"/proc/{connection.connection.info.backend_pid}/stat").read_text().rsplit(")", 1)[1].split()
        server = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    return time.process_time(), server


def measure(onus: int, rounds: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the microseconds per value of each case: with a kept inventory and a loaded one, ours and the server's."""
    from django.db import transaction

    from facho.apps.inventory.models import Olt
    from facho.store.inventory import Columns, Inventory, compare

    costs = {}
    for case, change in CASES.items():
        olt = Olt.objects.create(name=f"{case} {onus}", brand="huawei", host="127.0.0.1", community="public").pk
        indexes = [f"4194304000.{n}" for n in range(onus)]
        places = {"slot": [0] * onus, "port": [n % PORTS for n in range(onus)], "onu": list(range(onus))}
        columns = first_columns(onus)
        kept = Inventory.load(olt, COLUMNS)
        costs[case] = {}
        now = T0
        for way in ("first", "kept", "loaded"):
            spent = [0.0, 0.0]
            repeats = 1 if way == "first" else rounds
            for number in range(repeats):
                now += timedelta(minutes=5)
                columns = change(columns, number + (way == "loaded")) if way != "first" else columns
                read = Columns(indexes, places, columns)
                before = cpu()
                with transaction.atomic():
                    inventory = Inventory.load(olt, COLUMNS) if way == "loaded" else kept
                    inventory.apply(compare(inventory, read, now))
                spent = [total + after - then for total, after, then in zip(spent, cpu(), before, strict=True)]
            values = repeats * onus * len(COLUMNS)
            costs[case][way] = tuple(round(seconds / values * 1e6, 3) for seconds in spent)
    return costs
