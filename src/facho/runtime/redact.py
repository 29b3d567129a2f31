"""Redaction of secrets in the log.

This is the last line of defence: secrets are values that do not print themselves. Texts of others may still contain
them, such as a library error that quotes an address or a header.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

# Suffixes of names before a secret, in arguments, JSON, headers and addresses: auth_key=, "password":, ?token=.
_NAMES = r"(?:community|passw(?:or)?d|passphrase|secret|token|(?:auth|priv|api|access|private|secret)[_-]?keys?)"

# No pattern may backtrack on a long text: an OLT can send any text, and the engine waits for the log.
_SHAPES = (
    # scheme://user:password@host
    (re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]*):[^\s/]+@", re.I), rf"\1:{HIDDEN}@"),
    # Authorization: Bearer …, as a line of a header or an item of a dictionary
    (
        re.compile(r"(authorization['\"]?\s*[:=,]\s*['\"]?)(?:(basic|bearer|token|digest)\s+)?[^\s'\",;]+", re.I),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\b(bearer)\s+[\w.~+/=-]{8,}", re.I), rf"\1 {HIDDEN}"),
    # name=value, name: value, 'name': 'value'
    (re.compile(rf"({_NAMES}['\"]?\s*[:=]\s*)(b?'[^']*'|b?\"[^\"]*\"|[^\s'\",;&)\]}}]+)", re.I), rf"\1{HIDDEN}"),
    # api.telegram.org/bot123456:AA…/sendMessage
    (re.compile(r"\bbot\d+:[\w-]{20,}"), f"bot{HIDDEN}"),
    # The path of an incoming webhook is its password.
    (re.compile(r"(/services|/hooks|/webhooks?)(?:/[\w-]{6,})+", re.I), rf"\1/{HIDDEN}"),
    # Fernet keys and what they encrypt
    (re.compile(r"(?<![\w-])[\w-]{43}=(?![\w=-])"), HIDDEN),
    (re.compile(r"\bgAAAA[\w-]{16,}={0,2}"), HIDDEN),
)


def redact(text: str) -> str:
    """Return a text without apparent secrets."""
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return text


class Redaction(logging.Filter):
    """Passes every record without its secrets, in message, details and traceback."""

    _formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        # A record goes through every handler, and needs this once.
        if not getattr(record, "is_redacted", False):
            self._redact(record)
            record.is_redacted = True
        return True

    def _redact(self, record: logging.LogRecord) -> None:
        record.msg, record.args = redact(_message(record)), None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        record.exc_text = redact(record.exc_text) if record.exc_text else record.exc_text
        record.stack_info = redact(record.stack_info) if record.stack_info else record.stack_info
        details = getattr(record, "details", None)
        if isinstance(details, Mapping):
            record.details = {name: _redacted(name, value) for name, value in details.items()}


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # Arguments that do not match the message are a bug, but the line is kept.
        return f"{record.msg} {record.args}"


def _redacted(name: str, value: Any) -> Any:
    if isinstance(value, int | float | None):
        return value
    # By name too: a detail named password is hidden in any case.
    return HIDDEN if re.search(rf"{_NAMES}$", name, re.I) else redact(str(value))
