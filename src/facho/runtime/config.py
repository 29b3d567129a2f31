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

# Names of the roles, from fewest to most rights.
ROLES = ("Viewer", "Support", "Operator", "Engineer", "Admin")

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


# What the address of a tile is made of.
TILE_PARTS = ("{z}", "{x}", "{y}")


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


def _networks(text: str) -> tuple[Any, ...]:
    import ipaddress

    try:
        return tuple(ipaddress.ip_network(part) for part in _list(text))
    except ValueError as error:
        raise ValueError(f"{error}. Write networks like 10.20.0.0/16, separated by commas") from None


def _hosts(text: str) -> tuple[str, ...]:
    """Read host names, addresses and networks."""
    hosts = tuple(part.lower().rstrip(".") for part in _list(text))
    try:
        _networks(",".join(host for host in hosts if "/" in host or ":" in host))
    except ValueError:
        raise ValueError(
            "Write host names, addresses or networks like 10.20.0.0/16, separated by commas, without http:// and port"
        ) from None
    return hosts


def _tiles(text: str) -> str:
    """Read the address of the tiles of the map."""
    try:
        parts = urlsplit(text)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
        is_plain = parts.port != 0 and not set(parts.netloc) & set("{}*,; ")
    except ValueError:
        is_server = is_plain = False
    if text and not (is_server and is_plain and all(part in parts.path + parts.query for part in TILE_PARTS)):
        raise ValueError("Write an address with {z}, {x} and {y}, like https://tiles.example.net/{z}/{x}/{y}.png")
    return text


def _changes_log(text: str) -> tuple[str, ...]:
    targets = _list(text)
    for target in targets:
        try:
            parts = urlsplit(target)
            is_server = parts.scheme in ("syslog", "syslog+tcp") and bool(parts.hostname) and parts.port != 0
            is_server = is_server and target == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc
        except ValueError:
            is_server = False
        if target != "file" and not is_server:
            raise ValueError("Write file, syslog://host:514 or syslog+tcp://host:514, or several separated by commas")
    return targets


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


@dataclass(frozen=True, slots=True)
class RequiredWith:
    """Reads a text that cannot be empty if another setting is set."""

    variable: str
    other: str
    advice: str

    def __call__(self, text: str, other_value: Any) -> str:
        if other_value and not text:
            raise ConfigError(f"{self.other} is set, but {self.variable} is not. {self.advice}.")
        return text


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _issuer(text: str) -> str:
    if not text:
        return text
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        is_plain = bool(host) and "@" not in parts.netloc and not parts.query and not parts.fragment
        is_issuer = is_plain and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host)))
    except ValueError:
        is_issuer = False
    if not is_issuer:
        raise ValueError(
            "Write the issuer of the provider with https://, without a query, like https://sso.example.net/realms/noc"
        )
    if find_spec("mozilla_django_oidc") is None:
        raise ConfigError(
            "FACHO_OIDC_ISSUER is set, but its packages are not installed. Install them: pip install 'facho[oidc]'"
        )
    return text


def _scopes(text: str) -> str:
    if "openid" not in text.split():
        raise ValueError("Write scopes with openid among them, like openid profile email groups")
    return text


def _ldap_url(text: str) -> str:
    if not text:
        return text
    try:
        parts = urlsplit(text)
        is_plain = parts.path in ("", "/") and not parts.query and not parts.fragment and parts.port != 0
        is_ldap = parts.scheme in ("ldap", "ldaps") and bool(parts.hostname) and "@" not in parts.netloc and is_plain
    except ValueError:
        is_ldap = False
    if not is_ldap:
        raise ValueError("Write scheme, host and optionally a port, like ldaps://ldap.example.net")
    if find_spec("django_auth_ldap") is None or find_spec("ldap") is None:
        raise ConfigError(
            "FACHO_LDAP_URL is set, but its packages are not installed. Install them: apt-get install gcc python3-dev "
            "libldap2-dev libsasl2-dev; pip install 'facho[ldap]'"
        )
    return text


# Ends of the paths at which stores accept remote write: Prometheus and VictoriaMetrics, Mimir, Thanos.
REMOTE_WRITE_ENDS = ("/api/v1/write", "/push", "/receive")


