"""HTTP POST to a channel: no redirects, no proxy, verified certificates, ten seconds, no secret in errors."""

import asyncio
import json
import logging
import os
import re
import socket
import ssl
import time
from collections.abc import Collection, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from facho.alerts.channels import TIMEOUT
from facho.alerts.channels.destinations import guarded
from facho.engine.errors import DeliveryFailed

# Bytes of an answer to read, and characters of it to quote in an error.
MOST_READ = 4096
MOST_SAID = 200

# Shorter parts of an address are words, not secrets.
SHORTEST_SECRET = 8

TOO_MANY_REQUESTS = 429

# They log each address, and most addresses contain a secret.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


def canonical(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object in canonical form, for the signature."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, hidden: Collection[str] = (), timeout: float = TIMEOUT
) -> int:
    """Send a body once and return the status of a success.

    The answer is quoted in the error, without `hidden` and parts of the address: most services have their secret in
    it. Errors of httpx are converted with `from None`, because their text may contain the address.
    """
    target = _target(url)
    try:
        # Async only for the deadline: the timeouts of httpx restart with each byte.
        with guarded(target.host):
            status, retry_after, said = asyncio.run(_post(target, body, headers, timeout))
    except (TimeoutError, httpx.TimeoutException):
        raise DeliveryFailed(f"{target.host} did not answer within {timeout:g} s", is_temporary=True) from None
    except (httpx.TransportError, OSError) as error:
        raise DeliveryFailed(_reason(target.host, error), is_temporary=True) from None
    if 200 <= status < 300:
        return status
    answer = redacted(said.decode(errors="replace"), [*hidden, target.path, target.query.decode("ascii")])
    words = " ".join("".join(filter(str.isprintable, answer)).split())[:MOST_SAID]
    if 300 <= status < 400:
        words = "redirects are not followed"
    is_temporary = status == TOO_MANY_REQUESTS or status >= 500
    raise DeliveryFailed(
        f"{target.host} answered {status}" + (f": {words}" if words else ""),
        is_temporary=is_temporary,
        code=status,
        retry_after=_seconds(retry_after) if is_temporary else None,
    )


def _target(url: str) -> httpx.URL:
    try:
        # First: httpx accepts a host with a stray bracket.
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DeliveryFailed("the address must begin with http or https", is_temporary=False)
        return httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise DeliveryFailed("the address has invalid characters", is_temporary=False) from None


async def _post(
    url: httpx.URL, body: bytes, headers: Mapping[str, str], timeout: float
) -> tuple[int, str | None, bytes]:
    """Return status, Retry-After and the beginning of the answer. The body of a success is not read."""
    # The system's certificates, not those of a package: a private CA is installed there. Loading them takes 50 ms.
    certificates = url.scheme == "https" and ssl.create_default_context()
    async with (
        asyncio.timeout(timeout),
        httpx.AsyncClient(verify=certificates, trust_env=False, timeout=timeout) as client,
        client.stream(
            "POST", url, content=body, headers={"User-Agent": "facho", "Accept-Encoding": "identity", **headers}
        ) as response,
    ):
        said = b""
        if not response.is_success:
            said = await anext(response.aiter_raw(MOST_READ), b"")
        return response.status_code, response.headers.get("Retry-After"), said


def _reason(host: str, error: BaseException) -> str:
    """Return the reason for no answer: from the system's error, since those of httpx only repeat it."""
    while cause := error.__cause__ or error.__context__:
        # A host with several addresses has an error for each.
        error = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause
    if isinstance(error, socket.gaierror):
        return f"the name {host} could not be resolved"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{host} has no trusted certificate: {error.verify_message}"
    words = type(error).__name__
    if isinstance(error, OSError) and error.errno:
        # asyncio has a text of its own; TLS has numbers of its own.
        words = str(error.strerror) if isinstance(error, ssl.SSLError) else os.strerror(error.errno)
    return f"{host} could not be reached: {words}"


def redacted(answer: str, hidden: Collection[str], shortest: int = SHORTEST_SECRET) -> str:
    """Return an answer without hidden values, and without any part of them that is long enough to be a secret."""
    pieces = {piece for secret in hidden for piece in re.split(r"[^\w-]+", secret) if len(piece) >= shortest}
    for piece in sorted({*hidden, *pieces} - {"", "/"}, key=len, reverse=True):
        answer = answer.replace(piece, "***")
    return answer


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
