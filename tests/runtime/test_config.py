"""Settings from the environment: a bad value stops the start with a sentence that names it and says what to write."""

import os
import stat
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from facho.runtime import config
from facho.runtime.config import ConfigError

KEY, OTHER_KEY = Fernet.generate_key().decode(), Fernet.generate_key().decode()
SECRET = "hunter2"


@pytest.fixture
def load(tmp_path):
    """Load a configuration from these variables and nothing else."""
    return lambda **environ: config.load({"FACHO_DATA_DIR": str(tmp_path)} | environ)


def test_nothing_needs_to_be_said(load, tmp_path):
    loaded = load()

    assert (loaded.host, loaded.port, loaded.pollers) == ("127.0.0.1", 8000, None)
    assert (loaded.language, loaded.time_zone, loaded.log_level) == ("en", "UTC", "INFO")
    assert (loaded.allowed_hosts, loaded.public_url, loaded.secret_keys) == ((), "", ())
    assert (loaded.log_format, loaded.breaker_after, loaded.auto_recover) == ("line", 3, True)
    assert (loaded.keep_logs, loaded.keep_executions, loaded.keep_history, loaded.keep_daily) == (7, 30, 90, 730)
    assert (loaded.keep_changes, loaded.changes_log) == (730, ())
    assert loaded.is_sqlite
    assert loaded.database["NAME"] == str(tmp_path / "facho.sqlite3")


def test_what_is_said_is_heard(load):
    loaded = load(
        FACHO_HOST="0.0.0.0",
        FACHO_PORT=" 8080 ",
        FACHO_POLLERS="25",
        FACHO_LANGUAGE="es",
        FACHO_TIME_ZONE="America/Lima",
        FACHO_LOG_LEVEL="DEBUG",
        FACHO_LOG_FORMAT="json",
        FACHO_BREAKER_AFTER="5",
        FACHO_AUTO_RECOVER="false",
        FACHO_KEEP_LOGS="3",
        FACHO_KEEP_EXECUTIONS="14",
        FACHO_KEEP_HISTORY="365",
        FACHO_KEEP_DAILY="3650",
        FACHO_KEEP_CHANGES="400",
        FACHO_CHANGES_LOG="file, syslog://log.example.net:514,syslog+tcp://[::1]",
        FACHO_ALLOWED_HOSTS="noc.example.net, 10.0.0.1,",
        FACHO_PUBLIC_URL="https://noc.example.net/",
        FACHO_SECRET_KEYS=f"{KEY},{OTHER_KEY}",
        DATABASE_URL=f"postgresql://facho:{SECRET}@db.example.net:5433/facho",
    )

    assert (loaded.host, loaded.port, loaded.pollers) == ("0.0.0.0", 8080, 25)
    assert (loaded.language, loaded.time_zone, loaded.log_level) == ("es", "America/Lima", "DEBUG")
    assert (loaded.log_format, loaded.breaker_after, loaded.auto_recover) == ("json", 5, False)
    assert (loaded.keep_logs, loaded.keep_executions, loaded.keep_history, loaded.keep_daily) == (3, 14, 365, 3650)
    assert (loaded.keep_changes, loaded.changes_log) == (
        400,
        ("file", "syslog://log.example.net:514", "syslog+tcp://[::1]"),
    )
    assert loaded.allowed_hosts == ("noc.example.net", "10.0.0.1")
    assert (loaded.public_url, loaded.secret_keys) == ("https://noc.example.net", (KEY, OTHER_KEY))
    assert not loaded.is_sqlite
    assert (loaded.database["HOST"], loaded.database["PORT"]) == ("db.example.net", 5433)


