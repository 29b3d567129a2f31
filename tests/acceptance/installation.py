"""A Facho of its own for a test: a real process, on a data directory and a port of its own, spoken to over HTTP.

Nothing here sleeps. Tests wait on the live stream: it brings a snapshot every
second, and each one is an occasion to look again.
"""

import http.client
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from server_process import free_port

# Snapshots come once a second, so this is the most seconds that a test waits for anything.
PATIENCE = 90
# How long until a node runs that must not wait for its first minute, at least: see `Installation.soon`.
SOON = timedelta(seconds=8)
# On a machine that does ten other things, in seconds.
SECONDS_TO_STOP = 90
USER = PASSWORD = "demo"
# By code, because `facho createsuperuser` refuses such a password.
MAKE_USER = f"User.objects.create_superuser({USER!r}, password={PASSWORD!r})"


class Installation:
    """A running Facho."""

    def __init__(self, data: Path, *arguments: str, settings: dict[str, str] | None = None) -> None:
        self.data = data
        self._settings = settings or {}
        self.port = free_port()
        self._arguments = arguments
        self._token: str | None = None
        self.process: subprocess.Popen[str] | None = None
        self.start_time = timedelta(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> "Installation":
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FACHO_")},
            "FACHO_DATA_DIR": str(self.data),
            **self._settings,
        }
        command = [sys.executable, "-m", "facho.runtime.cli", *self._arguments, f"--port={self.port}"]
        began = time.monotonic()
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=None, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if self.url in line:
                self.start_time = timedelta(seconds=time.monotonic() - began)
                return self
        raise AssertionError(f"it did not start; status {self.process.wait()}")

    def stop(self) -> int:
        """Ask it to stop, and return its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(SECONDS_TO_STOP)
        self.process.stdout.close()
        return status

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Pull the plug."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def manage(self, *arguments: str) -> None:
        """Run a `facho` command on the same data."""
        environment = {**os.environ, "FACHO_DATA_DIR": str(self.data)}
        environment.pop("FACHO_SECRET_KEYS", None)
        command = [sys.executable, "-m", "facho.runtime.cli", *arguments]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    def soon(self) -> datetime:
        """Return a time that the next start reaches: a slot that ends before it is missed."""
        return datetime.now(UTC) + max(SOON, 3 * self.start_time)

    def due_soon(self) -> None:
        """Stop it, put every node on the grid a moment from now, and start it again."""
        self.stop()
        self.rows("UPDATE snmp_job_hosts SET next_run_at = %s", str(self.soon().replace(tzinfo=None)))
        self.start()

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what a statement brings, asked behind its back."""
        with closing(sqlite3.connect(self.data / "facho.sqlite3", timeout=10)) as database, database:
            return database.execute(statement.replace("%s", "?"), values).fetchall()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON of a request to the API, logged in."""
        if self._token is None:
            self._token = self._log_in()
        headers = {"Authorization": f"Token {self._token}", "Content-Type": "application/json"}
        return self._send(method, f"/api/v1/{path}", json.dumps(body) if body is not None else None, headers)

    def get(self, path: str, **query: Any) -> Any:
        status, answer = self.call("GET", f"{path}?{urlencode(query, doseq=True)}")
        assert status == 200, answer
        return answer

    def post(self, path: str, body: Any = None) -> Any:
        status, answer = self.call("POST", path, body if body is not None else {})
        assert status in (200, 201, 202), answer
        return answer

    def wait_for(self, look: Callable[[], Any]) -> Any:
        """Look again with each snapshot until there is something to see, and return that."""
        with self.stream() as events:
            snapshots = (news for topic, news in events if topic == "snapshot")
            for _, _ in zip(range(PATIENCE), snapshots, strict=False):
                if seen := look():
                    return seen
        raise AssertionError(f"not seen in {PATIENCE} snapshots")

    @contextmanager
    def stream(self) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """Listen to the news as a page does: topics with what they bring."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/events/", headers={"Cookie": self._session()})
        response = connection.getresponse()
        assert response.status == 200, response.status
        try:
            yield _events(response)
        finally:
            with suppress(OSError):
                connection.close()

    def _session(self) -> str:
        """Log in as a browser does, and return its cookies."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/login/")
        csrf = _cookies(connection.getresponse())["facho_csrf"]
        form = urlencode({"username": USER, "password": PASSWORD, "csrfmiddlewaretoken": csrf})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"facho_csrf={csrf}"}
        connection.request("POST", "/login/", form, headers)
        cookies = _cookies(connection.getresponse())
        connection.close()
        return f"facho_session={cookies['facho_session']}"

    def _log_in(self) -> str:
        body = json.dumps({"username": USER, "password": PASSWORD})
        status, answer = self._send("POST", "/api/v1/auth/token/", body, {"Content-Type": "application/json"})
        assert status == 200, answer
        return str(answer["token"])

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, json.loads(text) if text else None


@contextmanager
def embedded(blank: Path, folder: Path, settings: dict[str, str] | None = None) -> Iterator[Installation]:
    """Run everything in one process, on a copy of an installation that was made once."""
    shutil.copytree(blank, folder)
    installation = Installation(folder, "run", settings=settings)
    try:
        yield installation.start()
    finally:
        if installation.is_running:
            installation.stop()


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    topic = ""
    for line in response:
        name, _, value = line.decode().strip().partition(": ")
        if name == "event":
            topic = value
        elif name == "data":
            yield topic, json.loads(value)


def _cookies(response: http.client.HTTPResponse) -> dict[str, str]:
    """Return the cookies that an answer sets, and read it to its end."""
    response.read()
    pairs = (header.split(";")[0].split("=", 1) for header in response.headers.get_all("Set-Cookie") or [])
    return dict(pairs)
