"""Reads requests of Prometheus remote write, written from its documents and not from the code that is tested.

A store for the tests is here too: it keeps samples, loses those that it has not written when it dies, and counts what
it is sent again.
"""

import struct
from collections.abc import Iterator, Sequence

from facho.engine.errors import BatchRejected, StoreRefuses, StoreUnavailable

Labels = tuple[tuple[str, str], ...]
LITERAL = 0


def unpacked(block: bytes) -> bytes:
    """Return the content of a snappy block of literals."""
    size, at = _varint(block, 0)
    content = bytearray()
    while at < len(block):
        tag = block[at]
        assert tag & 3 == LITERAL, "no literal"
        at += 1
        length = tag >> 2
        if length >= 60:
            width = length - 59
            length = int.from_bytes(block[at : at + width], "little")
            at += width
        content += block[at : at + length + 1]
        at += length + 1
    assert len(content) == size
    return bytes(content)


def samples(body: Sequence[bytes]) -> list[tuple[Labels, int, float]]:
    """Return labels, time and value of each sample of a request."""
    found = []
    for number, series in _fields(unpacked(b"".join(body))):
        assert number == 1, "a WriteRequest has only series"
        labels, read = [], []
        for part, content in _fields(series):
            if part == 1:
                pair = {name: text.decode() for name, text in _fields(content)}
                labels.append((pair[1], pair[2]))
            else:
                assert part == 2
                read.append(_sample(content))
        assert labels == sorted(set(labels)), "labels are sorted and unique"
        assert all(value for _, value in labels), "an empty label is left out"
        found += [(tuple(labels), at, value) for at, value in read]
    return found


def _sample(content: bytes) -> tuple[int, float]:
    assert content[0] == 1 << 3 | 1
    (value,) = struct.unpack_from("<d", content, 1)
    assert content[9] == 2 << 3
    at, end = _varint(content, 10)
    assert end == len(content)
    return at, value


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the length-delimited fields of a message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        assert tag & 7 == 2, "a field with a length"
        length, at = _varint(message, at)
        yield tag >> 3, message[at : at + length]
        assert at + length <= len(message)
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return number, at


class Store:
    """Client and store in one. What it accepted is lost by `die`, unless it is older than `flush`."""

    def __init__(self, clock=None):
        self.connection = 0
        self.requests = 0
        # By labels and time: the value, and how often it came.
        self.kept = {}
        self.times_sent = {}
        self._unwritten = []
        self._clock = clock
        self._is_connected = False
        self.trouble = None
        # Labels of series that it rejects, as a pair.
        self.rejects = None
        self.closed = False

    async def send(self, body):
        self.requests += 1
        if self.trouble is not None:
            self._is_connected = False
            raise self.trouble
        if not self._is_connected:
            self._is_connected = True
            self.connection += 1
        read = samples(body)
        if self.rejects is not None and any(self.rejects in labels for labels, _, _ in read):
            raise BatchRejected("HTTP 400: bad sample")
        for labels, at, value in read:
            key = labels, at
            assert self.kept.get(key, value) == value, f"another value for {key}"
            self.times_sent[key] = self.times_sent.get(key, 0) + 1
            self.kept[key] = value
            self._unwritten.append((self._clock.monotonic() if self._clock else 0.0, key))

    def die(self, flushes_after=5.0):
        """Die and come back: without what it accepted within the last seconds, on a new connection."""
        now = self._clock.monotonic()
        for at, key in self._unwritten:
            if now - at < flushes_after:
                self.kept.pop(key, None)
        self._unwritten.clear()
        self._is_connected = False

    def close(self):
        self.closed = True

    def values(self, name):
        """Return the values of a metric, by its other labels, in the order of their times."""
        found = {}
        for (labels, _), value in sorted(self.kept.items(), key=lambda item: item[0][1]):
            named = dict(labels)
            if named.pop("__name__") == name:
                found.setdefault(tuple(named.items()), []).append(value)
        return found


UNAVAILABLE, REFUSED = StoreUnavailable("no answer in time"), StoreRefuses("HTTP 401: no")
