"""Settings from the environment, each declared once: as a field of `Config`.

`python3 dev.py settings` writes the tables of both READMEs from these declarations. Libraries are imported in the
functions that need them: commands without a database read one or two declarations, and start fast.
"""

import contextlib
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

KEY_FILE = "secret.keys"
BRANDS_FOLDER = "brands"
# Without FACHO_POLLERS: range of an embedded engine, and fixed number of a worker.
AUTOMATIC_POLLERS = (10, 200)
WORKER_POLLERS = 32
MOST_POLLERS = 1000

# A process that is paused inside a transaction must not block others with its locks, and a broken connection must be
# noticed within seconds, as leases require.
POSTGRES_OPTIONS = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "options": "-c idle_in_transaction_session_timeout=5000",
    # A statement of `store/sql.py` is prepared when it is executed for the third time.
    "prepare_threshold": 2,
}

# IMMEDIATE takes the write lock at the start of a transaction; with the default, one of two transactions that read and
# then write fails as locked. FULL costs one fsync per commit and keeps every ended execution after a power failure.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-32000;",
}

# Used by commands without a database and by the tests; not settings.
FOREIGN_NAMES = {
    "FACHO_COMMUNITY",
    "FACHO_AUTH_KEY",
    "FACHO_PRIV_KEY",
    "FACHO_RECORDINGS",
    "FACHO_TEST_POSTGRES_URL",
    "FACHO_TEST_REDIS_URL",
}


class ConfigError(Exception):
    """A setting that Facho cannot start with. The message names it and a valid value."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An environment variable. `read` converts its text: `ValueError` says what to write instead."""

    variable: str
    default: str
    read: Callable[..., Any]
    # Its meaning in the READMEs.
    english: str
    spanish: str
    # A default that is not a fixed text, in both languages.
    automatic: tuple[str, str] = ("none", "ninguno")
    # Earlier fields of `Config` that `read` needs as further arguments.
    needs: tuple[str, ...] = ()
    # Not shown in errors or by `repr`.
    is_secret: bool = False

    def value(self, environ: Mapping[str, str], earlier: Mapping[str, Any] = MappingProxyType({})) -> Any:
        text = environ.get(self.variable, "").strip() or self.default
        try:
            return self.read(text, *(earlier[name] for name in self.needs))
        except ValueError as error:
            what = "not valid" if self.is_secret else repr(text)
            otherwise = self.default or self.automatic[0]
            raise ConfigError(f"{self.variable} is {what}. {error}, or unset it (default: {otherwise}).") from None


def setting(*arguments: Any, **options: Any) -> Any:
    """Declare a field of `Config` with the arguments of `Setting`."""
    declared = Setting(*arguments, **options)
    return field(repr=not declared.is_secret, metadata={"setting": declared})


@dataclass(frozen=True, slots=True)
class Number:
    """Reads a whole number within limits. Empty is None: the setting has no default then."""

    low: int
    high: int

    def __call__(self, text: str) -> int | None:
        if not text:
            return None
        if not text.isdecimal() or not self.low <= int(text) <= self.high:
            raise ValueError(f"Write a whole number from {self.low} to {self.high}")
        return int(text)


@dataclass(frozen=True, slots=True)
class Choice:
    """Reads one of several words."""

    words: tuple[str, ...]

    def __call__(self, text: str) -> Any:
        if text not in self.words:
            raise ValueError(f"Write one of {', '.join(self.words)}")
        return text


class Switch(Choice):
    """Reads `true` or `false`."""

    def __call__(self, text: str) -> bool:
        return bool(super().__call__(text) == "true")