def _tsdb_url(text: str) -> str:
    """Read the address of a time series store. Without a path it is that of VictoriaMetrics and Prometheus."""
    if not text:
        return text
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_address = is_address and not parts.fragment and not re.search(r"[\s\x00-\x1f\x7f-\uffff]", text)
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError(
            "Write the address of a store that accepts Prometheus remote write, like http://127.0.0.1:8428/api/v1/write"
        )
    path = parts.path.rstrip("/") or REMOTE_WRITE_ENDS[0]
    if not path.endswith(REMOTE_WRITE_ENDS) or "/loki/" in path:
        raise ValueError(
            "Facho sends Prometheus remote write, and this path is for something else. The path is /api/v1/write for "
            "VictoriaMetrics and Prometheus, /api/v1/push for Mimir, /api/v1/receive for Thanos. Write one of them"
        )
    return parts._replace(path=path).geturl()


def _tsdb_token(text: str, url: str) -> str:
    if text and not url:
        raise ConfigError("FACHO_TSDB_TOKEN is set, but FACHO_TSDB_URL is not. Set it, or unset the token.")
    if text and urlsplit(url).username is not None:
        raise ConfigError("FACHO_TSDB_URL has a user, and FACHO_TSDB_TOKEN is set. Use only one of them.")
    if not re.fullmatch(r"[\x21-\x7e]*", text):
        raise ValueError("Write a token without spaces and with ASCII characters only")
    return text


def _ldap_filter(text: str) -> str:
    try:
        filled = text % {"user": "ana"}
        is_filter = "%(user)s" in text and filled.startswith("(") and filled.endswith(")")
    except (ValueError, TypeError, KeyError):
        is_filter = False
    if not is_filter:
        raise ValueError("Write a filter with %(user)s in the place of the user name, like (sAMAccountName=%(user)s)")
    return text


def _readable_file(text: str) -> Path | None:
    if not text:
        return None
    file = Path(text)
    if not file.is_file() or not os.access(file, os.R_OK):
        raise ValueError("That file cannot be read. Write the path of a file with certificates in PEM format")
    return file


def _roles(text: str) -> dict[str, str]:
    """Return the role of each group. The role comes after the last equals sign, because a group can contain one."""
    pairs = [part.rpartition("=") for part in _list(text)]
    roles = {group.strip(): role.strip() for group, _equals, role in pairs}
    if "" in roles or not set(roles.values()) <= set(ROLES):
        raise ValueError(f"Write groups with a role, like noc-admins=Admin,noc=Operator. Roles are {', '.join(ROLES)}")
    return roles


@dataclass(frozen=True, slots=True)
class DefaultRole:
    """Reads the role of users without a mapped group. A provider without any role would refuse everybody."""

    other: str

    def __call__(self, text: str, server: str, roles: Mapping[str, str]) -> str:
        start = self.other.rpartition("_")[0]
        if server and not roles and not text:
            raise ConfigError(
                f"{self.other} is set, but no role is. Set {start}_ROLES like noc-admins=Admin,noc=Operator, or "
                f"{start}_DEFAULT_ROLE like Viewer."
            )
        return str(Choice(ROLES)(text)) if text else ""


