"""Demo: simulated OLTs in their own process, and a complete Facho that polls them."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from facho.runtime.config import Config, ConfigError

if TYPE_CHECKING:
    from facho.apps.inventory.models import Olt

USER = PASSWORD = "demo"  # noqa: S105 - printed on the screen; the demonstration listens on loopback only

# Jobs run this many times more often than on real OLTs, so that there is something to see.
HURRY = 10
SHORTEST = timedelta(seconds=30)

# The first runs start a few seconds after the start. A discovery goes first, because the others need its ONUs.
FIRST_AFTER = timedelta(seconds=2)
SPREAD = timedelta(seconds=5)

# Reason in the history of an OLT, to recognize OLTs that the user added or disabled.
ADDED_BY_US = "Added by the demonstration."
DISABLED_BY_US = "Disabled by the demonstration: not simulated."
ENABLED_BY_US = "Enabled by the demonstration: simulated again."

# First port of the simulated OLTs, if free.
FIRST_UDP_PORT = 16101


def run(*, port: int, data: Path, olts: int, onus: int, prepare: Callable[[], Config]) -> None:
    """Run the demo until it is stopped."""
    for name, value in (("--olts", olts), ("--onus", onus), ("--port", port)):
        if value < 1:
            raise ConfigError(f"{name} is {value}. Write 1 or more.")
    # Hide the settings of another installation in the environment.
    for name in [name for name in os.environ if name.startswith("FACHO_") or name == "DATABASE_URL"]:
        del os.environ[name]
    os.environ |= {"FACHO_DATA_DIR": str(data), "FACHO_HOST": "127.0.0.1", "FACHO_PORT": str(port)}
    config = prepare()
    from facho.runtime import embedded, logs
    from facho.runtime.lock import EngineLock
    from facho.runtime.serving import listen
    from facho.runtime.upgrade import upgrade

    logs.configure(config)
    with EngineLock(config):
        # Fail before the setup if the port is in use.
        listen(config.host, config.port).close()
        upgrade(config, verbosity=0, is_locked=True)
        with simulated(olts, onus) as fleet:
            set_up(fleet)
            embedded.serve(config, on_ready=lambda: _welcome(config, fleet))


@contextlib.contextmanager
def simulated(olts: int, onus: int) -> Iterator[list[dict[str, Any]]]:
    """Run a fleet during a `with`. It ends with this process in any case, because its standard input is ours."""
    ports = ",".join(str(FIRST_UDP_PORT + number) for number in range(olts))
    command = [sys.executable, "-m", "facho.simulator", f"--olts={olts}", f"--onus={onus}", f"--ports={ports}"]
    # In its own session: Ctrl-C is for this process, and the fleet ends last.
    with subprocess.Popen(  # noqa: S603 - our own module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise ConfigError("The simulated OLTs did not start. The reason is in the lines above.")
        try:
            yield json.loads(line)
        finally:
            # Leaving the block closes its standard input and waits for it.
            process.terminate()


def set_up(fleet: list[dict[str, Any]]) -> None:
    """Create the user, the OLTs and their jobs, if they do not exist.

    OLTs added by the user are not changed.
    """
    from django.contrib.auth import get_user_model
    from django.db import transaction

    from facho.apps.changes.actor import acting, command_line

    users = get_user_model().objects
    # All or nothing: an OLT without jobs after a killed start would never get any.
    with acting(command_line()), transaction.atomic():
        if not users.filter(username=USER).exists():
            users.create_superuser(USER, password=PASSWORD)
        ours = _own_olts(fleet)
        _follow_fleet(fleet, ours)
        with _noting(ADDED_BY_US):
            new = _add_olts(fleet, ours)
        _add_jobs(new)
        _start_soon([olt.pk for olt in new])


def _own_olts(fleet: list[dict[str, Any]]) -> dict[str, "Olt"]:
    """Return the OLTs added by the demo, by their original names, from the record of changes."""
    from facho.apps.changes.models import Change
    from facho.apps.changes.record import record
    from facho.apps.inventory.models import Olt

    added = Change.objects.filter(note=ADDED_BY_US, object_type="inventory.olt").order_by("-id")
    names = {int(id_): name for id_, name in added.values_list("object_id", "object_name") if id_}
    if names:
        return {names[row.pk]: row for row in Olt.objects.filter(pk__in=names)}
    # Earlier versions recorded nothing and used the name.
    rows = Olt.objects.filter(name__in=[olt["name"] for olt in fleet])
    with _noting(ADDED_BY_US):
        for row in rows:
            record(Change.Action.CREATED, row)
    return {row.name: row for row in rows}


def _noting(note: str) -> AbstractContextManager[None]:
    """Record the changes of the demo with their reason."""
    from facho.apps.changes.actor import acting, command_line

    return acting(command_line(note))


def _follow_fleet(fleet: list[dict[str, Any]], ours: dict[str, "Olt"]) -> None:
    """Set the current addresses, and disable demo OLTs that are not simulated now."""
    simulated = {olt["name"]: olt for olt in fleet}
    for name, row in ours.items():
        if name in simulated:
            # The ports may have changed: another program may use the old one.
            for column in ("host", "port", "community"):
                setattr(row, column, simulated[name][column])
            row.save(update_fields=["host", "port", "community"])
        if name in simulated and not row.enabled and _last_change(row) == DISABLED_BY_US:
            sys.stdout.write(f"  {row.name} is simulated again: it is enabled.\n")
            with _noting(ENABLED_BY_US):
                row.enable()
        elif name not in simulated and row.enabled:
            sys.stdout.write(f"  {row.name} is not simulated this time: it is disabled.\n")
            with _noting(DISABLED_BY_US):
                row.disable()


def _last_change(olt: "Olt") -> str:
    """Return the last change of the demo to one of its OLTs."""
    from facho.apps.changes.models import Change

    own = Change.objects.filter(object_type="inventory.olt", object_id=olt.pk)
    notes = own.filter(note__in=[ADDED_BY_US, DISABLED_BY_US, ENABLED_BY_US]).order_by("-id")
    return str(notes.values_list("note", flat=True).first() or "")


def _add_olts(fleet: list[dict[str, Any]], ours: dict[str, "Olt"]) -> list["Olt"]:
    """Add missing OLTs, and return them."""
    from facho.apps.inventory.models import Olt

    new = [olt for olt in fleet if olt["name"] not in ours]
    taken = set(Olt.objects.filter(name__in=[olt["name"] for olt in new]).values_list("name", flat=True))
    for name in sorted(taken):
        sys.stdout.write(f"  {name} already exists as an OLT of your own: it is not simulated.\n")
    names = ("name", "brand", "host", "port", "community")
    return [Olt.objects.create(**{name: olt[name] for name in names}) for olt in new if olt["name"] not in taken]


def _add_jobs(olts: list["Olt"]) -> None:
    """Create the usual jobs of new OLTs, and a third link after the state."""
    from facho.apps.jobs.models import SnmpJob
    from facho.apps.jobs.templates import propose

    for brand in sorted({olt.brand for olt in olts}):
        jobs = {job.name: job for job in propose(brand, interval=lambda usual: max(usual / HURRY, SHORTEST))}
        state = jobs["State"]
        third = {"kind": "table", "columns": ["name"], "interval_seconds": state.interval_seconds, "follows": state}
        SnmpJob.objects.get_or_create(brand=brand, name="Names", defaults=third)
        for job in jobs.values():
            if job.follows is None:
                job.apply_to([olt for olt in olts if olt.brand == brand])


def _start_soon(olt_ids: list[int]) -> None:
    """Set the first slots of new nodes before the engine starts."""
    from django.utils import timezone

    from facho.apps.jobs.models import WorkflowNode
    from facho.engine.model import JobKind
    from facho.engine.scheduling.grid import GOLDEN_RATIO

    now = timezone.now()
    for node in WorkflowNode.objects.filter(olt_id__in=olt_ids, master__isnull=True).select_related("job"):
        is_discovery = node.job.kind == JobKind.DISCOVERY
        share = node.olt_id * GOLDEN_RATIO % 1 / 2 if is_discovery else 0.5 + node.pk * GOLDEN_RATIO % 1 / 2
        first = now + FIRST_AFTER + share * SPREAD
        WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=first.replace(microsecond=0))


def _welcome(config: Config, fleet: list[dict[str, Any]]) -> None:
    onus = sum(olt["onus"] for olt in fleet)
    sys.stdout.write(
        f"\n  Facho polls {len(fleet)} simulated OLTs with {onus} ONUs.\n\n"
        f"    Open      http://{config.host}:{config.port}/\n"
        f"    Log in    {USER} / {PASSWORD}\n"
        f"    API       http://{config.host}:{config.port}/api/v1/docs/\n"
        f"    Data      {config.data_dir}\n\n"
        "  Ctrl-C stops it; the next start continues with the same data.\n\n"
    )
    sys.stdout.flush()
