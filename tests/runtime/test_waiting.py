"""A role that starts before its servers waits for them and logs it; permanent errors end it."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from redis import Redis

from facho.runtime import config
from facho.runtime.config import ConfigError
from facho.runtime.roles.waiting import NotYet, Waiting, remind
from server_process import free_port
from servers import database_of_its_own
from stack import Role, environment, wait_for


class Hands:
    """A clock that goes on when somebody sleeps."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        return self.seconds

    async def sleep(self, seconds):
        self.seconds += seconds
        await asyncio.sleep(0)


class Look:
    """Looks as a test says, one answer after the other; then all is well."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self, config):
        if self.answers:
            answer = self.answers.pop(0)
            if callable(answer):
                answer = answer()
            if answer is not None:
                raise answer


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.INFO, "facho.runtime.roles")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture
def clock():
    return Hands()


def waiting(look, clock, role="scheduler"):
    return Waiting(config.load({"FACHO_DATA_DIR": "/nowhere"}), role, clock, look)


AWAY = NotYet("the database cannot be reached", "connection to db1 refused")
OUTDATED = NotYet("the database is not up to date: run `facho migrate`")


async def test_a_role_whose_servers_are_there_begins_without_a_word(clock, said):
    assert await waiting(Look(), clock).run(None) is True
    assert said() == []


async def test_it_is_said_at_once_what_is_waited_for_and_then_once_a_minute(clock, said):
    # Every two seconds, for two minutes and a little more.
    assert await waiting(Look(*[AWAY] * 64), clock).run(None) is True

    away = "the scheduler is waiting to start: the database cannot be reached (connection to db1 refused)"
    assert said() == [away, away, away, "the scheduler continues starting: its dependencies are available"]


async def test_another_reason_is_said_at_once(clock, said):
    assert await waiting(Look(AWAY, AWAY, OUTDATED, OUTDATED), clock).run(None) is True

    assert ["migrate" in sentence for sentence in said()] == [False, True, False]


async def test_what_waiting_does_not_mend_ends_it(clock):
    with pytest.raises(ConfigError, match="password"):
        await waiting(Look(AWAY, ConfigError("The password is wrong.")), clock).run(None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_wait_even_while_the_database_hangs(clock, number):
    answered = threading.Event()

    def hang():
        os.kill(os.getpid(), number)
        # Longer than any test: a test that waits for it fails.
        answered.wait(600)

    is_to_begin = await waiting(Look(hang), clock).run(None)

    answered.set()
    assert is_to_begin is False


async def ask(app, path):
    """Return status and body that an app answers with."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": path, "method": "GET", "headers": [], "client": ("127.0.0.1", 1)}
    await app(scope, None, send)
    return sent[0]["status"], sent[1]["body"].decode()


async def test_meanwhile_it_lives_and_is_not_ready_and_says_why_without_an_address(clock):
    role = waiting(Look(AWAY, ConfigError("enough")), clock)
    with pytest.raises(ConfigError):
        await role.run(None)

    alive, _ = await ask(role.app, "/healthz")
    ready, body = await ask(role.app, "/readyz")

    assert (alive, ready) == (200, 503)
    assert json.loads(body)["checks"] == {"start": "waiting to start: the database cannot be reached"}


@pytest.mark.parametrize(("role", "status"), [("web", 503), ("worker", 404)])
async def test_pages_are_not_to_be_had_yet(clock, role, status):
    assert (await ask(waiting(Look(), clock, role).app, "/"))[0] == status


class Bus:
    """A connection with the answers of a test, one per check; then it ends."""

    def __init__(self, *answers):
        self._answers = list(answers)

    @property
    def is_connected(self):
        if not self._answers:
            raise EOFError
        return self._answers.pop(0)


async def test_as_long_as_redis_is_unavailable_it_is_said_once_a_minute(clock, said):
    with pytest.raises(EOFError):
        await remind(Bus(False, False, True, True), clock)

    assert len(said()) == 2
    assert clock.seconds == 5 * 60


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return None, str(error)


