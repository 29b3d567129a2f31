"""What fires, kind by kind: as a NOC would say it, and no more than that."""

import pytest
from alert_rows import make_olt, make_onus, make_rule, set_of, snapshot
from builders import HOUR, MIN, SEC, T0

from facho.alerts import text
from facho.alerts.sources import SOURCES, World, firings
from facho.apps.coordinator.models import CoordinatorLog, QuotaViolation
from facho.apps.polling.models import PollerStats
from facho.apps.telemetry.models import Onu
from facho.engine.events import Event

pytestmark = pytest.mark.django_db


def fire(rule, now=T0, *, told=None, open_keys=(), since=T0):
    """Return what fires by one rule."""
    world = World(now, told or snapshot(now), since, {rule.pk: set(open_keys)})
    return firings([rule], world)[rule.pk]


def said(kind, found):
    return [text.subject(kind, firing.params) for firing in found]


@pytest.fixture
def central():
    return make_olt("OLT-CENTRAL-01")


def test_every_kind_has_a_source_and_words():
    kinds = {rule_kind.value for rule_kind in SOURCES}

    assert kinds == {*text.SUBJECTS, "event"}


@pytest.mark.parametrize(
    ("reachability", "open_keys", "fires"),
    [
        pytest.param("unreachable", ["olt:{}"], True, id="a person closed it: it has not answered yet"),
        pytest.param("unknown", ["olt:{}"], True, id="it has another address: nobody has asked there yet"),
        pytest.param("reachable", ["olt:{}"], False, id="it has answered"),
        pytest.param("slow", ["olt:{}"], False, id="it has answered slowly"),
        pytest.param("unreachable", [], True, id="it does not answer: its breaker may open later"),
        pytest.param("unknown", [], False, id="nobody has asked it yet"),
    ],
)
def test_an_olt_is_unreachable_while_it_does_not_answer(central, reachability, open_keys, fires):
    set_of(central, breaker_opened_at=None, reachability=reachability)
    set_of(make_olt("OLT-SUR-03"), breaker_opened_at=T0)
    keys = [key.format(central.pk) for key in open_keys]

    found = fire(make_rule("olt_unreachable"), open_keys=keys)

    assert {firing.params["olt"] for firing in found} == {"OLT-SUR-03", *(["OLT-CENTRAL-01"] if fires else [])}


def test_an_olt_whose_breaker_is_open_is_unreachable(central):
    set_of(make_olt("OLT-SUR-03"), breaker_opened_at=T0)

    assert said("olt_unreachable", fire(make_rule("olt_unreachable"))) == ["OLT-SUR-03 does not answer"]


def test_an_olt_that_is_suspect_has_vanished_onus(central):
    set_of(central, suspect_since=T0, suspect_reason="missing")

    assert said("mass_vanishing", fire(make_rule("mass_vanishing"))) == [
        "OLT-CENTRAL-01: too many ONUs disappeared at once"
    ]


def test_a_pool_is_saturated_when_the_engine_reports_it():
    rule = make_rule("pool_saturated")

    assert fire(rule, told=snapshot(is_saturated=False)) == []
    assert said("pool_saturated", fire(rule, told=snapshot(is_saturated=True, busy_percentage=81.6))) == [
        "The pollers are saturated: busy 82 % of the last minute"
    ]


@pytest.mark.parametrize("kind", ["pool_saturated", "queue_delayed"])
def test_old_news_say_nothing_about_now(kind):
    """Neither that it is so, nor that it is over."""
    assert fire(make_rule(kind), told=snapshot(age=60.0, is_saturated=True)) is None


@pytest.mark.parametrize(
    ("age", "since", "fires"),
    [
        pytest.param(1.0, T0, False, id="alive"),
        pytest.param(30.0, T0, False, id="late"),
        pytest.param(31.0, T0, True, id="stands still"),
        pytest.param(None, T0 - 30 * SEC, False, id="not yet heard of"),
        pytest.param(None, T0 - 31 * SEC, True, id="never heard of"),
    ],
)
def test_a_scheduler_that_is_silent_is_stalled(age, since, fires):
    rule = make_rule("scheduler_stalled", params={"stalled_seconds": 30})

    assert bool(fire(rule, told=snapshot(age=age), since=since)) is fires


