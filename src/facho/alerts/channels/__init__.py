"""Notifiers, one file per kind of channel."""

from typing import Protocol

from facho.alerts.rules import Message

# Seconds for everything: DNS, connection, request and answer.
TIMEOUT = 10.0


class Notifier(Protocol):
    """Sends messages to one channel. Blocks for some seconds at most, in its own thread."""

    def send(self, message: Message) -> int | None:
        """Send a message once and return the channel's answer; `DeliveryFailed` if it was not accepted."""
