"""The socket of an agent: one UDP port of a loopback address."""

import asyncio
import time
from ipaddress import ip_address
from typing import cast

from facho.simulator.request_handler import RequestHandler

# Address of asyncio: host and port, and two more numbers for IPv6.
Address = tuple[str, int] | tuple[str, int, int, int]


class Endpoint(asyncio.DatagramProtocol):
    """Passes datagrams to the handler, and sends answers at their times."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        # Wall time without steps: answers must leave in the order of their delays.
        self._epoch = time.time() - self._loop.time()
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not every event loop derives its transport from that class.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def datagram_received(self, data: bytes, addr: Address) -> None:
        departure = self._handler.take(data, addr[1], self._epoch + self._loop.time())
        if departure is None:
            return
        delay = departure.at - self._epoch - self._loop.time()
        if delay > 0:
            self._loop.call_later(delay, self._send, departure.payload, addr)
        else:
            self._send(departure.payload, addr)

    def _send(self, payload: bytes, addr: Address) -> None:
        if self._transport:
            self._transport.sendto(payload, addr)


async def open_endpoint(handler: RequestHandler, host: str, port: int) -> tuple[asyncio.DatagramTransport, int]:
    """Open a port for an agent, and return its number: a free one if this one is taken.

    Loopback only, because simulated OLTs have no access control.
    """
    if not ip_address(host).is_loopback:
        raise ValueError(f"a simulated OLT listens on loopback addresses only, not on {host}")
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(lambda: Endpoint(handler), local_addr=(host, port))
    except OSError:
        if not port:
            raise
        transport, _ = await loop.create_datagram_endpoint(lambda: Endpoint(handler), local_addr=(host, 0))
    return transport, transport.get_extra_info("sockname")[1]
