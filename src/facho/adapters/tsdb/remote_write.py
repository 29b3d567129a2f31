"""HTTP client of a time series store that accepts Prometheus remote write.

One connection is kept. Its number tells the caller whether the store may have restarted since an earlier request:
stores keep what they accepted in memory for some seconds.
"""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR
from urllib.parse import unquote, urlsplit

from facho.engine.errors import BatchRejected, StoreRefuses, StoreUnavailable
from facho.engine.escapes import escape
from facho.engine.remote_write import HEADERS

# Seconds to connect, and for each part of an answer.
CONNECT_PATIENCE = 5.0
PATIENCE = 20.0
# Seconds to wait for the end of a request that was broken off.
CLOSE_PATIENCE = 1.0
# Characters of an answer that are reported.
LONGEST_ANSWER = 300
LONGEST_REST = 65_536

# Too many requests, or too slow: the store asks to come back.
LATER = (408, 425, 429)
# The request itself is refused, and others may not be: bad or too many samples.
BAD_BATCH = (400, 413, 422)


class RemoteWrite:
    """Sends requests, one at a time, in its own thread."""

    def __init__(self, url: str, token: str = "", patience: float = PATIENCE) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._is_tls = parts.scheme == "https"
        self._path = parts.path + (f"?{parts.query}" if parts.query else "")
        self._headers = {**HEADERS, **_authorization(parts.username, parts.password, token)}
        self._patience = patience
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="push")
        self._line: HTTPConnection | None = None
        self._is_closed = False
        # Number of the current connection; higher for each new one.
        self.connection = 0

    async def send(self, body: Sequence[bytes]) -> None:
        """Send a request in parts; `StoreUnavailable`, `StoreRefuses` or `BatchRejected` if it is not accepted."""
        await asyncio.get_running_loop().run_in_executor(self._pool, self.post, body)

    def post(self, body: Sequence[bytes]) -> None:
        """Send a request, and wait for the answer."""
        try:
            status, location, text = self._exchange(body)
        except (OSError, HTTPException) as error:
            self._hang_up()
            raise StoreUnavailable(_sentence(error)) from None
        if status in BAD_BATCH:
            raise BatchRejected(f"HTTP {status}: {text}")
        if status in LATER or status >= 500:
            raise StoreUnavailable(f"HTTP {status}: {text}")
        if 300 <= status < 400:
            raise StoreRefuses(f"HTTP {status}: it redirects to {escape(location[:LONGEST_ANSWER])}")
        if status >= 300:
            raise StoreRefuses(f"HTTP {status}: {text}")

    def close(self) -> None:
        """Stop. A request in progress is broken off."""
        self._is_closed = True
        line = self._line
        if line is not None and line.sock is not None:
            # The store may have closed it.
            with suppress(OSError):
                line.sock.shutdown(SHUT_RDWR)
        # Not longer: a connection that is being opened cannot be broken off.
        wait([self._pool.submit(self._hang_up)], CLOSE_PATIENCE)
        self._pool.shutdown(wait=False)

    def _exchange(self, body: Sequence[bytes]) -> tuple[int, str, str]:
        if self._line is not None and self._line.sock is not None:
            try:
                return self._request(self._line, body)
            except (ConnectionError, HTTPException):
                # The server may close an idle connection at any time. `RemoteDisconnected` is both.
                self._hang_up()
        if self._is_closed:
            raise ConnectionAbortedError("Facho stops")
        self._line = line = self._connect()
        return self._request(line, body)

    def _connect(self) -> HTTPConnection:
        self._hang_up()
        if self._is_tls:
            context = ssl.create_default_context()
            line: HTTPConnection = HTTPSConnection(self._host, self._port, timeout=CONNECT_PATIENCE, context=context)
        else:
            line = HTTPConnection(self._host, self._port, timeout=CONNECT_PATIENCE)
        line.connect()
        line.sock.settimeout(self._patience)
        self.connection += 1
        return line

    def _request(self, line: HTTPConnection, body: Sequence[bytes]) -> tuple[int, str, str]:
        line.request("POST", self._path, body, {**self._headers, "Content-Length": str(sum(map(len, body)))})
        answer = line.getresponse()
        text = _first_line(answer)
        # The connection is of use only if the answer was read to its end.
        answer.read(LONGEST_REST)
        if not answer.isclosed():
            self._hang_up()
        return answer.status, answer.headers.get("Location", ""), text

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


def _authorization(user: str | None, password: str | None, token: str) -> Mapping[str, str]:
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user is None:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _first_line(answer: HTTPResponse) -> str:
    text = answer.read(LONGEST_ANSWER).decode(errors="replace").strip()
    return escape(text.splitlines()[0] if text else answer.reason)


def _sentence(error: Exception) -> str:
    """Return the reason of a failure. The texts of the errors have no address and no credentials."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return (error.strerror or str(error) or type(error).__name__).strip()
    return type(error).__name__
