"""Messages and spool records are read as they were written, also by versions that do not know the same fields."""

import copy
import json
from dataclasses import replace
from datetime import UTC, timedelta
from types import MappingProxyType

import pytest
from builders import T0, make_node
from hypothesis import given
from hypothesis import strategies as st

from facho.adapters.wire import (
    UnreadableMessage,
    claim_from_message,
    claim_to_message,
    decode_result,
    encode_result,
)
from facho.engine import oid
from facho.engine.batch import UNREAD, Batch
from facho.engine.model import (
    Cause,
    Claim,
    Collected,
    Completeness,
    CompositeNode,
    Coverage,
    Identification,
    Lease,
    Outcome,
    RawOid,
    Reading,
    RunResult,
    Status,
    Traffic,
    Trigger,
)

MASTER = make_node(7, next_check=T0, columns=("rx_dbm",), retry_delay=timedelta(milliseconds=1500), expected=4.25)
LINK = make_node(8, master_id=7, oids=(RawOid("uptime", oid.parse("1.3.6.1.2.1.1.3.0"), "ticks", scalar=True),))
CLAIM = Claim(
    CompositeNode(MASTER, (LINK,), T0, Trigger.MANUAL, urgent=True, retry_at=T0 + timedelta(microseconds=1)),
    (101, 102),
    poller_id=3,
    next_check=None,
    attempt=2,
)
READINGS = (
    Reading("4194304.7", 0, 1, 7, {"rx_dbm": -21.53, "serial": "HWTC1", "last_up": T0, "name": None}),
    Reading("4194304.8", None, None, None, {"rx_dbm": -20}),
)
COLLECTED = Collected(
    Completeness.PARTIAL,
    Batch.of(READINGS),
    scalars={"uptime": 2**64 - 1, "raw": b"\x00\xff", "share": float("inf")},
    traffic=Traffic(pdus=4, rtt_p50=0.02, sizes={"rx_dbm": 24}),
    errors=("1/3: no answer",),
    coverage=(Coverage("rx_dbm", 0, 1, Completeness.COMPLETE, 1),),
    learned={"sizes": {"$at": "no time", "7": [1, None, True]}},
    had_values={"rx_dbm": True, "name": None},
)
OUTCOME = Outcome(
    Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable", retry_at=T0, clock_set=timedelta(seconds=-3.5)
)
RESULT = RunResult((101,), OUTCOME, Lease(7, "noc/3", 2**62, "device"), T0, LINK, COLLECTED)

# Of version 0.5, with the times as they were written then.
MESSAGE = {
    "composite": {
        "master": {
            "id": 7,
            "olt_id": 1,
            "name": "node 7",
            "kind": "table",
            "interval": 300.0,
            "olt_name": "OLT-01",
            "priority": 40,
            "master_id": None,
            "next_check": "2026-03-01T10:00:00+00:00",
            "run_requested_at": None,
            "columns": ["rx_dbm"],
            "oids": [],
            "timeout": 300.0,
            "retries": 2,
            "retry_delay": 1.5,
            "expected": 4.25,
        },
        "chain": [
            {
                "id": 8,
                "olt_id": 1,
                "name": "node 8",
                "kind": "table",
                "interval": 300.0,
                "olt_name": "OLT-01",
                "priority": 40,
                "master_id": 7,
                "next_check": None,
                "run_requested_at": None,
                "columns": [],
                "oids": [{"name": "uptime", "oid": "1.3.6.1.2.1.1.3.0", "decode": "ticks", "scalar": True}],
                "timeout": 300.0,
                "retries": 2,
                "retry_delay": 120.0,
                "expected": None,
            }
        ],
        "slot": "2026-03-01T10:00:00+00:00",
        "trigger": "manual",
        "urgent": True,
        "retry_at": "2026-03-01T10:00:00.000001+00:00",
    },
    "execution_ids": [101, 102],
    "poller_id": 3,
    "next_check": None,
    "attempt": 2,
}


def message():
    """Return the claim as a worker gets it."""
    return json.loads(json.dumps(claim_to_message(CLAIM), allow_nan=False))


def test_a_claim_is_read_as_it_was_sent():
    assert claim_from_message(message()) == CLAIM


def test_a_message_is_that_of_the_last_version():
    """Old and new processes work together during an upgrade. Z is the other way to write UTC."""
    assert json.dumps(message()) == json.dumps(MESSAGE).replace("+00:00", "Z")
    assert claim_from_message(MESSAGE) == CLAIM


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(RESULT, id="readings in columns, with values of one device only"),
        pytest.param(replace(RESULT, collected=replace(COLLECTED, readings=READINGS)), id="readings in rows"),
        pytest.param(
            replace(RESULT, collected=None, identification=Identification("huawei", {"sysName": "central", "at": T0})),
            id="an identification",
        ),
        pytest.param(RunResult((1, 2), Outcome(Status.SUCCESS), None, T0), id="only a status"),
    ],
)
def test_a_result_is_read_as_it_was_written(result):
    assert decode_result(encode_result(result)) == result


