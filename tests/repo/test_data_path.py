"""The table of ARCHITECTURE.md names every file that a datum passes from due to stored: one run is traced."""

import asyncio
import inspect
import re
import sys
import threading
from collections import defaultdict
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

import facho
from facho.adapters.clock import SystemClock
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.telemetry.models import Onu
from facho.engine.model import Claim, CompositeNode, Node, RunResult
from facho.engine.scheduling.queue import QueuedNode
from facho.runtime import build, config
from facho.simulator.fleet import OltSpec, SimulatedFleet
from real_database import threads_on_file

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(facho.__file__).parent
PAGE = ROOT / "ARCHITECTURE.md"
TITLE = "## One datum in a straight line"

# Values are called for their own properties; observers count and show; the last two carry any statement.
SUPPORT = {
    "engine/batch.py",
    "engine/model.py",
    "engine/scheduling/snapshot.py",
    "engine/snmp.py",
    "runtime/metrics.py",
    "store/database.py",
    "store/sql.py",
}

# Lower it when two files of the path become one. It never rises.
MOST_FILES = 20

# What the datum is, until there is a value.
SHAPES = (Node, CompositeNode, QueuedNode, Claim, RunResult)

# How deep a datum may lie in what a function is called with or returns.
DEPTH = 5


class Trace:
    """Notes, for each file of Facho, which shapes, numbers and bytes its functions were given or returned."""

    def __init__(self):
        self.is_on = False
        self.found = defaultdict(set)

    def __enter__(self):
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        threading.setprofile(None)

    def __call__(self, frame, event, value):
        code = frame.f_code
        if not self.is_on or event not in ("call", "return") or not code.co_filename.startswith(f"{SOURCE}/"):
            return
        found = self.found[code.co_filename.removeprefix(f"{SOURCE}/")]
        if event == "return":
            look(value, found)
        else:
            flags = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
            count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & flag) for flag in flags)
            given = frame.f_locals
            look([given[name] for name in code.co_varnames[:count] if name in given], found)

    def files_with(self, value):
        """Return the files that had the datum in hand: as a shape, as this value, raw, or in a message."""
        raw = round(value * 100)
        encoded = b"\x02\x02" + raw.to_bytes(2, signed=True)

        def is_datum(thing):
            return encoded in thing if isinstance(thing, bytes) else thing in (*SHAPES, value, raw)

        # The simulator is the other end of the wire.
        return {
            file
            for file, found in self.found.items()
            if not file.startswith("simulator/") and any(is_datum(thing) for thing in found)
        }


def look(thing, found, depth=DEPTH):
    """Add what a thing is, and what is in it, as far as that may be the datum."""
    kind = type(thing)
    if kind in SHAPES:
        found.add(kind)
    if kind in (int, float):
        found.add(thing)
    elif kind in (bytes, bytearray, memoryview):
        found.add(bytes(thing))
    elif depth and kind in (list, tuple, set, frozenset):
        for each in thing:
            look(each, found, depth - 1)
    elif depth and kind is dict:
        for each in thing.values():
            look(each, found, depth - 1)
    elif depth and is_dataclass(kind):
        for field in fields(thing):
            look(getattr(thing, field.name, None), found, depth - 1)


class Passing:
    """The seconds since the machine started; a test may let some pass."""

    def __init__(self):
        self._started = SystemClock().monotonic
        self.passed = 0.0

    def __call__(self):
        return self._started() + self.passed


@pytest.fixture
def steady(monkeypatch):
    steady = Passing()
    monkeypatch.setattr(build, "SystemClock", lambda: SystemClock(steady=steady))
    return steady


def make_rows(port):
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", port=port, community="public")
    for seconds, name, kind, columns in (
        (60, "Discovery", "discovery", ["serial", "state"]),
        (120, "Optical power", "get", ["rx_dbm"]),
    ):
        job = SnmpJob.objects.create(name=name, brand="huawei", kind=kind, columns=columns, interval_seconds=3600)
        job.apply_to([olt])
        WorkflowNode.objects.filter(job=job).update(next_run_at=timezone.now() + timedelta(seconds=seconds))


def next_run(name):
    return WorkflowNode.objects.get(job__name=name).next_run_at


def powers():
    return {onu.pk: onu.rx_dbm for onu in Onu.objects.exclude(rx_dbm=None)}


async def run_once(engine, steady, name):
    """Let the time come at which a job is due, and tick until its run has ended."""
    reader = engine.threads[0]
    due = await reader.run(lambda: next_run(name))
    steady.passed += (due - engine.clock.now()).total_seconds() + 0.1
    pollers = engine.scheduler.manager.pollers
    while await reader.run(lambda: next_run(name)) == due:
        await engine.scheduler.step()
        while any(poller.is_at_work for poller in pollers):
            await engine.clock.sleep(0.01)


def weaken(plant):
    """Return the plant with less light everywhere, so that each value of the next run is another one."""
    return replace(plant, onus=tuple(replace(onu, rx_dbm=onu.rx_dbm - 3) for onu in plant.onus))


async def trace_a_run(trace, steady, settings):
    """Return the files that a changed value passed in an ordinary run, which sends the requests of the last one."""
    async with SimulatedFleet([OltSpec("OLT-CENTRAL-01", onus=20)]) as fleet:
        olt = fleet["OLT-CENTRAL-01"]
        engine = build.engine(settings)
        try:
            reader, writer, *_ = engine.threads
            await writer.run(lambda: make_rows(olt.port))
            await engine.scheduler.step()
            # The first run of a job learns sizes; what the second one sent is repeated from then on.
            for name in ("Discovery", "Optical power", "Optical power"):
                await run_once(engine, steady, name)
            before = await reader.run(powers)
            olt.agent.install(olt.device.replanted(weaken(olt.device.plant)))
            trace.is_on = True
            await run_once(engine, steady, "Optical power")
            trace.is_on = False
            after = await reader.run(powers)
        finally:
            await engine.close()
    onu = next(each for each, power in after.items() if power < before[each] - 2)
    return trace.files_with(after[onu])


def files_of_the_table():
    section = PAGE.read_text().partition(TITLE)[2].partition("\n## ")[0]
    cells = [line.split("|")[2] for line in section.splitlines() if line.startswith("|")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_table_of_the_data_path_names_every_file_of_a_run(transactional_db, tmp_path, monkeypatch, steady):
    settings = config.load({"FACHO_DATA_DIR": str(tmp_path)})
    with threads_on_file(tmp_path / "facho.sqlite3", monkeypatch), Trace() as trace:
        passed = asyncio.run(trace_a_run(trace, steady, settings))

    named = files_of_the_table()
    assert sorted(SUPPORT - passed) == [], "support that a run does not need"
    assert sorted(passed - SUPPORT) == sorted(named)
    assert len(named) <= MOST_FILES