def sample(minutes_ago, delayed):
    PollerStats.objects.create(
        timestamp=T0 - minutes_ago * MIN,
        total_pollers=10,
        free_pollers=0,
        busy_pollers=10,
        busy_percentage=100,
        queue_size=delayed,
        delayed=delayed,
        is_saturated=True,
        total_tasks_completed=0,
        total_tasks_delayed=0,
    )


@pytest.mark.parametrize(
    ("samples", "now", "fires"),
    [
        pytest.param([20, 20, 20], 20, True, id="many for three minutes"),
        pytest.param([20, 20, 20], 10, False, id="no longer"),
        pytest.param([20, 10, 20], 20, False, id="with a break"),
        pytest.param([20], 20, False, id="only since a minute"),
        pytest.param([], 20, False, id="nobody counted"),
    ],
)
def test_a_queue_is_delayed_when_it_has_been_for_long_enough(samples, now, fires):
    rule = make_rule("queue_delayed", params={"delayed": 10, "minutes": 3})
    for minutes_ago, delayed in enumerate(samples):
        sample(minutes_ago, delayed)

    assert bool(fire(rule, told=snapshot(delayed=now))) is fires


def test_a_queue_stays_delayed_until_few_are():
    rule = make_rule("queue_delayed", params={"delayed": 10, "minutes": 3})

    assert fire(rule, told=snapshot(delayed=11), open_keys=["queue"])
    assert not fire(rule, told=snapshot(delayed=10), open_keys=["queue"])


def violate(olt, severity="HIGH", *, ended=T0, task="Optical power", **report):
    return QuotaViolation.objects.create(
        olt=olt,
        task_type=task,
        period_start=ended - HOUR,
        period_end=ended,
        severity=severity,
        report={"completed": 6, "required": 12, "causes": {"olt_busy": 6}, "advice": []} | report,
    )


@pytest.mark.parametrize(("severity", "fires"), [("LOW", False), ("MEDIUM", False), ("HIGH", True), ("CRITICAL", True)])
def test_a_violation_fires_from_a_severity_on(central, severity, fires):
    violate(central, severity)

    assert bool(fire(make_rule("violation", params={"min_severity": "HIGH"}))) is fires


def test_a_violation_says_what_was_missing_and_what_to_do(central):
    advice = [{"code": "more_pollers", "params": {}, "sentence": "There were too few pollers: increase FACHO_POLLERS."}]
    violate(central, advice=advice)

    [firing] = fire(make_rule("violation"), T0 + 5 * MIN)

    assert said("violation", [firing]) == ["OLT-CENTRAL-01: Optical power completed 6 of 12 runs in an hour"]
    assert text.lines("violation", firing.params) == [
        "Severity: high. Start of the hour: Mar 1, 2026, 09:00:00 UTC.",
        "Causes: the OLT was busy: 6.",
        "There were too few pollers: increase FACHO_POLLERS.",
    ]


def test_a_violation_lasts_until_the_next_hour_is_judged(central):
    violate(central)
    rule = make_rule("violation")

    assert fire(rule, T0 + 69 * MIN)
    assert not fire(rule, T0 + 70 * MIN)


def test_two_hours_in_a_row_are_one_violation_that_goes_on(central):
    violate(central)
    violate(central, "CRITICAL", ended=T0 + HOUR, completed=0)

    [firing] = fire(make_rule("violation"), T0 + HOUR + MIN)

    assert (firing.params["severity"], firing.params["completed"]) == ("CRITICAL", 0)


def test_a_port_is_dark_when_enough_of_its_onus_are(central):
    make_onus(central, 3, state="los")
    make_onus(central, 2, first=4, state="dying_gasp")
    make_onus(central, 3, first=6)

    [firing] = fire(make_rule("port_dark", params={"dark_onus": 4, "dark_percent": 50}))

    assert said("port_dark", [firing]) == ["OLT-CENTRAL-01: 5 of 8 ONUs on port 0/1 are down"]
    assert text.lines("port_dark", firing.params) == ["3 with loss of signal, 2 without electrical power"]
    assert (firing.olt_id, firing.slot, firing.port) == (central.pk, 0, 1)


