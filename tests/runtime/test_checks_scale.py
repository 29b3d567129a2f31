"""What `facho check` says of servers that several processes share, and what every start refuses."""

import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from cryptography.fernet import Fernet
from redis import Redis

from facho.runtime import checks, clocks
from facho.store.engine_lock import ENGINE_LOCK
from servers import database_of_its_own

T0 = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)
KEY = Fernet.generate_key().decode()
RUN = "from facho.runtime.cli import main; main()"


class SlowClock:
    """A clock that goes on by a second at each look."""

    def __init__(self):
        self.looks = 0

    def now(self):
        self.looks += 1
        return T0 + timedelta(seconds=self.looks - 1)


@pytest.mark.parametrize(
    ("told", "ahead"),
    [
        pytest.param(T0 + timedelta(seconds=0.4), 0, id="between question and answer: nothing is wrong"),
        pytest.param(T0 + timedelta(seconds=4), 3, id="after the answer: ahead of us"),
        pytest.param(T0 - timedelta(seconds=30), -30, id="before the question: behind us"),
    ],
)
def test_a_clock_differs_by_what_the_question_does_not_explain(told, ahead):
    assert clocks.measure(lambda: told, SlowClock()).ahead == timedelta(seconds=ahead)


@pytest.mark.parametrize(
    ("seconds", "ids"),
    [
        pytest.param(2, [], id="two seconds"),
        pytest.param(2.1, ["W"], id="more than two"),
        pytest.param(-10, ["W"], id="ten, behind"),
        pytest.param(-10.1, ["E"], id="more than ten, behind"),
    ],
)
def test_a_clock_is_named_from_two_seconds_on_and_refused_from_ten(seconds, ids):
    messages = clocks.Skew(timedelta(seconds=seconds)).messages("Redis", error="E", warning="W")

    assert [message.id for message in messages] == ids
    assert all(
        f"{abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} the clock of this machine" in each.msg
        for each in messages
    )


def ids(messages):
    return [message.id for message in messages]


def test_a_sound_redis_has_nothing_to_say(redis_url):
    assert checks.redis(redis_url) == []


def test_a_redis_that_is_not_there_is_an_error_without_its_password():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        (message,) = checks.redis(f"redis://:hunter2@127.0.0.1:{unused.getsockname()[1]}/0")

    assert message.id == "facho.E008"
    assert "refused" in message.msg
    assert "hunter2" not in message.msg + message.hint


def test_a_redis_that_hangs_is_not_waited_for(own_redis, monkeypatch):
    monkeypatch.setattr(checks, "PATIENCE", 0.2)
    own_redis.pause()

    (message,) = checks.redis(own_redis.url)

    own_redis.resume()
    assert message.id == "facho.E008"
    assert "Timeout" in message.msg


@pytest.mark.parametrize("wrong", [":hunter2@", "nobody:hunter2@", ""], ids=["password", "user", "no password"])
def test_a_redis_that_does_not_know_us_is_an_error(own_redis, wrong):
    (message,) = checks.redis(f"redis://{wrong}127.0.0.1:{own_redis.port}/0")

    assert message.id == "facho.E009"
    assert "hunter2" not in message.msg + message.hint


def test_a_redis_that_forbids_what_we_need_is_an_error(own_redis):
    with Redis.from_url(own_redis.url) as client:
        client.execute_command("ACL SETUSER noc on >hunter2 ~* &* +@all -info")

    (message,) = checks.redis(f"redis://noc:hunter2@127.0.0.1:{own_redis.port}/0")

    assert message.id == "facho.E009"
    assert "info" in message.msg.lower()
    assert "hunter2" not in message.msg


def test_a_redis_that_throws_keys_away_is_a_warning(own_redis):
    with Redis.from_url(own_redis.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        unlimited = checks.redis(own_redis.url)
        client.config_set("maxmemory", "100mb")

    assert unlimited == []
    assert ids(checks.redis(own_redis.url)) == ["facho.W004"]


def test_a_replica_is_an_error(own_redis):
    with Redis.from_url(own_redis.url) as client:
        client.replicaof("127.0.0.1", 1)

    assert ids(checks.redis(own_redis.url)) == ["facho.E012"]


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        pytest.param({"redis_version": "6.2.0"}, [], id="Redis, the oldest"),
        pytest.param({"redis_version": "6.0.16"}, ["facho.E010"], id="Redis, too old"),
        pytest.param({"redis_version": "7.2.4", "valkey_version": "8.1.3"}, [], id="Valkey"),
        pytest.param({"redis_version": "7.2.4", "valkey_version": "7.0.0"}, ["facho.E010"], id="Valkey, too old"),
        pytest.param({"redis_version": "10.0"}, [], id="ten is more than six"),
        pytest.param({"redis_version": "7.4.0", "redis_mode": "cluster"}, ["facho.E011"], id="a cluster"),
    ],
)
def test_what_a_server_says_of_itself_is_judged(info, expected):
    assert ids(checks.redis_server(info)) == expected


