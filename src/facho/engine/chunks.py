"""Packed history: the columns of one run, and chunks of many runs of which one ONU's series is contiguous.

Every value becomes an integer: a decimal number times a power of ten, a counter as it is, a word by its place in a
list. Nothing is rounded: a column has as many digits as its values need, and one that has no short decimal form keeps
its 64 bits. In a chunk a series is stored as differences. The bytes of the integers are split into planes (all lowest
bytes, then the next ones), which deflate's run-length strategy packs as small as its slower ones at a fraction of
their cost: 0.64 bytes per power, 2.6 to 3.1 bytes per counter (`tests/bench/bench_history.py`).

A cell is a value, None (read, no value) or UNREAD. Cells without a value are in a mask of their own.
"""

import json
import math
import struct
import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property, lru_cache
from itertools import accumulate, chain, pairwise
from operator import sub
from typing import Any, NamedTuple

from facho.engine.batch import UNREAD


class Kind(Enum):
    """How the values of a field become integers."""

    GAUGE = "gauge"
    COUNTER = "counter"
    WORD = "word"


# The fields that have a history, in the order in which the API shows them.
FIELDS: Mapping[str, Kind] = {
    "state": Kind.WORD,
    "rx_dbm": Kind.GAUGE,
    "tx_dbm": Kind.GAUGE,
    "olt_rx_dbm": Kind.GAUGE,
    "temperature_c": Kind.GAUGE,
    "in_octets": Kind.COUNTER,
    "out_octets": Kind.COUNTER,
}

# Before the name of a raw OID: any number that it has is a gauge. Longer names do not fit into the tables.
RAW_OID = "oid."
# Fields without a history, which a time series store gets: see `engine/remote_write.py`.
PUSHED_ONLY: Mapping[str, Kind] = {"distance_m": Kind.GAUGE, "voltage_v": Kind.GAUGE}
KINDS: Mapping[str, Kind] = {**FIELDS, **PUSHED_ONLY}

# Daily values of a field, as columns named `rx_dbm:min`.
DAILY: Mapping[Kind, Mapping[str, Kind]] = {
    Kind.GAUGE: {"min": Kind.GAUGE, "mean": Kind.GAUGE, "max": Kind.GAUGE, "count": Kind.COUNTER},
    Kind.COUNTER: {"sum": Kind.COUNTER, "last": Kind.COUNTER},
    Kind.WORD: {"last": Kind.WORD},
}

VERSION = 1
LONGEST_WORD = 12
MOST_DIGITS = 9
# Number of digits of a column that stores the 64 bits of floats.
FLOAT_BITS = -1
# Integers up to this are exact as floats.
EXACT = 2**53
LARGEST = 2**63 - 1

# Masks.
VALUE, NONE, NOT_READ = 0, 1, 2
# Codes of cells without a value, outside the range of 64 bits, so that no value can have them.
NONE_CODE = -(2**63) - 1
UNREAD_CODE = NONE_CODE - 1

# Maximum number of cached values per scale. Powers and temperatures have a few thousand.
MOST_REMEMBERED = 100_000

HEAD = struct.Struct("<BI")

# Array type codes, by bytes per integer.
TYPE_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}

# Digits, or the words of a column of words.
Form = int | list[str]
Cell = Any


class CorruptChunk(Exception):
    """Damaged bytes."""


def kind_of(name: str) -> Kind:
    """Return the kind of a field or of a daily value."""
    field, _, part = name.partition(":")
    kind = Kind.GAUGE if field.startswith(RAW_OID) else KINDS[field]
    return DAILY[kind][part] if part else kind


class PackedColumn(NamedTuple):
    """Cells as integers. An empty mask: every cell has a value. A cell without a value is 0."""

    form: Form
    numbers: "array[int]"
    mask: bytes


