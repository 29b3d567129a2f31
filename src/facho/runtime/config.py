"""Settings from the environment. An invalid value stops the start with a message."""

import contextlib
import difflib
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from cryptography.fernet import Fernet

from facho.runtime.addresses import ConfigError as ConfigError
from facho.runtime.addresses import database, redis_url

KEY_FILE = "secret.keys"
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_FORMATS = ("line", "json")
LANGUAGES = ("en", "es")
MOST_POLLERS = 1000
# Without FACHO_POLLERS: range of an embedded engine, and fixed number of a worker.
AUTOMATIC_POLLERS = (10, 200)
WORKER_POLLERS = 32
MOST_MISSES = 100
MOST_DAYS = 3650
# Each has about ten series.
MOST_OLTS_IN_METRICS = 2000
MODES = ("embedded", "scale")

# Used by commands without a database and by the tests; not settings.
FOREIGN_NAMES = {
    "FACHO_COMMUNITY",
    "FACHO_AUTH_KEY",
    "FACHO_PRIV_KEY",
    "FACHO_RECORDINGS",
    "FACHO_TEST_POSTGRES_URL",
    "FACHO_TEST_REDIS_URL",
}


@dataclass(frozen=True, slots=True)
class Config:
    """Values of `FACHO_*` and `DATABASE_URL`."""

    # One process, or roles on several machines.
    mode: str
    data_dir: Path
    host: str
    port: int
    # None: automatic.
    pollers: int | None
    language: str
    time_zone: str
    log_level: str
    allowed_hosts: tuple[str, ...]
    public_url: str
    # Consecutive discoveries without an ONU before it is missing.
    misses: int
    # Percentage of an OLT's ONUs: a larger disappearance at once is suspect.
    mass_vanishing: int
    log_format: str
    # Consecutive attempts without an answer that open the breaker of an OLT.
    breaker_after: int
    # Whether a breaker closes automatically when the OLT answers again.
    auto_recover: bool
    # Days to keep: log, executions, and readings with quotas and plans.
    keep_logs: int
    keep_executions: int
    keep_history: int
    keep_daily: int
    # Maximum size of the spool in MB.
    spool_mb: int
    # Seconds for which the OLTs of a dead worker stay blocked.
    lease_seconds: int
    # Port of /metrics, /healthz and /readyz of a scheduler or worker; None: not served.
    metrics_port: int | None
    # Maximum number of OLTs with their own series in /metrics.
    metrics_per_olt: int
    worker_name: str
    # May contain passwords.
    metrics_token: str = field(repr=False)
    redis_url: str = field(repr=False)
    database: dict[str, object] = field(repr=False)
    secret_keys: tuple[str, ...] = field(repr=False)

    @property
    def key_file(self) -> Path:
        return self.data_dir / KEY_FILE

    @property
    def brands_dir(self) -> Path:
        """Return the directory of the admin's brand profiles."""
        return self.data_dir / "brands"

    @property
    def public_host(self) -> str:
        """Return the host of `public_url` as browsers send it."""
        host = urlsplit(self.public_url).hostname or ""
        return f"[{host}]" if ":" in host else host

    @property
    def is_scale(self) -> bool:
        return self.mode == "scale"

    @property
    def spool_dir(self) -> Path:
        """Return the directory of the spools; each process has its own below it."""
        return self.data_dir / "spool"

    @property
    def is_sqlite(self) -> bool:
        return str(self.database["ENGINE"]).endswith("sqlite3")


KNOWN_NAMES = {
    "FACHO_MODE",
    "FACHO_REDIS_URL",
    "FACHO_SPOOL_MB",
    "FACHO_LEASE_SECONDS",
    "FACHO_METRICS_PER_OLT",
    "FACHO_METRICS_PORT",
    "FACHO_METRICS_TOKEN",
    "FACHO_WORKER_NAME",
    "FACHO_DATA_DIR",
    "FACHO_HOST",
    "FACHO_PORT",
    "FACHO_POLLERS",
    "FACHO_LANGUAGE",
    "FACHO_TIME_ZONE",
    "FACHO_LOG_LEVEL",
    "FACHO_ALLOWED_HOSTS",
    "FACHO_PUBLIC_URL",
    "FACHO_SECRET_KEYS",
    "FACHO_MISSES",
    "FACHO_MASS_VANISHING",
    "FACHO_LOG_FORMAT",
    "FACHO_BREAKER_AFTER",
    "FACHO_AUTO_RECOVER",
    "FACHO_KEEP_LOGS",
    "FACHO_KEEP_EXECUTIONS",
    "FACHO_KEEP_DAILY",
    "FACHO_KEEP_HISTORY",
}


