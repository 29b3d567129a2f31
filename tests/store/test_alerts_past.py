"""A rule tried on the past: from events and history, kind by kind."""

from datetime import timedelta

import pytest
from alert_rows import make_olt, make_onus, make_rule
from builders import HOUR, MIN, SEC, T0

from facho.alerts.past import try_rule
from facho.apps.coordinator.models import CoordinatorLog, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution, PollerStats
from facho.apps.telemetry.history import RAW, start_of_day
from facho.apps.telemetry.models import Onu, OnuEvent
from facho.engine.events import Event
from facho.problems.models import Problem
from facho.store.history import append, close

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
NOW = T0 + 30 * DAY


@pytest.fixture
def central():
    return make_olt("OLT-CENTRAL-01")


def tried(rule, days=30, now=NOW):
    found = try_rule(rule, days, now)
    return found.alerts, found.messages, [(place.subject, place.times) for place in found.places]


def run(olt, at, status="SUCCESS", cause=""):
    Execution.objects.create(
        olt=olt,
        node_name="State",
        slot=at,
        ended_at=at + 5 * SEC,
        status=status,
        cause=cause,
        error="No answer in 5 s.",
    )


def test_an_olt_was_unreachable_from_a_run_without_an_answer_to_the_next_with_one(central):
    other = make_olt("OLT-SUR-03")
    for number in range(12):
        is_down = number in (3, 4, 5, 9)
        run(central, T0 + number * HOUR, *(("FAILED", "unreachable") if is_down else ()))
        run(other, T0 + number * HOUR)

    found = try_rule(make_rule(olts=[central]), 30, T0 + DAY)

    assert (found.alerts, found.messages, found.since) == (2, 4, T0)
    [place] = found.places
    assert (place.subject, place.times, place.seconds) == ("OLT-CENTRAL-01 does not answer", 2, 4 * 3600)
    assert [alerts for _day, alerts in found.by_day] == [2, 0]


def test_an_olt_that_never_answered_again_is_still_unreachable(central):
    run(central, T0)
    for number in range(1, 5):
        run(central, T0 + number * HOUR, "FAILED", "unreachable")

    found = try_rule(make_rule(), 30, T0 + DAY)

    assert (found.alerts, found.still_open) == (1, 1)


def change(onus, at, old, new):
    OnuEvent.objects.bulk_create(
        OnuEvent(onu=onu, olt_id=onu.olt_id, at=at, field="state", old=old, new=new, cause="") for onu in onus
    )


def test_dark_ports_are_found_in_the_changes_of_states(central):
    make_onus(central, 8)
    make_onus(central, 8, port=2, state="los")
    one, two = (list(Onu.objects.filter(port=port)) for port in (1, 2))
    # Port 1: half of it for an hour. Less than half on another day.
    change(one[:4], T0 + DAY, "online", "los")
    change(one[:4], T0 + DAY + HOUR, "los", "online")
    change(one[:3], T0 + 2 * DAY, "online", "dying_gasp")
    change(one[:3], T0 + 2 * DAY + HOUR, "dying_gasp", "online")
    # Port 2: one by one, and dark since then.
    for number, onu in enumerate(two):
        change([onu], T0 + 3 * DAY + number * MIN, "online", "los")
    rule = make_rule("port_dark", params={"dark_onus": 4, "dark_percent": 50})

    found = try_rule(rule, 30, NOW)

    assert (found.alerts, found.still_open) == (2, 1)
    assert {place.last.firing.port: place.last.opened_at for place in found.places} == {
        1: T0 + DAY, 2: T0 + 3 * DAY + 3 * MIN,
    }  # fmt: skip
    assert {place.last.firing.port: place.last.firing.params["dark"] for place in found.places} == {1: 4, 2: 8}
    assert found.since == T0 + DAY


def test_another_limit_finds_other_ports(central):
    make_onus(central, 8)
    some = list(Onu.objects.all()[:3])
    change(some, T0 + DAY, "online", "los")
    change(some, T0 + DAY + HOUR, "los", "online")
    rule = make_rule("port_dark", params={"dark_onus": 4, "dark_percent": 25})
    strict = tried(rule)

    rule.params["dark_onus"] = 3

    assert (strict[0], tried(rule)[0]) == (0, 1)