@pytest.fixture(scope="module")
def database(postgres_url, tmp_path_factory):
    with database_of_its_own(postgres_url) as url:
        migrated = facho(tmp_path_factory.mktemp("data"), "migrate", DATABASE_URL=url)
        assert migrated.returncode == 0, migrated.stderr
        yield url


@pytest.fixture
def scale(database, redis_url):
    """The environment of a role."""
    return {"FACHO_MODE": "scale", "DATABASE_URL": database, "FACHO_REDIS_URL": redis_url}


def facho(data, *arguments, code=RUN, **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FACHO_", "DJANGO_")) and k != "DATABASE_URL"}
    environment = kept | {"FACHO_DATA_DIR": str(data), "FACHO_SECRET_KEYS": KEY} | more
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)


def refused(result):
    assert result.returncode == 1, result.stdout
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.fixture
def rows(database):
    """A connection that writes at once, and takes back what it wrote."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection
        connection.execute("DELETE FROM leases; DELETE FROM pollers")


def test_who_is_there_is_said_and_nobody_is_no_error(tmp_path, scale):
    result = facho(tmp_path, "check", **scale)

    assert result.returncode == 0, result.stderr
    assert "No scheduler is active: start one with `facho scheduler`." in result.stdout
    assert "No worker is running: start one with `facho worker`." in result.stdout
    assert "No problems found" in result.stdout


POLLER = (
    "INSERT INTO pollers "
    "(poller_id, worker, host, status, busy_time, total_time, tasks_completed, tasks_delayed, updated_at) "
    "VALUES (%s, %s, 'noc-2', %s, 0, 0, 0, 0, now() - %s * interval '1 second')"
)
LEASE = "INSERT INTO leases VALUES (%s, %s, 1, now() + %s * interval '1 second', false)"


def test_schedulers_and_workers_are_named(tmp_path, scale, rows):
    rows.execute(LEASE, ["scheduler", "noc-1/4711", 600])
    rows.execute(POLLER, [1, "noc-2-1/12", "BUSY", 0])
    rows.execute(POLLER, [2, "noc-2-1/12", "FREE", 0])
    rows.execute(POLLER, [3, "gone/13", "FREE", 600])

    result = facho(tmp_path, "check", **scale)

    assert "The active scheduler is noc-1/4711." in result.stdout
    assert "Worker noc-2-1/12 on noc-2 has 2 pollers, 1 of them busy." in result.stdout
    assert "gone" not in result.stdout


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("key", ["scheduler", "device:10.0.0.7:161"])
def test_one_process_does_not_start_where_roles_are_at_work(tmp_path, database, rows, key, command):
    rows.execute(LEASE, [key, "noc-1/4711", 600])

    said = refused(facho(tmp_path, command, DATABASE_URL=database))

    assert "Scale-out processes are using this database, such as noc-1/4711" in said
    assert "FACHO_MODE=scale" in said


def test_leases_that_are_over_keep_nobody_from_starting(tmp_path, database, rows):
    rows.execute(LEASE, ["scheduler", "noc-1/4711", -1])

    assert facho(tmp_path, "check", DATABASE_URL=database).returncode == 0


def test_no_role_starts_where_one_process_has_everything(tmp_path, scale, database):
    with psycopg.connect(database) as engine:
        engine.execute("SELECT pg_advisory_lock(%s)", [ENGINE_LOCK])

        said = refused(facho(tmp_path, "scheduler", **scale))

    assert "`facho run` or `facho migrate-to` is using this database" in said


def test_every_server_that_is_unavailable_is_named_and_no_password(tmp_path):
    addresses = {
        "DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:1/x",
        "FACHO_REDIS_URL": "redis://:hunter3@127.0.0.1:1",
    }

    said = refused(facho(tmp_path, "check", FACHO_MODE="scale", **addresses))

    assert "The database cannot be reached" in said
    assert "Redis cannot be used" in said
    assert "hunter" not in said


START = (
    "from facho.runtime import cli; config = cli._prepare_role('worker')\n"
    "from facho.runtime.roles.waiting import look; look(config)"
)


def test_a_role_starts_without_redis_and_waits_for_it(tmp_path, scale):
    result = facho(tmp_path, code=START, **scale | {"FACHO_REDIS_URL": "redis://127.0.0.1:1"})

    assert result.returncode == 0, result.stderr


SKEWED = """
from datetime import timedelta
from facho.adapters.clock import SystemClock
genuine = SystemClock.now
SystemClock.now = lambda self: genuine(self) + timedelta(seconds={seconds})
"""


@pytest.mark.parametrize(
    ("seconds", "starts", "id_"),
    [pytest.param(5, True, "5.", id="a little"), pytest.param(-60, False, "60.", id="a lot")],
)
def test_a_clock_that_is_off_is_said_and_one_that_is_far_off_refuses_a_start(tmp_path, scale, seconds, starts, id_):
    code = SKEWED.format(seconds=seconds)

    checked = facho(tmp_path, "check", code=code + RUN, **scale)
    started = facho(tmp_path, code=code + START, **scale)

    said = refused(checked)
    assert said.count("The clock of the database is ") == 1
    assert said.count("The clock of Redis is ") == 1
    assert "NTP" in said
    assert (started.returncode == 0) is starts
