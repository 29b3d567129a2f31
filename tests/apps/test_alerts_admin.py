"""Alerts in the admin: setting up, trying out, acknowledging, sending again."""

import re
from datetime import time

import pytest
from alert_cast import SECRETS, make_alert, make_channel, make_delivery, make_rule
from cast import T0, make_olt
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from facho.alerts.models import Alert, Channel, Delivery, Rule

MODELS = [Alert, Channel, Delivery, Rule]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)


def page_of(model, page, *args):
    return reverse(f"admin:alerts_{model._meta.model_name}_{page}", args=args)


@pytest.fixture
def everything(sur):
    channel = make_channel()
    rule = make_rule(kind="low_power")
    rule.channels.set([channel])
    rule.olts.set([sur])
    make_delivery(channel, make_alert(sur, rule=rule))


@each_model
def test_lists_and_pages_open(admin_page, everything, model):
    pages = [
        admin_page.get(page_of(model, "changelist")),
        admin_page.get(page_of(model, "change", model.objects.get().pk)),
    ]

    assert [page.status_code for page in pages] == [200, 200]


@each_model
def test_staff_who_may_view_can_look_and_not_change(everything, model):
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(looker)
    page = page_of(model, "change", model.objects.get().pk)

    looked, changed = client.get(page), client.post(page, {})

    assert (looked.status_code, changed.status_code) == (200, 403)
    assert not any(secret in looked.content.decode() for secret in SECRETS.values())
    assert "https://127.0.0.1/hook" not in looked.content.decode()


@each_model
def test_a_list_costs_the_same_however_long_it_is(admin_page, model, django_assert_max_num_queries):
    for number in range(10):
        olt, channel, rule = make_olt(f"OLT-{number}"), make_channel(f"channel {number}"), make_rule(f"rule {number}")
        rule.channels.set([channel])
        rule.olts.set([olt])
        make_delivery(channel, make_alert(olt, rule=rule))

    with django_assert_max_num_queries(10):
        page = admin_page.get(page_of(model, "changelist"))

    assert page.status_code == 200


def test_no_page_of_a_channel_shows_a_secret(admin_page, everything):
    channel = Channel.objects.get()
    hidden = [*SECRETS.values(), *(getattr(channel, name).token for name in SECRETS)]

    pages = [
        admin_page.get(page_of(Channel, page, *arguments)).content.decode()
        for page, arguments in [
            ("changelist", []),
            ("add", []),
            *((page, [channel.pk]) for page in ("change", "history", "delete")),
        ]
    ]

    assert not [page for page in pages if any(secret in page for secret in hidden)]


def channel_form(**more):
    fields = {"name": "NOC", "kind": "webhook", "language": "es", "enabled": "on", "url": "https://127.0.0.1/hook",
              "smtp_port": "587", "smtp_security": "starttls", "zone": "America/Lima"}  # fmt: skip
    return fields | more


def test_a_channel_is_set_up(admin_page):
    form = channel_form(signing_secret="sixteen-letters!")

    answer = admin_page.post(page_of(Channel, "add"), form)

    channel = Channel.objects.get()
    assert answer.status_code == 302
    assert (channel.kind, channel.language, channel.signing_secret.reveal()) == ("webhook", "es", "sixteen-letters!")


def test_a_new_channel_has_a_signing_secret_that_is_shown_once(admin_page):
    pages = [admin_page.get(page_of(Channel, "add")) for _ in range(2)]
    first, second = (page.context["adminform"].form.initial["signing_secret"] for page in pages)

    admin_page.post(page_of(Channel, "add"), channel_form(signing_secret=first))
    stored = admin_page.get(page_of(Channel, "change", Channel.objects.get().pk)).content.decode()

    assert first in pages[0].content.decode()
    assert first != second
    assert Channel.objects.get().signing_secret.reveal() == first
    assert first not in stored


