"""The servers of the tests: named ones first, our own for those who must hurt one."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import psycopg
import pytest
from redis import Redis

import run
import server_redis
import servers
from servers import LaunchedPostgres, NamedServerDead, NoServerError, database_of_its_own

# They start servers.
pytestmark = pytest.mark.slow

DEAD = {
    "postgres": (servers.POSTGRES_URL_NAME, "postgresql://facho:secret@127.0.0.1:1/postgres"),
    "redis": (servers.REDIS_URL_NAME, "redis://:secret@127.0.0.1:1/0"),
}


@pytest.mark.parametrize("kind", DEAD)
def test_a_named_server_that_is_dead_is_an_error(kind, monkeypatch):
    name, url = DEAD[kind]
    monkeypatch.setenv(name, url)

    with pytest.raises(NamedServerDead, match=name) as raised, getattr(servers, kind)():
        pass

    assert "secret" not in str(raised.value)


def test_a_named_server_is_taken(redis_url, monkeypatch):
    monkeypatch.setenv(servers.REDIS_URL_NAME, redis_url)

    with servers.redis() as server:
        assert server.url == redis_url


def test_without_a_program_it_is_said_why_there_is_no_server(monkeypatch):
    monkeypatch.delenv(servers.REDIS_URL_NAME, raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(server_redis, "find_spec", lambda name: None)

    with servers.redis() as server:
        assert server.url is None
        assert "no Redis or Valkey is installed" in server.reason


def test_a_killed_redis_comes_back_on_its_port_and_empty(own_redis):
    with Redis.from_url(own_redis.url) as client:
        client.set("onu", "7")
        own_redis.kill()
        own_redis.start()

        assert client.get("onu") is None


def test_a_stopped_redis_leaves_nothing_behind(own_redis):
    own_redis.remove()

    assert not own_redis.folder.exists()
    with pytest.raises(OSError, match="refused"):
        own_redis.ask()


def test_a_server_ends_when_the_tests_are_killed():
    script = "import servers, signal; s = servers.LaunchedRedis(); print(s.port, flush=True); signal.pause()"
    environment = {**os.environ, "PYTHONPATH": str(Path(servers.__file__).parent)}
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True) as tests:
        port = int(tests.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            tests.kill()

            assert is_closed(connection)


def is_closed(connection):
    """Wait until the other end is gone. A server that is killed may close the connection or reset it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_killed_postgres_comes_back_on_its_port_with_all_it_committed(own_postgres):
    with psycopg.connect(own_postgres.url) as connection:
        connection.execute("CREATE TABLE onu (id int)")
        connection.execute("INSERT INTO onu VALUES (7)")
        connection.commit()
        own_postgres.kill()
    own_postgres.start()

    with psycopg.connect(own_postgres.url) as connection:
        assert connection.execute("SELECT id FROM onu").fetchall() == [(7,)]
        assert connection.execute("SHOW fsync").fetchone() == ("on",)


def test_a_database_of_its_own_goes_when_it_is_done_with(postgres_url):
    with database_of_its_own(postgres_url) as url:
        left_open = psycopg.connect(url)
        name = left_open.info.dbname

    left_open.close()
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None


def test_a_server_that_cannot_start_says_what_it_said(monkeypatch):
    monkeypatch.setattr(LaunchedPostgres, "command", lambda self: [str(self._bin / "postgres"), "--no-such-option"])

    with pytest.raises(NoServerError, match="no-such-option"):
        LaunchedPostgres()


@pytest.fixture
def steps(monkeypatch):
    """The steps of a run of every check, of which none is really taken."""
    taken = {}
    monkeypatch.setattr(run, "failed", [])
    monkeypatch.setattr(run, "skipped", [])

    def take(name, *command, **environment):
        taken[name] = environment
        return nullcontext()

    monkeypatch.setattr(run, "step", take)
    monkeypatch.setattr(run, "beside", take)
    return taken


def given(monkeypatch, *, database, messages, chromium, ldap):
    monkeypatch.setattr(run, "postgres", lambda: nullcontext(servers.Server(database, "" if database else "none here")))
    monkeypatch.setattr(run, "redis", lambda: nullcontext(servers.Server(messages, "" if messages else "none here")))
    monkeypatch.setattr(run, "chromium", lambda: chromium)
    monkeypatch.setattr(run, "has_ldap", lambda: ldap)


@pytest.mark.parametrize(
    ("ci", "failed"),
    [
        pytest.param("", [], id="a person is told"),
        pytest.param(
            "true", ["tests that need Redis", "tests of LDAP", "tests on PostgreSQL", "browser"], id="CI fails"
        ),
    ],
)
def test_what_cannot_be_run_is_skipped_for_a_person_and_fails_in_ci(ci, failed, steps, monkeypatch):
    monkeypatch.setenv("CI", ci)
    given(monkeypatch, database=None, messages=None, chromium=None, ldap=False)

    run.tests()

    assert list(steps) == ["types", "installations", "tests", "chaos"]
    assert len(run.skipped) == 4
    assert run.failed == [f"{name} (skipped)" for name in failed]


def test_every_step_that_may_need_servers_is_told_where_they_are(steps, monkeypatch):
    given(monkeypatch, database="postgresql://here", messages="redis://here", chromium="/usr/bin/chromium", ldap=True)

    run.tests()

    both = {servers.POSTGRES_URL_NAME: "postgresql://here", servers.REDIS_URL_NAME: "redis://here"}
    assert steps["tests"] == steps["installations"] == both
    assert steps["tests on PostgreSQL"] == both | {"DATABASE_URL": "postgresql://here"}
    assert run.skipped == run.failed == []