def test_an_empty_variable_is_none(load):
    names = config.KNOWN_NAMES - {"FACHO_DATA_DIR"}

    assert load(**dict.fromkeys(names, " ")) == load()


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        pytest.param("FACHO_PORT", "0", "from 1 to 65535", id="port 0"),
        pytest.param("FACHO_KEEP_CHANGES", "0", "from 1 to 3650", id="no changes kept"),
        pytest.param("FACHO_CHANGES_LOG", "syslog", "syslog://host:514", id="syslog without a host"),
        pytest.param("FACHO_CHANGES_LOG", "file,http://x", "syslog://host:514", id="changes to a web server"),
        pytest.param("FACHO_CHANGES_LOG", "syslog://h:99999", "syslog://host:514", id="impossible syslog port"),
        pytest.param("FACHO_PORT", "65536", "from 1 to 65535", id="port 65536"),
        pytest.param("FACHO_PORT", "web", "whole number", id="a port in letters"),
        pytest.param("FACHO_PORT", "80.5", "whole number", id="half a port"),
        pytest.param("FACHO_POLLERS", "0", "from 1 to 1000", id="no pollers"),
        pytest.param("FACHO_POLLERS", "-3", "from 1 to 1000", id="less than no pollers"),
        pytest.param("FACHO_LANGUAGE", "de", "en, es", id="a language we do not speak"),
        pytest.param("FACHO_LOGIN_FAILURES", "0", "from 1 to 100", id="no failed login"),
        pytest.param("FACHO_LOGIN_LOCK_MINUTES", "0", "from 1 to 1440", id="a lock without time"),
        pytest.param("FACHO_PASSWORD_LENGTH", "7", "from 8 to 128", id="short passwords"),
        pytest.param("FACHO_REQUIRE_TOTP", "admins", "none, staff, all", id="nobody known"),
        pytest.param("FACHO_SESSION_IDLE", "-1", "from 0 to 525600", id="less than no time"),
        pytest.param("FACHO_SESSION_DAYS", "0", "from 1 to 3650", id="no days"),
        pytest.param("FACHO_LOG_LEVEL", "loud", "WARNING", id="no level"),
        pytest.param("FACHO_LOG_FORMAT", "xml", "line, json", id="no format of lines"),
        pytest.param("FACHO_LEASE_SECONDS", "9", "from 10 to 300", id="a lease that is over before it is renewed"),
        pytest.param("FACHO_MAX_ONUS", "127", "from 128 to 1000000", id="fewer ONUs than one port has"),
        pytest.param("FACHO_BREAKER_AFTER", "0", "from 1 to 100", id="a breaker that is never closed"),
        pytest.param("FACHO_AUTO_RECOVER", "perhaps", "true, false", id="neither yes nor no"),
        pytest.param("FACHO_AUTO_RECOVER", "False", "true, false", id="no with a capital letter"),
        pytest.param("FACHO_OLT_NETWORKS", "10.20.0.0/33", "like 10.20.0.0/16", id="no network"),
        pytest.param("FACHO_OLT_NETWORKS", "10.20.0.7/16", "has host bits set", id="an address in a network"),
        pytest.param(
            "FACHO_MAP_TILES", "https://tiles.example.net/{z}/{x}.png", "{z}, {x} and {y}", id="tiles without y"
        ),
        pytest.param("FACHO_MAP_TILES", "tiles/{z}/{x}/{y}.png", "{z}, {x} and {y}", id="tiles without a server"),
        pytest.param("FACHO_MAP_TILES", "https://{z}/{x}/{y}", "{z}, {x} and {y}", id="a pattern for a server"),
        pytest.param("FACHO_CHANNEL_HOSTS", "https://hooks.example.net", "without http", id="an address for a host"),
        pytest.param("FACHO_CHANNEL_HOSTS", "10.20.0.0/33", "like 10.20.0.0/16", id="no network of hosts"),
        pytest.param("FACHO_KEEP_LOGS", "0", "from 1 to 3650", id="a log that is not kept"),
        pytest.param("FACHO_KEEP_EXECUTIONS", "-1", "from 1 to 3650", id="less than no days"),
        pytest.param("FACHO_KEEP_HISTORY", "4000", "from 1 to 3650", id="readings kept for ever"),
        pytest.param("FACHO_TIME_ZONE", "Mars/Olympus", "America/Lima", id="no time zone"),
        pytest.param("FACHO_TIME_ZONE", "../../etc/passwd", "America/Lima", id="a path for a time zone"),
        pytest.param("FACHO_PUBLIC_URL", "noc.example.net", "https://noc", id="an address without a scheme"),
        pytest.param("FACHO_PUBLIC_URL", "https://noc.example.net/facho", "https://noc", id="an address with a path"),
        pytest.param("FACHO_PUBLIC_URL", "https://noc.example.net?x=1", "https://noc", id="an address with a query"),
        pytest.param("FACHO_PUBLIC_URL", "https://noc.example.net:web", "https://noc", id="a port in letters there"),
        pytest.param("FACHO_PUBLIC_URL", "http://[::1", "https://noc", id="half a bracket"),
        pytest.param("FACHO_DATA_DIR", "~no-such-user/data", "FACHO_DATA_DIR", id="a home that is not there"),
        pytest.param("DATABASE_URL", "mysql://u@h/db", "postgresql://", id="another database"),
        pytest.param("DATABASE_URL", "facho", "postgresql://", id="a name for an address"),
        pytest.param("DATABASE_URL", "postgresql://u@h:port/db", "postgresql://", id="a database port in letters"),
        pytest.param("DATABASE_URL", "postgresql://u@h/", "postgresql://", id="a server without a database"),
        pytest.param("DATABASE_URL", "sqlite://", "memory", id="a database in memory"),
        pytest.param("DATABASE_URL", "sqlite:///:memory:", "memory", id="a database in memory, by name"),
        pytest.param("FACHO_WORKER_NAME", "noc 2", "like noc-2", id="a name with a space"),
        pytest.param("FACHO_METRICS_PER_OLT", "2001", "from 0 to 2000", id="more series than a scrape can hold"),
        pytest.param("FACHO_OIDC_ISSUER", "sso.example.net", "https://sso", id="an issuer without a scheme"),
        pytest.param("FACHO_OIDC_ISSUER", "http://sso.example.net", "https://sso", id="an issuer without encryption"),
        pytest.param("FACHO_OIDC_ISSUER", "https://sso.example.net?x=1", "https://sso", id="an issuer with a query"),
        pytest.param("FACHO_OIDC_SCOPES", "profile", "openid profile", id="scopes that are not OpenID Connect"),
        pytest.param("FACHO_OIDC_ROLES", "noc", "noc=Operator", id="a group without a role"),
        pytest.param("FACHO_OIDC_ROLES", "=Admin", "noc=Operator", id="a role without a group"),
        pytest.param("FACHO_OIDC_DEFAULT_ROLE", "Boss", "Viewer, Support", id="no role"),
        pytest.param("FACHO_LDAP_URL", "ldap.example.net", "ldaps://ldap", id="an LDAP server without a scheme"),
        pytest.param("FACHO_LDAP_URL", "ldaps://h/dc=net", "ldaps://ldap", id="an LDAP server with a base"),
        pytest.param("FACHO_LDAP_START_TLS", "no", "true, false", id="another word for false"),
        pytest.param("FACHO_LDAP_CA_FILE", "/no/such/file", "PEM", id="certificates that are not there"),
        pytest.param("FACHO_LDAP_BIND_DN", "cn=facho", "FACHO_LDAP_BIND_PASSWORD is not", id="no password"),
        pytest.param("FACHO_LDAP_USER_FILTER", "(uid=ana)", "%(user)s", id="a filter for one user"),
        pytest.param("FACHO_LDAP_USER_FILTER", "(uid=%s)", "%(user)s", id="a filter with another place"),
        pytest.param("FACHO_LDAP_ROLES", "noc=operator", "Operator", id="a role in small letters"),
        pytest.param("FACHO_LDAP_ROLES", "noc=Operator", "FACHO_LDAP_GROUP_BASE is not", id="groups without a base"),
        pytest.param("FACHO_LDAP_DEFAULT_ROLE", "admin", "Viewer, Support", id="a default role in small letters"),
        pytest.param("FACHO_LOCAL_LOGIN", "false", "FACHO_OIDC_ISSUER or FACHO_LDAP_URL", id="no login at all"),
        pytest.param("FACHO_SECRET_KEYS", "not-a-key", "Key 1 in FACHO_SECRET_KEYS", id="a key that is none"),
        pytest.param("FACHO_SECRET_KEYS", f"{KEY},ñ", "Key 2 in FACHO_SECRET_KEYS", id="a second key that is none"),
    ],
)
def test_a_bad_value_is_named_with_what_to_write(load, name, value, advice):
    with pytest.raises(ConfigError) as refusal:
        load(**{name: value})

    assert name in str(refusal.value)
    assert advice in str(refusal.value)


