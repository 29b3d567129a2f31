"""Messages as signed JSON to a webhook. docs/alerts.md explains how to check the signature."""

import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from facho.alerts.channels import TIMEOUT
from facho.alerts.channels.http import canonical, post
from facho.alerts.rules import Message


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts each message, with a signature over the time and the body."""

    # Some receivers have their key in the address, so it is hidden.
    url: str = field(repr=False)
    secret: str = field(repr=False)
    timeout: float = TIMEOUT
    now: Callable[[], float] = field(default=time.time, repr=False)

    def send(self, message: Message) -> int:
        body = canonical(payload(message))
        timestamp = str(int(self.now()))
        headers = {
            "Content-Type": "application/json",
            "X-Facho-Timestamp": timestamp,
            "X-Facho-Signature": f"sha256={signature(self.secret, timestamp, body)}",
            "X-Facho-Delivery": message.delivery_id,
            "Idempotency-Key": message.key,
        }
        return post(self.url, body, headers, hidden=[self.secret, self.url], timeout=self.timeout)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the HMAC of a body and a time with the secret."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def payload(message: Message) -> dict[str, Any]:
    """Return the JSON for a receiver. Keys may be added but never change their meaning."""
    return {
        "id": message.key,
        "event": message.news.value,
        "alert_id": message.alert_id,
        "rule": message.rule,
        "severity": message.severity.value,
        "olt": message.olt,
        "subject": message.subject,
        "text": message.text,
        "opened_at": _iso(message.opened_at),
        "recovered_at": _iso(message.recovered_at),
        "details": dict(message.details),
        "alerts": [
            {name: _iso(value) if isinstance(value, datetime) else value for name, value in alert.items()}
            for alert in message.alerts
        ],
        "url": message.url,
    }


def _iso(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat() if at else None
