"""Logging: terminal, rotating files, and the database for events; all without secrets.

Redaction is the last line of defence: secrets are values that do not print themselves. Texts of others may still
contain them, such as a library error that quotes an address or a header.
"""

import copy
import errno
import json
import logging
import logging.handlers
import re
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent
from time import monotonic
from typing import Any

from facho.apps.changes.actor import current
from facho.engine.escapes import escape, escape_lines
from facho.runtime.config import Config
from facho.runtime.syslog import Syslog
from facho.store.database import is_away

FORMAT = "%(asctime)s %(levelname)-8s %(name)s: %(message)s"
FILE_SIZE, BACKUPS = 10 * 1024 * 1024, 5

# Seconds before the same warning or error is logged again.
REPEAT_AFTER = 60.0
# Disk errors, for which a traceback is useless.
DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
# Number of different lines to remember.
REMEMBERED = 1000

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
    # Keys of API tokens; the start of a key may be shown.
    (re.compile(r"\b(facho_\w{4})\w{20,}"), rf"\1{HIDDEN}"),
    # ID and access tokens of a login server; the first part is not secret
    (re.compile(r"\b(eyJ[\w-]{8,})\.[\w-]+\.[\w-]*"), rf"\1.{HIDDEN}"),
    # Fernet keys and what they encrypt
    (re.compile(r"(?<![\w-])[\w-]{43}=(?![\w=-])"), HIDDEN),
    (re.compile(r"\bgAAAA[\w-]{16,}={0,2}"), HIDDEN),
)


@dataclass(slots=True)
class Repeated:
    """A logged line, its time, and the number of repetitions since."""

    logged_at: float
    count: int = 0


class Repeats:
    """Limits the same warning or error to once a minute, with the number of repetitions.

    A full disk or a locked database fails many times a second. Errors are the same if they have the same type and
    come from the same line of code.
    """

    def __init__(self, after: float, now: Callable[[], float] = monotonic) -> None:
        self._after = after
        self._now = now
        self._logged: dict[Hashable, Repeated] = {}

    def take(self, record: logging.LogRecord) -> logging.LogRecord | None:
        """Return the record to log, or None if it is only counted."""
        if record.levelno < logging.WARNING:
            return record
        if record.exc_info:
            key: Hashable = (record.name, record.pathname, record.lineno, record.exc_info[0])
        else:
            key = (record.name, record.getMessage())
        now = self._now()
        before = self._logged.get(key)
        if before is not None and now - before.logged_at < self._after:
            before.count += 1
            return None
        self._logged.pop(key, None)
        self._logged[key] = Repeated(now)
        if len(self._logged) > REMEMBERED:
            # The oldest one.
            del self._logged[next(iter(self._logged))]
        return _shortened(record, before.count if before is not None else 0)


def _shortened(record: logging.LogRecord, count: int) -> logging.LogRecord:
    """Return a record with a traceback only if it is useful: the first time, and for a bug."""
    error = record.exc_info[1] if record.exc_info else None
    is_known = error is not None and (getattr(error, "errno", None) in DISK_ERRORS or is_away(error))
    if not count and not is_known:
        return record
    shown, text = copy.copy(record), record.getMessage()
    if error is not None:
        shown.exc_info = shown.exc_text = None
        # In its redacted form.
        last = (record.exc_text or f"{type(error).__name__}: {error}").strip().rpartition("\n")[2]
        if last.partition(": ")[2] not in text:
            text = f"{text}: {last}"
    shown.msg, shown.args = f"{text} ({count} more since the last line)" if count else text, None
    return shown


class Terminal(logging.StreamHandler[Any]):
    """Terminal or system journal, without repetitions."""

    def __init__(self) -> None:
        super().__init__()
        self._repeats = Repeats(REPEAT_AFTER)

    def emit(self, record: logging.LogRecord) -> None:
        shown = self._repeats.take(record)
        if shown is not None:
            super().emit(shown)


class LogFile(logging.handlers.RotatingFileHandler):
    """A rotating file. While it cannot be written, the terminal reports it once a minute."""

    def __init__(self, path: Path, repeat_after: float) -> None:
        super().__init__(path, maxBytes=FILE_SIZE, backupCount=BACKUPS, encoding="utf-8", errors="backslashreplace")
        self._repeats = Repeats(repeat_after)
        self._failed_at: float | None = None
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        shown = self._repeats.take(record)
        if shown is not None:
            super().emit(shown)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - a method of logging.Handler
        self._lost += 1
        now = monotonic()
        if self._failed_at is not None and now - self._failed_at < REPEAT_AFTER:
            return
        self._failed_at = now
        sys.stderr.write(f"{self.baseFilename} cannot be written: {sys.exc_info()[1]} ({self._lost} lines lost)\n")


class JsonLines(logging.Formatter):
    """One JSON object per line, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := getattr(record, "request_id", ""):
            line["request_id"] = request_id
        event = getattr(record, "event", None)
        if event is not None:
            line |= {"event": event.name, "olt_id": getattr(record, "olt_id", None)}
            line["details"] = getattr(record, "details", {})
        exception = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        if exception:
            line["exception"] = exception
        return json.dumps(line, default=str, ensure_ascii=False)


class Lines(logging.Formatter):
    """A line of text, with the id of the request that caused it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - a method of logging.Formatter
        line = super().formatMessage(record)
        request_id = getattr(record, "request_id", "")
        return f"{line} [request {request_id}]" if request_id else line