def read_data_dir(text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError("That home directory does not exist. Write an absolute path") from None


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _time_zone(text: str) -> str:
    from zoneinfo import available_timezones

    if text != "UTC" and text not in available_timezones():
        raise ValueError("Write a time zone like America/Lima")
    return text


def _public_url(text: str) -> str:
    url = text.rstrip("/")
    try:
        parts = urlsplit(url)
        is_plain = url == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc and parts.port != 0
        is_origin = is_plain and bool(parts.hostname) and parts.scheme in ("http", "https")
    except ValueError:
        is_origin = False
    if url and not is_origin:
        raise ValueError(
            "It must have a scheme and a host, and no path. Write the address of Facho in a browser, like "
            "https://noc.example.net"
        )
    return url


def _worker_name(text: str) -> str:
    name = text or socket.gethostname()
    if not re.fullmatch(r"[\w.-]{1,100}", name):
        raise ConfigError(
            f"The name of this worker is {name!r}. Set FACHO_WORKER_NAME to letters, digits, dots and dashes, like "
            "noc-2."
        )
    return name


def _secret_keys(text: str, data_dir: Path) -> tuple[str, ...]:
    from cryptography.fernet import Fernet

    keys = _list(text)
    source = "FACHO_SECRET_KEYS"
    file = data_dir / KEY_FILE
    if not keys and file.exists():
        source = str(file)
        try:
            # Undecodable text is not a key and is reported as such below.
            keys = tuple(file.read_text(errors="replace").split())
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
    return keys


def _redis_url(url: str, mode: str) -> str:
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


def _database(url: str, data_dir: Path, mode: str) -> dict[str, object]:
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
        settings["OPTIONS"] = dict(SQLITE_OPTIONS)
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
    settings["OPTIONS"] = {**POSTGRES_OPTIONS, **options}
    return settings


DAYS = Number(1, 3650)


@dataclass(frozen=True, slots=True)
class Config:
    """Values of all settings, in the order of the READMEs."""

    data_dir: Path = setting(
        "FACHO_DATA_DIR",
        "data",
        read_data_dir,
        "directory of the database, keys, logs and your brand profiles",
        "directorio de la base de datos, las claves, los logs y sus perfiles de marca",
    )
    host: str = setting("FACHO_HOST", "127.0.0.1", str, "address of the web server", "dirección del servidor web")
    port: int = setting("FACHO_PORT", "8000", Number(1, 65535), "port of the web server", "puerto del servidor web")
    public_url: str = setting(
        "FACHO_PUBLIC_URL",
        "",
        _public_url,
        "URL of Facho behind a proxy, such as `https://noc.example.net`",
        "URL de Facho detrás de un proxy, como `https://noc.example.net`",
        # A wrong one may contain a password.
        is_secret=True,
    )
    allowed_hosts: tuple[str, ...] = setting(
        "FACHO_ALLOWED_HOSTS",
        "",
        _list,
        "additional host names, separated by commas",
        "nombres de host adicionales, separados por comas",
    )
    language: str = setting(
        "FACHO_LANGUAGE",
        "en",
        Choice(("en", "es")),
        "language of the pages, if the browser requests neither",
        "idioma de las páginas, si el navegador no pide ninguno de los dos",
    )
    time_zone: str = setting(
        "FACHO_TIME_ZONE",
        "UTC",
        _time_zone,
        "time zone of the admin, such as `America/Lima`; the dashboard uses the browser's time zone",
        "zona horaria de la administración, como `America/Lima`; el panel usa la del navegador",
    )
    pollers: int | None = setting(
        "FACHO_POLLERS",
        "",
        Number(1, MOST_POLLERS),
        f"number of OLTs polled at once. Empty: as many as needed, up to {AUTOMATIC_POLLERS[1]}; "
        f"{WORKER_POLLERS} on a worker",
        f"número de OLTs que se sondean a la vez. Vacío: las necesarias, hasta {AUTOMATIC_POLLERS[1]}; "
        f"{WORKER_POLLERS} en un worker",
        automatic=("automatic", "automático"),
    )
    misses: int = setting(
        "FACHO_MISSES",
        "2",
        Number(1, 100),
        "number of consecutive discoveries without an ONU before it is marked as missing",
        "número de descubrimientos seguidos sin una ONU para marcarla como desaparecida",
    )
    mass_vanishing: int = setting(
        "FACHO_MASS_VANISHING",
        "30",
        Number(1, 100),
        "percentage of an OLT's ONUs. If more disappear at once, none is marked as missing until the next discovery "
        "confirms it; `100` turns this off",
        "porcentaje de las ONUs de una OLT. Si desaparecen más a la vez, ninguna se marca como desaparecida hasta que "
        "el siguiente descubrimiento lo confirme; `100` lo desactiva",
    )
    breaker_after: int = setting(
        "FACHO_BREAKER_AFTER",
        "3",
        Number(1, 100),
        "number of consecutive attempts without an answer, including retries, before the breaker of an OLT opens. "
        "The OLT is then only probed, once a minute",
        "número de intentos seguidos sin respuesta, incluidos los reintentos, para abrir el cortacircuitos de una OLT. "
        "Después solo se prueba, una vez por minuto",
    )
    auto_recover: bool = setting(
        "FACHO_AUTO_RECOVER",
        "true",
        Switch(("true", "false")),
        "`false`: an open breaker must be closed manually, even if the OLT answers again",
        "`false`: un cortacircuitos abierto se cierra manualmente, aunque la OLT vuelva a responder",
    )
    keep_logs: int = setting(
        "FACHO_KEEP_LOGS",
        "7",
        DAYS,
        "days to keep the coordinator log in the database",
        "días que se guarda el registro del coordinador en la base de datos",
    )
    keep_executions: int = setting(
        "FACHO_KEEP_EXECUTIONS", "30", DAYS, "days to keep executions", "días que se guardan las ejecuciones"
    )
    keep_history: int = setting(
        "FACHO_KEEP_HISTORY",
        "90",
        DAYS,
        "days to keep readings, ONU events, quotas, violations, plans, alerts and the pool load",
        "días que se guardan lecturas, eventos de ONU, cuotas, violaciones, planes, alertas y la carga de los pollers",
    )
    keep_daily: int = setting(
        "FACHO_KEEP_DAILY",
        "730",
        DAYS,
        "days to keep the daily minimum, mean and maximum of each ONU",
        "días que se guardan el mínimo, la media y el máximo diarios de cada ONU",
    )
    spool_mb: int = setting(
        "FACHO_SPOOL_MB",
        "256",
        Number(1, 1_000_000),
        "maximum size in MB of the spool of each process: readings kept on disk while the database is unavailable",
        "tamaño máximo en MB del spool de cada proceso: lecturas guardadas en disco mientras la base de datos no está "
        "disponible",
    )
    log_level: str = setting(
        "FACHO_LOG_LEVEL",
        "INFO",
        Choice(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
        "log level of the terminal and of `logs/facho.log` in the data directory. `logs/coordinator.log` and the "
        "database hold only events, of all levels. Log files rotate at 10 MB; five old files are kept",
        "nivel de log de la terminal y de `logs/facho.log` en el directorio de datos. `logs/coordinator.log` y la base "
        "de datos contienen solo eventos, de todos los niveles. Los archivos rotan a los 10 MB; se conservan cinco "
        "anteriores",
    )
    log_format: str = setting(
        "FACHO_LOG_FORMAT",
        "line",
        Choice(("line", "json")),
        "format of the log; `json`: one JSON object per line",
        "formato del log; `json`: un objeto JSON por línea",
    )
    secret_keys: tuple[str, ...] = setting(
        "FACHO_SECRET_KEYS",
        "",
        _secret_keys,
        "Fernet keys, separated by commas. The first key encrypts; all keys decrypt. In scale-out, the same on all "
        "machines",
        "claves Fernet separadas por comas. La primera cifra; todas descifran. En modo scale, las mismas en todas las "
        "máquinas",
        automatic=(f"`{KEY_FILE}` in the data directory", f"`{KEY_FILE}` en el directorio de datos"),
        needs=("data_dir",),
        is_secret=True,
    )
    # None and 0: not served.
    metrics_port: int | None = setting(
        "FACHO_METRICS_PORT",
        "",
        Number(0, 65535),
        "port of `/metrics`, `/healthz` and `/readyz` on a scheduler or worker, one for each on a machine; `0`: not "
        "served. `facho run` and `facho web` use the web port",
        "puerto de `/metrics`, `/healthz` y `/readyz` en un scheduler o worker, uno para cada uno en una máquina; "
        "`0`: no se sirven. `facho run` y `facho web` usan el puerto web",
    )
    metrics_per_olt: int = setting(
        "FACHO_METRICS_PER_OLT",
        "0",
        # Each OLT has about ten series.
        Number(0, 2000),
        "number of OLTs with their own series in `/metrics`; `0`: none. `facho_olts_without_series` counts the others",
        "número de OLT con series propias en `/metrics`; `0`: ninguna. `facho_olts_without_series` cuenta las demás",
    )
    metrics_token: str = setting(
        "FACHO_METRICS_TOKEN",
        "",
        str,
        "bearer token required for `/metrics`. Without it, only requests from the same machine are answered",
        "token (bearer) requerido para `/metrics`. Sin él, solo se responde a solicitudes de la misma máquina",
        is_secret=True,
    )
    mode: str = setting(
        "FACHO_MODE",
        "embedded",
        Choice(("embedded", "scale")),
        "`scale`: run `facho web`, `facho scheduler` and `facho worker`, on one or more machines",
        "`scale`: se ejecutan `facho web`, `facho scheduler` y `facho worker`, en una o más máquinas",
    )
    database: dict[str, object] = setting(
        "DATABASE_URL",
        "",
        _database,
        "URL of the database: `postgresql://user:password@host:5432/facho`, required in scale-out",
        "URL de la base de datos: `postgresql://user:password@host:5432/facho`, necesaria en modo scale",
        automatic=("SQLite in the data directory", "SQLite en el directorio de datos"),
        needs=("data_dir", "mode"),
        is_secret=True,
    )
    redis_url: str = setting(
        "FACHO_REDIS_URL",
        "",
        _redis_url,
        "URL of Redis in scale-out: `redis://:password@host:6379/0`, or `rediss://` for TLS",
        "URL de Redis en modo scale: `redis://:password@host:6379/0`, o `rediss://` para TLS",
        needs=("mode",),
        is_secret=True,
    )
    worker_name: str = setting(
        "FACHO_WORKER_NAME",
        "",
        _worker_name,
        "name of a worker or scheduler. Each one on a machine needs its own name, the same after a restart",
        "nombre de un worker o scheduler. Cada uno en una máquina necesita su propio nombre, el mismo después de "
        "reiniciar",
        automatic=("host name", "nombre del host"),
    )
    lease_seconds: int = setting(
        "FACHO_LEASE_SECONDS",
        "30",
        Number(10, 300),
        "scale-out: seconds until other workers can poll the OLTs of a worker that died; also how long a worker "
        "continues without the database",
        "modo scale: segundos hasta que otros workers puedan sondear las OLT de un worker caído; también cuánto "
        "continúa un worker sin la base de datos",
    )

    @property
    def key_file(self) -> Path:
        return self.data_dir / KEY_FILE

    @property
    def brands_dir(self) -> Path:
        """Return the directory of the admin's brand profiles."""
        return self.data_dir / BRANDS_FOLDER

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


SETTINGS: dict[str, Setting] = {each.name: each.metadata["setting"] for each in fields(Config)}
KNOWN_NAMES = {each.variable for each in SETTINGS.values()}


def load(environ: Mapping[str, str] = os.environ) -> Config:
    """Read and check all settings; `ConfigError` has all problems. Nothing is created here; see `prepare`."""
    values: dict[str, Any] = {}
    problems = []
    for name, setting in SETTINGS.items():
        # Without an earlier one that it needs, it cannot be checked. The problem of that one is reported.
        if values.keys() >= set(setting.needs):
            try:
                values[name] = setting.value(environ, values)
            except ConfigError as error:
                problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))
    return Config(**values)


def unknown_names(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return each unknown FACHO_ variable with the most similar name, or empty."""
    import difflib

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
    from cryptography.fernet import Fernet

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