@pytest.mark.parametrize(
    ("dark", "lit", "fires"),
    [
        pytest.param(4, 4, True, id="half of them"),
        pytest.param(3, 0, False, id="all, but too few to matter"),
        pytest.param(4, 5, False, id="less than half"),
        pytest.param(60, 4, True, id="nearly all"),
    ],
)
def test_a_few_dark_onus_are_no_dark_port(central, dark, lit, fires):
    make_onus(central, dark, state="offline")
    make_onus(central, lit, first=dark + 1)

    assert bool(fire(make_rule("port_dark", params={"dark_onus": 4, "dark_percent": 50}))) is fires


def test_neither_who_is_missing_nor_who_has_no_place_makes_a_port_dark(central):
    make_onus(central, 4, state="los", missing_since=T0)
    make_onus(central, 4, port=None, state="los")
    make_onus(central, 4, port=2, state="los")
    make_onus(central, 6, port=2, first=5, missing_since=T0)

    assert said("port_dark", fire(make_rule("port_dark"))) == ["OLT-CENTRAL-01: 4 of 4 ONUs on port 0/2 are down"]


def test_an_open_alert_lasts_while_the_olt_no_longer_lists_its_dark_onus(central):
    make_onus(central, 3, state="los", missing_since=T0 - HOUR)
    make_onus(central, 1, first=4, state="offline")
    make_onus(central, 2, first=5)
    # They were up, and removed.
    make_onus(central, 9, first=10, missing_since=T0 - HOUR)
    rule = make_rule("port_dark")
    key = f"port:{central.pk}:0/1"

    [firing] = fire(rule, open_keys=[key])

    assert said("port_dark", [firing]) == ["OLT-CENTRAL-01: 4 of 6 ONUs on port 0/1 are down"]
    assert text.lines("port_dark", firing.params) == ["1 offline, 3 no longer listed by the OLT"]
    assert fire(rule) == []
    # Abandoned.
    Onu.objects.filter(state="los").update(missing_since=T0 - 8 * 24 * HOUR)
    assert fire(rule, open_keys=[key]) == []


def test_low_power_is_one_alert_a_port_with_the_worst_of_it(central):
    make_onus(central, 1, first=7, rx_dbm=-30.25)
    make_onus(central, 7, first=10, rx_dbm=-28.0)
    make_onus(central, 3, first=30, rx_dbm=-27.0)
    make_onus(central, 1, port=2, rx_dbm=-29.0)

    worst, other = fire(make_rule("low_power"))

    assert said("low_power", [worst, other]) == [
        "OLT-CENTRAL-01: low power on port 0/1, 8 of its ONUs are below -27.0 dBm",
        "OLT-CENTRAL-01: low power on port 0/2, 1 of its ONUs is below -27.0 dBm",
    ]
    assert text.lines("low_power", worst.params)[:2] == [
        "ONU 0/1/7 client-7: -30.25 dBm",
        "ONU 0/1/10 client-10: -28.00 dBm",
    ]
    assert len(worst.params["worst"]) == 5


@pytest.mark.parametrize(
    ("rx_dbm", "is_open", "fires"),
    [
        pytest.param(-27.1, False, True, id="below"),
        pytest.param(-26.5, False, False, id="above, and never was below"),
        pytest.param(-26.5, True, True, id="above, but only just"),
        pytest.param(-26.0, True, False, id="clearly above"),
    ],
)
def test_it_takes_a_clear_improvement_for_low_power_to_be_over(central, rx_dbm, is_open, fires):
    make_onus(central, 1, rx_dbm=rx_dbm)
    rule = make_rule("low_power", params={"below_dbm": -27.0, "hysteresis_db": 1.0})
    key = f"port:{central.pk}:0/1"

    assert bool(fire(rule, open_keys=[key] if is_open else [])) is fires


def test_what_a_dark_onu_last_received_says_nothing(central):
    make_onus(central, 1, rx_dbm=-35.0, state="los")
    make_onus(central, 1, first=2, rx_dbm=-35.0, missing_since=T0)

    assert fire(make_rule("low_power")) == []


