"""Alerts of what is disabled or in maintenance: closed with an unknown state, held, and summarised at the end."""

import logging

import pytest
from alert_rows import make_channel, make_olt, make_onus, make_rule, snapshot
from builders import HOUR, MIN, SEC, T0
from test_alerts_outbox import DEAD, SetClock, desk  # noqa: F401 - a fixture

import port_counts
from facho.alerts.evaluation import evaluate
from facho.alerts.models import Alert, Delivery
from facho.alerts.outbox import due_channels, note_success, take
from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.models import Olt, Site
from facho.apps.maintenance.models import Maintenance, MaintenanceWindow
from facho.apps.telemetry.models import Onu


def look(now, **more):
    evaluate(now, snapshot(now, **more), T0)


def look_until(end, *, start, every=10 * SEC):
    now = start
    while now <= end:
        look(now)
        now += every


def maintain(olt=None, *, start=T0, length=HOUR, **more):
    plan = Maintenance.objects.create(olt=olt, starts_at=start, ends_at=start + length, **more)
    plan.settle(start)
    return plan


def cut(olt, port):
    Onu.objects.filter(olt=olt, port=port).update(state="los")
    port_counts.recount(olt=olt)


def splice(olt, port):
    Onu.objects.filter(olt=olt, port=port).update(state="online")
    port_counts.recount(olt=olt)


def sent(now):
    """Send all that is due, and return subject and text of each message, by channel."""
    said = []
    for channel_id in due_channels(now):
        while parcel := take(channel_id, now, ""):
            note_success(parcel, 200, now)
            said.append((parcel.channel.name, parcel.message.news, parcel.message.subject))
    return said


@pytest.fixture
def noc(db):
    return make_channel("NOC")


@pytest.fixture
def dark(noc):
    """A rule that watches for dark ports, and tells the NOC."""
    return make_rule("port_dark", channels=[noc], name="Dark ports")


@pytest.fixture
def sur(db):
    """An OLT with eight ONUs on each of three ports."""
    olt = make_olt("OLT-SUR-03", reachability="reachable")
    for port in (1, 2, 3):
        make_onus(olt, 8, port=port)
    return olt


DARK = "OLT-SUR-03: 8 of 8 ONUs on port 0/{} are down"


def test_the_alerts_of_a_disabled_olt_are_closed_and_not_resolved(dark, sur, caplog):
    caplog.set_level(logging.INFO, "facho")
    cut(sur, 1)
    look(T0)
    assert sent(T0) == [("NOC", "raised", f"[warning] {DARK.format(1)}")]

    Olt.objects.get(pk=sur.pk).disable()
    look(T0 + 10 * SEC)
    look(T0 + 20 * SEC)

    alert = Alert.objects.get()
    assert (alert.is_open, alert.is_unknown) == (False, True)
    assert sent(T0 + MIN) == [("NOC", "closed", f"[closed, state unknown] {DARK.format(1)}")]
    assert f"alert closed, state unknown: Dark ports: {DARK.format(1)}" in caplog.messages
    assert not [text for text in caplog.messages if "resolved" in text]


def test_an_olt_that_is_enabled_again_with_the_same_problem_has_a_new_alert(dark, sur):
    cut(sur, 1)
    look(T0)
    sur.disable()
    look(T0 + MIN)
    sur.enable()
    look(T0 + 2 * MIN)

    assert [alert.is_open for alert in Alert.objects.order_by("id")] == [False, True]


def test_recipients_that_were_told_nothing_are_not_told_of_the_closing(dark, sur):
    rule = make_rule("port_dark", name="Silent")
    cut(sur, 1)
    look(T0)
    sur.disable()
    look(T0 + MIN)

    assert not Delivery.objects.filter(alert__rule=rule).exists()


@pytest.mark.parametrize("of", ["olt", "port", "site"])
def test_a_maintenance_closes_what_is_open_and_holds_what_comes(dark, sur, of):
    sur.site = Site.objects.create(name="Lima")
    sur.save()
    cut(sur, 1)
    look(T0)
    sent(T0)
    target = {"olt": {"olt": sur}, "port": {"olt": sur, "slot": 0, "port": 1}, "site": {"site": sur.site}}[of]

    maintain(**target, start=T0 + MIN, reason="Splicing")
    look(T0 + MIN)
    cut(sur, 2)
    look_until(T0 + 10 * MIN, start=T0 + 2 * MIN, every=MIN)

    told = sent(T0 + 10 * MIN)
    closing = ("NOC", "closed", f"[closed, state unknown] {DARK.format(1)}")
    # The other port is not in the maintenance of the first.
    raised = [("NOC", "raised", f"[warning] {DARK.format(2)}")] if of == "port" else []
    assert sorted(told) == sorted([closing, *raised])
    assert Alert.objects.get(window__isnull=False).is_unknown