def encode(kind: Kind, cells: Sequence[Cell]) -> PackedColumn:
    """Return cells as integers. A cell that does not fit its kind becomes None and does not affect the others."""
    if kind is Kind.COUNTER:
        try:
            return PackedColumn(0, array("q", cells), b"")
        except (TypeError, OverflowError):
            return _column(0, [_counter_code(cell) for cell in cells])
    if kind is Kind.WORD:
        # PostgreSQL refuses NUL in text.
        texts = {cell: str(cell).replace("\0", "")[:LONGEST_WORD] for cell in set(cells) if cell not in (None, UNREAD)}
        words = sorted(set(texts.values()))
        codes = {cell: words.index(text) for cell, text in texts.items()} | {None: NONE_CODE, UNREAD: UNREAD_CODE}
        return _column(words, [codes[cell] for cell in cells])
    for digits in range(MOST_DIGITS + 1):
        try:
            return _column(digits, list(map(_DECIMALS[digits].__getitem__, cells)))
        except Inexact:
            continue
    return _column(FLOAT_BITS, [_float_code(cell) for cell in cells])


def decode(kind: Kind, column: PackedColumn) -> list[Cell]:
    """Return the cells of a column."""
    form, numbers, mask = column
    cells: list[Cell]
    if isinstance(form, list):
        # A cell without a value has number 0, even if the list has no word.
        words = form or [""]
        cells = [words[number] for number in numbers]
    elif kind is Kind.COUNTER:
        cells = numbers.tolist()
    elif form == FLOAT_BITS:
        cells = array("d", array("q", numbers).tobytes()).tolist()
    else:
        factor = 10**form
        cells = [number / factor for number in numbers]
    if mask:
        cells = [(cell, None, UNREAD)[missing] for cell, missing in zip(cells, mask, strict=True)]
    return cells


class Inexact(Exception):
    """A number that needs more digits."""


class _Decimals(dict[Any, int]):
    """Codes of numbers with this many digits, cached, because a column has few different values."""

    def __init__(self, digits: int) -> None:
        super().__init__({None: NONE_CODE, UNREAD: UNREAD_CODE})
        self._factor = 10**digits

    def __missing__(self, cell: Cell) -> int:
        number = _finite(cell)
        if number is None:
            return NONE_CODE
        if abs(number) * self._factor > EXACT:
            raise Inexact
        code: int = round(number * self._factor)
        if code / self._factor != number:
            raise Inexact
        if len(self) < MOST_REMEMBERED:
            self[cell] = code
        return code


_DECIMALS = [_Decimals(digits) for digits in range(MOST_DIGITS + 1)]


def _finite(cell: Cell) -> float | None:
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _float_code(cell: Cell) -> int:
    if cell is UNREAD:
        return UNREAD_CODE
    number = _finite(cell)
    return NONE_CODE if number is None else int(struct.unpack("=q", struct.pack("=d", number))[0])


def _counter_code(cell: Cell) -> int:
    if cell is UNREAD:
        return UNREAD_CODE
    # A counter above 9 exabytes is invalid.
    number = cell if isinstance(cell, int) else _finite(cell)
    return NONE_CODE if number is None or abs(number) > LARGEST else round(number)


def _column(form: Form, codes: list[int]) -> PackedColumn:
    try:
        return PackedColumn(form, array("q", codes), b"")
    except OverflowError:
        mask = bytearray(len(codes))
        for place in [place for place, code in enumerate(codes) if code <= NONE_CODE]:
            mask[place] = NONE if codes[place] == NONE_CODE else NOT_READ
            codes[place] = 0
        return PackedColumn(form, array("q", codes), bytes(mask))


# --- One run.


def pack_run(onu_ids: Sequence[int], columns: Mapping[str, Sequence[Cell]]) -> bytes:
    """Return the packed readings of a run: each field is a column with a cell per ONU."""
    encoded = {name: encode(kind_of(name), cells) for name, cells in columns.items()}
    forms = {name: column.form for name, column in encoded.items()}
    parts = chain.from_iterable((_pack(each.numbers), _pack_mask(each.mask)) for each in encoded.values())
    return _seal([_json(forms), _packed_ids(tuple(onu_ids)), *parts])


@lru_cache(maxsize=1000)
def _packed_ids(onu_ids: tuple[int, ...]) -> bytes:
    """Return packed ids, cached, because runs of an OLT mostly read the same ONUs."""
    return _pack_steps(onu_ids)


