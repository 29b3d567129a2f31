"""Notifier of each kind of channel, with its secrets in the clear. For the outbox only."""

from facho.alerts.channels import TELEGRAM_API, Notifier
from facho.alerts.channels.apprise import Apprise
from facho.alerts.channels.email import Email, Security
from facho.alerts.channels.slack import Slack
from facho.alerts.channels.telegram import Telegram
from facho.alerts.channels.webhook import Webhook
from facho.alerts.models import Channel


def notifier(channel: Channel) -> Notifier:
    """Return the notifier of a channel."""
    match Channel.Kind(channel.kind):
        case Channel.Kind.WEBHOOK:
            return Webhook(url=channel.url.reveal(), secret=channel.signing_secret.reveal())
        case Channel.Kind.EMAIL:
            return Email(
                host=channel.smtp_host,
                port=channel.smtp_port,
                security=Security(channel.smtp_security),
                user=channel.smtp_user,
                password=channel.smtp_password.reveal(),
                sender=channel.mail_from,
                recipients=channel.recipients,
            )
        case Channel.Kind.TELEGRAM:
            chat, base_url = channel.chat_id.strip(), channel.telegram_url or TELEGRAM_API
            return Telegram(token=channel.bot_token.reveal(), chat_id=chat, base_url=base_url)
        case Channel.Kind.SLACK:
            return Slack(url=channel.slack_url.reveal())
        case Channel.Kind.APPRISE:
            return Apprise(url=channel.apprise_url.reveal())