def test_at_the_end_each_channel_gets_one_message_with_what_is_open(dark, noc, sur):
    boss = make_channel("boss")
    make_rule("port_dark", channels=[boss, noc], name="All ports", severity="critical")
    cut(sur, 1)
    cut(sur, 2)
    look(T0)
    sent(T0)
    maintain(sur, start=T0 + MIN)
    look(T0 + MIN)
    sent(T0 + 2 * MIN)
    # One is repaired, another one is cut, one lasts.
    splice(sur, 1)
    cut(sur, 3)
    look_until(T0 + HOUR, start=T0 + 2 * MIN, every=MIN)
    assert sent(T0 + HOUR) == []

    look_until(T0 + HOUR + 3 * MIN, start=T0 + HOUR + MIN, every=MIN)

    now = T0 + HOUR + 3 * MIN
    parcels = [take(channel_id, now, "") for channel_id in due_channels(now)]
    messages = {parcel.channel.name: parcel.message for parcel in parcels}
    assert all(take(channel_id, now, "") is None for channel_id in due_channels(now))
    assert {name: message.subject for name, message in messages.items()} == {
        "NOC": "[maintenance over] OLT-SUR-03: 2 alerts are open",
        "boss": "[maintenance over] OLT-SUR-03: 2 alerts are open",
    }
    assert messages["boss"].text.splitlines() == [
        DARK.format(2),
        DARK.format(3),
        "Since Mar 1, 2026, 11:01:00 UTC.",
        "No longer found:",
        DARK.format(1),
    ]


def test_a_message_that_several_alerts_were_closed_says_why(dark, sur):
    for port in (1, 2, 3):
        cut(sur, port)
    look(T0)
    sent(T0)
    maintain(sur, start=T0 + MIN, reason="New card")
    look(T0 + MIN)

    [channel_id] = due_channels(T0 + MIN)
    text = take(channel_id, T0 + MIN, "").message.text

    assert text.splitlines() == [
        *(DARK.format(port) for port in (1, 2, 3)),
        "Maintenance of OLT-SUR-03 until Mar 1, 2026, 11:01:00 UTC. New card",
        "Since Mar 1, 2026, 10:00:00 UTC.",
        "Rule: Dark ports.",
    ]


def test_a_problem_that_lasts_through_several_maintenances_is_not_unstable(dark, sur):
    cut(sur, 1)
    for number in range(4):
        maintain(sur, start=T0 + (5 + 10 * number) * MIN, length=5 * MIN)

    look_until(T0 + 50 * MIN, start=T0, every=MIN)

    assert [(alert.is_unknown, alert.is_unstable) for alert in Alert.objects.order_by("id")] == [
        *[(True, False)] * 4,
        (False, False),
    ]


def test_what_was_summarised_is_resolved_like_any_other(dark, sur):
    maintain(sur)
    cut(sur, 1)
    look_until(T0 + HOUR + MIN, start=T0, every=MIN)
    assert sent(T0 + HOUR + MIN) == [("NOC", "summary", "[maintenance over] OLT-SUR-03: 1 alert is open")]

    splice(sur, 1)
    look_until(T0 + HOUR + 5 * MIN, start=T0 + HOUR + 2 * MIN, every=MIN)

    assert sent(T0 + HOUR + 5 * MIN) == [
        ("NOC", "recovered", "[resolved] OLT-SUR-03: the ONUs of port 0/1 are up again")
    ]


def test_recipients_of_a_closing_learn_that_all_is_well(dark, sur):
    cut(sur, 1)
    look(T0)
    maintain(sur, start=T0 + MIN)
    look(T0 + MIN)
    splice(sur, 1)
    sent(T0 + 2 * MIN)

    look_until(T0 + HOUR + 5 * MIN, start=T0 + HOUR, every=MIN)

    assert sent(T0 + HOUR + 5 * MIN) == [("NOC", "summary", "[maintenance over] OLT-SUR-03: no alerts are open")]


