"""Prometheus remote write 1.0: which series a time series store gets, and the bytes of a request.

A request is a protobuf message in a snappy block. Everything of a series but its value and time is the same in each
run, and values have eight bytes, so a column of samples is cached labels joined with the values: no object per ONU,
nothing to format. The block is stored without compression, which is valid snappy and costs nothing.
"""

import struct
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, compress
from operator import add, itemgetter
from typing import TypeVar

from facho.engine.brand import ONU_STATES
from facho.engine.chunks import FLOAT_BITS, VALUE, Kind, PackedColumn

T = TypeVar("T")

# By field of the history.
ONU_METRICS: Mapping[str, str] = {
    "state": "facho_onu_state",
    "rx_dbm": "facho_onu_rx_dbm",
    "tx_dbm": "facho_onu_tx_dbm",
    "olt_rx_dbm": "facho_onu_olt_rx_dbm",
    "temperature_c": "facho_onu_temperature_celsius",
    "voltage_v": "facho_onu_voltage_volts",
    "distance_m": "facho_onu_distance_meters",
    "in_octets": "facho_onu_in_octets_total",
    "out_octets": "facho_onu_out_octets_total",
}
ONU_LABELS = ("olt", "slot", "port", "onu", "serial")

# ONUs of a port by state, where `missing` is a state too; the other counters of a port.
PORT_ONUS = "facho_port_onus"
PORT_COUNTERS: Mapping[str, str] = {"weak": "facho_port_weak_onus"}
# Lowest and mean power of the ONUs that a run read on a port.
PORT_POWERS: Mapping[str, tuple[str, str]] = {
    "rx_dbm": ("facho_port_rx_min_dbm", "facho_port_rx_mean_dbm"),
    "olt_rx_dbm": ("facho_port_olt_rx_min_dbm", "facho_port_olt_rx_mean_dbm"),
}
PORT_LABELS = ("olt", "slot", "port")
PORT_STATES = (*ONU_STATES, "missing")

# Labels by metric, for the check of dashboards.
METRICS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(ONU_METRICS.values(), ONU_LABELS),
    PORT_ONUS: (*PORT_LABELS, "state"),
    **dict.fromkeys((*PORT_COUNTERS.values(), *chain.from_iterable(PORT_POWERS.values())), PORT_LABELS),
}

# Value of a state. Stored series depend on it: new states get new numbers.
STATE_CODES: Mapping[str, float] = {
    "unknown": 0.0,
    "online": 1.0,
    "offline": 2.0,
    "los": 3.0,
    "dying_gasp": 4.0,
    "auth_failed": 5.0,
    "logging": 6.0,
    "syncing": 7.0,
    "degraded": 8.0,
    "disabled": 9.0,
}

# Selects the cells with a value.
HAS_VALUE = bytes(mask == VALUE for mask in range(256))

# A sample: the tag of a double and its 8 bytes, the tag of a time and 6 bytes of milliseconds.
SAMPLE_SIZE = 16
SAMPLE_HEAD = bytes([0x12, SAMPLE_SIZE, 0x09])
TIME_TAG = b"\x10"
TIME_BYTES = 6

HEADERS: Mapping[str, str] = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


def encoded(labels: Mapping[str, str]) -> bytes:
    """Return labels without the name, and what is between them and the value of a sample.

    An empty label is left out, as Prometheus does.
    """
    pairs = sorted((key, value) for key, value in labels.items() if value)
    return b"".join(_label(*pair) for pair in pairs) + SAMPLE_HEAD


class _Heads(dict[int, bytes]):
    """Beginnings of a sample of one metric, by the size of its encoded labels. Most ONUs share a few of them."""

    def __init__(self, name: str) -> None:
        super().__init__()
        # Labels are sent in order, and this one is the first.
        self._name = _label("__name__", name)

    def __missing__(self, size: int) -> bytes:
        rest = len(self._name) + size - len(SAMPLE_HEAD) + 2 + SAMPLE_SIZE
        head = self[size] = b"\x0a" + _varint(rest) + self._name
        return head


def doubles(kind: Kind, column: PackedColumn) -> "array[float]":
    """Return the cells of a packed column as they are sent. A cell without a value has any number."""
    form, numbers, _ = column
    if isinstance(form, list):
        codes = [STATE_CODES.get(word, 0.0) for word in form] or [0.0]
        return array("d", map(codes.__getitem__, numbers))
    if kind is Kind.COUNTER or form == 0:
        return array("d", numbers)
    if form == FLOAT_BITS:
        return array("d", array("q", numbers).tobytes())
    factor = 10**form
    return array("d", [number / factor for number in numbers])


class SeriesLabels:
    """Encoded labels of many series, grouped by size: between two samples of a group the bytes are always the same."""

    def __init__(self, labels: Sequence[bytes]) -> None:
        places: defaultdict[int, list[int]] = defaultdict(list)
        for place, each in enumerate(labels):
            places[len(each)].append(place)
        self.groups = [
            (size, [labels[place] for place in chosen], _picker(chosen, len(labels))) for size, chosen in places.items()
        ]


def _picker(chosen: Sequence[int], count: int) -> Callable[[Sequence[T]], Sequence[T]]:
    """Return the function that picks the entries at these places."""
    if len(chosen) == count:
        return lambda entries: entries
    if len(chosen) == 1:
        (place,) = chosen
        return lambda entries: (entries[place],)
    return itemgetter(*chosen)


def samples(name: str, labels: SeriesLabels, values: "array[float]", at: int, mask: bytes = b"") -> bytes:
    """Return samples of a metric at one time, in milliseconds: one per series, if the cell has a value.

    They are in no particular order of the series.
    """
    if sys.byteorder == "big":
        values = array("d", values)
        values.byteswap()
    eights = list(chain.from_iterable(struct.iter_unpack("8s", values.tobytes())))
    has_value, tail, heads = mask.translate(HAS_VALUE), TIME_TAG + _time(at), _HEADS[name]
    parts = []
    for size, encoded_labels, pick in labels.groups:
        rows: Iterable[bytes] = map(add, encoded_labels, pick(eights))
        if mask:
            rows = compress(rows, pick(has_value))
        head = heads[size]
        if joined := (tail + head).join(rows):
            parts += [head, joined, tail]
    # Sending many small parts would cost more than joining them.
    return b"".join(parts)


def request(parts: Sequence[bytes]) -> Sequence[bytes]:
    """Return the body of a request: samples in a snappy block with one literal.

    The parts are not joined, because copying them would cost as much as making them.
    """
    size = sum(map(len, parts))
    if not size:
        return [b"\0"]
    return [_varint(size) + b"\xfc" + (size - 1).to_bytes(4, "little"), *parts]


def _field(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + _varint(len(content)) + content


def _label(key: str, value: str) -> bytes:
    return _field(0x0A, _field(0x0A, key.encode()) + _field(0x12, _text(value)))


def _text(value: str) -> bytes:
    # Protobuf allows only valid UTF-8, and a device can report half of a character.
    return value.encode("utf-8", "replace")


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _time(at: int) -> bytes:
    """Return a time in six bytes, so that all samples have one size. They last until the year 2109."""
    low = [at >> 7 * place & 0x7F | 0x80 for place in range(TIME_BYTES - 1)]
    return bytes([*low, at >> 7 * (TIME_BYTES - 1) & 0x7F])


_HEADS = {name: _Heads(name) for name in METRICS}