OIDC = {
    "FACHO_OIDC_ISSUER": "https://sso.example.net/realms/noc",
    "FACHO_OIDC_CLIENT_ID": "facho",
    "FACHO_OIDC_CLIENT_SECRET": SECRET,
    "FACHO_OIDC_ROLES": "/noc/admins=Admin, cn=noc=Operator",
}
LDAP = {
    "FACHO_LDAP_URL": "ldap://ldap.example.net",
    "FACHO_LDAP_BIND_DN": "cn=facho,dc=example,dc=net",
    "FACHO_LDAP_BIND_PASSWORD": SECRET,
    "FACHO_LDAP_USER_BASE": "ou=people,dc=example,dc=net",
    "FACHO_LDAP_DEFAULT_ROLE": "Viewer",
}


def test_a_role_comes_after_the_last_equals_sign(load):
    loaded = load(**OIDC)

    assert loaded.oidc_roles == {"/noc/admins": "Admin", "cn=noc": "Operator"}


@pytest.mark.parametrize(
    ("given", "missing", "advice"),
    [
        pytest.param(OIDC, "FACHO_OIDC_CLIENT_ID", "FACHO_OIDC_CLIENT_ID is not", id="client id"),
        pytest.param(OIDC, "FACHO_OIDC_CLIENT_SECRET", "FACHO_OIDC_CLIENT_SECRET is not", id="client secret"),
        pytest.param(OIDC, "FACHO_OIDC_ROLES", "FACHO_OIDC_DEFAULT_ROLE like Viewer", id="roles of OIDC"),
        pytest.param(LDAP, "FACHO_LDAP_USER_BASE", "FACHO_LDAP_USER_BASE is not", id="user base"),
        pytest.param(LDAP, "FACHO_LDAP_DEFAULT_ROLE", "FACHO_LDAP_ROLES like noc-admins", id="roles of LDAP"),
    ],
)
def test_an_incomplete_login_server_is_named_with_what_is_missing(load, monkeypatch, given, missing, advice):
    # The packages are not the subject; not every machine can compile those of LDAP.
    monkeypatch.setattr(config, "find_spec", lambda name: name)

    with pytest.raises(ConfigError, match=advice):
        load(**given | {missing: ""})


