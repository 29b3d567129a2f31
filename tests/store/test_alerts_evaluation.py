"""Rules against what is there: what opens, who is told, and what ends without a word."""

import logging
from datetime import UTC, datetime, time

import pytest
from alert_rows import make_channel, make_olt, make_onus, make_rule, set_of, snapshot
from builders import HOUR, MIN, SEC, T0
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from facho.alerts.evaluation import evaluate, policy
from facho.alerts.models import Alert, Delivery, Rule
from facho.alerts.outbox import take
from facho.alerts.rules import AlertSeverity
from facho.apps.coordinator.models import QuotaViolation
from facho.apps.inventory.models import Olt
from problem_rows import make_problem

pytestmark = pytest.mark.django_db


def look(now=T0, **more):
    evaluate(now, snapshot(now, **more), T0)


def look_until(end, *, every=10 * SEC, start=T0):
    now = start
    while now <= end:
        look(now)
        now += every


@pytest.fixture
def sur():
    """OLT-SUR-03, whose breaker is open."""
    olt = make_olt("OLT-SUR-03")
    set_of(olt, breaker_opened_at=T0, last_error="OLT-SUR-03 did not answer within 5 s")
    return olt


@pytest.fixture
def noc():
    return make_channel("NOC")


def deliveries(**by):
    return list(Delivery.objects.filter(**by).order_by("id").values_list("news", "status"))


def test_what_fires_opens_one_alert_and_one_delivery_a_channel(sur, noc):
    make_rule(channels=[noc, make_channel("boss")], severity="critical")

    look(T0)
    look(T0 + 10 * SEC)

    alert = Alert.objects.get()
    assert (alert.olt_id, alert.kind, alert.severity) == (sur.pk, "olt_unreachable", "critical")
    assert (alert.opened_at, alert.last_seen_at, alert.first_told_at) == (T0, T0 + 10 * SEC, T0)
    assert deliveries() == [("raised", "PENDING"), ("raised", "PENDING")]
    assert alert.subject == "OLT-SUR-03 does not answer"


def test_what_is_over_recovers_and_is_told_to_those_who_were_told(sur, noc):
    make_rule(channels=[noc])
    look(T0)
    Delivery.objects.update(status="SENT", next_try_at=None)
    make_rule("pool_saturated", channels=[make_channel("boss")])
    set_of(sur, breaker_opened_at=None, reachability="reachable")

    look_until(T0 + 5 * MIN, start=T0 + 10 * SEC)

    assert deliveries() == [("raised", "SENT"), ("recovered", "PENDING")]
    assert Delivery.objects.get(news="recovered").channel == noc
    assert Alert.objects.get().recovered_at == T0 + 10 * SEC


def test_what_comes_back_is_the_same_alert_seen_again(sur, noc):
    make_rule(channels=[noc])
    look(T0)

    set_of(sur, breaker_opened_at=None, reachability="reachable")
    look(T0 + 10 * SEC)
    set_of(sur, breaker_opened_at=T0)
    look(T0 + 20 * SEC)

    alert = Alert.objects.get()
    assert (alert.count, alert.absent_since, alert.recovered_at) == (2, None, None)
    assert deliveries() == [("raised", "PENDING")]


def test_a_channel_that_was_never_reached_is_not_told_that_it_is_over(sur, noc):
    make_rule(channels=[noc])
    look(T0)
    Delivery.objects.update(status="FAILED", next_try_at=None)

    set_of(sur, breaker_opened_at=None, reachability="reachable")
    look_until(T0 + 3 * MIN, start=T0 + 10 * SEC)

    assert deliveries() == [("raised", "FAILED")]
    assert not Alert.objects.get().is_open


NIGHT = {"quiet_from": time(9), "quiet_to": time(12), "quiet_zone": "UTC"}


def test_what_is_held_goes_out_when_the_quiet_hours_end(sur, noc):
    make_rule(channels=[noc], **NIGHT)

    look(T0)

    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.due_at, delivery.next_try_at) == ("PENDING", T0 + 2 * HOUR, T0 + 2 * HOUR)


