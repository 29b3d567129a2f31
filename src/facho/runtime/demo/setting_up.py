"""User, OLTs and jobs of the demo. What the visitor added or changed stays as it is."""

import sys
from collections.abc import Collection
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from facho.apps.changes.actor import acting, command_line
from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.inventory.models import Olt, Site
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.jobs.templates import propose
from facho.engine.model import JobKind
from facho.engine.scheduling.grid import GOLDEN_RATIO
from facho.runtime.demo import PASSWORD, USER
from facho.runtime.demo.past import Past
from facho.runtime.demo.places import place
from facho.simulator.fleet import HOST

# Jobs of the demo's OLTs run this many times more often than usual, so that there is something to see, but not more
# often than this in seconds.
HURRY = 10
SHORTEST = 30
# Columns that show a failure. They are read so often that it is a problem within a minute.
TELLING = frozenset({"state", "rx_dbm"})

# The first runs start a few seconds after the start. A discovery goes first, because the others need its ONUs.
FIRST_AFTER = timedelta(seconds=2)
SPREAD = timedelta(seconds=5)

# Reason in the history of an OLT, to recognize OLTs that the user added or disabled.
ADDED_BY_US = "Added by the demonstration."
DISABLED_BY_US = "Disabled by the demonstration: not simulated."
ENABLED_BY_US = "Enabled by the demonstration: simulated again."


def first_start() -> datetime:
    """Return the time of the first start: the user of the demo has been there since then."""
    joined = get_user_model().objects.filter(username=USER).values_list("date_joined", flat=True).first()
    return joined or timezone.now()


def set_up(fleet: list[dict[str, Any]], past: Past | None = None) -> None:
    """Create the user, the OLTs and their jobs, if they do not exist; in an empty installation with their past."""
    now = timezone.now()
    # All or nothing: an OLT without jobs after a killed start would never get any, nor a second past.
    with acting(command_line()), transaction.atomic():
        is_empty = not Olt.objects.exists()
        with _noting(ADDED_BY_US):
            _add_user(past.began if past else now)
        ours = own_olts([olt["name"] for olt in fleet])
        _follow_fleet(fleet, ours)
        with _noting(ADDED_BY_US):
            new = _add_olts(fleet, ours)
            _add_jobs(new)
        if past and is_empty:
            past.write(new, now)
            place(new)
        _start_soon([olt.pk for olt in new])


def _add_user(joined: datetime) -> None:
    users = get_user_model().objects
    if not users.filter(username=USER).exists():
        users.create_superuser(USER, password=PASSWORD, date_joined=joined)


def added(model: type[Model]) -> dict[int, str]:
    """Return the original names of the rows added by the demo, by id, from the record of changes."""
    rows = Change.objects.filter(note=ADDED_BY_US, object_type=model._meta.label_lower).order_by("-id")
    return {int(id_): name for id_, name in rows.values_list("object_id", "object_name") if id_}


def own_olts(names: Collection[str]) -> dict[str, Olt]:
    """Return the OLTs added by the demo, by their original names. Earlier versions recorded nothing and used `names`.

    One with another address than that of a simulated OLT belongs to the visitor now.
    """
    ours = added(Olt)
    if ours:
        return {ours[row.pk]: row for row in Olt.objects.filter(pk__in=ours, host=HOST)}
    rows = Olt.objects.filter(name__in=names, host=HOST)
    with _noting(ADDED_BY_US):
        for row in rows:
            record(Change.Action.CREATED, row)
    return {row.name: row for row in rows}


def _noting(note: str) -> AbstractContextManager[None]:
    """Record the changes of the demo with their reason."""
    return acting(command_line(note))


def _follow_fleet(fleet: list[dict[str, Any]], ours: dict[str, Olt]) -> None:
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


def _last_change(olt: Olt) -> str:
    """Return the last change of the demo to one of its OLTs."""
    own = Change.objects.filter(object_type="inventory.olt", object_id=olt.pk)
    notes = own.filter(note__in=[ADDED_BY_US, DISABLED_BY_US, ENABLED_BY_US]).order_by("-id")
    return str(notes.values_list("note", flat=True).first() or "")


def _add_olts(fleet: list[dict[str, Any]], ours: dict[str, Olt]) -> list[Olt]:
    """Add missing OLTs, and return them."""
    new = [olt for olt in fleet if olt["name"] not in ours]
    taken = set(Olt.objects.filter(name__in=[olt["name"] for olt in new]).values_list("name", flat=True))
    for name in sorted(taken):
        sys.stdout.write(f"  {name} already exists as an OLT of your own: it is not simulated.\n")
    names = ("name", "brand", "host", "port", "community")
    return [
        Olt.objects.create(site=_site(olt["name"]), **{name: olt[name] for name in names})
        for olt in new
        if olt["name"] not in taken
    ]


def _site(olt: str) -> Site:
    """Return the site of an OLT, named as in OLT-NORTE-02."""
    name = olt.split("-")[1].capitalize()
    return Site.objects.filter(name__iexact=name).first() or Site.objects.create(name=name)


def _add_jobs(olts: list[Olt]) -> None:
    """Create the usual jobs of new OLTs, and a third link after the state."""
    for brand in sorted({olt.brand for olt in olts}):
        jobs = {job.name: job for job in propose(brand)}
        state = jobs["State"]
        third = {"kind": "table", "columns": ["name"], "interval_seconds": state.interval_seconds, "follows": state}
        SnmpJob.objects.get_or_create(brand=brand, name="Names", defaults=third)
        for job in jobs.values():
            if job.follows is None:
                for node in job.apply_to([olt for olt in olts if olt.brand == brand]):
                    node.own_interval_seconds = _hurried(job)
                    node.save(update_fields=["own_interval_seconds"])


def _hurried(job: SnmpJob) -> int:
    """Return the interval of a job on the demo's OLTs; on others it is the usual one."""
    if TELLING & {*job.columns}:
        return SHORTEST
    return max(job.interval_seconds // HURRY, SHORTEST)


def _start_soon(olt_ids: list[int]) -> None:
    """Set the first slots of new nodes before the engine starts."""
    now = timezone.now()
    for node in WorkflowNode.objects.filter(olt_id__in=olt_ids, master__isnull=True).select_related("job"):
        is_discovery = node.job.kind == JobKind.DISCOVERY
        share = node.olt_id * GOLDEN_RATIO % 1 / 2 if is_discovery else 0.5 + node.pk * GOLDEN_RATIO % 1 / 2
        first = now + FIRST_AFTER + share * SPREAD
        WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=first.replace(microsecond=0))