@pytest.mark.parametrize(("given", "command"), [(OIDC, "facho[oidc]"), (LDAP, "facho[ldap]")], ids=["OIDC", "LDAP"])
def test_a_login_server_without_its_packages_is_refused_with_the_command(load, monkeypatch, given, command):
    monkeypatch.setattr(config, "find_spec", lambda name: None)

    with pytest.raises(ConfigError) as refusal:
        load(**given)

    assert f"pip install '{command}'" in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "start_tls", "plain"),
    [
        ("ldap://ldap.example.net", "", False),
        ("ldap://ldap.example.net", "false", True),
        ("ldaps://ldap.example.net", "false", False),
        ("ldap://127.0.0.1:389", "false", False),
        ("ldap://[::1]", "false", False),
        ("ldap://localhost", "false", False),
    ],
)
def test_passwords_leave_the_machine_without_encryption_only_if_that_is_said(load, monkeypatch, url, start_tls, plain):
    monkeypatch.setattr(config, "find_spec", lambda name: name)

    loaded = load(**LDAP | {"FACHO_LDAP_URL": url, "FACHO_LDAP_START_TLS": start_tls})

    assert loaded.sends_plain_passwords is plain


def test_all_bad_values_are_named_at_once(load):
    with pytest.raises(ConfigError) as refusal:
        load(FACHO_PORT="web", FACHO_TIME_ZONE="Mars/Olympus", FACHO_SECRET_KEYS="x", DATABASE_URL="facho")

    lines = str(refusal.value).splitlines()
    assert lines[:2] == [
        "FACHO_PORT is 'web'. Write a whole number from 1 to 65535, or unset it (default: 8000).",
        "FACHO_TIME_ZONE is 'Mars/Olympus'. Write a time zone like America/Lima, or unset it (default: UTC).",
    ]
    assert [line.split()[0] for line in lines[2:]] == ["Key", "DATABASE_URL"]


def test_what_depends_on_a_bad_value_is_not_judged(load):
    with pytest.raises(ConfigError) as refusal:
        load(FACHO_MODE="cluster", DATABASE_URL="facho", FACHO_REDIS_URL="nowhere")

    assert str(refusal.value) == (
        "FACHO_MODE is 'cluster'. Write one of embedded, scale, or unset it (default: embedded)."
    )


