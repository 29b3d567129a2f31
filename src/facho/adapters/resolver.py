"""DNS lookups, each in its own thread and with a time limit.

A slow or failed DNS server delays no caller for longer than that: waiting threads are daemons, their number is
limited, and after a lookup without an answer no other is started for some seconds.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait

from facho.engine.device import address_order, ip_address

# Maximum lookups at once.
MAX_THREADS = 16
# Seconds to cache a result, and number of cached results.
REMEMBERED = 30.0
MAX_NAMES = 10_000
# Seconds without new lookups after one without an answer.
PAUSE = 10.0

Addresses = tuple[str, ...]


def look_up(name: str) -> Addresses:
    """Query the system for the addresses of a name. Blocks as long as the system waits for DNS."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except UnicodeError as error:
        # An empty label, or one of over 63 characters.
        raise OSError(f"{name} is not a valid host name: {error}") from error
    addresses = {ip_address(str(sockaddr[0])) for *_, sockaddr in found} - {""}
    return tuple(sorted(addresses, key=address_order))


class Resolver:
    """Resolves host names, and caches the result for some seconds. Thread-safe."""

    def __init__(self, look_up: Callable[[str], Addresses] = look_up) -> None:
        self._look_up = look_up
        self._threads = threading.BoundedSemaphore(MAX_THREADS)
        # By name: expiry and addresses; empty if it could not be resolved.
        self._known: dict[str, tuple[float, Addresses]] = {}
        self._paused_until = 0.0

    def remembered(self, name: str) -> Addresses:
        """Return the cached addresses of a name; empty if it was not resolved."""
        until, addresses = self._known.get(name, (0.0, ()))
        return addresses if time.monotonic() < until else ()

    def resolve(self, name: str, *, timeout: float) -> Addresses:
        """Return the addresses of a name, IPv4 first; empty if it cannot be resolved now."""
        self.resolve_all([name], timeout=timeout)
        return self.remembered(name)

    def resolve_all(self, names: Collection[str], *, timeout: float) -> None:
        """Resolve names in parallel, and cache their addresses. Each has this time limit."""
        left = [name for name in dict.fromkeys(names) if self._known.get(name, (0.0, ()))[0] <= time.monotonic()]
        while left and not self.is_paused:
            some, left = left[:MAX_THREADS], left[MAX_THREADS:]
            lookups = [lookup for name in some if (lookup := self._start(name)) is not None]
            if wait(lookups, timeout=timeout).not_done:
                self.pause()

    async def find(self, name: str, *, timeout: float) -> Addresses:
        """Return the current addresses of a name; `OSError` if it cannot be resolved in time."""
        lookup = None if self.is_paused else self._start(name)
        if lookup is None:
            raise TimeoutError("earlier lookups are still waiting for the name server")
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.wrap_future(lookup)
        except TimeoutError:
            self.pause()
            raise TimeoutError(f"no answer from the name server in {timeout:g} s") from None

    @property
    def is_paused(self) -> bool:
        """Return whether DNS did not answer some seconds ago."""
        return time.monotonic() < self._paused_until

    def pause(self) -> None:
        self._paused_until = time.monotonic() + PAUSE

    def _start(self, name: str) -> "Future[Addresses] | None":
        """Start a lookup; None if too many are in progress."""
        if not self._threads.acquire(blocking=False):
            return None
        lookup: Future[Addresses] = Future()
        threading.Thread(target=self._run, args=(name, lookup), name=f"resolve-{name}", daemon=True).start()
        return lookup

    def _run(self, name: str, lookup: "Future[Addresses]") -> None:
        addresses: Addresses = ()
        failure: Exception | None = None
        try:
            addresses = self._look_up(name)
        except Exception as error:
            # The caller decides how to handle the error.
            failure = error
        if len(self._known) >= MAX_NAMES:
            self._known.clear()
        self._known[name] = (time.monotonic() + REMEMBERED, addresses)
        self._threads.release()
        # The caller may have cancelled it.
        if lookup.set_running_or_notify_cancel():
            if failure is None:
                lookup.set_result(addresses)
            else:
                lookup.set_exception(failure)


# For everything that a user saves. The cache makes a check and the following save agree.
RESOLVER = Resolver()