def load(environ: Mapping[str, str] = os.environ) -> Config:
    """Read and check all settings. Nothing is created here; see `prepare`."""
    data_dir = _data_dir(environ)
    mode = _choice(environ, "FACHO_MODE", "embedded", MODES)
    return Config(
        mode=mode,
        data_dir=data_dir,
        host=environ.get("FACHO_HOST") or "127.0.0.1",
        port=_number(environ, "FACHO_PORT", 8000, 1, 65535),
        pollers=_number(environ, "FACHO_POLLERS", 0, 1, MOST_POLLERS) or None,
        language=_choice(environ, "FACHO_LANGUAGE", "en", LANGUAGES),
        time_zone=_time_zone(environ),
        log_level=_choice(environ, "FACHO_LOG_LEVEL", "INFO", LOG_LEVELS),
        allowed_hosts=tuple(_list(environ, "FACHO_ALLOWED_HOSTS")),
        public_url=_public_url(environ),
        misses=_number(environ, "FACHO_MISSES", 2, 1, MOST_MISSES),
        mass_vanishing=_number(environ, "FACHO_MASS_VANISHING", 30, 1, 100),
        log_format=_choice(environ, "FACHO_LOG_FORMAT", "line", LOG_FORMATS),
        breaker_after=_number(environ, "FACHO_BREAKER_AFTER", 3, 1, 100),
        auto_recover=_choice(environ, "FACHO_AUTO_RECOVER", "true", ("true", "false")) == "true",
        keep_logs=_number(environ, "FACHO_KEEP_LOGS", 7, 1, MOST_DAYS),
        keep_executions=_number(environ, "FACHO_KEEP_EXECUTIONS", 30, 1, MOST_DAYS),
        keep_history=_number(environ, "FACHO_KEEP_HISTORY", 90, 1, MOST_DAYS),
        keep_daily=_number(environ, "FACHO_KEEP_DAILY", 730, 1, MOST_DAYS),
        spool_mb=_number(environ, "FACHO_SPOOL_MB", 256, 1, 1_000_000),
        lease_seconds=_number(environ, "FACHO_LEASE_SECONDS", 30, 10, 300),
        metrics_port=_number(environ, "FACHO_METRICS_PORT", 0, 0, 65535) or None,
        metrics_per_olt=_number(environ, "FACHO_METRICS_PER_OLT", 0, 0, MOST_OLTS_IN_METRICS),
        metrics_token=environ.get("FACHO_METRICS_TOKEN", "").strip(),
        worker_name=_worker_name(environ),
        redis_url=redis_url(environ, mode),
        database=database(environ, data_dir, mode),
        secret_keys=_secret_keys(environ, data_dir),
    )


