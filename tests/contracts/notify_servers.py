"""Servers on loopback that channels are sent to: they remember what came, and answer what they are told to."""

import base64
import email
import json
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """One message as the world sees it."""

    subject: str
    body: str
    headers: dict = field(default_factory=dict)
    path: str = ""


class HttpServer:
    """Takes POSTs. `status`, `answer` and `headers` are what it says; `mute` says nothing until it is stopped."""

    def __init__(self):
        self.received = []
        self.status, self.answer, self.headers = 200, b"ok", {}
        self.mute = threading.Event()
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.take(self)

            def log_message(self, *_arguments):
                """Say nothing: pytest reads what is printed."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_arguments):
                """Say nothing either: a client that leaves in the middle is part of the test."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def take(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"])).decode()
        self.received.append(Received("", body, dict(request.headers), request.path))
        if self.mute.is_set():
            with suppress(OSError):
                # Bytes that never become an answer: a timeout between two of them would never come.
                while not self.released.wait(0.02):
                    request.wfile.write(b"H")
                    request.wfile.flush()
            request.close_connection = True
            return
        request.send_response(self.status)
        for name, value in {"Content-Length": str(len(self.answer)), **self.headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(self.answer)

    def use_tls(self, certificate, key):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # Without a handshake here: one that fails would end the server instead of the connection.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def close(self):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def json(self):
        return [json.loads(each.body) for each in self.received]


class SmtpServer:
    """Speaks just enough SMTP to take a mail; `replies` overrides its answer to a command or to a whole line."""

    def __init__(self):
        self.received = []
        self.logins = []
        self.replies = {}
        self.mute = threading.Event()
        self.released = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        # Closing a listener does not wake an accept: a short timeout does.
        self._listener.settimeout(0.05)
        while not self.released.is_set():
            with suppress(TimeoutError):
                connection, _address = self._listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(5)
                    self._talk(connection)

    def _talk(self, connection):
        if self.mute.is_set():
            while not self.released.wait(0.02):
                connection.sendall(b"2")
            return
        with connection.makefile("rb") as lines:
            self._say(connection, "220 here")
            while line := lines.readline():
                command = line.split()[0].decode().upper()
                self._on(connection, lines, command, line.decode().strip())
                if command == "QUIT":
                    return

    def _on(self, connection, lines, command, line):
        if reply := self.replies.get(line, self.replies.get(command)):
            self._say(connection, reply)
        elif command == "EHLO":
            self._say(connection, "250-here\r\n250 AUTH PLAIN")
        elif command == "AUTH":
            self.logins.append(base64.b64decode(line.split()[2]).decode().split("\0")[1:])
            self._say(connection, "235 welcome")
        elif command == "DATA":
            self._say(connection, "354 go on")
            self._take(lines)
            self._say(connection, "250 taken")
        else:
            self._say(connection, "221 bye" if command == "QUIT" else "250 ok")

    def _take(self, lines):
        octets = b""
        while (line := lines.readline()) not in (b".\r\n", b""):
            octets += line
        mail = email.message_from_bytes(octets, policy=default)
        self.received.append(Received(mail["Subject"], mail.get_content().replace("\r\n", "\n"), dict(mail.items())))

    def _say(self, connection, words):
        connection.sendall(words.encode() + b"\r\n")

    def close(self):
        self.released.set()
        self._thread.join()
        self._listener.close()


@contextmanager
def closed_port():
    """Yield a port of loopback that nobody listens on, and nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
