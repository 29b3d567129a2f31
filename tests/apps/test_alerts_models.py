"""Channels and rules say what they cannot work with; alerts and deliveries know what may be done to them."""

from datetime import time, timedelta

import pytest
from alert_cast import SECRETS, make_alert, make_channel, make_delivery, make_rule
from cast import T0
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import translation

from facho.alerts import text
from facho.alerts.channels import apprise
from facho.alerts.channels.apprise import Apprise
from facho.alerts.channels.email import Email, Security
from facho.alerts.channels.slack import Slack
from facho.alerts.channels.telegram import Telegram
from facho.alerts.channels.webhook import Webhook
from facho.alerts.messages import message
from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.alerts.notifiers import notifier

DISCORD = f"discord://{'1' * 18}/{'a' * 40}"
WELL = {
    "webhook": {"url": "https://noc.example.net/hook", "signing_secret": "sixteen-letters!"},
    "email": {"smtp_host": "mail.example.net", "mail_from": "facho@example.net", "mail_to": "noc@example.net"},
    "telegram": {"bot_token": "7:token", "chat_id": "-100"},
    "slack": {"slack_url": "https://hooks.example.net/services/1"},
    "apprise": {"apprise_url": "ntfys://ntfy.example.net/noc"},
}


def refused(row):
    with pytest.raises(ValidationError) as caught:
        row.full_clean()
    return set(caught.value.message_dict)


@pytest.mark.parametrize("kind", WELL)
def test_a_channel_needs_what_its_kind_needs_and_nothing_of_the_others(db, kind):
    Channel(name="NOC", kind=kind, **WELL[kind]).full_clean()

    assert refused(Channel(name="boss", kind=kind)) == {*WELL[kind]}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        pytest.param("webhook", {"url": "ftp://noc.example.net"}, id="another scheme"),
        pytest.param("webhook", {"url": "file:///etc/passwd"}, id="a file"),
        pytest.param("webhook", {"url": "https://user:password@noc.example.net"}, id="a password in the address"),
        pytest.param("webhook", {"url": "https://noc.example.net/a b"}, id="a space"),
        pytest.param("webhook", {"url": "https://noc.example.net:99999/"}, id="no such port"),
        pytest.param("webhook", {"signing_secret": "short"}, id="a short secret"),
        pytest.param("email", {"mail_to": "noc@example.net, nobody"}, id="an address that is none"),
        pytest.param("email", {"mail_from": "Facho"}, id="a sender that is none"),
        pytest.param("email", {"smtp_host": "mail example"}, id="a server that is none"),
        pytest.param("email", {"smtp_security": "none", "smtp_user": "facho"}, id="a password in the clear"),
        pytest.param("telegram", {"bot_token": "token"}, id="half a token"),
        pytest.param("telegram", {"bot_token": "7:to/ken"}, id="a token that leads elsewhere"),
        pytest.param("telegram", {"telegram_url": "api.telegram.org"}, id="an API without a scheme"),
        pytest.param("slack", {"slack_url": "hooks.slack.com"}, id="an address without a scheme"),
        pytest.param("apprise", {"apprise_url": "carrier-pigeon://noc"}, id="a service that Apprise does not know"),
        pytest.param("apprise", {"apprise_url": "json://a.example.net json://b.example.net"}, id="two URLs"),
        pytest.param("apprise", {"apprise_url": f"{DISCORD}?template=/etc/hostname"}, id="a file of the server"),
        pytest.param("apprise", {"apprise_url": f"{DISCORD}?template=http://127.0.0.1/"}, id="a file of another host"),
    ],
)
def test_a_channel_that_could_not_work_is_refused(db, kind, settings):
    wrong = refused(Channel(name="NOC", kind=kind, **WELL[kind] | settings))

    assert wrong & settings.keys()


def test_an_apprise_channel_without_apprise_names_the_command_that_installs_it(db, monkeypatch):
    monkeypatch.setattr(apprise, "is_installed", lambda: False)
    channel = Channel(name="NOC", kind="apprise", **WELL["apprise"])

    with pytest.raises(ValidationError) as caught:
        channel.full_clean()

    message = "Apprise is not installed. Install it with: pip install 'facho[apprise]'"
    assert caught.value.message_dict == {"apprise_url": [message]}


