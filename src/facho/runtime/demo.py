"""The demonstration: simulated OLTs in a process of their own, and a whole Facho that polls them."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from facho.runtime.config import MOST_POLLERS, Config, ConfigError

USER = PASSWORD = "demo"  # noqa: S105 - printed on the screen; the demonstration listens on loopback only

# Somebody who watches wants to see something happen: everything runs this much more often than on real OLTs.
HURRY = 10
SHORTEST = timedelta(seconds=30)

# The first runs begin right after the start, spread over a few seconds; a discovery goes first, for the others
# ask for the ONUs that it has found.
FIRST_AFTER = timedelta(seconds=2)
SPREAD = timedelta(seconds=5)

# Where the simulated OLTs listen if nobody else does.
FIRST_UDP_PORT = 16101


def run(*, port: int, data: Path, olts: int, onus: int, prepare: Callable[[], Config]) -> None:
    """Run the demonstration until it is stopped."""
    for name, value, least in (("--olts", olts, 1), ("--onus", onus, 1), ("--port", port, 1)):
        if value < least:
            raise ConfigError(f"{name} is {value}. Write a number from {least} on.")
    _isolate(port, data, pollers=min(max(10, olts), MOST_POLLERS))
    config = prepare()
    from django.core.management import call_command

    from facho.runtime import embedded, logs
    from facho.runtime.lock import EngineLock
    from facho.runtime.serving import listen

    logs.configure(config)
    with EngineLock(config):
        # Nothing is set up for a port that somebody else has.
        listen(config.host, config.port).close()
        call_command("migrate", verbosity=0, interactive=False)
        with simulated(olts, onus) as fleet:
            set_up(fleet)
            embedded.serve(config, on_ready=lambda: _welcome(config, fleet))


def _isolate(port: int, data: Path, pollers: int) -> None:
    """Let the demonstration see nothing of an installation that the environment may describe."""
    for name in [name for name in os.environ if name.startswith("FACHO_") or name == "DATABASE_URL"]:
        del os.environ[name]
    os.environ |= {
        "FACHO_DATA_DIR": str(data),
        "FACHO_HOST": "127.0.0.1",
        "FACHO_PORT": str(port),
        "FACHO_POLLERS": str(pollers),
    }


@contextlib.contextmanager
def simulated(olts: int, onus: int) -> Iterator[list[dict[str, Any]]]:
    """Run a fleet as long as the block lasts. It ends with us, however we end: its standard input is ours."""
    ports = ",".join(str(FIRST_UDP_PORT + number) for number in range(olts))
    command = [sys.executable, "-m", "facho.simulator", f"--olts={olts}", f"--onus={onus}", f"--ports={ports}"]
    # In a session of its own: a Ctrl-C is for us, and the fleet goes last.
    with subprocess.Popen(  # noqa: S603 - our own module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise ConfigError("The simulated OLTs did not start; what they said stands above.")
        try:
            yield json.loads(line)
        finally:
            # Leaving the block closes its standard input, and waits for it.
            process.terminate()


def set_up(fleet: list[dict[str, Any]]) -> None:
    """Make the user, the OLTs and their jobs, as far as an earlier demonstration has not."""
    from django.contrib.auth import get_user_model
    from django.db import transaction

    users = get_user_model().objects
    if not users.filter(username=USER).exists():
        users.create_superuser(USER, password=PASSWORD)
    # All or nothing: an OLT that a killed start left without jobs would never get any.
    with transaction.atomic():
        _start_soon(_add_olts(fleet))


def _add_olts(fleet: list[dict[str, Any]]) -> list[int]:
    """Make what is not there yet, and return the ids of the new OLTs."""
    from facho.apps.inventory.models import Olt
    from facho.apps.jobs.templates import propose

    Olt.objects.exclude(name__in=[olt["name"] for olt in fleet]).update(enabled=False)
    new = []
    for olt in fleet:
        values = {"brand": olt["brand"], "host": olt["host"], "port": olt["port"]}
        row, created = Olt.objects.get_or_create(name=olt["name"], defaults=values | {"community": olt["community"]})
        if created:
            new.append(row)
        else:
            # The ports may have changed: another program may listen where it listened last time.
            Olt.objects.filter(pk=row.pk).update(host=olt["host"], port=olt["port"])
    for brand in sorted({olt.brand for olt in new}):
        for job in propose(brand, interval=lambda usual: max(usual / HURRY, SHORTEST)):
            if job.follows is None:
                job.apply_to([olt for olt in new if olt.brand == brand])
    return [olt.pk for olt in new]


def _start_soon(olt_ids: list[int]) -> None:
    """Set the first slots of new nodes, before there is an engine that would."""
    from django.utils import timezone

    from facho.apps.jobs.models import WorkflowNode
    from facho.engine.model import JobKind
    from facho.engine.schedule import GOLDEN_RATIO

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
        f"    Look at   http://{config.host}:{config.port}/\n"
        f"    Log in    {USER} / {PASSWORD}\n"
        f"    API       http://{config.host}:{config.port}/api/v1/docs/\n"
        f"    Data      {config.data_dir}\n\n"
        "  Ctrl-C stops it; the next start goes on with the same data.\n\n"
    )
    sys.stdout.flush()
