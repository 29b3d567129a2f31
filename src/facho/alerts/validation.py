"""Validation of channel settings."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.alerts.channels import TELEGRAM_API
from facho.alerts.channels.destinations import is_refused
from facho.apps.inventory.models import validate_host

if TYPE_CHECKING:
    from facho.alerts.models import Channel

MAIL_SECURITY = [("starttls", "STARTTLS"), ("tls", "TLS"), ("none", _("none"))]

LONGEST_URL = 500

# A shorter secret could be guessed from one message.
SHORTEST_SECRET = 16


def clean_channel(channel: "Channel") -> None:
    """Check the settings of the channel's kind; others are ignored."""
    checks = {"webhook": _webhook, "email": _email, "telegram": _telegram, "slack": _slack, "apprise": _apprise}
    errors = checks[channel.kind](channel) if channel.kind in checks else {}
    for name, host in _hosts(channel).items():
        if name not in errors and is_refused(host):
            said = gettext("Channels may not connect to this host. Allowed hosts (FACHO_CHANNEL_HOSTS): %(hosts)s.")
            others = gettext("all, except link-local and cloud metadata addresses")
            errors[name] = said % {"hosts": ", ".join(settings.FACHO_CHANNEL_HOSTS) or others}
    if errors:
        raise ValidationError(errors)


def _hosts(channel: "Channel") -> dict[str, str]:
    """Return the host that a channel connects to, by its setting. Those of Apprise are known when it connects."""
    hosts = {
        "webhook": ("url", urlsplit(origin(channel.url.reveal())).hostname),
        "email": ("smtp_host", channel.smtp_host),
        "telegram": ("telegram_url", urlsplit(origin(channel.telegram_url or TELEGRAM_API)).hostname),
        "slack": ("slack_url", urlsplit(origin(channel.slack_url.reveal())).hostname),
    }
    name, host = hosts.get(channel.kind, ("", ""))
    return {name: host} if host else {}


def _webhook(channel: "Channel") -> dict[str, Any]:
    errors: dict[str, Any] = {}
    if not is_http(channel.url.reveal()):
        errors["url"] = _("Write an address that begins with http:// or https://, without a user or a password.")
    if len(channel.signing_secret.reveal()) < SHORTEST_SECRET:
        errors["signing_secret"] = _("The signing secret must have at least 16 characters.")
    return errors


def _email(channel: "Channel") -> dict[str, Any]:
    errors: dict[str, Any] = {}
    if not _is(validate_host, channel.smtp_host):
        errors["smtp_host"] = _("Write the address of a mail server.")
    if not _is(validate_email, channel.mail_from):
        errors["mail_from"] = _("Write the sender's e-mail address.")
    wrong = [address for address in channel.recipients if not _is(validate_email, address)]
    if wrong or not channel.recipients:
        named = {"addresses": ", ".join(wrong) or "-"}
        errors["mail_to"] = gettext("Write e-mail addresses separated by commas. Not valid: %(addresses)s") % named
    if channel.smtp_user and channel.smtp_security == "none":
        errors["smtp_security"] = _("Passwords are not sent unencrypted. Choose STARTTLS or TLS.")
    return errors


def _telegram(channel: "Channel") -> dict[str, Any]:
    errors: dict[str, Any] = {}
    token = channel.bot_token.reveal()
    if ":" not in token or not token.isprintable() or "/" in token or " " in token:
        errors["bot_token"] = _("Write the token from @BotFather, like 123456:ABC-DEF.")
    if not channel.chat_id.strip():
        errors["chat_id"] = _("Write the number of a chat, or the @name of a public channel.")
    if channel.telegram_url and not is_http(channel.telegram_url):
        errors["telegram_url"] = _("Write an address that begins with https://, or leave it empty.")
    return errors


def _slack(channel: "Channel") -> dict[str, Any]:
    if is_http(channel.slack_url.reveal()):
        return {}
    return {"slack_url": _("Write the address of an incoming webhook, which begins with https://.")}


def _apprise(channel: "Channel") -> dict[str, Any]:
    # Loaded when it is used: Apprise and httpx are large.
    from facho.alerts.channels.apprise import INSTALL, is_installed, service_of

    if not is_installed():
        return {"apprise_url": gettext("Apprise is not installed. Install it with: %(command)s") % {"command": INSTALL}}
    if service_of(channel.apprise_url.reveal()) is None:
        return {
            "apprise_url": _(
                "Apprise does not accept this URL. Write one URL, without a file, like ntfys://ntfy.example.net/noc."
            )
        }
    return {}


def origin(url: str) -> str:
    """Return scheme, host and port of an address; empty if it is not valid."""
    try:
        parts = urlsplit(url.lower())
        return f"{parts.scheme}://{parts.netloc}" if parts.hostname and parts.port != 0 else ""
    except ValueError:
        return ""


def is_http(url: str) -> bool:
    """Return whether an address accepts a POST. With an @ it would go to another host."""
    scheme, _separator, host = origin(url).partition("://")
    is_plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= LONGEST_URL
    return scheme in ("http", "https") and "@" not in host and is_plain


def _is(validate: Any, value: str) -> bool:
    try:
        validate(value)
    except ValidationError:
        return False
    return bool(value)