def test_what_is_over_before_the_quiet_hours_end_is_never_told(sur, noc):
    make_rule(channels=[noc], **NIGHT)
    look(T0)

    set_of(sur, breaker_opened_at=None, reachability="reachable")
    look_until(T0 + 3 * MIN, start=T0 + 10 * SEC)

    assert deliveries() == [("raised", "SUPPRESSED")]
    assert Delivery.objects.get().reason == "untold"


def test_what_is_dropped_in_quiet_hours_says_why(sur, noc):
    make_rule(channels=[noc], quiet_mode="drop", **NIGHT)

    look(T0)

    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.reason, delivery.next_try_at) == ("SUPPRESSED", "quiet_hours", None)
    assert Alert.objects.get().first_told_at is None


def test_the_limit_holds_over_evaluations_however_many_channels_there_are(noc):
    make_rule(channels=[noc, make_channel("boss")], most_per_hour=2)
    for number in range(4):
        set_of(make_olt(f"OLT-{number}"), breaker_opened_at=T0)
        look(T0 + number * MIN)

    due = [at for (at,) in Delivery.objects.filter(channel=noc).order_by("id").values_list("due_at")]
    assert due == [T0, T0 + MIN, T0 + HOUR, T0 + HOUR]
    assert not Delivery.objects.filter(status="SUPPRESSED").exists()


def test_many_ports_at_once_are_one_message_with_the_worst_of_them(sur, noc):
    make_rule("low_power", channels=[noc], name="Weak")
    for port in range(33):
        make_onus(sur, 2, port=port, rx_dbm=-28.0 - port / 10)

    look(T0)
    parcel = take(noc.pk, T0, "https://noc.example.net")

    assert parcel.message.subject == "[warning] 33 ports below -27.0 dBm, worst -31.2 dBm on OLT-SUR-03 0/32"
    first, *_others, more, _since, rule = parcel.message.text.splitlines()
    assert first == (
        "OLT-SUR-03: low power on port 0/32, 2 of its ONUs are below -27.0 dBm, worst -31.2 dBm  "
        f"https://noc.example.net/olts/{sur.pk}/ports/0/32/"
    )
    assert (more, rule) == ("and 13 more", "Rule: Weak.")
    assert parcel.message.url == f"https://noc.example.net/olts/{sur.pk}/"
    assert take(noc.pk, T0, "") is None


def test_what_was_not_told_does_not_count_towards_the_limit(noc):
    make_rule(channels=[noc], most_per_hour=1, quiet_mode="drop", **NIGHT)
    set_of(make_olt("OLT-NORTE-02"), breaker_opened_at=T0)
    look(T0 + 119 * MIN)
    set_of(make_olt("OLT-SUR-03"), breaker_opened_at=T0)

    # Noon: the quiet hours are over.
    look(T0 + 120 * MIN)

    assert deliveries() == [("raised", "SUPPRESSED"), ("raised", "PENDING")]


def violate(olt, ended=T0):
    return QuotaViolation.objects.create(
        olt=olt, task_type="Optical power", period_start=ended - HOUR, period_end=ended, severity="HIGH"
    )


def test_a_violation_that_somebody_is_told_of_is_marked_as_notified(sur, noc):
    violation = violate(sur)
    make_rule("violation", channels=[noc])

    look(T0 + 5 * MIN)
    look(T0 + 6 * MIN)

    violation.refresh_from_db()
    assert (violation.notified, violation.notified_at) == (True, T0 + 5 * MIN)


def test_a_violation_that_nobody_is_told_of_is_not(sur, noc):
    violation = violate(sur)
    make_rule("violation")
    make_rule("violation", channels=[noc], params={"min_severity": "CRITICAL"})

    look(T0 + 5 * MIN)

    violation.refresh_from_db()
    assert not violation.notified


