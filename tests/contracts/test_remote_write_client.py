"""The HTTP client of a time series store, against a server that answers as it is told."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from facho.adapters.tsdb.remote_write import RemoteWrite
from facho.engine.errors import BatchRejected, StoreRefuses, StoreUnavailable
from facho.engine.remote_write import request

BODY = request([])


class Receiver(ThreadingHTTPServer):
    """Keeps what it got. `answers` are status, headers and text of the next answers; then it accepts."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = []
        self.got = []
        self.lines = set()
        # Answers after which it closes the connection without a word.
        self.closes_after = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/api/v1/write"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.got.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.lines.add(self.client_address)
        status, headers, text = self.server.answers.pop(0) if self.server.answers else (204, {}, b"")
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)
        if self.server.closes_after is not None and len(self.server.got) >= self.server.closes_after:
            self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = Receiver()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(receiver):
    client = RemoteWrite(receiver.url, patience=5)
    yield client
    client.close()


def test_requests_share_one_connection_and_say_what_they_are(receiver, client):
    for _ in range(3):
        client.post(BODY)

    path, headers, body = receiver.got[0]
    assert (path, body, len(receiver.lines), client.connection) == ("/api/v1/write", b"".join(BODY), 1, 1)
    assert headers["Content-Encoding"] == "snappy"
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["X-Prometheus-Remote-Write-Version"] == "0.1.0"
    assert "Authorization" not in headers


def test_a_connection_that_the_server_closed_is_opened_again_with_another_number(receiver, client):
    receiver.closes_after = 1
    client.post(BODY)

    client.post(BODY)

    assert (len(receiver.got), client.connection) == (2, 2)


def test_an_announced_end_of_the_connection_is_a_new_one_too(receiver, client):
    receiver.answers = [(204, {"Connection": "close"}, b"")]
    client.post(BODY)

    client.post(BODY)

    assert client.connection == 2


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BatchRejected),
        (413, BatchRejected),
        (422, BatchRejected),
        (401, StoreRefuses),
        (403, StoreRefuses),
        (404, StoreRefuses),
        (405, StoreRefuses),
        (415, StoreRefuses),
        (302, StoreRefuses),
        (408, StoreUnavailable),
        (429, StoreUnavailable),
        (500, StoreUnavailable),
        (503, StoreUnavailable),
    ],
)
def test_each_status_has_its_meaning_and_the_reason_is_told(receiver, client, status, error):
    receiver.answers = [(status, {"Location": "http://elsewhere/"}, b"why\x1b[31m not\nmore")]

    with pytest.raises(error, match=f"HTTP {status}: ") as told:
        client.post(BODY)

    assert "\x1b" not in str(told.value)
    assert "more" not in str(told.value)
    client.post(BODY)


def test_a_server_that_is_not_there_is_unavailable():
    client = RemoteWrite("http://127.0.0.1:9/api/v1/write")

    with pytest.raises(StoreUnavailable, match="refused"):
        client.post(BODY)


@pytest.mark.parametrize(
    ("url", "token", "expected"),
    [
        ("http://ana:p%40ss@{}/api/v1/write", "", "Basic YW5hOnBAc3M="),
        ("http://{}/api/v1/write", "abc", "Bearer abc"),
    ],
)
def test_credentials_go_into_a_header_only(receiver, url, token, expected):
    client = RemoteWrite(url.format(f"127.0.0.1:{receiver.server_port}"), token)

    client.post(BODY)
    client.close()

    path, headers, _ = receiver.got[0]
    assert headers["Authorization"] == expected
    assert path == "/api/v1/write"
    assert "p%40ss" not in headers["Host"]


def test_an_answer_without_an_end_does_not_fill_the_memory(receiver, client):
    receiver.answers = [(400, {}, b"x" * 1_000_000)]

    with pytest.raises(BatchRejected):
        client.post(BODY)

    client.post(BODY)
    assert client.connection == 2


async def test_it_is_closed_while_nothing_is_sent(receiver):
    client = RemoteWrite(receiver.url)
    await client.send(BODY)

    client.close()

    assert len(receiver.got) == 1