def add_request_id(record: logging.LogRecord) -> bool:
    """Add the id of the current request to a record. Used as a filter that passes every record."""
    request_id = getattr(current() or getattr(record, "request", None), "request_id", "")
    if request_id:
        record.request_id = request_id
    return True


def redact(text: str) -> str:
    """Return a text without apparent secrets."""
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return text


def _indented(traceback: str) -> str:
    """Return a traceback without secrets. Its lines cannot be taken for records, whatever a text in it contains."""
    return indent(escape_lines(redact(traceback)), "  ")


class Redaction(logging.Filter):
    """Passes every record without its secrets and control characters, in message, details and traceback."""

    _formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        # A record goes through every handler, and needs this once.
        if getattr(record, "is_redacted", False):
            return True
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # Arguments that do not match the message are a bug, but the line is kept.
            message = f"{record.msg} {record.args}"
        record.msg, record.args = escape(redact(message)), None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        record.exc_text = _indented(record.exc_text) if record.exc_text else record.exc_text
        record.stack_info = _indented(record.stack_info) if record.stack_info else record.stack_info
        details = getattr(record, "details", None)
        if isinstance(details, Mapping):
            record.details = {name: _redacted(name, value) for name, value in details.items()}
        record.is_redacted = True
        return True


class Refusals(logging.Filter):
    """Turns a refused request (400, 403) into one warning: who, from where, what and why, without a traceback.

    Django logs an exception with its traceback, and some of them twice.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        request, status = getattr(record, "request", None), getattr(record, "status_code", None)
        if status not in (400, 403) or request is None or not record.name.startswith("django."):
            return True
        # A record goes through every handler.
        first = request.__dict__.setdefault("_refusal", record)
        if first is record and not hasattr(record, "is_refusal"):
            record.is_refusal = True
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
            error = record.exc_info[1] if record.exc_info else None
            reason = str(error or "") or record.getMessage()
            record.msg = "%d user=%s address=%s method=%s path=%r: %s"
            record.args = (status, _user(request), _address(request), request.method, request.path, ascii(reason)[1:-1])
            record.exc_info = record.exc_text = None
        return first is record


def _user(request: Any) -> str:
    """Return the name of the user, as far as it is known: a query here could fail too."""
    user = getattr(request, "_cached_user", None) or request.__dict__.get("user")
    is_loaded = not hasattr(user, "_wrapped") and getattr(user, "is_authenticated", False)
    return repr(user.get_username()) if user is not None and is_loaded else "-"


def _address(request: Any) -> str:
    # Imported late: commands configure the log before they load Django.
    from facho.apps.rest.addresses import client_address

    return str(client_address(request) or "-")


def _redacted(name: str, value: Any) -> Any:
    if isinstance(value, int | float | None):
        return value
    # By name too: a detail named password is hidden in any case.
    return HIDDEN if re.search(rf"{_NAMES}$", name, re.I) else escape(redact(str(value)))


def configure(config: Config, *, to_file: bool = True, name: str = "facho") -> None:
    """Configure logging of a process. The level applies to lines; all events reach the database."""
    handlers: list[logging.Handler] = [Terminal()]
    if to_file:
        folder = config.data_dir / "logs"
        folder.mkdir(exist_ok=True)
        handlers.append(LogFile(folder / f"{name}.log", REPEAT_AFTER))
    for handler in handlers:
        handler.setLevel(config.log_level)
    if to_file:
        # All events, as in the database. Each process of scale-out has its own file, because two cannot rotate one.
        events = LogFile(folder / ("coordinator.log" if name == "facho" else f"coordinator-{name}.log"), 0.0)
        events.addFilter(lambda record: hasattr(record, "event"))
        handlers.append(events)
    for handler in handlers:
        handler.setFormatter(JsonLines() if config.log_format == "json" else Lines(FORMAT))
        handler.addFilter(Refusals())
        handler.addFilter(Redaction())
        handler.addFilter(add_request_id)
    logging.basicConfig(level=logging.WARNING, handlers=handlers, force=True)
    if to_file:
        configure_changes(config, name)
    level = logging.getLevelNamesMapping()[config.log_level]
    logging.getLogger("facho").setLevel(min(level, logging.INFO))


def configure_changes(config: Config, name: str) -> None:
    """Write each change as a line of JSON to the targets of FACHO_CHANGES_LOG. Each process has a file of its own."""
    changes = logging.getLogger("facho.changes")
    path = config.data_dir / "logs" / ("changes.log" if name == "facho" else f"changes-{name}.log")
    for target in config.changes_log:
        path.parent.mkdir(exist_ok=True)
        handler = LogFile(path, 0.0) if target == "file" else Syslog(target)
        handler.setFormatter(logging.Formatter("%(message)s"))
        changes.addHandler(handler)


def add_events(handler: logging.Handler) -> None:
    """Add a handler for events; see `remove_events`."""
    handler.addFilter(Redaction())
    logging.getLogger("facho").addHandler(handler)


def remove_events(handler: logging.Handler) -> None:
    logging.getLogger("facho").removeHandler(handler)
