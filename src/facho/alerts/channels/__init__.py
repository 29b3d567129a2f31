"""Notifiers, one file per kind of channel."""

from typing import Protocol

from facho.alerts.rules import Message

# Seconds for everything: DNS, connection, request and answer.
TIMEOUT = 10.0

TELEGRAM_API = "https://api.telegram.org"


class Notifier(Protocol):
    """Sends messages to one channel. Blocks for some seconds at most, in its own thread."""

    def send(self, message: Message) -> int | None:
        """Send a message once and return the channel's answer; `DeliveryFailed` if it was not accepted."""


def plain(message: Message, longest: int) -> str:
    """Return subject, text and URL on separate lines; a text that is too long is cut."""
    address = f"\n\n{message.url}" if message.url else ""
    said = "\n\n".join(filter(None, [message.subject, message.text]))
    room = longest - len(address)
    return (said if len(said) <= room else said[: room - 1] + "…") + address