def test_recipients_may_stand_below_each_other():
    channel = Channel(mail_to="noc@example.net,\n boss@example.net ,")

    assert channel.recipients == ("noc@example.net", "boss@example.net")


def test_each_kind_of_channel_has_its_notifier(db):
    mail = make_channel("mail", kind="email", smtp_host="mail.example.net", smtp_port=465, smtp_security="tls",
                        smtp_user="facho", mail_from="facho@example.net", mail_to="noc@example.net")  # fmt: skip

    assert notifier(make_channel()) == Webhook("https://127.0.0.1/hook", SECRETS["signing_secret"])
    assert notifier(make_channel("bot", kind="telegram", chat_id=" 7 ")) == Telegram(SECRETS["bot_token"], "7")
    assert notifier(make_channel("slack", kind="slack")) == Slack(SECRETS["slack_url"])
    assert notifier(make_channel("apprise", kind="apprise")) == Apprise(SECRETS["apprise_url"])
    assert notifier(mail) == Email(
        host="mail.example.net",
        port=465,
        security=Security.TLS,
        user="facho",
        password=SECRETS["smtp_password"],
        sender="facho@example.net",
        recipients=("noc@example.net",),
    )


def test_telegram_of_ones_own_is_asked_there(db):
    channel = make_channel("bot", kind="telegram", chat_id="7", telegram_url="https://telegram.example.net")

    assert notifier(channel).base_url == "https://telegram.example.net"


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        pytest.param("olt_unreachable", {}, {}, id="nothing to set"),
        pytest.param("violation", {}, {"min_severity": "MEDIUM"}, id="the default"),
        pytest.param(
            "port_dark", {"dark_onus": 8.0}, {"dark_onus": 8, "dark_percent": 50}, id="one set, one by default"
        ),
        pytest.param(
            "low_power",
            {"below_dbm": -28},
            {"below_dbm": -28.0, "hysteresis_db": 1.0, "low_onus": 1},
            id="a whole number where any will do",
        ),
        pytest.param(
            "event",
            {"event_types": ["OLT_DISABLED", "OLT_DISABLED", "ENGINE_STARTED"]},
            {"event_types": ["ENGINE_STARTED", "OLT_DISABLED"], "event_minutes": 15},
            id="each event once",
        ),
    ],
)
def test_a_rule_keeps_all_settings_of_its_kind(db, kind, given, kept):
    rule = Rule(name="rule", kind=kind, params=given)

    rule.full_clean()

    assert rule.params == kept


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        pytest.param("olt_unreachable", {"below_dbm": -27}, id="of another kind"),
        pytest.param("low_power", {"below_dbm": "low"}, id="no number"),
        pytest.param("low_power", {"below_dbm": float("nan")}, id="not a number"),
        pytest.param("low_power", {"below_dbm": -51}, id="below all bounds"),
        pytest.param("port_dark", {"dark_percent": 101}, id="above all bounds"),
        pytest.param("port_dark", {"dark_onus": 4.5}, id="half an ONU"),
        pytest.param("port_dark", {"dark_onus": True}, id="a truth"),
        pytest.param("violation", {"min_severity": "AWFUL"}, id="no such severity"),
        pytest.param("event", {}, id="no events"),
        pytest.param("event", {"event_types": "OLT_DISABLED"}, id="a text instead of a list"),
        pytest.param("event", {"event_types": ["NO_SUCH_EVENT"]}, id="no such event"),
        pytest.param("event", {"event_types": ["ALERT_RAISED"]}, id="an alert about alerts"),
        pytest.param("event", ["OLT_DISABLED"], id="no object at all"),
    ],
)
def test_a_rule_refuses_settings_that_mean_nothing(db, kind, params):
    assert refused(Rule(name="rule", kind=kind, params=params)) == {"params"}


@pytest.mark.parametrize(
    ("quiet", "wrong"),
    [
        pytest.param({"quiet_from": time(22)}, "quiet_to", id="no end"),
        pytest.param({"quiet_to": time(7)}, "quiet_to", id="no beginning"),
        pytest.param({"quiet_from": time(7), "quiet_to": time(7)}, "quiet_to", id="no time at all"),
        pytest.param({"quiet_zone": "Lima"}, "quiet_zone", id="no such zone"),
    ],
)
def test_quiet_hours_that_make_no_sense_are_refused(db, quiet, wrong):
    assert refused(Rule(name="rule", kind="olt_unreachable", **quiet)) == {wrong}