def test_a_maintenance_in_which_nothing_happened_ends_without_a_word(dark, sur):
    maintain(sur)

    look_until(T0 + HOUR + 5 * MIN, start=T0, every=MIN)

    assert not Delivery.objects.exists()
    assert MaintenanceWindow.objects.get().summarised_at == T0 + HOUR


def test_after_a_maintenance_without_polling_the_summary_waits_for_new_readings(dark, sur):
    cut(sur, 1)
    look(T0)
    maintain(sur, start=T0 + MIN, length=HOUR, polling=False)
    look(T0 + MIN)
    sent(T0 + 2 * MIN)

    look_until(T0 + HOUR + 5 * MIN, start=T0 + HOUR, every=MIN)
    # Read again: it is up.
    splice(sur, 1)
    before = sent(T0 + HOUR + 5 * MIN)
    look_until(T0 + HOUR + 8 * MIN, start=T0 + HOUR + 6 * MIN, every=MIN)

    assert before == []
    assert sent(T0 + HOUR + 8 * MIN) == [("NOC", "summary", "[maintenance over] OLT-SUR-03: no alerts are open")]


def test_two_windows_that_overlap_hold_until_the_last_one_is_over(dark, sur):
    sur.site = Site.objects.create(name="Lima")
    sur.save()
    maintain(sur)
    maintain(site=sur.site, length=2 * HOUR)
    cut(sur, 1)

    look_until(T0 + 2 * HOUR - MIN, start=T0, every=MIN)
    before = sent(T0 + 2 * HOUR - MIN)
    look(T0 + 2 * HOUR)

    assert before == []
    assert sent(T0 + 2 * HOUR) == [("NOC", "summary", "[maintenance over] Lima: 1 alert is open")]


def test_the_end_of_a_maintenance_is_an_event_that_is_not_held(noc, sur):
    make_rule("event", channels=[noc], params={"event_types": ["MAINTENANCE_ENDS_SOON"]}, name="Reminders")
    maintain(sur)
    details = {"target": sur.name, "at": "2026-03-01T11:00+00:00"}
    CoordinatorLog.objects.create(
        olt=sur, event_type="MAINTENANCE_ENDS_SOON", level="WARNING", message="soon", details=details, timestamp=T0
    )
    look(T0 + SEC)

    [(_, news, subject)] = sent(T0 + SEC)
    assert news == "raised"
    assert "maintenance of OLT-SUR-03 ends at" in subject


def test_after_an_end_without_an_engine_the_summary_is_sent_later_and_once(dark, sur):
    maintain(sur)
    cut(sur, 1)
    look(T0 + MIN)

    look_until(T0 + 3 * HOUR + 5 * MIN, start=T0 + 3 * HOUR, every=MIN)

    assert sent(T0 + 3 * HOUR + 5 * MIN) == [("NOC", "summary", "[maintenance over] OLT-SUR-03: 1 alert is open")]


async def test_a_receiver_that_is_down_gets_each_message_once_and_in_order(desk):  # noqa: F811 - a fixture
    def begin():
        noc = make_channel("NOC")
        make_rule("port_dark", channels=[noc], name="Dark ports")
        olt = make_olt("OLT-SUR-03", reachability="reachable")
        for port in (1, 2):
            make_onus(olt, 8, port=port)
        cut(olt, 1)
        look(T0)
        return olt

    olt = await desk.do(begin)
    desk.post.errors["NOC"] = DEAD
    await desk.step()
    await desk.do(maintain, olt, start=T0 + MIN, length=10 * MIN)
    await desk.do(look, T0 + MIN)
    await desk.do(cut, olt, 2)
    for _ in range(12):
        await desk.step(after=MIN)
        await desk.do(look, desk.clock.time)

    desk.post.errors.clear()
    for _ in range(90):
        await desk.step(after=MIN)
        await desk.do(look, desk.clock.time)

    assert desk.post.subjects("NOC") == [
        f"[warning] {DARK.format(1)}",
        f"[closed, state unknown] {DARK.format(1)}",
        "[maintenance over] OLT-SUR-03: 2 alerts are open",
    ]