def test_a_value_that_was_not_read_is_not_a_value_that_the_device_does_not_have():
    batch = decode_result(encode_result(RESULT)).collected.batch

    assert batch.columns["name"] == [None, UNREAD]
    assert batch.columns["name"][1] is copy.deepcopy(UNREAD) is UNREAD


def test_times_are_read_in_utc():
    local = T0.astimezone(tz=None)

    assert decode_result(encode_result(replace(RESULT, at=local))).at.tzinfo is UTC


WHOLE = st.integers(-(2**63), 2**64 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
PLAIN = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False) | TEXT | st.binary(max_size=8)
TIMES = st.datetimes(timezones=st.just(UTC))
ANYTHING = st.recursive(
    PLAIN | TIMES | st.just(UNREAD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | WHOLE, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, ANYTHING, max_size=4))
def test_a_value_of_any_type_is_read_as_it_was_written(values):
    result = replace(RESULT, collected=replace(COLLECTED, scalars=values))

    assert decode_result(encode_result(result)).collected.scalars == values


def test_types_that_only_python_has_become_plain():
    odd = {"state": Completeness.EMPTY, "pair": (1, 2), "view": MappingProxyType({"a": 1})}

    back = decode_result(encode_result(replace(RESULT, collected=replace(COLLECTED, scalars=odd)))).collected.scalars

    assert back == {"state": "EMPTY", "pair": [1, 2], "view": {"a": 1}}
    assert type(back["state"]) is str


def test_a_worker_reads_a_claim_with_fields_of_the_next_version():
    later = message()
    later["region"] = "north"
    later["composite"]["master"]["shape"] = {"of": "things to come"}
    del later["attempt"]
    del later["composite"]["chain"][0]["oids"]

    claim = claim_from_message(later)

    assert claim == replace(CLAIM, attempt=1, composite=replace(CLAIM.composite, chain=(replace(LINK, oids=()),)))


def changed(*path, value):
    data = message()
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "names"),
    [
        pytest.param("no claim", "it cannot be read", id="another type"),
        pytest.param({"poller_id": 3}, "the field 'composite' is missing", id="half of it"),
        pytest.param(changed("poller_id", value="3"), "$.poller_id", id="text for a number"),
        pytest.param(changed("poller_id", value=True), "$.poller_id", id="a yes for a number"),
        pytest.param(changed("attempt", value=None), "$.attempt", id="nothing for a number"),
        pytest.param(changed("execution_ids", value=101), "$.execution_ids", id="one for several"),
        pytest.param(changed("composite", "slot", value="soon"), "$.composite.slot", id="no time"),
        pytest.param(changed("composite", "slot", value=7), "$.composite.slot", id="a number for a time"),
        pytest.param(changed("composite", "trigger", value="whim"), "$.composite.trigger", id="an unknown word"),
        pytest.param(changed("composite", "trigger", value=[]), "$.composite.trigger", id="a list for a word"),
        pytest.param(changed("composite", "master", value=None), "it cannot be read", id="no node"),
        pytest.param(changed("composite", "master", "interval", value="5 min"), "cannot be read", id="no duration"),
        pytest.param(changed("composite", "master", "expected", value="long"), "$.composite.master", id="no number"),
        pytest.param(changed("composite", "chain", 0, "oids", 0, "oid", value="1.3.x"), "1.3.x", id="no OID"),
    ],
)
def test_a_message_that_cannot_be_read_is_an_error_that_explains_it(data, names):
    with pytest.raises(UnreadableMessage) as error:
        claim_from_message(data)

    assert names in str(error.value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(encode_result(RESULT)[:-7], id="cut off"),
        pytest.param(b"\x93\x01\x02\x03", id="a list"),
        pytest.param(encode_result(RESULT).replace(b"FAILED", b"FALLEN"), id="an unknown word"),
        pytest.param(encode_result(RESULT).replace(b"\xc7\x00\x01", b"\xc7\x00\x02"), id="an unknown extension"),
    ],
)
def test_a_record_that_cannot_be_read_is_an_error(body):
    with pytest.raises(UnreadableMessage):
        decode_result(body)


@pytest.mark.parametrize("value", [object(), 2**64, "HWTC\udc80"], ids=["an object", "65 bits", "half a character"])
def test_a_value_that_cannot_be_saved_is_a_type_error(value):
    with pytest.raises(TypeError, match="a value cannot be saved"):
        encode_result(replace(RESULT, collected=replace(COLLECTED, scalars={"odd": value})))