def test_low_power_is_found_by_day(central):
    make_onus(central, 2)
    days = [-26.0, -28.0, -28.5, -26.0, -26.5, -29.0]
    first, second = Onu.objects.order_by("onu")
    for number, dbm in enumerate(days):
        append(central.pk, T0 + number * DAY, [first.pk, second.pk], {"rx_dbm": [dbm, -20.0]})
        close(RAW, central.pk, start_of_day(T0 + number * DAY))

    rule = make_rule("low_power", params={"below_dbm": -27.0, "hysteresis_db": 0.0})
    found = try_rule(rule, 30, NOW)

    # Two days in a row are one.
    assert (found.alerts, [place.last.firing.params["low"] for place in found.places]) == (2, [1])
    assert (found.since, found.still_open) == (start_of_day(T0), 0)
    # The last day that is known is a low one.
    assert try_rule(rule, 30, T0 + 6 * DAY).still_open == 1


def test_violated_hours_in_a_row_are_one_alert(central):
    for hour in (1, 2, 3, 10):
        QuotaViolation.objects.create(
            olt=central,
            task_type="State",
            severity="HIGH" if hour < 10 else "LOW",
            period_start=T0 + hour * HOUR,
            period_end=T0 + (hour + 1) * HOUR,
            report={"completed": 1, "required": 12},
        )

    assert tried(make_rule("violation", params={"min_severity": "HIGH"})) == (
        1, 2, [("OLT-CENTRAL-01: State completed 1 of 12 runs in an hour", 1)],
    )  # fmt: skip


def minute(number, *, delayed=0, is_saturated=False):
    PollerStats.objects.create(
        timestamp=T0 + number * MIN, total_pollers=1, free_pollers=0, busy_pollers=1, busy_percentage=90, queue_size=0,
        delayed=delayed, is_saturated=is_saturated, total_tasks_completed=0, total_tasks_delayed=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "minutes", "alerts"),
    [
        pytest.param("pool_saturated", [{"is_saturated": 5 < number < 20} for number in range(60)], 1, id="saturated"),
        pytest.param("queue_delayed", [{"delayed": 20 * (5 < number < 20)} for number in range(60)], 1, id="delayed"),
        pytest.param("queue_delayed", [{"delayed": 20 * (5 < number < 9)} for number in range(60)], 0, id="too short"),
        pytest.param("scheduler_stalled", [None if 5 < number < 20 else {} for number in range(60)], 1, id="stalled"),
        pytest.param("scheduler_stalled", [{}] * 60, 0, id="reported every minute"),
    ],
)
def test_the_engine_is_judged_by_its_minutes(kind, minutes, alerts):
    for number, each in enumerate(minutes):
        if each is not None:
            minute(number, **each)

    assert tried(make_rule(kind))[0] == alerts


def test_events_and_suspicions_of_the_past(central):
    for hours in (1, 1.1, 9):
        CoordinatorLog.objects.create(
            olt=central, event_type=Event.OLT_DISABLED.name, level="INFO", message="", details={"olt": central.name},
            timestamp=T0 + hours * HOUR,
        )  # fmt: skip
    Problem.objects.create(
        kind="olt_suspect", cause="mass_disappearance", severity="major", confidence="probable", key="suspect/1",
        olt=central, since=T0, until=T0 + HOUR, found_at=T0,
    )  # fmt: skip

    event = tried(make_rule("event", params={"event_types": ["OLT_DISABLED"]}))
    suspect = tried(make_rule("mass_vanishing"))

    assert event == (2, 2, [("OLT-CENTRAL-01: polling stopped", 2)])
    assert suspect[0] == 1


def test_a_disabled_olt_has_no_past(central):
    run(central, T0)
    run(central, T0 + HOUR, "FAILED", "unreachable")
    Olt.objects.update(enabled=False)

    assert tried(make_rule())[0] == 0


def test_nothing_is_known_of_a_new_installation():
    found = try_rule(make_rule("port_dark"), 30, NOW)

    assert (found.alerts, found.since, found.places) == (0, NOW, [])
