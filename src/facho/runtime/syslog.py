"""Log lines for a syslog server (RFC 5424), which may be slow or unavailable."""

import logging
import queue
import socket
import sys
import threading
from datetime import UTC, datetime
from time import monotonic
from urllib.parse import urlsplit

# Facility local0, severity informational.
PRIORITY = 16 * 8 + 6

# Lines that wait for the server. Further ones are dropped: the database has all changes.
MOST_WAITING = 10_000

# Seconds to connect and to send a line.
TIMEOUT = 5.0

# Seconds between two messages about lost lines.
REPORT_EVERY = 60.0


class Syslog(logging.Handler):
    """Sends lines in a thread of its own, so that a request never waits for the server.

    A line that cannot be sent is dropped, and the terminal reports the number of lost lines once a minute.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        parts = urlsplit(url)
        self._server = (parts.hostname or "", parts.port or 514)
        self._kind = socket.SOCK_STREAM if parts.scheme == "syslog+tcp" else socket.SOCK_DGRAM
        self._lines: queue.Queue[bytes] = queue.Queue(MOST_WAITING)
        self._host = socket.gethostname()
        self.lost = 0
        self._reported_at: float | None = None
        threading.Thread(target=self._send_lines, name="syslog", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        header = f"<{PRIORITY}>1 {at} {self._host} facho - change - "
        try:
            self._lines.put_nowait(f"{header}{self.format(record)}\n".encode(errors="backslashreplace"))
        except queue.Full:
            self.lost += 1

    def flush(self) -> None:
        """Wait until all lines were sent or dropped. Called at the end of the process: a command ends at once."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, TIMEOUT)

    def _send_lines(self) -> None:
        sender: socket.socket | None = None
        while True:
            line = self._lines.get()
            try:
                sender = sender or self._connect()
                sender.sendall(line)
            except OSError as error:
                if sender is not None:
                    sender.close()
                sender = None
                self.lost += 1
                self._report(error)
            self._lines.task_done()

    def _connect(self) -> socket.socket:
        if self._kind == socket.SOCK_STREAM:
            return socket.create_connection(self._server, TIMEOUT)
        family, _type, _protocol, _name, address = socket.getaddrinfo(*self._server, type=self._kind)[0]
        sender = socket.socket(family, self._kind)
        sender.settimeout(TIMEOUT)
        sender.connect(address)
        return sender

    def _report(self, error: OSError) -> None:
        now = monotonic()
        if self._reported_at is None or now - self._reported_at >= REPORT_EVERY:
            self._reported_at = now
            host, port = self._server
            sys.stderr.write(f"syslog server {host}:{port}: {error} ({self.lost} changes not sent)\n")
