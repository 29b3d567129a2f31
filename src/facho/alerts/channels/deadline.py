"""Deadline of a connection, independent of the speed of the server."""

import socket
import time
from threading import Timer

# Seconds for everything: DNS, connection, request and answer.
SECONDS = 10.0


class Deadline:
    """Closes a connection when its time is over. The timeout of a socket restarts with each byte."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self.is_over = False
        self._end = time.monotonic() + seconds
        self._socket: socket.socket | None = None
        self._timer = Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> "Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()

    @property
    def left(self) -> float:
        """Return the seconds left; `TimeoutError` if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to the first address of a host that answers, within the deadline."""
        failed: OSError = ConnectionError(0, "the host has no address")
        for family, kind, protocol, _name, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            opened = socket.socket(family, kind, protocol)
            try:
                opened.settimeout(self.left)
                opened.connect(address)
            except OSError as error:
                opened.close()
                failed = error
            else:
                return opened
        raise failed

    def watch(self, connection: socket.socket) -> None:
        """Set the connection to close."""
        self._socket = connection
        connection.settimeout(self.left)

    def _cut(self) -> None:
        self.is_over = True
        if self._socket is not None:
            try:
                # On the plain socket: a TLS socket would first release buffers that its reader is using.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                # Already closed.
                return
