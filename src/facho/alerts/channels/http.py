"""HTTP POST to a channel: no redirects, verified certificates, ten seconds, no secret in errors."""

import contextlib
import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Collection, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from facho.alerts.channels.deadline import SECONDS, Deadline
from facho.engine.errors import DeliveryFailed

# Bytes of an answer to read, and characters of it to quote in an error.
MOST_READ = 4096
MOST_SAID = 200

# Shorter parts of an address are words, not secrets.
SHORTEST_SECRET = 8

TOO_MANY_REQUESTS = 429


def canonical(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object in canonical form, for the signature."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, hidden: Collection[str] = (), timeout: float = SECONDS
) -> int:
    """Send a body once and return the status of a success.

    The answer is quoted in the error, without `hidden` and parts of the address: most services have their secret in
    it.
    """
    parts = _parts(url)
    host = str(parts.hostname)
    with (
        Deadline(timeout) as deadline,
        _failures(host, deadline),
        contextlib.closing(_connect(parts, deadline)) as connection,
    ):
        connection.request("POST", _path(parts), body, {"User-Agent": "facho", **headers})
        response = connection.getresponse()
        # The body of a success is not read.
        if not 200 <= response.status < 300:
            said = response.read(MOST_READ).decode(errors="replace")
            raise _refusal(host, response, _redacted(said, [*hidden, parts.path, parts.query]))
    return response.status


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise DeliveryFailed("the address must begin with http or https", is_temporary=False)
    return parts


def _path(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _connect(parts: SplitResult, deadline: Deadline) -> http.client.HTTPConnection:
    host, is_secure = str(parts.hostname), parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    opened = deadline.connect(host, port)
    try:
        if is_secure:
            # The handshake follows under the deadline, because it may be slow too.
            opened = ssl.create_default_context().wrap_socket(
                opened, server_hostname=host, do_handshake_on_connect=False
            )
        deadline.watch(opened)
        if isinstance(opened, ssl.SSLSocket):
            opened.do_handshake()
    except BaseException:
        opened.close()
        raise
    # Sets the right Host header; it is never opened, because it has a socket.
    kind = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
    connection = kind(host, port)
    connection.sock = opened
    return connection


@contextlib.contextmanager
def _failures(host: str, deadline: Deadline) -> Iterator[None]:
    """Convert library errors; `from None`, because their text may hold the address."""
    try:
        yield
    except socket.gaierror:
        raise DeliveryFailed(f"the name {host} could not be resolved", is_temporary=True) from None
    except ssl.SSLCertVerificationError as error:
        sentence = f"{host} has no trusted certificate: {error.verify_message}"
        raise DeliveryFailed(sentence, is_temporary=True) from None
    except (http.client.InvalidURL, UnicodeError):
        raise DeliveryFailed("the address has invalid characters", is_temporary=False) from None
    except (OSError, http.client.HTTPException) as error:
        if deadline.is_over or isinstance(error, TimeoutError):
            raise DeliveryFailed(f"{host} did not answer within {deadline.seconds:g} s", is_temporary=True) from None
        raise DeliveryFailed(f"{host} could not be reached: {_reason(error)}", is_temporary=True) from None


def _reason(error: Exception) -> str:
    """Return the system's text of an error, or else only its type."""
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def _redacted(answer: str, hidden: Collection[str]) -> str:
    """Return an answer without hidden values, and without any part of them that is long enough to be a secret."""
    pieces = {piece for secret in hidden for piece in re.split(r"[^\w-]+", secret) if len(piece) >= SHORTEST_SECRET}
    for piece in sorted({*hidden, *pieces} - {"", "/"}, key=len, reverse=True):
        answer = answer.replace(piece, "***")
    return answer


def _refusal(host: str, response: http.client.HTTPResponse, answer: str) -> DeliveryFailed:
    words = " ".join("".join(filter(str.isprintable, answer)).split())[:MOST_SAID]
    if 300 <= response.status < 400:
        words = "redirects are not followed"
    is_temporary = response.status == TOO_MANY_REQUESTS or response.status >= 500
    return DeliveryFailed(
        f"{host} answered {response.status}" + (f": {words}" if words else ""),
        is_temporary=is_temporary,
        code=response.status,
        retry_after=_seconds(response.getheader("Retry-After")) if is_temporary else None,
    )


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After: a number or a date."""
    if retry_after is None:
        return None
    if retry_after.strip().isdigit():
        return float(retry_after)
    try:
        return max(parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    except ValueError:
        return None
