"""The past of the demo: 30 days that were not polled, as if they had been."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from facho.apps.coordinator.models import QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution
from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import HistoryRun, Onu, OnuEvent, OnuPosition
from facho.brands import brand
from facho.engine.model import JobKind, Node
from facho.engine.presence import USUAL_RULES
from facho.problems.models import Problem
from facho.runtime.demo.past import Past, read_all
from facho.runtime.demo.setting_up import set_up
from facho.simulator.fleet import demo_fleet
from facho.simulator.stories import DARK
from facho.store.inventory import Inventory
from facho.store.runs import write_collected

pytestmark = pytest.mark.django_db


@pytest.fixture
def past():
    """The past of four OLTs, one of which never answers."""
    began = timezone.now().replace(microsecond=0)
    specs = demo_fleet(4, 200, dark_since=began.timestamp() - DARK)
    fleet = [
        {"name": spec.name, "brand": spec.brand, "host": "127.0.0.1", "port": 16101 + number, "community": "public"}
        for number, spec in enumerate(specs)
    ]
    past = Past(specs, began)
    set_up(fleet, past)
    past.fleet = fleet
    return past


def test_there_are_30_days_one_open_outage_one_violation_and_one_past_cut(past):
    onu = Onu.objects.filter(state="online").first()
    days = series(onu.pk, ["rx_dbm"], past.began - timedelta(days=31), past.began, timedelta(days=1))

    assert len([day for day in days if day["rx_dbm"]]) >= 30
    assert Onu.objects.count() == 200
    assert {(each.kind, each.cause, each.confidence, each.is_open) for each in Problem.objects.all()} == {
        ("port_down", "fibre_cut", "probable", False),
        ("port_down", "fibre_cut", "probable", True),
        ("quota_violated", "unknown", "unknown", True),
    }
    ended = Problem.objects.get(until__isnull=False)
    assert [entry.kind for entry in ended.entries.all()] == ["found", "ended"]
    assert OnuEvent.objects.filter(onu__in=ended.onus, at__range=(ended.since, ended.found_at), new="los").exists()
    assert QuotaViolation.objects.count() == 1
    dark = Onu.objects.get(pk=Problem.objects.get(kind="port_down", until=None).onus[0])
    assert (dark.rx_dbm, dark.distance_m) == (None, None)
    for at in (dark.last_rx_at, dark.last_distance_at):
        assert timedelta(0) < dark.state_since - at < timedelta(minutes=5)


def test_the_violation_is_explained_by_the_executions_of_its_hour(past):
    violation = QuotaViolation.objects.get()
    ran = Execution.objects.filter(olt=violation.olt_id, node_name=violation.task_type)
    statuses = Counter(ran.values_list("status", flat=True))

    slowest, *_others = violation.report["slowest"]
    assert (slowest["task"], slowest["mean_seconds"]) == (violation.task_type, 50.0)
    assert violation.report["worst_lateness"]["parts"]
    assert statuses == {"SUCCESS": violation.report["completed"], "SKIPPED": violation.report["skipped"]}
    assert all(each.lateness >= 0 for each in ran.filter(status="SUCCESS"))


def test_every_onu_has_a_position_near_its_site(past):
    positions = OnuPosition.objects.select_related("olt__site")

    assert positions.count() == Onu.objects.count()
    assert all(abs(each.latitude - each.olt.site.latitude) < 0.2 for each in positions)


def test_the_first_poll_finds_nothing_new(past):
    events = OnuEvent.objects.count()
    for olt in Olt.objects.exclude(onus=None):
        node = Node(0, olt.pk, "", JobKind.DISCOVERY, timedelta(minutes=5), columns=tuple(brand(olt.brand).columns))
        found = asyncio.run(read_all(node, olt, past.devices[olt.name], past.began))
        inventory = Inventory.load(olt.pk)
        inventory.version = olt.inventory_version
        write_collected(inventory, node, found, USUAL_RULES, timezone.now())

    # Other than what happened within the second.
    assert OnuEvent.objects.count() - events <= 2
    assert not Onu.objects.exclude(missing_since=None).exists()


def test_a_second_start_writes_no_second_past(past):
    runs, problems = HistoryRun.objects.count(), Problem.objects.count()

    set_up(past.fleet, past)

    assert (HistoryRun.objects.count(), Problem.objects.count()) == (runs, problems)


def test_a_start_that_was_killed_leaves_nothing(past, monkeypatch):
    Olt.objects.all().delete()

    class Killed(BaseException):
        pass

    def killed(now, **_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("facho.store.quotas.settle", killed)
        with pytest.raises(Killed):
            set_up(past.fleet, past)

    assert not Olt.objects.exists()
    set_up(past.fleet, past)
    assert Onu.objects.count() == 200
