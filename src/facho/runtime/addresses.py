"""Addresses and options of the database and Redis."""

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit


class ConfigError(Exception):
    """A setting that Facho cannot start with. The message names it and a valid value."""


def redis_url(url: str, mode: str) -> str:
    if mode == "embedded":
        # One process needs no bus.
        return ""
    try:
        parts = urlsplit(url)
        is_redis = parts.scheme in ("redis", "rediss") and bool(parts.hostname)
    except ValueError:
        is_redis = False
    # The address may carry a password, so it is not repeated here.
    if not is_redis:
        raise ConfigError(
            "FACHO_MODE is scale, but FACHO_REDIS_URL is not a Redis address. Write one like "
            "redis://:password@host:6379/0, or unset FACHO_MODE to run everything in one process."
        )
    if find_spec("celery") is None or find_spec("redis") is None:
        raise ConfigError(
            "FACHO_MODE is scale, but its packages are not installed. Install them: pip install 'facho[scale]'"
        )
    return url


def database(url: str, data_dir: Path, mode: str) -> dict[str, object]:
    import dj_database_url

    url = url or f"sqlite:///{data_dir / 'facho.sqlite3'}"
    try:
        settings = dict(dj_database_url.parse(url, conn_max_age=600, conn_health_checks=True))
    except (ValueError, KeyError):
        settings = {}
    engine = str(settings.get("ENGINE", ""))
    if settings.get("NAME") == ":memory:":
        raise ConfigError(
            "DATABASE_URL is a SQLite database in memory, which loses all data at every start. Write a file "
            "like sqlite:////var/lib/facho/facho.sqlite3, or unset it."
        )
    if engine.endswith("sqlite3") and mode == "scale":
        raise ConfigError(
            "FACHO_MODE is scale, but DATABASE_URL is not a PostgreSQL address. Write one like "
            "postgresql://user:password@host:5432/facho; `facho migrate-to` copies the data of SQLite."
        )
    if engine.endswith("sqlite3"):
        settings["OPTIONS"] = sqlite_options()
        return settings
    if not engine.endswith("postgresql") or not settings.get("NAME"):
        # The address may carry a password, so it is not repeated here.
        raise ConfigError(
            "DATABASE_URL is not a SQLite or PostgreSQL address. Write one like "
            "postgresql://user:password@host:5432/facho, or unset it to use SQLite."
        )
    if find_spec("psycopg") is None:
        raise ConfigError(
            "DATABASE_URL is a PostgreSQL address, but the driver is not installed. Install it: pip install "
            "'facho[postgres]'"
        )
    options = dict(settings.get("OPTIONS", {}))  # type: ignore[call-overload]  # a mapping, whatever the address says
    settings["OPTIONS"] = {**postgres_options(), **options}
    return settings


def postgres_options() -> dict[str, object]:
    """Return the options of PostgreSQL.

    A process that is paused inside a transaction must not block others with its locks, and a broken connection must
    be noticed within seconds, as leases require.
    """
    return {
        "connect_timeout": 5,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "options": "-c idle_in_transaction_session_timeout=5000",
        # A statement of `store/sql.py` is prepared when it is executed for the third time.
        "prepare_threshold": 2,
    }


def sqlite_options() -> dict[str, object]:
    """Return the options of SQLite.

    IMMEDIATE takes the write lock at the start of a transaction; with the default, one of two transactions that read
    and then write fails as locked. FULL costs one fsync per commit and keeps every ended execution after a power
    failure.
    """
    return {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-32000;",
    }