def test_rules_of_a_kind_are_answered_together_each_by_its_own_settings(central, django_assert_num_queries):
    make_onus(central, 3, rx_dbm=-28.0)
    make_onus(central, 1, port=2, rx_dbm=-26.0)
    strict = make_rule("low_power", params={"below_dbm": -25.0})
    loose = make_rule("low_power", params={"low_onus": 3})
    none = make_rule("low_power", params={"low_onus": 4})
    world = World(T0, snapshot(), T0)

    # The OLTs, those of each rule, the ports, and the worst of them.
    with django_assert_num_queries(6):
        found = firings([strict, loose, none], world)

    assert [len(found[rule.pk]) for rule in (strict, loose, none)] == [2, 1, 0]


def entry(event, where=None, /, *, at=T0, **details):
    return CoordinatorLog.objects.create(
        olt=where,
        event_type=event.name,
        level="INFO",
        message=event.sentence % details if details else event.sentence,
        details=details,
        timestamp=at,
    )


def event_rule(*types, **more):
    return make_rule("event", params={"event_types": list(types), "event_minutes": 15}, **more)


def test_an_event_is_told_once_for_each_olt_in_its_own_words(central):
    for seconds in (10, 20, 30):
        entry(Event.OLT_DISABLED, central, at=T0 - seconds * SEC, olt="OLT-CENTRAL-01")
    entry(Event.ENGINE_STOPPED, at=T0 - SEC)
    entry(Event.ENGINE_STARTED, at=T0, pollers=10)

    found = fire(event_rule("OLT_DISABLED", "ENGINE_STARTED"))

    assert sorted(said("event", found)) == [
        "OLT-CENTRAL-01: polling stopped",
        "the engine started with 10 pollers",
    ]
    by_type = {firing.params["event"]: firing for firing in found}
    assert text.lines("event", by_type["OLT_DISABLED"].params) == ["It happened 3 times."]


def test_old_events_are_over(central):
    entry(Event.OLT_DISABLED, central, at=T0 - 15 * MIN, olt="OLT-CENTRAL-01")

    assert fire(event_rule("OLT_DISABLED")) == []


def test_what_happened_before_there_was_a_rule_is_no_news(central):
    entry(Event.OLT_DISABLED, central, at=T0 - 2 * MIN, olt="OLT-CENTRAL-01")
    rule = event_rule("OLT_DISABLED")
    rule.created_at = T0 - MIN

    assert fire(rule) == []


def test_a_rule_of_some_olts_does_not_hear_of_the_engine(central):
    entry(Event.ENGINE_STOPPED)
    entry(Event.OLT_DISABLED, central, olt="OLT-CENTRAL-01")

    found = fire(event_rule("ENGINE_STOPPED", "OLT_DISABLED", olts=[central]))

    assert said("event", found) == ["OLT-CENTRAL-01: polling stopped"]


@pytest.mark.parametrize("kind", ["port_dark", "low_power", "violation", "olt_unreachable", "mass_vanishing"])
def test_what_is_disabled_is_not_watched(kind):
    olt = make_olt("OLT-SUR-03", enabled=False)
    set_of(olt, breaker_opened_at=T0, suspect_since=T0)
    make_onus(olt, 8, state="los")
    make_onus(olt, 8, port=2, rx_dbm=-35.0)
    violate(olt)

    assert fire(make_rule(kind)) == []


def test_that_an_olt_was_disabled_is_an_event_like_others():
    olt = make_olt("OLT-SUR-03", enabled=False)
    entry(Event.OLT_DISABLED, olt, olt="OLT-SUR-03")

    assert said("event", fire(event_rule("OLT_DISABLED"))) == ["OLT-SUR-03: polling stopped"]


def test_an_event_of_another_version_is_said_in_the_words_of_the_log():
    params = {"event": "GONE", "details": {}, "message": "something that is not told any more", "times": 1}

    assert text.subject("event", params) == "something that is not told any more"


def test_what_an_older_version_did_not_keep_is_a_question_mark():
    assert text.subject("violation", {"olt": "OLT-CENTRAL-01"}) == "OLT-CENTRAL-01: ? completed ? of ? runs in an hour"


def test_a_hundred_thousand_onus_are_counted_and_not_read(central, django_assert_max_num_queries):
    make_onus(central, 200, state="los")
    make_onus(central, 200, port=2, rx_dbm=-30.0)
    rules = [make_rule("port_dark"), make_rule("low_power")]
    world = World(T0, snapshot(), T0)

    with django_assert_max_num_queries(8):
        found = firings(rules, world)

    assert [len(found[rule.pk]) for rule in rules] == [1, 1]
