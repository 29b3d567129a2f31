"""Which OLTs and ports are in maintenance, and which maintenance a user sees and may change."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import scope_of, visible_ids
from facho.apps.maintenance.models import Maintenance, MaintenanceQuerySet, MaintenanceWindow
from facho.engine.maintenance import Window

Windows = QuerySet[MaintenanceWindow]


# Without an engine for longer, the end of a window is no longer reported.
REPORTED_FOR = timedelta(days=1)


class Maintained:
    """Windows of maintenance by what they cover: whole OLTs, by themselves, their site or a tag, and single ports."""

    def __init__(self, windows: Iterable[MaintenanceWindow] = ()) -> None:
        self.windows = list(windows)
        self._olts: defaultdict[int, list[MaintenanceWindow]] = defaultdict(list)
        self._ports: defaultdict[tuple[int, int, int], list[MaintenanceWindow]] = defaultdict(list)
        sites: defaultdict[int, list[MaintenanceWindow]] = defaultdict(list)
        tags: defaultdict[int, list[MaintenanceWindow]] = defaultdict(list)
        for window in self.windows:
            plan = window.maintenance
            if plan.site_id is not None:
                sites[plan.site_id].append(window)
            elif plan.tag_id is not None:
                tags[plan.tag_id].append(window)
            elif plan.olt_id is not None and plan.slot is not None and plan.port is not None:
                self._ports[plan.olt_id, plan.slot, plan.port].append(window)
            elif plan.olt_id is not None:
                self._olts[plan.olt_id].append(window)
        if sites:
            for olt_id, site_id in Olt.objects.filter(site__in=sites).order_by().values_list("pk", "site_id"):
                self._olts[olt_id] += sites[site_id or 0]
        if tags:
            tagged = Olt.tags.through._default_manager.filter(tag__in=tags)
            for olt_id, tag_id in tagged.values_list("olt_id", "tag_id"):
                self._olts[olt_id] += tags[tag_id]

    def __bool__(self) -> bool:
        return bool(self.windows)

    def of(self, olt_id: int | None, slot: int | None = None, port: int | None = None) -> list[MaintenanceWindow]:
        """Return the windows of an OLT or a port, those of its OLT first."""
        if olt_id is None:
            return []
        found = self._olts.get(olt_id, [])
        if slot is not None and port is not None:
            found = found + self._ports.get((olt_id, slot, port), [])
        return found

    @property
    def spans(self) -> Mapping[int, tuple[Window, ...]]:
        """Return the windows of whole OLTs, for the engine."""
        return {olt_id: tuple(each.span for each in windows) for olt_id, windows in self._olts.items()}


def windows_between(start: datetime, end: datetime) -> Windows:
    """Return the windows that overlap a time span, or cover a time if both are the same."""
    rows = MaintenanceWindow.objects.filter(starts_at__lte=end, ends_at__gt=start).order_by("ends_at", "id")
    return rows.select_related("maintenance__olt", "maintenance__site", "maintenance__tag").defer(*HEAVY)


# Columns of the OLT that no page of maintenance needs.
HEAVY = tuple(f"maintenance__olt__{name}" for name in ("community", "v3_auth_key", "v3_priv_key", "extra", "learned"))


def maintained_at(now: datetime) -> Maintained:
    """Return what is in maintenance."""
    return Maintained(windows_between(now, now))


def held_at(now: datetime) -> tuple[Maintained, Maintained]:
    """Return the windows that hold alerts, and those that are over and whose held alerts are reported now."""
    recent = windows_between(now - REPORTED_FOR, now).filter(summarised_at__isnull=True)
    windows = list(recent)
    return (
        Maintained(each for each in windows if each.span.held_until > now),
        Maintained(each for each in windows if each.span.held_until <= now),
    )


def restrict_maintenance(rows: MaintenanceQuerySet, user: Any) -> MaintenanceQuerySet:
    """Return the maintenance of OLTs that the user sees, and of their sites and tags."""
    ids = visible_ids(user)
    if ids is None:
        return rows
    seen = Olt.objects.filter(pk__in=ids).order_by()
    return rows.filter(Q(olt__in=ids) | Q(site__in=seen.values("site")) | Q(tag__in=seen.values("tags")))


def may_plan(user: Any, plan: Maintenance) -> bool:
    """Return whether everything that a maintenance covers is in the user's scope."""
    scope = scope_of(user)
    if scope is None:
        return True
    if plan.olt_id is not None:
        return plan.olt_id in scope.olt_ids
    if plan.site_id is not None:
        return scope.sites.filter(pk=plan.site_id).exists()
    return plan.tag_id is not None and scope.tags.filter(pk=plan.tag_id).exists()