def test_a_channel_that_is_dead_gathers_no_repetitions(sur, noc):
    make_rule(channels=[noc, make_channel("boss")], repeat_minutes=10)
    look(T0)
    Delivery.objects.filter(channel=noc).update(status="SENT", next_try_at=None)

    look(T0 + 10 * MIN)

    assert deliveries(channel=noc) == [("raised", "SENT"), ("repeated", "PENDING")]
    assert deliveries(channel__name="boss") == [("raised", "PENDING")]


def test_an_alert_is_repeated_until_it_is_acknowledged(sur, noc):
    make_rule(channels=[noc], repeat_minutes=10)
    look(T0)
    Delivery.objects.update(status="SENT", next_try_at=None)

    look(T0 + 10 * MIN)
    look(T0 + 11 * MIN)
    repeated = deliveries(news="repeated")
    Alert.objects.get().acknowledge(by=User.objects.create(username="boss"))
    look(T0 + 30 * MIN)

    assert repeated == [("repeated", "PENDING")]
    # It had not been sent yet.
    assert deliveries() == [("raised", "SENT"), ("repeated", "SUPPRESSED")]
    assert Alert.objects.get().last_told_at == T0 + 10 * MIN


def test_an_alert_that_nobody_acknowledges_goes_to_another_channel_too(sur, noc):
    boss = make_channel("boss")
    make_rule(channels=[noc], escalate_minutes=15, escalate_to=[boss])

    look_until(T0 + 20 * MIN, every=MIN)
    Delivery.objects.update(status="SENT", next_try_at=None)
    set_of(sur, reachability="reachable", breaker_opened_at=None)
    look_until(T0 + 30 * MIN, every=MIN, start=T0 + 21 * MIN)

    assert deliveries(channel=noc) == [("raised", "SENT"), ("recovered", "PENDING")]
    assert deliveries(channel=boss) == [("escalated", "SENT"), ("recovered", "PENDING")]
    assert Delivery.objects.get(news="escalated").due_at == T0 + 15 * MIN


@pytest.mark.parametrize(
    ("problem", "is_escalated"),
    [
        pytest.param({"kind": "port_down", "slot": 0, "port": 1}, False, id="the port"),
        pytest.param({"kind": "card_down", "slot": 0}, False, id="its card"),
        pytest.param({"kind": "port_down", "slot": 0, "port": 2}, True, id="another port"),
        pytest.param({"kind": "low_power", "slot": 0, "port": 1}, True, id="another problem of the port"),
        pytest.param({"kind": "port_down", "slot": 0, "port": 1, "until": T0}, True, id="one that is over"),
    ],
)
def test_an_alert_is_acknowledged_with_its_problem(noc, problem, is_escalated):
    olt, user = make_olt("OLT-CENTRAL-01"), User.objects.create(username="noc")
    make_onus(olt, 8, state="los")
    make_rule("port_dark", channels=[noc], escalate_minutes=15, escalate_to=[make_channel("boss")])
    look(T0)
    make_problem(olt, acknowledged_at=T0 + MIN, acknowledged_by=user, **problem)

    look_until(T0 + 20 * MIN, every=MIN, start=T0 + MIN)

    alert = Alert.objects.get()
    assert Delivery.objects.filter(news="escalated").exists() is is_escalated
    assert (alert.acknowledged_at, alert.acknowledged_by) == ((None, None) if is_escalated else (T0 + MIN, user))


def test_an_acknowledged_alert_is_not_escalated_at_the_start_of_the_next_shift(sur, noc):
    # T0 is a Sunday.
    boss = make_channel("boss", on_call_days=[0], zone="UTC")
    make_rule(channels=[noc], escalate_minutes=15, escalate_to=[boss])
    look_until(T0 + 15 * MIN, every=MIN)
    waiting = Delivery.objects.get(channel=boss)

    Alert.objects.get().acknowledge(by=User.objects.create(username="noc"))

    assert (waiting.status, waiting.due_at) == ("PENDING", datetime(2026, 3, 2, tzinfo=UTC))
    assert list(Delivery.objects.filter(channel=boss).values_list("status", "reason")) == [
        ("SUPPRESSED", "acknowledged")
    ]


