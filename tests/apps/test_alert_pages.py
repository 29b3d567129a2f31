"""The pages of alerts, and what a rule would send and would have done, through page and API."""

from datetime import timedelta

import pytest
from alert_cast import make_alert, make_channel, make_delivery, make_rule
from cast import T0, make_maintenance, make_olt
from django.test import Client
from django.utils import timezone

from facho.alerts.models import Alert, Delivery, Rule
from facho.apps.inventory.models import Olt, Scope, Tag
from facho.apps.polling.models import PollerStats


@pytest.fixture
def page(reader):
    client = Client()
    client.force_login(reader)
    return client


def html(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def pool(*saturated):
    """Store one minute after the other: whether the pool was saturated."""
    start = timezone.now() - timedelta(hours=2)
    for number, is_saturated in enumerate(saturated):
        PollerStats.objects.create(
            timestamp=start + timedelta(minutes=number), total_pollers=1, free_pollers=0, busy_pollers=1,
            busy_percentage=90, queue_size=0, delayed=0, is_saturated=is_saturated, total_tasks_completed=0,
            total_tasks_delayed=0,
        )  # fmt: skip


def test_the_page_lists_rules_and_open_alerts_first(page, sur, central):
    rule = make_rule()
    rule.channels.set([make_channel()])
    make_alert(central, rule=rule, recovered_at=T0)
    make_alert(sur, rule=rule, held="port_dark")

    text = html(page, "/alerts/")

    assert text.index("OLT-SUR-03 does not answer") < text.index("OLT-CENTRAL-01 does not answer")
    assert f"/alerts/rules/{rule.pk}/" in text
    assert "the PON port is down" in text


def test_the_page_costs_the_same_however_long_it_is(page, django_assert_max_num_queries):
    for number in range(20):
        olt, rule = make_olt(f"OLT-{number}"), make_rule(f"rule {number}")
        rule.channels.set([make_channel(f"channel {number}")])
        rule.olts.set([olt])
        make_alert(olt, rule=rule)

    with django_assert_max_num_queries(14):
        html(page, "/alerts/")


def test_an_alert_is_acknowledged_on_the_page(admin_page, sur, boss):
    alert = make_alert(sur)

    answer = admin_page.post(f"/alerts/{alert.pk}/acknowledge/")

    assert answer["Location"] == "/alerts/"
    assert Alert.objects.get().acknowledged_by == boss


@pytest.mark.parametrize(
    ("kind", "params", "subject"),
    [
        ("olt_unreachable", {}, "[warning] OLT-SUR-03 does not answer"),
        ("port_dark", {}, "[warning] OLT-SUR-03: 32 of 32 ONUs on port 0/1 are down"),
        ("low_power", {}, "[warning] OLT-SUR-03: low power on port 0/1, 1 of its ONUs is below -27.0 dBm"),
        ("violation", {}, "[warning] OLT-SUR-03: State completed 6 of 12 runs in an hour"),
        ("mass_vanishing", {}, "[warning] OLT-SUR-03: too many ONUs disappeared at once"),
        ("pool_saturated", {}, "[warning] The pollers are saturated: busy 90 % of the last minute"),
        ("queue_delayed", {}, "[warning] 11 nodes are delayed, for more than 5 min"),
        ("scheduler_stalled", {"stalled_seconds": 60}, "[warning] The scheduler is stalled"),
        ("event", {"event_types": ["OLT_DISABLED"]}, "[warning] OLT-SUR-03: polling stopped"),
    ],
)  # fmt: skip
def test_a_rule_shows_its_message_with_an_example(api, sur, kind, params, subject):
    rule = make_rule(kind=kind, params=params)
    Olt.objects.update(reachability="reachable")

    found = api.get(f"/api/v1/alert-rules/{rule.pk}/preview/").json()

    # No engine has reported here.
    assert found["origin"] == "example"
    assert found["subject"] == subject


def test_the_preview_has_the_problems_of_now_and_else_the_last_alert(api, sur):
    rule = make_rule()
    Olt.objects.update(reachability="reachable")
    make_alert(sur, rule=rule, params={"olt": "OLT-SUR-03", "error": "The last one."}, recovered_at=T0)
    address = f"/api/v1/alert-rules/{rule.pk}/preview/"

    last = api.get(address).json()
    Olt.objects.update(reachability="unreachable", last_error="That of now.")
    now = api.get(address).json()

    assert (last["origin"], "The last one." in last["text"]) == ("last", True)
    assert (now["origin"], now["alerts"], "That of now." in now["text"]) == ("now", 1, True)
    assert Alert.objects.count() == 1


def test_the_preview_has_the_time_of_the_open_alert(api, sur):
    rule = make_rule()
    Olt.objects.update(reachability="unreachable")
    make_alert(sur, rule=rule, key=f"olt:{sur.pk}", opened_at=T0)

    text = api.get(f"/api/v1/alert-rules/{rule.pk}/preview/").data["text"]

    assert "Since Jun 1, 2025, 10:00:00 UTC." in text


def test_the_preview_leaves_out_what_a_maintenance_holds(api, sur):
    rule = make_rule()
    Olt.objects.update(reachability="unreachable")
    make_maintenance(sur)

    assert api.get(f"/api/v1/alert-rules/{rule.pk}/preview/").data["origin"] == "example"


def test_a_rule_is_tried_on_the_past(page, api):
    pool(False, True, True, False, False, False, True, True, False)
    rule = make_rule("Pool", kind="pool_saturated")

    text = html(page, f"/alerts/rules/{rule.pk}/?days=30")
    found = api.post(f"/api/v1/alert-rules/{rule.pk}/try/", {"days": 30}, format="json").json()

    assert "It would have fired 2 times in the last 30 days." in text
    assert (found["alerts"], found["messages"], found["still_open"]) == (2, 4, 0)
    assert [place["times"] for place in found["places"]] == [2]
    assert not Alert.objects.exists()


def test_other_settings_are_tried_and_not_saved(page, api):
    pool(False, *[True] * 5)
    PollerStats.objects.update(delayed=20)
    rule = make_rule("Queue", kind="queue_delayed", params={"delayed": 30, "minutes": 3})
    address = f"/api/v1/alert-rules/{rule.pk}/try/"

    as_it_is = api.post(address, {}, format="json").json()
    lower = api.post(address, {"params": {"delayed": 10}}, format="json").json()
    on_page = html(page, f"/alerts/rules/{rule.pk}/?days=7&delayed=10&minutes=3")

    assert (as_it_is["alerts"], lower["alerts"]) == (0, 1)
    assert "It would have fired 1 time in the last 7 days." in on_page
    assert Rule.objects.get().params == {"delayed": 30, "minutes": 3}


@pytest.mark.parametrize(
    "body", [{"days": 0}, {"days": 91}, {"params": {"delayed": -1}}, {"params": {"name": 1}}, {"day": 1}]
)
def test_a_trial_that_makes_no_sense_is_refused(api, page, body):
    rule = make_rule("Queue", kind="queue_delayed", params={"delayed": 30, "minutes": 3})

    assert api.post(f"/api/v1/alert-rules/{rule.pk}/try/", body, format="json").status_code == 400
    assert "Write a whole number from 0 to 100000." in html(page, f"/alerts/rules/{rule.pk}/?days=7&delayed=-1")


def test_a_test_goes_to_each_channel_of_the_rule_once(api, admin_page):
    rule = make_rule()
    noc, boss = make_channel(), make_channel("boss")
    rule.channels.set([noc, boss, make_channel("old", enabled=False)])
    rule.escalation_channels.set([boss])

    answer = api.post(f"/api/v1/alert-rules/{rule.pk}/test/")
    page = admin_page.post(f"/alerts/rules/{rule.pk}/test/", follow=True).content.decode()

    assert answer.status_code == 202
    assert "A test message is being sent to: NOC, boss." in page
    assert (
        sorted(Delivery.objects.values_list("channel_name", "news")) == [("NOC", "test")] * 2 + [("boss", "test")] * 2
    )


def test_the_pages_obey_the_scope(sur, central, reader):
    tag = Tag.objects.create(name="south")
    sur.tags.add(tag)
    Scope.objects.create(user=reader).tags.add(tag)
    client = Client()
    client.force_login(reader)
    mine, others = make_rule("South"), make_rule("Everything")
    mine.olts.set([sur])
    make_alert(sur, rule=mine)
    hidden = make_alert(central, rule=others)
    make_delivery(make_channel(), hidden)

    text = html(client, "/alerts/")

    assert ("OLT-SUR-03" in text, "South" in text) == (True, True)
    assert ("OLT-CENTRAL-01" in text, "Everything" in text) == (False, False)
    assert client.get(f"/alerts/rules/{others.pk}/").status_code == 404
    assert client.get(f"/alerts/rules/{mine.pk}/").status_code == 200
