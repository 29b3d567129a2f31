"""Keeps secrets out of the log, whoever wrote them into a line.

This is the net below: secrets are values that do not print themselves. What can still come by is text of others, such
as an error of a library that quotes an address or a header.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

# Ends of words that stand before a secret, in arguments, JSON, headers and addresses: auth_key=, "password":, ?token=.
_NAMES = r"(?:community|passw(?:or)?d|passphrase|secret|token|(?:auth|priv|api|access|private|secret)[_-]?keys?)"

# None of them may go back and forth in a long text: an OLT can say what it likes, and the engine waits for its log.
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
    """Return a text without what looks like a secret in it."""
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return text


class Redaction(logging.Filter):
    """Lets every record pass, without its secrets: in its sentence, its details, its traceback."""

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
        # Words that do not fit their sentence are a defect of ours, and no reason to lose the line.
        return f"{record.msg} {record.args}"


def _redacted(name: str, value: Any) -> Any:
    if isinstance(value, int | float | None):
        return value
    # By its name too: what is called a password is one, whatever it looks like.
    return HIDDEN if re.search(rf"{_NAMES}$", name, re.I) else redact(str(value))
