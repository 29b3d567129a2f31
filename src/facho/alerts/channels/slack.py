"""Messages to an incoming webhook of Slack, or a compatible one such as Mattermost or Rocket.Chat."""

from dataclasses import dataclass, field
from html import escape

from facho.alerts.channels import TIMEOUT, plain
from facho.alerts.channels.http import canonical, post
from facho.alerts.rules import Message

# Slack cuts longer texts.
LONGEST = 3500


@dataclass(frozen=True, slots=True)
class Slack:
    """Posts to a webhook. Its address is the secret."""

    url: str = field(repr=False)
    timeout: float = TIMEOUT

    def send(self, message: Message) -> int:
        # Escaped, so that nothing mentions people or hides a link in Slack's markup.
        body = canonical({"text": escape(plain(message, LONGEST), quote=False)})
        return post(self.url, body, {"Content-Type": "application/json"}, hidden=[self.url], timeout=self.timeout)