def _local_login(text: str, oidc_issuer: str, ldap_url: str) -> bool:
    is_on = Switch(("true", "false"))(text)
    if not is_on and not oidc_issuer and not ldap_url:
        raise ConfigError(
            "FACHO_LOCAL_LOGIN is false, but there is no other login. Set FACHO_OIDC_ISSUER or FACHO_LDAP_URL, or "
            "unset FACHO_LOCAL_LOGIN."
        )
    return is_on


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
    login_failures: int = setting(
        "FACHO_LOGIN_FAILURES",
        "5",
        Number(1, 100),
        "number of failed logins of a user from one address before that user is locked there",
        "número de inicios de sesión fallidos de un usuario desde una dirección para bloquearlo desde ella",
    )
    login_lock_minutes: int = setting(
        "FACHO_LOGIN_LOCK_MINUTES",
        "15",
        Number(1, 1440),
        "minutes from the last failed login to the end of a lock",
        "minutos desde el último inicio de sesión fallido hasta el final de un bloqueo",
    )
    password_length: int = setting(
        "FACHO_PASSWORD_LENGTH",
        "10",
        Number(8, 128),
        "minimum number of characters of a new password",
        "número mínimo de caracteres de una contraseña nueva",
    )
    require_totp: str = setting(
        "FACHO_REQUIRE_TOTP",
        "none",
        Choice(("none", "staff", "all")),
        "users who must set up two-factor authentication: `staff` (users of the admin) or `all`",
        "usuarios que deben activar la verificación en dos pasos: `staff` (usuarios de la administración) o `all` "
        "(todos)",
    )
    session_idle: int = setting(
        "FACHO_SESSION_IDLE",
        "720",
        Number(0, 525_600),
        "minutes without activity of a user before the session ends; `0`: no limit",
        "minutos sin actividad de un usuario para cerrar su sesión; `0`: sin límite",
    )
    session_days: int = setting(
        "FACHO_SESSION_DAYS",
        "14",
        DAYS,
        "days from the login to the end of a session",
        "días desde el inicio de sesión hasta el final de la sesión",
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
    max_onus: int = setting(
        "FACHO_MAX_ONUS",
        "65536",
        Number(128, 1_000_000),
        "maximum number of stored ONUs of an OLT, missing ones included. If an OLT reports more, the new ones are left "
        "out and the OLT is marked as suspect",
        "número máximo de ONUs guardadas de una OLT, incluidas las desaparecidas. Si una OLT informa de más, las "
        "nuevas se omiten y la OLT se marca como sospechosa",
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
    olt_networks: tuple[Any, ...] = setting(
        "FACHO_OLT_NETWORKS",
        "",
        _networks,
        "networks of OLTs, separated by commas, such as `10.20.0.0/16`. OLTs elsewhere are refused and not polled. "
        "Empty: any address",
        "redes de las OLT, separadas por comas, como `10.20.0.0/16`. Las OLT de otras redes se rechazan y no se "
        "sondean. Vacío: cualquier dirección",
    )
    channel_hosts: tuple[str, ...] = setting(
        "FACHO_CHANNEL_HOSTS",
        "",
        _hosts,
        "hosts that alert channels may connect to: names, addresses or networks, separated by commas. Empty: any host. "
        "Link-local and cloud metadata addresses need a network here",
        "hosts a los que pueden conectarse los canales de alertas: nombres, direcciones o redes, separados por comas. "
        "Vacío: cualquiera. Las direcciones link-local y de metadatos de la nube necesitan una red aquí",
    )
    map_tiles: str = setting(
        "FACHO_MAP_TILES",
        "",
        _tiles,
        "address of map tiles with `{z}`, `{x}` and `{y}`, such as `https://tiles.example.net/{z}/{x}/{y}.png`; see "
        "[docs/map.md](docs/map.md). Browsers load them. Empty: a plain grid, without internet",
        "dirección de las teselas del mapa con `{z}`, `{x}` y `{y}`, como "
        "`https://tiles.example.net/{z}/{x}/{y}.png`; vea [docs/map.es.md](docs/map.es.md). Las cargan "
        "los navegadores. Vacío: una cuadrícula simple, sin internet",
    )
    map_attribution: str = setting(
        "FACHO_MAP_ATTRIBUTION",
        "",
        str,
        "text in the corner of a map with tiles, such as `© OpenStreetMap contributors`",
        "texto en la esquina de un mapa con teselas, como `© colaboradores de OpenStreetMap`",
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
    keep_changes: int = setting(
        "FACHO_KEEP_CHANGES",
        "730",
        DAYS,
        "days to keep the record of changes and logins",
        "días que se guarda el registro de cambios e inicios de sesión",
    )
    changes_log: tuple[str, ...] = setting(
        "FACHO_CHANGES_LOG",
        "",
        _changes_log,
        "where to write each change as a line of JSON too, separated by commas: `file` for `logs/changes.log` in the "
        "data directory, `syslog://host:514` for UDP, `syslog+tcp://host:514` for TCP",
        "dónde escribir además cada cambio como una línea JSON, separado por comas: `file` para `logs/changes.log` en "
        "el directorio de datos, `syslog://host:514` para UDP, `syslog+tcp://host:514` para TCP",
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
    tsdb_url: str = setting(
        "FACHO_TSDB_URL",
        "",
        _tsdb_url,
        "store that gets every run as [time series](docs/time-series.md), by Prometheus remote write: "
        "`http://127.0.0.1:8428/api/v1/write`; also `https://` and `user:password@`",
        "almacén que recibe cada ejecución como [series temporales](docs/time-series.es.md), por remote write de "
        "Prometheus: `http://127.0.0.1:8428/api/v1/write`; también `https://` y `user:password@`",
        is_secret=True,
    )
    tsdb_token: str = setting(
        "FACHO_TSDB_TOKEN",
        "",
        _tsdb_token,
        "bearer token for that store",
        "token (bearer) para ese almacén",
        needs=("tsdb_url",),
        is_secret=True,
    )
    tsdb_hours: int = setting(
        "FACHO_TSDB_HOURS",
        "24",
        Number(1, 168),
        "hours for which runs are kept for that store while it is unavailable; older ones are only in the history",
        "horas durante las que se guardan ejecuciones para ese almacén mientras no está disponible; las anteriores "
        "solo quedan en el historial",
    )
    oidc_issuer: str = setting(
        "FACHO_OIDC_ISSUER",
        "",
        _issuer,
        "issuer URL of an OpenID Connect provider, such as `https://sso.example.net/realms/noc`; see "
        "[docs/accounts.md](docs/accounts.md)",
        "URL (issuer) de un proveedor OpenID Connect, como `https://sso.example.net/realms/noc`; vea "
        "[docs/accounts.es.md](docs/accounts.es.md)",
        # A wrong one may contain a password.
        is_secret=True,
    )
    oidc_client_id: str = setting(
        "FACHO_OIDC_CLIENT_ID",
        "",
        RequiredWith("FACHO_OIDC_CLIENT_ID", "FACHO_OIDC_ISSUER", "Set it to the client id that the provider shows"),
        "client id of Facho at the provider",
        "client id de Facho en el proveedor",
        needs=("oidc_issuer",),
    )
    oidc_client_secret: str = setting(
        "FACHO_OIDC_CLIENT_SECRET",
        "",
        RequiredWith(
            "FACHO_OIDC_CLIENT_SECRET", "FACHO_OIDC_ISSUER", "Set it to the client secret that the provider shows"
        ),
        "client secret of Facho at the provider",
        "client secret de Facho en el proveedor",
        needs=("oidc_issuer",),
        is_secret=True,
    )
    oidc_scopes: str = setting(
        "FACHO_OIDC_SCOPES",
        "openid profile email",
        _scopes,
        "scopes requested from the provider, separated by spaces",
        "scopes que se piden al proveedor, separados por espacios",
    )
    oidc_groups_claim: str = setting(
        "FACHO_OIDC_GROUPS_CLAIM",
        "groups",
        str,
        "claim with the groups of the user",
        "claim con los grupos del usuario",
    )
    oidc_roles: dict[str, str] = setting(
        "FACHO_OIDC_ROLES",
        "",
        _roles,
        "role of each group: `noc-admins=Admin,noc=Operator`. The highest role counts",
        "rol de cada grupo: `noc-admins=Admin,noc=Operator`. Vale el rol más alto",
    )
    oidc_default_role: str = setting(
        "FACHO_OIDC_DEFAULT_ROLE",
        "",
        DefaultRole("FACHO_OIDC_ISSUER"),
        "role of users without such a group. Without it, they are refused",
        "rol de los usuarios sin ninguno de esos grupos. Sin él, se les rechaza",
        needs=("oidc_issuer", "oidc_roles"),
    )
    oidc_label: str = setting(
        "FACHO_OIDC_LABEL",
        "SSO",
        str,
        "name of the provider on the login page: “Log in with …”",
        "nombre del proveedor en la página de inicio de sesión: «Iniciar sesión con …»",
    )
    ldap_url: str = setting(
        "FACHO_LDAP_URL",
        "",
        _ldap_url,
        "URL of an LDAP server: `ldaps://ldap.example.net`, or `ldap://` with StartTLS",
        "URL de un servidor LDAP: `ldaps://ldap.example.net`, o `ldap://` con StartTLS",
        # A wrong one may contain a password.
        is_secret=True,
    )
    ldap_start_tls: bool = setting(
        "FACHO_LDAP_START_TLS",
        "true",
        Switch(("true", "false")),
        "`false`: passwords are sent to `ldap://` without encryption. Only for a server on the same machine",
        "`false`: las contraseñas se envían a `ldap://` sin cifrar. Solo para un servidor en la misma máquina",
    )
    ldap_ca_file: Path | None = setting(
        "FACHO_LDAP_CA_FILE",
        "",
        _readable_file,
        "file with the certificates (PEM) of the authority that signed the certificate of the LDAP server",
        "archivo con los certificados (PEM) de la autoridad que firmó el certificado del servidor LDAP",
        automatic=("those of the system", "los del sistema"),
    )
    ldap_bind_dn: str = setting(
        "FACHO_LDAP_BIND_DN",
        "",
        str,
        "DN of the account that Facho uses to search users. Empty: anonymous",
        "DN de la cuenta con la que Facho busca usuarios. Vacío: anónimo",
    )
    ldap_bind_password: str = setting(
        "FACHO_LDAP_BIND_PASSWORD",
        "",
        RequiredWith("FACHO_LDAP_BIND_PASSWORD", "FACHO_LDAP_BIND_DN", "Set it to the password of that account"),
        "password of that account",
        "contraseña de esa cuenta",
        needs=("ldap_bind_dn",),
        is_secret=True,
    )
    ldap_user_base: str = setting(
        "FACHO_LDAP_USER_BASE",
        "",
        RequiredWith(
            "FACHO_LDAP_USER_BASE",
            "FACHO_LDAP_URL",
            "Set it to the DN above all users, like ou=people,dc=example,dc=net",
        ),
        "DN above all users, such as `ou=people,dc=example,dc=net`",
        "DN sobre todos los usuarios, como `ou=people,dc=example,dc=net`",
        needs=("ldap_url",),
    )
    ldap_user_filter: str = setting(
        "FACHO_LDAP_USER_FILTER",
        "(uid=%(user)s)",
        _ldap_filter,
        "filter that finds a user by name; for Active Directory `(sAMAccountName=%(user)s)`",
        "filtro que encuentra a un usuario por su nombre; para Active Directory `(sAMAccountName=%(user)s)`",
    )
    ldap_roles: dict[str, str] = setting(
        "FACHO_LDAP_ROLES",
        "",
        _roles,
        "role of each group, by its `cn`: `noc-admins=Admin,noc=Operator`. The highest role counts",
        "rol de cada grupo, por su `cn`: `noc-admins=Admin,noc=Operator`. Vale el rol más alto",
    )
    ldap_group_base: str = setting(
        "FACHO_LDAP_GROUP_BASE",
        "",
        RequiredWith(
            "FACHO_LDAP_GROUP_BASE",
            "FACHO_LDAP_ROLES",
            "Set it to the DN above all groups, like ou=groups,dc=example,dc=net",
        ),
        "DN above all groups, such as `ou=groups,dc=example,dc=net`",
        "DN sobre todos los grupos, como `ou=groups,dc=example,dc=net`",
        needs=("ldap_roles",),
    )
    ldap_default_role: str = setting(
        "FACHO_LDAP_DEFAULT_ROLE",
        "",
        DefaultRole("FACHO_LDAP_URL"),
        "role of users without such a group. Without it, they are refused",
        "rol de los usuarios sin ninguno de esos grupos. Sin él, se les rechaza",
        needs=("ldap_url", "ldap_roles"),
    )
    local_login: bool = setting(
        "FACHO_LOCAL_LOGIN",
        "true",
        _local_login,
        "`false`: of the accounts with a password in Facho, only superusers can log in, at `/login/?local=1`",
        "`false`: de las cuentas con contraseña en Facho, solo los superusuarios pueden iniciar sesión, en "
        "`/login/?local=1`",
        needs=("oidc_issuer", "ldap_url"),
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
    def tsdb_address(self) -> str:
        """Return the address of the time series store without user and password."""
        parts = urlsplit(self.tsdb_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()

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
    def sends_plain_passwords(self) -> bool:
        """Return whether passwords leave this machine without encryption."""
        parts = urlsplit(self.ldap_url)
        return parts.scheme == "ldap" and not self.ldap_start_tls and not _is_loopback(parts.hostname or "")

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
