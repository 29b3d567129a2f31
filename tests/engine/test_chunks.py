"""Packed history: what goes in comes out, and damage never does."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.batch import UNREAD
from facho.engine.chunks import Chunk, CorruptChunk, Kind, RunColumns, decode, encode, pack_chunk, pack_run

NO_VALUE = st.sampled_from([None, UNREAD])
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
POWERS = st.integers(-6000, 2000).map(lambda code: code / 100)
COUNTERS = st.integers(-(2**63) + 1, 2**63 - 1)
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


def columns_of(values):
    return st.lists(values | NO_VALUE, max_size=60)


@given(columns_of(POWERS | FLOATS))
def test_gauges_are_exact(cells):
    assert decode(Kind.GAUGE, encode(Kind.GAUGE, cells)) == cells


@given(columns_of(COUNTERS))
def test_counters_are_exact(cells):
    assert decode(Kind.COUNTER, encode(Kind.COUNTER, cells)) == cells


@given(columns_of(WORDS))
def test_words_are_exact(cells):
    assert decode(Kind.WORD, encode(Kind.WORD, cells)) == cells


@pytest.mark.parametrize(
    ("kind", "cell", "kept"),
    [
        pytest.param(Kind.GAUGE, math.nan, None, id="not a number"),
        pytest.param(Kind.GAUGE, -math.inf, None, id="infinity"),
        pytest.param(Kind.GAUGE, 10**400, None, id="more than a float holds"),
        pytest.param(Kind.GAUGE, "light", None, id="a word for a number"),
        pytest.param(Kind.GAUGE, 45, 45.0, id="a whole number"),
        pytest.param(Kind.COUNTER, 2**63, None, id="past 9 exabytes"),
        pytest.param(Kind.COUNTER, 7.6, 8, id="a fraction of an octet"),
        pytest.param(Kind.COUNTER, math.inf, None, id="an endless counter"),
        pytest.param(Kind.WORD, "on\0line", "online", id="NUL in a word"),
        pytest.param(Kind.WORD, "a_very_long_word", "a_very_long_", id="a long word"),
        pytest.param(Kind.WORD, 3, "3", id="a number for a word"),
    ],
)
def test_a_cell_that_does_not_fit_never_costs_the_others(kind, cell, kept):
    assert decode(kind, encode(kind, [None, cell, UNREAD])) == [None, kept, UNREAD]


@pytest.mark.parametrize(
    ("cells", "digits"),
    [
        pytest.param([-21.0, 45], 0, id="whole"),
        pytest.param([-21.53, 45.1, None], 2, id="hundredths"),
        pytest.param([-21.534], 3, id="thousandths"),
        pytest.param([1 / 3], -1, id="no decimal form"),
        pytest.param([1e300, -21.5], -1, id="too large"),
    ],
)
def test_a_column_has_as_many_digits_as_it_needs(cells, digits):
    assert encode(Kind.GAUGE, cells).form == digits


@st.composite
def runs(draw):
    ids = draw(st.lists(st.integers(1, 2**40), unique=True, max_size=20))
    fields = {"rx_dbm": POWERS | FLOATS, "in_octets": COUNTERS, "state": WORDS, "rx_dbm:mean": POWERS}
    chosen = draw(st.sets(st.sampled_from(sorted(fields))))
    return ids, {
        name: draw(st.lists(fields[name] | NO_VALUE, min_size=len(ids), max_size=len(ids))) for name in sorted(chosen)
    }


@pytest.mark.slow
@given(runs())
def test_a_run_comes_out_as_it_went_in(run):
    ids, columns = run

    read = RunColumns(pack_run(ids, columns))

    kinds = {"rx_dbm": Kind.GAUGE, "in_octets": Kind.COUNTER, "state": Kind.WORD, "rx_dbm:mean": Kind.GAUGE}
    assert read.onu_ids == ids
    assert {name: decode(kinds[name], read.column(name)) for name in read.forms} == columns
    for name, cells in columns.items():
        assert [read.cell(name, position) for position in range(len(ids))] == cells


@st.composite
def tables(draw):
    kind, values = draw(
        st.sampled_from([(Kind.GAUGE, POWERS), (Kind.GAUGE, FLOATS), (Kind.COUNTER, COUNTERS), (Kind.WORD, WORDS)])
    )
    ids = sorted(draw(st.sets(st.integers(1, 2**40), min_size=1, max_size=8)))
    times = sorted(draw(st.sets(st.integers(0, 2**52), min_size=1, max_size=8)))
    count = len(ids) * len(times)
    cells = draw(st.lists(values | NO_VALUE, min_size=count, max_size=count))
    return kind, ids, times, cells


@pytest.mark.slow
@given(tables())
def test_a_chunk_gives_the_series_of_each_onu(table):
    kind, ids, times, cells = table
    # One form for all columns, as `pack_chunk` wants it.
    form, numbers, mask = encode(kind, cells)
    width = len(ids)
    columns = [
        type(encode(kind, []))(form, numbers[at : at + width], mask[at : at + width])
        for at in range(0, len(cells), width)
    ]

    chunk = Chunk(pack_chunk(ids, times, columns))

    assert (chunk.onu_ids, chunk.times) == (ids, times)
    for position, onu_id in enumerate(ids):
        assert decode(kind, chunk.series(onu_id)) == cells[position::width]
    assert [decode(kind, column) for column in chunk.columns()] == [
        cells[at : at + width] for at in range(0, len(cells), width)
    ]
    assert chunk.series(ids[-1] + 1) is None
    for until in (-1, *times):
        assert last_cells(kind, *chunk.last(until)) == [
            next(((cell, at) for cell, at in reversed(read) if at <= until), None)
            for read in (
                [(cell, at) for cell, at in zip(cells[position::width], times, strict=True) if cell is not UNREAD]
                for position in range(width)
            )
        ]
    assert chunk.count() == sum(cell not in (None, UNREAD) for cell in cells)


def last_cells(kind, column, times):
    """Return the last cell and time of each ONU; None without one."""
    cells = zip(decode(kind, column), times, strict=True)
    return [None if cell is UNREAD else (cell, at) for cell, at in cells]


def make_chunk():
    columns = [
        encode(Kind.GAUGE, [-21.53, -19.0, None]),
        encode(Kind.GAUGE, [UNREAD] * 3)._replace(form=2),
        encode(Kind.GAUGE, [-21.48, None, -30.11]),
    ]
    return pack_chunk([3, 4, 9], [10, 20, 30], columns)


@pytest.mark.parametrize("made", [make_chunk(), pack_run([1, 2], {"rx_dbm": [-21.5, None]})], ids=["chunk", "run"])
def test_every_damaged_byte_is_noticed(made):
    kind = Chunk if made == make_chunk() else RunColumns
    for position in range(len(made)):
        for bit in range(8):
            damaged = bytearray(made)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptChunk):
                kind(bytes(damaged))


def test_every_truncation_is_noticed():
    whole = make_chunk()
    for length in range(len(whole)):
        with pytest.raises(CorruptChunk):
            Chunk(whole[:length])
    with pytest.raises(CorruptChunk):
        Chunk(whole + b"\0")