def test_each_channel_is_told_in_its_on_call_times(sur, noc):
    day = make_channel("day", on_call_from=time(12), on_call_to=time(20), zone="UTC")
    make_rule(channels=[noc, day])

    look(T0)

    assert dict(Delivery.objects.values_list("channel__name", "due_at")) == {"NOC": T0, "day": T0 + 2 * HOUR}
    assert Alert.objects.get().first_told_at == T0


def test_an_olt_that_does_not_answer_silences_its_ports_until_it_does(sur, noc):
    make_onus(sur, 8, state="los")
    make_rule(channels=[noc])
    make_rule("port_dark", channels=[noc])

    look(T0)
    port = Alert.objects.get(kind="port_dark")
    told = deliveries(alert=port)
    set_of(sur, breaker_opened_at=None, reachability="reachable")
    look_until(T0 + 5 * MIN, start=T0 + 10 * SEC)

    assert (port.held, told) == ("olt_unreachable", [])
    # It is still dark, with the OLT reachable for a minute.
    assert deliveries(alert=port) == [("raised", "PENDING")]
    assert Delivery.objects.get(alert=port).due_at == T0 + 80 * SEC
    assert Alert.objects.get(kind="port_dark").held == ""


def test_a_dark_port_silences_its_onus(noc):
    olt = make_olt("OLT-CENTRAL-01")
    make_onus(olt, 8, state="los")
    make_onus(olt, 2, first=9, rx_dbm=-30.0)
    make_onus(olt, 2, port=2, rx_dbm=-30.0)
    make_rule("port_dark", channels=[noc])
    make_rule("low_power", channels=[noc])

    look(T0)

    held = dict(Alert.objects.filter(kind="low_power").values_list("port", "held"))
    assert held == {1: "port_dark", 2: ""}
    assert Delivery.objects.count() == 2


def test_an_alert_that_nobody_is_told_of_silences_nothing(sur, noc):
    make_onus(sur, 8, state="los")
    make_rule()
    make_rule("port_dark", channels=[noc])

    look(T0)

    assert deliveries() == [("raised", "PENDING")]


def test_what_flaps_is_told_three_times_and_then_once_when_it_is_stable(sur, noc):
    make_rule(channels=[noc])
    now = T0
    for minute in range(60):
        # Down for three minutes, up for three minutes.
        is_down = minute % 6 < 3
        set_of(sur, breaker_opened_at=now if is_down else None, reachability="unreachable" if is_down else "reachable")
        for _ in range(3):
            look(now)
            Delivery.objects.filter(due_at__lte=now).update(status="SENT", next_try_at=None)
            now += 20 * SEC
    flapping = [news for news, _status in deliveries()]
    look_until(now + 40 * MIN, every=MIN, start=now)

    assert flapping == ["raised", "recovered", "raised", "recovered", "raised"]
    assert [news for news, _status in deliveries()][5:] == ["recovered"]
    assert list(Alert.objects.order_by("id").values_list("is_unstable", flat=True)) == [False, False, True]


def test_a_rule_without_a_channel_lists_what_it_finds(sur):
    make_rule()

    look(T0)

    assert Alert.objects.get().first_told_at is None
    assert deliveries() == []


def test_a_disabled_channel_is_told_nothing(sur, noc):
    make_rule(channels=[noc, make_channel("old", enabled=False)])

    look(T0)

    assert [delivery.channel for delivery in Delivery.objects.all()] == [noc]


def disable_rule(rule, olt):
    Rule.objects.update(enabled=False)


def delete_rule(rule, olt):
    rule.delete()


def disable_olt(rule, olt):
    Olt.objects.get(pk=olt.pk).disable()


def narrow(rule, olt):
    rule.olts.set([make_olt("OLT-CENTRAL-01")])


def watch_for_something_else(rule, olt):
    Rule.objects.update(kind="mass_vanishing")