def test_on_call_times_of_a_channel_are_set(admin_page):
    form = channel_form(signing_secret="sixteen-letters!", on_call_days=["5", "6"], on_call_from="08:00")

    refused = admin_page.post(page_of(Channel, "add"), form).content.decode()
    admin_page.post(page_of(Channel, "add"), form | {"on_call_to": "20:00"})

    channel = Channel.objects.get()
    assert "Set both the start and the end of the on-call times." in refused
    assert (channel.on_call_days, channel.zone, str(channel.on_call_to)) == ([5, 6], "America/Lima", "20:00:00")


def test_a_time_of_day_is_shown_as_it_is_entered(admin_page):
    channel = make_channel(on_call_from=time(8), on_call_to=time(20, 30))

    page = admin_page.get(page_of(Channel, "change", channel.pk)).content.decode()

    assert re.search(r'<input type="time" name="on_call_to" value="20:30"', page)


def test_a_rule_that_escalates_to_nobody_is_warned_about(admin_page):
    answer = admin_page.post(page_of(Rule, "add"), rule_form(escalate_minutes="15"), follow=True)

    assert "Weak has no enabled channel to escalate to" in answer.content.decode()


def test_a_channel_without_what_it_needs_is_not_saved(admin_page):
    answer = admin_page.post(page_of(Channel, "add"), channel_form())

    assert answer.status_code == 200
    assert "The signing secret must have at least 16 characters." in answer.content.decode()
    assert not Channel.objects.exists()


def test_an_apprise_url_that_is_not_valid_is_not_saved_and_not_shown(admin_page):
    form = channel_form(kind="apprise", apprise_url="carrier-pigeon://s3cret-word")

    answer = admin_page.post(page_of(Channel, "add"), form)

    assert "Apprise does not accept this URL." in answer.content.decode()
    assert "s3cret-word" not in answer.content.decode()
    assert not Channel.objects.exists()


def test_a_secret_that_is_left_empty_stays(admin_page):
    channel = make_channel()

    answer = admin_page.post(page_of(Channel, "change", channel.pk), channel_form(url="https://127.0.0.1/new"))

    channel.refresh_from_db()
    assert answer.status_code == 302
    assert channel.url.reveal() == "https://127.0.0.1/new"
    assert {name: getattr(channel, name).reveal() for name in SECRETS} == SECRETS


def test_a_channel_that_was_used_can_be_deleted(admin_page, everything):
    answer = admin_page.post(page_of(Channel, "delete", Channel.objects.get().pk), {"post": "yes"})

    assert answer.status_code == 302
    assert not Channel.objects.exists()
    assert Delivery.objects.get().channel_name == "NOC"


def test_the_button_sends_a_test_and_leads_to_what_becomes_of_it(admin_page):
    channel = make_channel()

    answer = admin_page.post(page_of(Channel, "send_test", channel.pk), {"_form_submitted": "on"})

    delivery = Delivery.objects.get()
    assert (delivery.news, delivery.status, delivery.channel) == ("test", "PENDING", channel)
    assert answer["HX-Redirect"] == page_of(Delivery, "change", delivery.pk)


def test_looking_at_the_button_sends_nothing(admin_page):
    answer = admin_page.get(page_of(Channel, "send_test", make_channel().pk))

    assert answer.status_code == 200
    assert not Delivery.objects.exists()


def test_the_page_of_a_test_looks_again_until_it_knows(admin_page):
    delivery = make_delivery(make_channel())
    page = page_of(Delivery, "change", delivery.pk)

    waiting = admin_page.get(page)
    Delivery.objects.update(status="SENT")
    known = admin_page.get(page)

    assert waiting["Refresh"] == "2"
    assert "Refresh" not in known


def rule_form(**more):
    fields = {
        "name": "Weak",
        "kind": "low_power",
        "severity": "warning",
        "enabled": "on",
        "recover_after_seconds": "60",
        "repeat_minutes": "0",
        "escalate_minutes": "0",
        "flap_times": "3",
        "most_per_hour": "20",
        "quiet_zone": "UTC",
        "quiet_mode": "hold",
    }
    return fields | more