class RunColumns:
    """Readings of a run. Columns are unpacked on access."""

    def __init__(self, data: bytes) -> None:
        sections = _unseal(data)
        self.forms: dict[str, Form] = json.loads(sections[0])
        # Packed ids; equal for most runs of an OLT.
        self.packed_ids = sections[1]
        self._parts = dict(zip(self.forms, zip(sections[2::2], sections[3::2], strict=True), strict=True))

    @cached_property
    def onu_ids(self) -> list[int]:
        return _unpack_steps(self.packed_ids)

    def column(self, name: str) -> PackedColumn:
        numbers, mask = self._parts[name]
        return PackedColumn(self.forms[name], _unpack(numbers), _inflate(mask))

    def cell(self, name: str, position: int) -> Cell:
        """Return the cell of the ONU at this position of the ids."""
        return self.cells(name, slice(position, position + 1))[0]

    def cells(self, name: str, chosen: slice) -> list[Cell]:
        """Return the cells of the ONUs at these positions of the ids."""
        numbers, packed_mask = self._parts[name]
        mask = _inflate(packed_mask)
        return decode(kind_of(name), PackedColumn(self.forms[name], _unpack(numbers, chosen), mask[chosen]))


# --- One field of many runs.


def pack_chunk(onu_ids: Sequence[int], times: Sequence[int], columns: Sequence[PackedColumn]) -> bytes:
    """Return the columns of several runs, at these times in microseconds, of ONUs with ascending ids.

    All columns have the same form.
    """
    series: list[Sequence[int]] = list(zip(*(column.numbers for column in columns), strict=True))
    masks = b""
    if any(column.mask for column in columns):
        blank = bytes(len(onu_ids))
        by_onu = list(zip(*(column.mask or blank for column in columns), strict=True))
        masks = bytes(chain.from_iterable(by_onu))
        series = [_filled(cells, mask) if any(mask) else cells for cells, mask in zip(series, by_onu, strict=True)]
    firsts = [cells[0] for cells in series]
    steps = list(chain.from_iterable(map(sub, cells[1:], cells) for cells in series))
    wraps = False
    try:
        packed = _pack(steps)
    except OverflowError:
        wraps = True
        packed = _pack([_wrapped(step) for step in steps])
    meta = _json([columns[0].form, wraps])
    return _seal([meta, _pack_steps(onu_ids), _pack_steps(times), _pack(firsts), packed, _pack_mask(masks)])


class Chunk:
    """The series of one field of some ONUs over the same times."""

    def __init__(self, data: bytes) -> None:
        meta, ids, times, self._firsts, self._steps, self._masks = _unseal(data)
        self.form, self._wraps = json.loads(meta)
        self.onu_ids = _unpack_steps(ids)
        self.times = _unpack_steps(times)

    def series(self, onu_id: int) -> PackedColumn | None:
        """Return an ONU's cells, one per time; None if it is not in the chunk."""
        position = bisect_left(self.onu_ids, onu_id)
        if self.onu_ids[position : position + 1] != [onu_id]:
            return None
        length = len(self.times) - 1
        first = _unpack(self._firsts, slice(position, position + 1))
        steps = _unpack(self._steps, slice(position * length, (position + 1) * length))
        mask = _inflate(self._masks)[position * (length + 1) : (position + 1) * (length + 1)]
        return PackedColumn(self.form, self._sums(first[0], steps), mask)

    def last(self, until: int) -> tuple[PackedColumn, list[int]]:
        """Return each ONU's last cell until a time, and the times of these cells."""
        length, end = len(self.times), bisect_right(self.times, until)
        firsts, steps, masks = _unpack(self._firsts), _unpack(self._steps), _inflate(self._masks)
        numbers, mask, times = array("q"), bytearray(), []
        for position, first in enumerate(firsts):
            at = end - 1
            if masks:
                start = position * length
                at = max(masks.rfind(cell, start, start + end) for cell in (VALUE, NONE))
                at = at - start if at >= 0 else -1
            mask.append(NOT_READ if at < 0 else masks[position * length + at] if masks else VALUE)
            number = first + sum(steps[position * (length - 1) : position * (length - 1) + max(at, 0)])
            numbers.append(_wrapped(number) if self._wraps else number)
            times.append(self.times[at])
        return PackedColumn(self.form, numbers, bytes(mask)), times

    def columns(self) -> list[PackedColumn]:
        """Return the cells of all ONUs, one column per time."""
        length = len(self.times) - 1
        firsts, steps, masks = _unpack(self._firsts), _unpack(self._steps), _inflate(self._masks)
        series = [
            self._sums(first, steps[position * length : (position + 1) * length])
            for position, first in enumerate(firsts)
        ]
        return [
            PackedColumn(self.form, array("q", numbers), masks[at :: length + 1])
            for at, numbers in enumerate(zip(*series, strict=True))
        ]

    def count(self) -> int:
        """Return the number of cells with a value."""
        mask = _inflate(self._masks)
        return mask.count(VALUE) if mask else len(self.onu_ids) * len(self.times)

    def _sums(self, first: int, steps: Iterable[int]) -> "array[int]":
        sums = accumulate(steps, initial=first)
        return array("q", map(_wrapped, sums) if self._wraps else sums)