@pytest.mark.parametrize(
    "environ",
    [
        {"DATABASE_URL": f"mysql://facho:{SECRET}@h/db"},
        {"DATABASE_URL": f"postgresql://facho:{SECRET}@h:port/db"},
        {"DATABASE_URL": f"postgresql://facho:{SECRET}[@h/db"},
        {"DATABASE_URL": SECRET},
        {"FACHO_SECRET_KEYS": SECRET},
        {"FACHO_PUBLIC_URL": f"https://noc:{SECRET}@noc.example.net"},
        {"FACHO_OIDC_ISSUER": f"https://facho:{SECRET}@h"},
        {"FACHO_LDAP_URL": f"ldap://facho:{SECRET}@h"},
        {"FACHO_TSDB_URL": f"http://facho:{SECRET}@h/api/v1/import"},
        {"FACHO_TSDB_URL": f"http://facho:{SECRET}@h:port/"},
        {"FACHO_TSDB_URL": "http://h/", "FACHO_TSDB_TOKEN": f"{SECRET} {SECRET}"},
        {"FACHO_TSDB_URL": f"http://facho:{SECRET}@h/", "FACHO_TSDB_TOKEN": SECRET},
        {"FACHO_TSDB_TOKEN": SECRET},
        {"FACHO_MODE": "scale", "DATABASE_URL": "postgresql://h/db", "FACHO_REDIS_URL": f"redis://:{SECRET}@[h"},
    ],
    ids=str,
)
def test_a_refusal_repeats_no_password(load, environ):
    with pytest.raises(ConfigError) as refusal:
        load(**environ)

    assert SECRET not in str(refusal.value)


def test_a_configuration_shows_no_secret(load):
    shown = repr(
        load(
            FACHO_MODE="scale",
            FACHO_SECRET_KEYS=KEY,
            FACHO_METRICS_TOKEN=SECRET,
            FACHO_TSDB_URL=f"http://facho:{SECRET}@h/",
            FACHO_REDIS_URL=f"redis://:{SECRET}@h",
            FACHO_OIDC_CLIENT_SECRET=SECRET,
            FACHO_LDAP_BIND_PASSWORD=SECRET,
            DATABASE_URL=f"postgresql://facho:{SECRET}@h/db",
        )
    )

    assert KEY not in shown
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("url", "loaded", "shown"),
    [
        ("http://h:8428", "http://h:8428/api/v1/write", "http://h:8428/api/v1/write"),
        ("http://h:8428/", "http://h:8428/api/v1/write", "http://h:8428/api/v1/write"),
        ("https://a:b@h/api/v1/push", "https://a:b@h/api/v1/push", "https://h/api/v1/push"),
        ("http://[::1]:80/insert/0/prometheus/api/v1/write", *["http://[::1]:80/insert/0/prometheus/api/v1/write"] * 2),
        ("http://h/api/v1/receive?tenant=x", "http://h/api/v1/receive?tenant=x", "http://h/api/v1/receive"),
    ],
)
def test_the_address_of_a_time_series_store_is_shown_without_credentials(load, url, loaded, shown):
    config = load(FACHO_TSDB_URL=url)

    assert (config.tsdb_url, config.tsdb_address) == (loaded, shown)


@pytest.mark.parametrize(
    "url",
    [
        "victoria:8428",
        "postgresql://h/db",
        "http://h:8428/api/v1/import/prometheus",
        "http://h:8086/write",
        "http://h:8086/api/v2/write",
        "http://h:3100/loki/api/v1/push",
        "http://h:8428/vmui",
        "http://h:0/api/v1/write",
        "http://h /api/v1/write",
        "http:///api/v1/write",
    ],
)
def test_a_store_of_another_kind_is_refused(load, url):
    with pytest.raises(ConfigError, match="remote write"):
        load(FACHO_TSDB_URL=url)


def test_sqlite_waits_for_its_lock_instead_of_failing(load):
    options = load().database["OPTIONS"]

    assert options["transaction_mode"] == "IMMEDIATE"
    assert options["timeout"] >= 5
    assert "journal_mode=WAL" in options["init_command"]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("", ""),
        ("https://noc.example.net", "noc.example.net"),
        ("http://noc.example.net:8080", "noc.example.net"),
        ("http://[::1]:8080", "[::1]"),
        ("http://[2001:db8::7]", "[2001:db8::7]"),
    ],
)
def test_the_host_of_the_public_address_is_known(load, url, host):
    assert load(FACHO_PUBLIC_URL=url).public_host == host


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("FACHO_POLERS", "FACHO_POLLERS"),
        ("FACHO_DATABASE_URL", "DATABASE_URL"),
        ("FACHO_DATADIR", "FACHO_DATA_DIR"),
        ("FACHO_XYZZY", ""),
    ],
)
def test_a_variable_nobody_reads_is_found_with_the_one_that_was_meant(name, meant):
    assert config.unknown_names({name: "1", "FACHO_PORT": "1", "HOME": "/"}) == {name: meant}


