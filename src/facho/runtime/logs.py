"""Where log lines go: the terminal, a rotating file, and, for events, the database."""

import json
import logging
import logging.handlers
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from facho.runtime.config import Config
from facho.runtime.redact import Redaction

FORMAT = "%(asctime)s %(levelname)-8s %(name)s: %(message)s"
FILE_SIZE, BACKUPS = 10 * 1024 * 1024, 5


class JsonLines(logging.Formatter):
    """One JSON object a line, for programs that collect logs."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        event = getattr(record, "event", None)
        if event is not None:
            line |= {"event": event.name, "olt_id": getattr(record, "olt_id", None)}
            line["details"] = getattr(record, "details", {})
        exception = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        if exception:
            line["exception"] = exception
        return json.dumps(line, default=str, ensure_ascii=False)


def configure(config: Config, *, to_file: bool = True, name: str = "facho") -> None:
    """Set up logging for a process of Facho. Its level is that of lines: events reach the database whatever it is."""
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if to_file:
        handlers.append(_file(config.data_dir / "logs" / f"{name}.log"))
    for handler in handlers:
        handler.setLevel(config.log_level)
        handler.setFormatter(JsonLines() if config.log_format == "json" else logging.Formatter(FORMAT))
        handler.addFilter(Redaction())
    logging.basicConfig(level=logging.WARNING, handlers=handlers, force=True)
    level = logging.getLevelNamesMapping()[config.log_level]
    logging.getLogger("facho").setLevel(min(level, logging.INFO))


def _file(path: Path) -> logging.Handler:
    path.parent.mkdir(exist_ok=True)
    return logging.handlers.RotatingFileHandler(
        path, maxBytes=FILE_SIZE, backupCount=BACKUPS, encoding="utf-8", errors="backslashreplace"
    )


def add_events(handler: logging.Handler) -> None:
    """Let a handler have what Facho tells, as long as it is wanted: see `remove_events`."""
    handler.addFilter(Redaction())
    logging.getLogger("facho").addHandler(handler)


def remove_events(handler: logging.Handler) -> None:
    logging.getLogger("facho").removeHandler(handler)