@contextmanager
def started(folder, settings, names=("web", "scheduler", "worker")):
    """Start roles, and end them however the test ends."""
    roles = {}
    for name in names:
        port = free_port()
        own = {"FACHO_WORKER_NAME": name, "FACHO_METRICS_PORT": str(port), "FACHO_PORT": str(port)}
        role = Role(name, [name], settings | own, folder / f"{name}.log", "")
        roles[port] = role
        role.launch()
    try:
        yield roles
    finally:
        for role in roles.values():
            role.remove()


def facho(settings, *words):
    command = [sys.executable, "-m", "facho.runtime.cli", *words]
    return subprocess.run(command, env=environment(settings), capture_output=True, text=True, timeout=100)


@pytest.fixture
def settings(own_postgres, redis_url, tmp_path):
    return {
        "FACHO_MODE": "scale",
        "DATABASE_URL": own_postgres.url,
        "FACHO_REDIS_URL": redis_url,
        "FACHO_DATA_DIR": str(tmp_path / "data"),
    }


@pytest.mark.long
@pytest.mark.timeout(300)
def test_all_roles_wait_for_a_server_and_then_for_its_tables(own_postgres, settings, tmp_path):
    def says(ports, path, status, what):
        return all(get(port, path)[0] == status and what in get(port, path)[1] for port in ports)

    own_postgres.stop()
    with started(tmp_path, settings) as roles:
        wait_for(lambda: says(roles, "/readyz", 503, "cannot be reached"), "all say that it is away", 100)
        alive = says(roles, "/healthz", 200, "ok")
        own_postgres.start()
        wait_for(lambda: says(roles, "/readyz", 503, "facho migrate"), "all say what is missing", 100)
        migrated = facho(settings, "migrate")
        wait_for(lambda: says(roles, "/readyz", 200, "ok"), "all are ready", 100)

        statuses = [role.stop() for role in roles.values()]

    assert alive
    assert migrated.returncode == 0
    assert statuses == [0, 0, 0]
    for role in roles.values():
        assert role.said().count("waiting to start: the database cannot be reached") == 1


@pytest.mark.timeout(300)
def test_a_role_that_waits_for_a_server_that_hangs_can_be_stopped(own_postgres, settings, tmp_path):
    own_postgres.pause()
    with started(tmp_path, settings, ["worker"]) as roles:
        ((port, role),) = roles.items()
        wait_for(lambda: get(port, "/healthz")[0] == 200, "it lives", 100)

        status = role.stop()

    own_postgres.resume()
    assert status == 0


def changed(url, **parts):
    return urlsplit(url)._replace(**parts).geturl()


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(
            lambda url: {"DATABASE_URL": url.replace("facho:", "facho:hunter2")},
            "password authentication failed",
            id="password",
        ),
        pytest.param(
            lambda url: {"DATABASE_URL": changed(url, path="/nowhere")}, '"nowhere" does not exist', id="no database"
        ),
        pytest.param(
            lambda url: {"DATABASE_URL": f"{url}?colour=green"}, "invalid connection option", id="not an address"
        ),
        pytest.param(lambda url: {"FACHO_MODE": "embedded"}, "FACHO_MODE=scale", id="mode"),
        pytest.param(lambda url: {"FACHO_REDIS_URL": "redis://localhost:99999"}, "FACHO_REDIS_URL", id="Redis' port"),
    ],
)
def test_what_waiting_does_not_mend_ends_a_role_with_a_sentence(postgres_url, redis_url, tmp_path, wrong, expected):
    known = {"FACHO_MODE": "scale", "DATABASE_URL": postgres_url, "FACHO_REDIS_URL": redis_url}

    result = facho(known | {"FACHO_DATA_DIR": str(tmp_path)} | wrong(postgres_url), "scheduler")

    assert result.returncode == 1, result.stderr
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
    assert "hunter" not in result.stderr


def test_a_redis_that_does_not_know_us_ends_a_role_too(postgres_url, own_redis, tmp_path):
    with Redis.from_url(own_redis.url) as client, database_of_its_own(postgres_url) as url:
        client.config_set("requirepass", "another")
        known = {"FACHO_MODE": "scale", "DATABASE_URL": url, "FACHO_REDIS_URL": own_redis.url}

        result = facho(known | {"FACHO_DATA_DIR": str(tmp_path)}, "scheduler")

    assert result.returncode == 1, result.stderr
    assert "Redis rejected the user or the password" in result.stderr
