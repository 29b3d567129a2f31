"""A Facho in roles (scheduler, worker, web) that a test speaks to as to one in a single process."""

import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from installation import MAKE_USER, Installation
from psycopg import sql
from redis import Redis

from servers import database_of_its_own
from stack import Role, environment

POLLERS = "3"


@dataclass(frozen=True, slots=True)
class Servers:
    """A database that has all tables and a user, to be copied, and a part of a Redis that is only ours."""

    template_url: str
    redis_url: str

    @contextmanager
    def copy(self) -> Iterator[str]:
        """Make a database for one test: to copy one takes a fraction of the time that migrations take."""
        name, template = f"facho_{secrets.token_hex(6)}", urlsplit(self.template_url).path.strip("/")
        with Redis.from_url(self.redis_url) as messages:
            messages.flushdb()
        self._execute("CREATE DATABASE {} TEMPLATE {}", name, template)
        try:
            yield urlsplit(self.template_url)._replace(path=f"/{name}").geturl()
        finally:
            self._execute("DROP DATABASE {} WITH (FORCE)", name)

    def _execute(self, statement: str, *names: str) -> None:
        # Nobody may be connected to a database that is copied.
        url = urlsplit(self.template_url)._replace(path="/postgres").geturl()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextmanager
def prepared(postgres_url: str, redis_url: str, data: Path) -> Iterator[Servers]:
    """Make a database with all tables and a user."""
    with database_of_its_own(postgres_url) as template:
        settings = {"FACHO_MODE": "scale", "DATABASE_URL": template, "FACHO_REDIS_URL": redis_url}
        known = {"FACHO_DATA_DIR": str(data)}
        for words in (["migrate"], ["shell", "-c", MAKE_USER]):
            command = [sys.executable, "-m", "facho.runtime.cli", *words]
            subprocess.run(command, env=environment(settings | known), check=True, stdout=subprocess.DEVNULL)
        yield Servers(template, redis_url)


class ScaledInstallation(Installation):
    """The three roles, each a process. Its own database is there as long as the test is."""

    def __init__(self, data: Path, servers: Servers, database_url: str, settings: dict[str, str] | None = None) -> None:
        super().__init__(data)
        data.mkdir(parents=True, exist_ok=True)
        self._database_url = database_url
        known = {"FACHO_MODE": "scale", "DATABASE_URL": database_url, "FACHO_REDIS_URL": servers.redis_url}
        known |= {"FACHO_DATA_DIR": str(data), **(settings or {})}
        self._scheduler = self._role("scheduler", ["scheduler"], "The scheduler is on standby.", known)
        self._worker = self._role("worker", ["worker", "-c", POLLERS], "The worker has", known)
        self._web = self._role("web", ["web", f"--port={self.port}"], self.url, known)

    def _role(self, name: str, arguments: list[str], ready: str, settings: dict[str, str]) -> Role:
        return Role(name, arguments, settings | {"FACHO_WORKER_NAME": name}, self.data / f"{name}.log", ready)

    @property
    def roles(self) -> tuple[Role, ...]:
        return self._web, self._scheduler, self._worker

    def start(self) -> "ScaledInstallation":
        launched = time.monotonic()
        for role, begin in [(role, role.launch()) for role in self.roles]:
            role.await_ready(begin)
        self.start_time = timedelta(seconds=time.monotonic() - launched)
        return self

    @property
    def is_running(self) -> bool:
        return any(role.is_alive for role in self.roles)

    def stop(self) -> int:
        """Ask all to stop, and return the worst exit status."""
        for role in self.roles:
            role.ask_to_stop()
        return max(abs(role.stop()) for role in self.roles)

    def kill(self) -> None:
        for role in self.roles:
            role.kill()

    def due_soon(self) -> None:
        """Let only the scheduler look away: nobody else reads the grid."""
        self._scheduler.stop()
        self.rows("UPDATE snmp_job_hosts SET next_run_at = %s", self.soon())
        self._scheduler.start()

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._database_url) as connection:
            found = connection.execute(statement, values)
            return found.fetchall() if found.description else []


@contextmanager
def scaled(servers: Servers, folder: Path, settings: dict[str, str] | None = None) -> Iterator[ScaledInstallation]:
    """Run the roles on a database of their own. What they said is shown if the test fails."""
    with servers.copy() as database_url:
        installation = ScaledInstallation(folder, servers, database_url, settings)
        try:
            yield installation.start()
        finally:
            for role in installation.roles:
                role.remove()
                if role.log.exists():
                    sys.stdout.write(f"----- {role.name}\n{role.said()[-3000:]}")
