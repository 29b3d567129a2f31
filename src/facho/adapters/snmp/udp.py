"""UDP for many agents: one non-blocking socket per address family, and cached names."""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from facho.engine.errors import NoAnswer

# Hundreds of OLTs may answer while the loop is busy. The system may grant less than this.
RECEIVE_BUFFER = 4 * 1024 * 1024
MAX_DATAGRAM = 65535
# Datagrams to read before the loop gets a turn.
DATAGRAMS_A_TURN = 64
# Seconds to cache a resolved name, and number of cached names.
NAME_TTL = 300.0
MAX_NAMES = 10_000

# Host and port in the form of the socket.
Address = tuple[str, int]
# Takes a datagram, and returns whether another one is expected now.
Receiver = Callable[[bytes, Address], bool]


@dataclass(frozen=True, slots=True)
class Peer:
    """Address of an agent for requests, and the address that its answers must come from."""

    family: int
    sockaddr: tuple[str, int] | tuple[str, int, int, int]

    @property
    def address(self) -> Address:
        return self.sockaddr[0], self.sockaddr[1]


class Names:
    """Resolves addresses. A numeric one is free; a name is cached."""

    def __init__(self, ttl: float = NAME_TTL) -> None:
        self._ttl = ttl
        self._known: dict[tuple[str, int], tuple[float, Peer]] = {}

    def known(self, host: str, port: int) -> Peer | None:
        """Return where `host` is, if it is an address or was found a short time ago."""
        now = asyncio.get_running_loop().time()
        known = self._known.get((host, port))
        if known is not None and known[0] > now:
            return known[1]
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            return None
        return self._remember(host, port, found[0], now)

    def _remember(self, host: str, port: int, found: tuple[int, int, int, str, Any], now: float) -> Peer:
        if len(self._known) >= MAX_NAMES:
            self._known.clear()
        peer = Peer(found[0], found[4])
        self._known[host, port] = (now + self._ttl, peer)
        return peer

    async def find(self, host: str, port: int, *, timeout: float) -> Peer:
        """Return the address of `host`; `NoAnswer` if it cannot be resolved in time."""
        loop = asyncio.get_running_loop()
        if (known := self.known(host, port)) is not None:
            return known
        try:
            async with asyncio.timeout(timeout):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        except TimeoutError:
            raise NoAnswer(f"the name {host} could not be resolved within {timeout:g} s") from None
        # An empty label or one of over 63 characters is a UnicodeError, long before DNS is asked.
        except (OSError, UnicodeError) as error:
            raise NoAnswer(f"the name {host} could not be resolved: {error}") from error
        return self._remember(host, port, found[0], loop.time())


class Sockets:
    """Sockets of one adapter, opened on the loop of the first send.

    Every datagram goes to `receive` with its source address; the receiver decides whether it is an answer.
    """

    def __init__(self, receive: Receiver) -> None:
        self._receive = receive
        # The loop that they are open on.
        self.loop: asyncio.AbstractEventLoop | None = None
        self._open: dict[int, socket.socket] = {}
        # Failed sends and reported network errors, by name.
        self.errors: Counter[str] = Counter()

    def send(self, data: bytes, peer: Peer, loop: asyncio.AbstractEventLoop) -> None:
        """Send, or raise OSError. A full send buffer loses the datagram, as any router on the way might."""
        if loop is not self.loop:
            self.close()
            self.loop = loop
        sock = self._open.get(peer.family) or self._bind(loop, peer.family)
        try:
            sock.sendto(data, peer.sockaddr)
        except BlockingIOError:
            self.errors["send buffer full"] += 1

    def close(self) -> None:
        """Close all sockets. A later `send` opens them again."""
        for sock in self._open.values():
            if self.loop is not None and not self.loop.is_closed():
                self.loop.remove_reader(sock.fileno())
            sock.close()
        self._open.clear()

    def _bind(self, loop: asyncio.AbstractEventLoop, family: int) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        loop.add_reader(sock.fileno(), self._drain, sock)
        self._open[family] = sock
        return sock

    def _drain(self, sock: socket.socket) -> None:
        for _ in range(DATAGRAMS_A_TURN):
            try:
                data, sender = sock.recvfrom(MAX_DATAGRAM)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # An ICMP error of an earlier datagram to any agent; the socket itself works.
                self.errors[type(error).__name__] += 1
                continue
            if not self._receive(data, (sender[0], sender[1])):
                # Checking for more would cost as much as reading it.
                return