def unknown_names(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return each unknown FACHO_ variable with the most similar name, or empty."""
    strangers = {name for name in environ if name.startswith("FACHO_")} - KNOWN_NAMES - FOREIGN_NAMES
    return {name: next(iter(difflib.get_close_matches(name, KNOWN_NAMES, 1)), "") for name in sorted(strangers)}


def prepare(config: Config) -> None:
    """Create the data directory and, without a key in the environment, a key file."""
    try:
        config.data_dir.mkdir(parents=True, exist_ok=True)
        probe = config.data_dir / ".writable"
        probe.touch()
        # Several roles may share the directory and start together.
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"The data directory {config.data_dir} cannot be written to ({error.strerror}). "
            "Set another directory in FACHO_DATA_DIR, or make this one writable for the user that runs Facho."
        ) from error
    if not config.secret_keys:
        make_key(config.key_file)


def make_key(path: Path) -> None:
    """Create a key file with a new key, unless another process has just done so: then its key counts."""
    ours = path.with_suffix(f".{os.getpid()}")
    write_keys(ours, [Fernet.generate_key().decode()])
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(ours)
    ours.unlink()


def write_keys(path: Path, keys: list[str]) -> None:
    """Write the key file atomically, readable only by its owner."""
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(f"{key}\n" for key in keys))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _data_dir(environ: Mapping[str, str]) -> Path:
    raw = environ.get("FACHO_DATA_DIR") or "data"
    try:
        return Path(raw).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError(
            f"FACHO_DATA_DIR is {raw!r}, but that home directory does not exist. Write an absolute path."
        ) from error


def _number(environ: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    raw = environ.get(name, "").strip()
    if not raw:
        return default
    if not raw.isdecimal() or not low <= int(raw) <= high:
        otherwise = default if default >= low else "the automatic number"
        raise ConfigError(
            f"{name} is {raw!r}. Write a whole number from {low} to {high}, or unset it to use {otherwise}."
        )
    return int(raw)


def _choice(environ: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = environ.get(name, "").strip() or default
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}. It can be {', '.join(choices)}.")
    return value


def _list(environ: Mapping[str, str], name: str) -> list[str]:
    return [part.strip() for part in environ.get(name, "").split(",") if part.strip()]


def _time_zone(environ: Mapping[str, str]) -> str:
    name = environ.get("FACHO_TIME_ZONE", "").strip() or "UTC"
    if name != "UTC" and name not in available_timezones():
        raise ConfigError(f"FACHO_TIME_ZONE is {name!r}, which is not a time zone. Write one like America/Lima.")
    return ZoneInfo(name).key


def _public_url(environ: Mapping[str, str]) -> str:
    url = environ.get("FACHO_PUBLIC_URL", "").strip().rstrip("/")
    if url and not _is_origin(url):
        # The address may carry a password, so it is not repeated here.
        raise ConfigError(
            "FACHO_PUBLIC_URL must have a scheme and a host. Write the address of Facho in a browser, like "
            "https://noc.example.net."
        )
    return url


def _is_origin(url: str) -> bool:
    """Return whether an address is a scheme, a host and optionally a port."""
    try:
        parts = urlsplit(url)
        is_plain = url == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        return False
    return is_plain and bool(parts.hostname) and parts.scheme in ("http", "https")


def _worker_name(environ: Mapping[str, str]) -> str:
    name = environ.get("FACHO_WORKER_NAME", "").strip() or socket.gethostname()
    if not re.fullmatch(r"[\w.-]{1,100}", name):
        raise ConfigError(f"FACHO_WORKER_NAME is {name!r}. Use letters, digits, dots and dashes, like noc-2.")
    return name


def _secret_keys(environ: Mapping[str, str], data_dir: Path) -> tuple[str, ...]:
    keys = _list(environ, "FACHO_SECRET_KEYS")
    source = "FACHO_SECRET_KEYS"
    file = data_dir / KEY_FILE
    if not keys and file.exists():
        source = str(file)
        try:
            # Undecodable text is not a key and is reported as such below.
            keys = file.read_text(errors="replace").split()
        except OSError as error:
            raise ConfigError(
                f"{file} cannot be read ({error.strerror}). Run Facho as the user that owns it."
            ) from error
        if not keys:
            raise ConfigError(
                f"{file} is empty. Restore it from a backup: stored secrets cannot be decrypted without it."
            )
    for position, key in enumerate(keys, 1):
        try:
            Fernet(key)
        except ValueError as error:
            raise ConfigError(
                f"Key {position} in {source} is not a Fernet key (32 bytes in URL-safe base64). Create one with: "
                'python3 -c "import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())"'
            ) from error
    return tuple(keys)


def register_brands(config: Config) -> None:
    """Register the admin's profiles in the data directory as brands."""
    # Imported late: some commands need no brands.
    from facho import brands
    from facho.brands.files import load_folder
    from facho.brands.profile import BadProfile

    try:
        brands.register(load_folder(config.brands_dir).values())
    except (BadProfile, OSError) as error:
        raise ConfigError(f"A brand in {config.brands_dir} cannot be used; correct or remove it. {error}") from error
