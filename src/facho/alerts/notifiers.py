"""Notifier of each kind of channel, with its secrets in the clear. For the outbox only."""

from facho.alerts.channels import Notifier
from facho.alerts.channels.apprise import Apprise
from facho.alerts.channels.email import Email, Security
from facho.alerts.channels.slack import Slack
from facho.alerts.channels.telegram import API, Telegram
from facho.alerts.channels.webhook import Webhook
from facho.alerts.models import Channel


def notifier(channel: Channel) -> Notifier:
    """Return the notifier of a channel."""
    return {
        Channel.Kind.WEBHOOK: _webhook,
        Channel.Kind.EMAIL: _email,
        Channel.Kind.TELEGRAM: _telegram,
        Channel.Kind.SLACK: _slack,
        Channel.Kind.APPRISE: _apprise,
    }[Channel.Kind(channel.kind)](channel)


def _webhook(channel: Channel) -> Notifier:
    return Webhook(url=channel.url, secret=channel.signing_secret.reveal())


def _email(channel: Channel) -> Notifier:
    return Email(
        host=channel.smtp_host,
        port=channel.smtp_port,
        security=Security(channel.smtp_security),
        user=channel.smtp_user,
        password=channel.smtp_password.reveal(),
        sender=channel.mail_from,
        recipients=channel.recipients,
    )


def _telegram(channel: Channel) -> Notifier:
    return Telegram(
        token=channel.bot_token.reveal(), chat_id=channel.chat_id.strip(), base_url=channel.telegram_url or API
    )


def _slack(channel: Channel) -> Notifier:
    return Slack(url=channel.slack_url.reveal())


def _apprise(channel: Channel) -> Notifier:
    return Apprise(url=channel.apprise_url.reveal())