def test_variables_of_the_test_suite_are_no_mistake():
    assert config.unknown_names({"FACHO_TEST_POSTGRES_URL": "x", "FACHO_RECORDINGS": "x"}) == {}


class TestDataDirectory:
    def test_it_is_made_with_a_key_that_is_kept(self, tmp_path):
        folder = tmp_path / "a" / "b"
        environ = {"FACHO_DATA_DIR": str(folder)}

        for _ in range(2):
            config.prepare(config.load(environ))
            (key,) = config.load(environ).secret_keys

        assert (folder / "secret.keys").read_text() == f"{key}\n"
        assert [path.name for path in folder.iterdir()] == ["secret.keys"]

    def test_of_two_that_start_together_the_first_makes_the_key_of_both(self, tmp_path):
        path = tmp_path / "secret.keys"
        config.make_key(path)
        first = path.read_text()

        config.make_key(path)

        assert path.read_text() == first
        assert [each.name for each in tmp_path.iterdir()] == ["secret.keys"]

    def test_the_key_is_for_its_owner_only(self, tmp_path):
        config.prepare(config.load({"FACHO_DATA_DIR": str(tmp_path)}))

        assert stat.S_IMODE((tmp_path / "secret.keys").stat().st_mode) == 0o600

    def test_keys_in_the_environment_need_no_file(self, tmp_path):
        config.prepare(config.load({"FACHO_DATA_DIR": str(tmp_path), "FACHO_SECRET_KEYS": KEY}))

        assert list(tmp_path.iterdir()) == []

    def test_keys_in_the_environment_come_first(self, tmp_path):
        (tmp_path / "secret.keys").write_text(OTHER_KEY)

        assert config.load({"FACHO_DATA_DIR": str(tmp_path), "FACHO_SECRET_KEYS": KEY}).secret_keys == (KEY,)

    def test_one_that_cannot_be_written_to_is_said(self, tmp_path):
        (tmp_path / "file").touch()
        loaded = config.load({"FACHO_DATA_DIR": str(tmp_path / "file" / "data"), "FACHO_SECRET_KEYS": KEY})

        with pytest.raises(ConfigError, match=r"cannot be written to \(Not a directory\).*FACHO_DATA_DIR"):
            config.prepare(loaded)

    def test_roles_that_start_together_may_find_out_at_once_that_it_can_be_written_to(self, tmp_path, monkeypatch):
        touch = Path.touch

        def touch_while_another_takes_its_own_away(path):
            touch(path)
            path.unlink()

        monkeypatch.setattr(Path, "touch", touch_while_another_takes_its_own_away)

        config.prepare(config.load({"FACHO_DATA_DIR": str(tmp_path), "FACHO_SECRET_KEYS": KEY}))

        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            pytest.param(b"", "is empty. Restore it from a backup", id="empty"),
            pytest.param(b"\n \n", "is empty. Restore it from a backup", id="blank"),
            pytest.param(b"garbage", "is not a Fernet key", id="garbage"),
            pytest.param(b"\xff\xfe\x00", "is not a Fernet key", id="no text at all"),
        ],
    )
    def test_a_key_file_that_is_broken_is_never_replaced(self, tmp_path, content, sentence):
        file = tmp_path / "secret.keys"
        file.write_bytes(content)

        with pytest.raises(ConfigError, match=sentence):
            config.prepare(config.load({"FACHO_DATA_DIR": str(tmp_path)}))

        assert file.read_bytes() == content

    def test_a_key_file_that_is_a_folder_is_said(self, tmp_path):
        (tmp_path / "secret.keys").mkdir()

        with pytest.raises(ConfigError, match="cannot be read"):
            config.load({"FACHO_DATA_DIR": str(tmp_path)})

    def test_it_may_be_named_from_home_or_from_here(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)

        assert config.load({"FACHO_DATA_DIR": "~/facho"}).data_dir == tmp_path / "facho"
        assert config.load({"FACHO_DATA_DIR": "facho"}).data_dir == Path(os.getcwd()) / "facho"