@pytest.mark.parametrize(
    "change", [disable_rule, delete_rule, disable_olt, narrow, watch_for_something_else], ids=lambda each: each.__name__
)
def test_what_is_not_watched_any_more_ends_without_a_word(sur, noc, change):
    rule = make_rule(channels=[noc], quiet_from=time(9), quiet_to=time(12), quiet_zone="UTC")
    look(T0)

    change(rule, sur)
    look(T0 + 10 * SEC)

    assert Alert.objects.get().recovered_at == T0 + 10 * SEC
    assert deliveries() == [("raised", "SUPPRESSED")]


def test_a_rule_of_some_olts_does_not_look_at_others(sur, noc):
    make_rule(channels=[noc], olts=[make_olt("OLT-CENTRAL-01")])

    look(T0)

    assert not Alert.objects.exists()


def test_two_rules_have_an_alert_each(sur, noc):
    make_rule(channels=[noc])
    make_rule(channels=[noc])

    look(T0)
    look(T0 + 10 * SEC)

    assert Alert.objects.count() == 2


def test_what_changes_about_an_alert_is_kept_up_to_date(sur, noc):
    make_rule(channels=[noc])
    look(T0)

    set_of(sur, last_error="OLT-SUR-03 refused")
    look(T0 + 10 * SEC)

    assert Alert.objects.get().params["error"] == "OLT-SUR-03 refused"


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, "facho")
    return caplog


def test_alerts_are_told_in_the_log_too_in_english(sur, noc, log):
    make_rule(channels=[noc], name="Gone")

    with translation.override("es"):
        look(T0)
        set_of(sur, breaker_opened_at=None, reachability="reachable")
        look_until(T0 + 3 * MIN, start=T0 + 10 * SEC)

    told = [(record.event.name, record.getMessage(), record.olt_id) for record in log.records]
    assert told == [
        ("ALERT_RAISED", "alert Gone: OLT-SUR-03 does not answer", sur.pk),
        ("ALERT_RECOVERED", "alert resolved: Gone: OLT-SUR-03 does not answer", sur.pk),
    ]
    # For pages in Spanish.
    assert {record.details["subject_es"] for record in log.records} == {"OLT-SUR-03 no responde"}


def test_nothing_is_written_if_one_thing_cannot_be(sur, noc, monkeypatch):
    make_rule(channels=[noc])
    monkeypatch.setattr(Delivery.objects, "bulk_create", lambda rows: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        look(T0)

    assert not Alert.objects.exists()


def test_the_policy_of_a_rule_is_what_a_person_set():
    rule = make_rule(
        severity="critical",
        repeat_minutes=15,
        most_per_hour=0,
        recover_after_seconds=30,
        quiet_mode="drop",
        tells_recovery=False,
        quiet_from=time(22),
        quiet_to=time(7),
        quiet_zone="America/Lima",
    )

    found = policy(rule)

    assert (found.severity, found.repeat_every, found.most_per_hour) == (AlertSeverity.CRITICAL, 15 * MIN, None)
    assert (found.recover_after, found.holds, found.tells_recovery) == (30 * SEC, False, False)
    # Midnight in Lima is 5 in the morning in UTC.
    assert found.quiet.until(datetime(2026, 3, 1, 5, 0, tzinfo=UTC)) == datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def counted(now):
    with CaptureQueriesContext(connection) as queries:
        look(now)
    return len(queries)


def test_an_evaluation_costs_the_same_however_much_there_is(noc):
    make_rule(channels=[noc], most_per_hour=0)
    set_of(make_olt("OLT-SUR-03"), breaker_opened_at=T0)
    few = [counted(T0), counted(T0 + 10 * SEC)]
    Alert.objects.all().delete()
    for number in range(10):
        set_of(make_olt(f"OLT-{number}"), breaker_opened_at=T0)
    for _ in range(3):
        make_rule(channels=[noc], most_per_hour=0)

    many = [counted(T0 + MIN), counted(T0 + MIN + 10 * SEC)]

    assert Alert.objects.count() == 44
    assert many == few
    assert max(many) <= 13
