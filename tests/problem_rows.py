"""Rows of a network with problems, as the engine writes them: ports with counters, ONUs that went down, events."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from django.db.models import F

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu, OnuEvent, PonPort
from facho.problems.evaluation import ProblemWatch
from facho.problems.models import Problem

NOW = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def fill_port(olt, place="0/1", *, up=0, now=NOW):
    """Make a port with ONUs that are up, read just now."""
    slot, number = map(int, place.split("/"))
    port = PonPort.objects.create(olt=olt, slot=slot, port=number, read_at=now, state_at=now)
    for each in range(1, up + 1):
        Onu.objects.create(
            olt=olt, index=f"{place}.{each}", slot=slot, port=number, onu=each, name=f"client-{place}/{each}",
            serial=f"HWTC{olt.pk:04}{number}{each:03}", state="online", rx_dbm=-20.0, pon_port=port,
            first_seen_at=now - timedelta(days=90),
        )  # fmt: skip
    count(olt, now)
    return port


def onus_of(olt, place="0/1", number=None, state=None):
    slot, port = map(int, place.split("/"))
    onus = Onu.objects.filter(olt=olt, slot=slot, port=port, **({"state": state} if state else {})).order_by("onu")
    return list(onus[:number])


def take_down(onus, state="los", *, at, is_exact=True, seen_at=None, apart=timedelta(0)):
    """Let ONUs go down, as a run finds them."""
    for each, onu in enumerate(onus):
        since = at + each * apart
        OnuEvent.objects.create(
            onu=onu, olt_id=onu.olt_id, at=seen_at or since, field="state", old=onu.state, new=state, cause=""
        )
        Onu.objects.filter(pk=onu.pk).update(
            state=state, state_since=since, last_down=since if is_exact else None, down_cause=state
        )
    count(onus[0].olt, seen_at or at)


def bring_up(onus, *, at):
    for onu in onus:
        OnuEvent.objects.create(onu=onu, olt_id=onu.olt_id, at=at, field="state", old=onu.state, new="online", cause="")
    Onu.objects.filter(pk__in=[onu.pk for onu in onus]).update(state="online", state_since=at, last_up=at)
    count(onus[0].olt, at)


def count(olt, at=NOW):
    """Write the counters of an OLT's ports and their time, and raise its version, as a run does."""
    for port in PonPort.objects.filter(olt=olt):
        states = Counter(Onu.objects.filter(pon_port=port, missing_since=None).values_list("state", flat=True))
        weak = Onu.objects.filter(pon_port=port, rx_dbm__lt=-27, state="online").count()
        total = Onu.objects.filter(pon_port=port).count()
        held = Onu.objects.filter(pon_port=port, missing_since=None, misses__gt=0).count()
        PonPort.objects.filter(pk=port.pk).update(state_at=at, total=total, held=held, weak=weak, **states)
        absent = {state: 0 for state in Onu.State.values if state not in states}
        PonPort.objects.filter(pk=port.pk).update(missing=total - states.total(), **absent)
    Olt.objects.filter(pk=olt.pk).update(inventory_version=F("inventory_version") + 1)


def make_problem(olt, **more):
    """Make an open problem: a port without signal."""
    defaults = {
        "kind": "port_down", "severity": "critical", "key": f"outage/{olt.pk if olt else ''}/0/1", "olt": olt,
        "slot": 0, "port": 1, "since": NOW, "found_at": NOW, "cause": "fibre_cut", "confidence": "probable",
        "affected": 28, "peak": 28,
        "evidence": {
            "down": 28, "total": 28, "up": 0, "los": 28, "first": NOW.isoformat(),
            "last": (NOW + timedelta(seconds=6)).isoformat(), "exact": True,
        },
    }  # fmt: skip
    return Problem.objects.create(**defaults | more)


def evaluate(now=NOW, watch=None, **more):
    return (watch or ProblemWatch()).evaluate(now, **more)
