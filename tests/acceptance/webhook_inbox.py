"""A receiver of webhooks on loopback, which believes only what is signed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from facho.alerts.channels.webhook import signature

SECRET = "a secret of sixteen and more"


class Mailbox:
    """What came in, in order: (event, subject)."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []
        self.forged = 0
        self.url = ""

    def take(self, headers: Any, body: bytes) -> None:
        expected = f"sha256={signature(SECRET, headers['X-Facho-Timestamp'], body)}"
        if headers["X-Facho-Signature"] != expected:
            self.forged += 1
            return
        message = json.loads(body)
        self.messages.append((message["event"], message["subject"]))


@contextmanager
def open_mailbox() -> Iterator[Mailbox]:
    """Listen on a free port as long as the block lasts."""
    mailbox = Mailbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            mailbox.take(self.headers, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        mailbox.url = f"http://127.0.0.1:{server.server_address[1]}/alerts"
        Thread(target=server.serve_forever, daemon=True).start()
        yield mailbox
        server.shutdown()
