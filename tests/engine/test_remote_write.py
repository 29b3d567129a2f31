"""Requests of remote write: read by the documents of its format, they have what was packed, bit by bit."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.batch import UNREAD
from facho.engine.brand import ONU_STATES
from facho.engine.chunks import FIELDS, KINDS, Kind, encode
from facho.engine.remote_write import (
    METRICS,
    ONU_METRICS,
    STATE_CODES,
    SeriesLabels,
    doubles,
    encoded,
    request,
    samples,
)
from remote_write_reader import samples as read

AT = 1_790_000_000_123


def test_a_request_has_the_series_the_time_and_the_value():
    labels = [encoded({"olt": "OLT-1", "slot": "0", "port": "1", "onu": str(n), "serial": ""}) for n in (7, 8)]

    body = request([samples("facho_onu_rx_dbm", SeriesLabels(labels), array("d", [-21.53, 0.0]), AT)])

    name, rest = ("__name__", "facho_onu_rx_dbm"), (("port", "1"), ("slot", "0"))
    assert read(body) == [
        ((name, ("olt", "OLT-1"), ("onu", "7"), *rest), AT, -21.53),
        ((name, ("olt", "OLT-1"), ("onu", "8"), *rest), AT, 0.0),
    ]


def test_an_empty_request_is_one():
    assert read(request([])) == []


@given(
    st.lists(
        st.tuples(st.text(max_size=300), st.sampled_from([None, UNREAD]) | st.floats(allow_nan=False, width=32)),
        max_size=20,
    ),
    st.integers(0, 2**42 - 1),
)
def test_any_text_and_any_value_arrive(onus, at):
    column = encode(Kind.GAUGE, [value for _, value in onus])
    labels = [encoded({"serial": serial}) for serial, _ in onus]

    body = request([samples("facho_onu_rx_dbm", SeriesLabels(labels), doubles(Kind.GAUGE, column), at, column.mask)])

    expected = []
    for serial, value in onus:
        if value is not None and value is not UNREAD and abs(value) != float("inf"):
            pair = (("serial", serial.encode("utf-8", "replace").decode()),) if serial else ()
            expected.append(((("__name__", "facho_onu_rx_dbm"), *pair), at, float(value)))
    assert sorted(read(body)) == sorted(expected)


@pytest.mark.parametrize(
    ("kind", "cells", "values"),
    [
        pytest.param(Kind.GAUGE, [-21.53, -0.01, 17.0], [-21.53, -0.01, 17.0], id="two digits"),
        pytest.param(Kind.GAUGE, [1 / 3, 5.0], [1 / 3, 5.0], id="all bits"),
        pytest.param(Kind.COUNTER, [0, 2**53, 2**63 - 1], [0.0, 2.0**53, 2.0**63], id="counters"),
        pytest.param(Kind.WORD, ["online", "los", "strange"], [1.0, 3.0, 0.0], id="states"),
    ],
)
def test_values_are_exact(kind, cells, values):
    assert doubles(kind, encode(kind, cells)).tolist() == values


def test_a_column_of_words_without_any_is_nothing():
    column = encode(Kind.WORD, [None, UNREAD])

    assert samples("facho_onu_state", SeriesLabels([b"", b""]), doubles(Kind.WORD, column), AT, column.mask) == b""


def test_every_state_has_its_number_and_every_field_its_metric():
    assert set(STATE_CODES) == set(ONU_STATES)
    assert len(set(STATE_CODES.values())) == len(ONU_STATES)
    assert set(ONU_METRICS) == set(KINDS) >= set(FIELDS)
    assert set(ONU_METRICS.values()) <= set(METRICS)