def test_a_rule_is_set_up_with_the_settings_of_its_kind(admin_page):
    channel = make_channel()

    answer = admin_page.post(
        page_of(Rule, "add"), rule_form(below_dbm="-28.5", dark_onus="9", channels=[channel.pk]), follow=True
    )

    rule = Rule.objects.get()
    assert rule.params == {"below_dbm": -28.5, "hysteresis_db": 1.0, "low_onus": 1}
    assert [*rule.channels.all()] == [channel]
    assert "no messages are sent" not in answer.content.decode()


def test_a_rule_that_tells_nobody_is_warned_about(admin_page):
    answer = admin_page.post(page_of(Rule, "add"), rule_form(), follow=True)

    assert "Weak has no enabled channel: no messages are sent." in answer.content.decode()


def test_settings_of_a_rule_are_changed(admin_page):
    rule = make_rule(kind="low_power", params={"below_dbm": -27.0, "hysteresis_db": 1.0, "low_onus": 3})
    page = page_of(Rule, "change", rule.pk)

    shown = admin_page.get(page).content.decode()
    admin_page.post(page, rule_form(name="Gone", below_dbm="-29", hysteresis_db="2", low_onus="3"))

    rule.refresh_from_db()
    assert 'value="3"' in shown
    assert rule.params == {"below_dbm": -29.0, "hysteresis_db": 2.0, "low_onus": 3}


def test_a_setting_that_means_nothing_is_refused_where_it_stands(admin_page):
    answer = admin_page.post(page_of(Rule, "add"), rule_form(below_dbm="-99"))

    assert "Write a number from -50 to 10." in answer.content.decode()
    assert not Rule.objects.exists()


def test_a_rule_that_has_lost_its_olts_reports_it_until_somebody_chooses(admin_page, sur):
    rule = make_rule(severity="critical")
    rule.olts.set([sur])
    rule.settle_olts()
    sur.delete()
    page = page_of(Rule, "change", rule.pk)
    warning = "The OLTs of Gone were deleted."

    lost = admin_page.get(page).content.decode()
    admin_page.post(page, rule_form(name="Gone", kind="olt_unreachable"))
    chosen = admin_page.get(page).content.decode()

    assert warning in lost
    assert warning not in chosen
    assert not Rule.objects.get(pk=rule.pk).is_narrowed


def test_a_rule_for_events_names_them(admin_page):
    admin_page.post(page_of(Rule, "add"), rule_form(kind="event", event_types=["OLT_DISABLED"], event_minutes="5"))

    assert Rule.objects.get().params == {"event_types": ["OLT_DISABLED"], "event_minutes": 5}


def act(client, model, action, *rows):
    return client.post(page_of(model, "changelist"), {"action": action, "_selected_action": [row.pk for row in rows]})


def test_open_alerts_stand_first(admin_page, sur, central):
    make_alert(central, recovered_at=T0)
    make_alert(sur)

    page = admin_page.get(page_of(Alert, "changelist")).content.decode()

    assert page.index("OLT-SUR-03 does not answer") < page.index("OLT-CENTRAL-01 does not answer")


def test_chosen_alerts_are_acknowledged(admin_page, sur, boss):
    alert = make_alert(sur)

    act(admin_page, Alert, "acknowledge_chosen", alert)

    alert.refresh_from_db()
    assert alert.acknowledged_by == boss


def test_chosen_messages_are_sent_again(admin_page, sur):
    delivery = make_delivery(make_channel(), make_alert(sur), status="FAILED", next_try_at=None)

    act(admin_page, Delivery, "retry_chosen", delivery)

    delivery.refresh_from_db()
    assert delivery.status == "PENDING"


def test_who_may_only_look_cannot_acknowledge(everything):
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename="view_alert"))
    client = Client()
    client.force_login(looker)

    act(client, Alert, "acknowledge_chosen", Alert.objects.get())

    assert Alert.objects.get().acknowledged_at is None


@pytest.mark.parametrize("model", [Alert, Delivery], ids=lambda model: model.__name__)
def test_what_comes_of_rules_cannot_be_made_or_changed_by_hand(admin_page, everything, model):
    row = model.objects.get()

    answers = [
        admin_page.get(page_of(model, "add")),
        admin_page.post(page_of(model, "change", row.pk), {}),
        admin_page.post(page_of(model, "delete", row.pk), {"post": "yes"}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
