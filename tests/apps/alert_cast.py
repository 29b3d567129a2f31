"""Channels, rules, alerts and deliveries for the tests of their pages and their API."""

from cast import T0

from facho.alerts.models import Alert, Channel, Delivery, Rule

SECRETS = {
    "signing_secret": "s3cret-for-signatures",
    "smtp_password": "s3cret-mail-password",
    "bot_token": "7:s3cret-token-of-a-bot",
    "slack_url": "https://127.0.0.1/services/s3cret-address",
    "apprise_url": "json://noc:s3cret-word@127.0.0.1/s3cret-path",
}


def make_channel(name="NOC", **more):
    defaults = {"name": name, "kind": "webhook", "url": "https://127.0.0.1/hook", **SECRETS}
    return Channel.objects.create(**defaults | more)


def make_rule(name="Gone", **more):
    return Rule.objects.create(**{"name": name, "kind": "olt_unreachable"} | more)


def make_alert(olt, **more):
    defaults = {
        "rule_name": "Gone",
        "kind": "olt_unreachable",
        "severity": "critical",
        "key": f"olt:{olt.pk}",
        "olt": olt,
        "params": {"olt": olt.name, "error": "No answer in 5 s."},
        "opened_at": T0,
        "last_seen_at": T0,
    }
    return Alert.objects.create(**defaults | more)


def make_delivery(channel, alert=None, **more):
    defaults = {
        "alert": alert,
        "channel": channel,
        "channel_name": channel.name,
        "news": "raised" if alert else "test",
        "created_at": T0,
        "due_at": T0,
        "next_try_at": T0,
    }
    return Delivery.objects.create(**defaults | more)
