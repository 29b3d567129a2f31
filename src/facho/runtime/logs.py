"""Where log lines go: the terminal, a rotating file, and, for events, the database."""

import logging
import logging.config

from facho.runtime.config import Config

FORMAT = "%(asctime)s %(levelname)-8s %(name)s: %(message)s"


def configure(config: Config, *, to_file: bool = True) -> None:
    """Set up logging for a process of Facho."""
    handlers = {"console": {"class": "logging.StreamHandler", "formatter": "line"}}
    if to_file:
        folder = config.data_dir / "logs"
        folder.mkdir(exist_ok=True)
        handlers["file"] = {
            "class": "logging.handlers.RotatingFileHandler",
            "formatter": "line",
            "filename": str(folder / "facho.log"),
            "maxBytes": 10 * 1024 * 1024,  # type: ignore[dict-item]  # numbers among strings
            "backupCount": 5,  # type: ignore[dict-item]  # numbers among strings
        }
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": {"format": FORMAT}},
            "handlers": handlers,
            "root": {"level": "WARNING", "handlers": list(handlers)},
            "loggers": {"facho": {"level": config.log_level}},
        }
    )
