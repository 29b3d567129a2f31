"""Messages to a Telegram chat, through a bot."""

from dataclasses import dataclass, field

from facho.alerts.channels import TELEGRAM_API, TIMEOUT, plain
from facho.alerts.channels.http import canonical, post
from facho.alerts.rules import Message

# Characters per message accepted by Telegram.
LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Telegram:
    """Sends plain text, so that an ONU name is not read as markup."""

    token: str = field(repr=False)
    chat_id: str
    base_url: str = TELEGRAM_API
    timeout: float = TIMEOUT

    def send(self, message: Message) -> int:
        body = canonical({"chat_id": self.chat_id, "text": plain(message, LONGEST)})
        url = f"{self.base_url.rstrip('/')}/bot{self.token}/sendMessage"
        return post(url, body, {"Content-Type": "application/json"}, hidden=[self.token], timeout=self.timeout)