def _filled(cells: Sequence[int], mask: Sequence[int]) -> list[int]:
    """Return a series in which a cell without a value repeats its neighbour, so the difference is 0."""
    last = next((cell for cell, missing in zip(cells, mask, strict=True) if not missing), 0)
    filled = []
    for cell, missing in zip(cells, mask, strict=True):
        last = last if missing else cell
        filled.append(last)
    return filled


def _wrapped(number: int) -> int:
    """Return a number wrapped to 64 signed bits. Sums of wrapped differences are still right."""
    return (number + 2**63) % 2**64 - 2**63


# --- Bytes.


def _seal(sections: Sequence[bytes]) -> bytes:
    """Return sections joined, with a version and a checksum."""
    lengths = struct.pack(f"<B{len(sections)}I", len(sections), *map(len, sections))
    body = lengths + b"".join(sections)
    return HEAD.pack(VERSION, zlib.crc32(body)) + body


def _unseal(data: bytes) -> list[bytes]:
    if len(data) <= HEAD.size:
        raise CorruptChunk(f"{len(data)} bytes are too few")
    version, checksum = HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptChunk(f"version {version} is not known")
    if zlib.crc32(memoryview(data)[HEAD.size :]) != checksum:
        raise CorruptChunk("the checksum does not match")
    (count,) = struct.unpack_from("<B", data, HEAD.size)
    lengths = struct.unpack_from(f"<{count}I", data, HEAD.size + 1)
    ends = list(accumulate(lengths, initial=HEAD.size + 1 + 4 * count))
    return [data[start:end] for start, end in pairwise(ends)]


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _pack_steps(numbers: Sequence[int]) -> bytes:
    return _pack([*numbers[:1], *map(sub, numbers[1:], numbers)])


def _unpack_steps(section: bytes) -> list[int]:
    return list(accumulate(_unpack(section)))


def _pack(numbers: Sequence[int]) -> bytes:
    """Return integers in the fewest bytes that hold all of them, by plane, deflated."""
    for code in (TYPE_CODES[1], TYPE_CODES[2], TYPE_CODES[4]):
        try:
            return _pack_planes(array(code, numbers))
        except OverflowError:
            continue
    return _pack_planes(array(TYPE_CODES[8], numbers))


def _pack_planes(numbers: "array[int]") -> bytes:
    width = numbers.itemsize
    if sys.byteorder == "big":
        numbers.byteswap()
    raw = numbers.tobytes()
    return bytes([width]) + _deflate(b"".join(raw[plane::width] for plane in range(width)))


def _unpack(section: bytes, chosen: slice = slice(None)) -> "array[int]":
    """Return integers, or some of them."""
    width, planes = section[0], _inflate(section[1:])
    count = len(planes) // width
    start, stop, _ = chosen.indices(count)
    raw = bytearray(width * max(stop - start, 0))
    for plane in range(width):
        raw[plane::width] = planes[plane * count + start : plane * count + stop]
    numbers = array(TYPE_CODES[width])
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _pack_mask(mask: bytes) -> bytes:
    return _deflate(mask) if any(mask) else b""


def _deflate(raw: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, 8, zlib.Z_RLE)
    return packer.compress(raw) + packer.flush()


def _inflate(data: bytes) -> bytes:
    return zlib.decompress(data, -zlib.MAX_WBITS) if data else b""
