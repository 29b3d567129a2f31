"""Channels that messages go to, a file for each kind."""

from typing import Protocol

from facho.alerts.rules import Message


class Notifier(Protocol):
    """Takes messages to one channel. Blocks, for some seconds at most: it is called in a thread of its own."""

    def send(self, message: Message) -> int | None:
        """Send a message once, and return what the channel answered; `DeliveryFailed` if it did not take it."""