def test_a_rule_has_one_open_alert_for_a_key(sur):
    rule = make_rule()
    make_alert(sur, rule=rule, recovered_at=T0)
    make_alert(sur, rule=rule)

    with pytest.raises(IntegrityError), transaction.atomic():
        make_alert(sur, rule=rule)

    assert Alert.objects.count() == 2


def test_who_acknowledges_first_is_kept(sur, boss, reader):
    alert = make_alert(sur)

    firsts = [alert.acknowledge(by=boss), Alert.objects.get().acknowledge(by=reader)]

    assert firsts == [True, False]
    assert Alert.objects.get().acknowledged_by == boss


@pytest.mark.parametrize(
    ("status", "is_sent_again"), [("PENDING", False), ("SENT", False), ("FAILED", True), ("SUPPRESSED", True)]
)
def test_only_what_was_not_sent_is_sent_again(sur, status, is_sent_again):
    delivery = make_delivery(make_channel(), make_alert(sur), status=status, attempts=8, next_try_at=None)

    assert delivery.retry(T0 + timedelta(hours=1)) is is_sent_again

    delivery.refresh_from_db()
    assert (delivery.status == "PENDING" and delivery.attempts == 0) is is_sent_again


def test_history_outlives_rules_and_channels(sur):
    rule, channel = make_rule(), make_channel()
    make_delivery(channel, make_alert(sur, rule=rule))

    rule.delete()
    channel.delete()

    assert Alert.objects.get().rule_name == "Gone"
    assert Delivery.objects.get().channel_name == "NOC"


def test_secrets_show_nowhere_in_a_channel(db):
    channel = Channel.objects.get(pk=make_channel().pk)

    assert not any(secret in f"{channel!r}{vars(channel)}" for secret in SECRETS.values())


MARKS = [
    ("raised", "[critical] OLT-SUR-03 does not answer"),
    ("repeated", "[still critical] OLT-SUR-03 does not answer"),
    ("escalated", "[critical, not acknowledged] OLT-SUR-03 does not answer"),
    ("recovered", "[resolved] OLT-SUR-03 answers again"),
]


@pytest.mark.parametrize(("news", "subject"), MARKS)
def test_a_message_says_what_it_is_about(sur, news, subject):
    alert = make_alert(sur, recovered_at=T0 + timedelta(minutes=5), count=3)

    channel = make_channel()
    said = message([make_delivery(channel, alert, news=news)], channel)

    assert said.subject == subject
    assert "Since Jun 1, 2025, 10:00:00 UTC." in said.text
    assert ("Until Jun 1, 2025, 10:05:00 UTC." in said.text) is (news == "recovered")
    assert ("No answer in 5 s." in said.text) is (news != "recovered")
    assert "It started and ended 3 times." in said.text
    assert said.url == ""


def test_times_of_a_message_are_those_of_the_channel(sur):
    channel = make_channel(zone="America/Lima")

    said = message([make_delivery(channel, make_alert(sur))], channel)

    assert "Since Jun 1, 2025, 05:00:00 -05." in said.text


def test_a_message_about_the_engine_leads_to_the_first_page(db):
    alert = Alert.objects.create(rule_name="Pool", kind="pool_saturated", severity="warning", key="pool",
                                 params={"busy": 90}, opened_at=T0, last_seen_at=T0)  # fmt: skip

    channel = make_channel()
    said = message([make_delivery(channel, alert)], channel, "https://noc.example.net/")

    assert (said.url, said.olt) == ("https://noc.example.net/", None)


def test_the_language_of_a_message_is_that_of_its_channel_only_while_it_is_written(sur, monkeypatch):
    monkeypatch.setattr(text, "subject", lambda *_arguments, **_more: translation.get_language())
    channel = make_channel(language="es")
    delivery = make_delivery(channel, make_alert(sur))

    with translation.override("en"):
        said = message([delivery], channel)

        assert translation.get_language() == "en"
    assert said.subject.endswith("] es")
