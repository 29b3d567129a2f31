"""Message as one text, for channels without a subject."""

from facho.alerts.rules import Message


def plain(message: Message, longest: int) -> str:
    """Return subject, text and URL on separate lines; a text that is too long is cut."""
    address = f"\n\n{message.url}" if message.url else ""
    said = "\n\n".join(filter(None, [message.subject, message.text]))
    room = longest - len(address)
    return (said if len(said) <= room else said[: room - 1] + "…") + address
