"""Messages to an incoming webhook of Slack, or of what understands the same, as Mattermost and Rocket.Chat do."""

from dataclasses import dataclass, field

from facho.alerts.channels.deadline import SECONDS
from facho.alerts.channels.http import canonical, post
from facho.alerts.channels.plain import plain
from facho.alerts.rules import Message

# Longer texts are cut off in the middle of a list by Slack itself.
LONGEST = 3500


@dataclass(frozen=True, slots=True)
class Slack:
    """Whoever knows the address may write to the channel: it is the secret."""

    url: str = field(repr=False)
    timeout: float = SECONDS

    def send(self, message: Message) -> int:
        body = canonical({"text": escaped(plain(message, LONGEST))})
        return post(self.url, body, {"Content-Type": "application/json"}, hidden=[self.url], timeout=self.timeout)


def escaped(text: str) -> str:
    """Return a text in which nothing calls people or hides a link, as the three signs of Slack's markup would."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
