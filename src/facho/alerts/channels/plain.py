"""A message as one text, for channels that have no subject."""

from facho.alerts.rules import Message


def plain(message: Message, longest: int) -> str:
    """Return subject, text and address, one below the other; what is too long loses the end of its text."""
    address = f"\n\n{message.url}" if message.url else ""
    said = "\n\n".join(filter(None, [message.subject, message.text]))
    room = longest - len(address)
    return (said if len(said) <= room else said[: room - 1] + "…") + address
