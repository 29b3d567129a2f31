"""What goes over the wire comes back as it was, also between versions that do not know the same fields."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

import pytest
from builders import T0, make_node
from hypothesis import given
from hypothesis import strategies as st

from facho.adapters.wire import UnreadableMessage, from_wire, to_wire
from facho.engine import oid
from facho.engine.model import (
    Cause,
    Claim,
    Collected,
    Completeness,
    CompositeNode,
    Coverage,
    Lease,
    Olt,
    Outcome,
    RawOid,
    Reading,
    Status,
    Traffic,
    Trigger,
)
from facho.engine.snmp import Agent, Community, Version

MASTER = make_node(7, next_check=T0, columns=("rx_dbm",), retry_delay=timedelta(milliseconds=1500), expected=4.25)
LINK = make_node(8, master_id=7, oids=(RawOid("uptime", oid.parse("1.3.6.1.2.1.1.3.0"), "ticks", scalar=True),))
CLAIM = Claim(
    CompositeNode(MASTER, (LINK,), T0, Trigger.MANUAL, urgent=True, retry_at=T0 + timedelta(microseconds=1)),
    (101, 102),
    poller_id=3,
    next_check=None,
    attempt=2,
)
HARVEST = Collected(
    Completeness.PARTIAL,
    (Reading("4194304.7", 0, 1, 7, {"rx_dbm": -21.53, "serial": "HWTC\udc80", "last_up": T0, "name": None}),),
    scalars={"uptime": 2**70, "raw": b"\x00\xff", "share": float("inf")},
    traffic=Traffic(pdus=4, rtt_p50=0.02, sizes={"rx_dbm": 24}),
    errors=("1/3: no answer",),
    coverage=(Coverage("rx_dbm", 0, 1, Completeness.COMPLETE, 1),),
    learned={"sizes": {"$at": "no time", "7": [1, None, True]}},
)
OUTCOME = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable", retry_at=T0)


def there_and_back(value):
    return from_wire(type(value), json.loads(json.dumps(to_wire(value), allow_nan=False)))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(CLAIM, id="a claim, as a worker gets it"),
        pytest.param(HARVEST, id="a harvest, with what only its own device could say"),
        pytest.param(OUTCOME, id="an outcome that is tried again"),
        pytest.param(Outcome(Status.SUCCESS), id="an outcome with nothing but its status"),
        pytest.param(Lease(7, "noc/3", 2**62), id="a lease"),
    ],
)
def test_a_value_comes_back_as_it_was(value):
    assert there_and_back(value) == value


def test_times_are_in_utc_whatever_they_were_in():
    local = T0.astimezone(timezone(timedelta(hours=-5)))

    wired = to_wire(CompositeNode(MASTER, (), local))

    assert wired["slot"] == "2026-03-01T10:00:00+00:00"
    assert from_wire(CompositeNode, wired).slot.tzinfo is UTC


PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.binary(max_size=8)
)
TIMES = st.datetimes(timezones=st.just(UTC))
KEYS = st.text(max_size=4) | st.sampled_from(["$at", "$bytes", "$number", "$items"])
ANYTHING = st.recursive(
    PLAIN | TIMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, ANYTHING, max_size=4))
def test_what_has_no_type_of_its_own_survives_too(values):
    reading = Reading("1.7", None, None, None, values)

    assert there_and_back(reading) == reading


def test_what_has_no_type_of_its_own_is_plain_in_the_end():
    values = {"state": Completeness.EMPTY, "pair": (1, 2), "by number": {7: "x"}}

    back = there_and_back(Reading("1.7", None, None, None, values)).values

    assert back == {"state": "EMPTY", "pair": [1, 2], "by number": {7: "x"}}
    assert type(back["state"]) is str


@dataclass(frozen=True)
class Today:
    id: int
    name: str = "unnamed"
    sizes: Mapping[int, float] = field(default_factory=lambda: {1: 1.0})
    olts: Sequence[Lease] = ()


@dataclass(frozen=True)
class Tomorrow:
    id: int
    name: str = "unnamed"
    priority: int = 40


def test_a_newer_reader_gives_what_an_older_writer_did_not_know_its_default():
    assert from_wire(Tomorrow, to_wire(Today(7, "power", {2: 0.5}, [Lease(1, "noc", 3)]))) == Tomorrow(7, "power", 40)


def test_keys_that_are_numbers_and_sequences_of_values_come_back():
    value = Today(7, "power", {2: 0.5}, (Lease(1, "noc", 3),))

    assert there_and_back(value) == value


def test_an_older_reader_passes_over_what_it_does_not_know():
    assert from_wire(Today, to_wire(Tomorrow(7, "power", 90))) == Today(7, "power")


def test_a_worker_understands_a_claim_with_fields_of_the_next_version():
    wired = to_wire(CLAIM)
    wired["region"] = "north"
    wired["composite"]["master"]["shape"] = {"of": "things to come"}
    del wired["attempt"]

    claim = from_wire(Claim, wired)

    assert (claim.composite, claim.attempt) == (CLAIM.composite, 1)


def spoiled(*path, value):
    wired = to_wire(CLAIM)
    place = wired
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return wired


@pytest.mark.parametrize(
    ("data", "names"),
    [
        pytest.param("no claim", "is not of type Claim", id="another thing altogether"),
        pytest.param({"poller_id": 3}, "is missing composite, execution_ids, next_check", id="half of it"),
        pytest.param(
            spoiled("poller_id", value="3"), "Claim.poller_id: '3' is not of type int", id="text for a number"
        ),
        pytest.param(spoiled("poller_id", value=True), "Claim.poller_id", id="a yes for a number"),
        pytest.param(spoiled("attempt", value=None), "Claim.attempt", id="nothing for a number"),
        pytest.param(spoiled("execution_ids", value=101), "Claim.execution_ids", id="one for several"),
        pytest.param(spoiled("composite", "slot", value="soon"), "CompositeNode.slot: 'soon'", id="no time"),
        pytest.param(spoiled("composite", "slot", value=7), "CompositeNode.slot", id="a number for a time"),
        pytest.param(
            spoiled("composite", "slot", value="2026-03-01T10:00:00"), "without a time zone", id="a time of nowhere"
        ),
        pytest.param(spoiled("composite", "trigger", value="whim"), "CompositeNode.trigger", id="an unknown word"),
        pytest.param(spoiled("composite", "trigger", value=[]), "CompositeNode.trigger", id="a list for a word"),
        pytest.param(spoiled("composite", "master", "interval", value="5 min"), "Node.interval", id="no duration"),
        pytest.param(spoiled("composite", "master", "expected", value="long"), "Node.expected", id="no number"),
        pytest.param(
            spoiled("composite", "chain", 0, "oids", 0, "oid", value="1.3.x"), "RawOid.oid: '1.3.x'", id="no OID"
        ),
    ],
)
def test_what_cannot_be_read_says_what_is_wrong_with_it(data, names):
    with pytest.raises(UnreadableMessage) as error:
        from_wire(Claim, data)

    assert names in str(error.value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"$at": "soon"}, id="no time"),
        pytest.param({"$bytes": "*"}, id="no bytes"),
        pytest.param({"$number": "many"}, id="no number"),
        pytest.param({"$items": [[[], 1]]}, id="a key that cannot be one"),
    ],
)
def test_a_tag_that_cannot_be_read_is_an_unreadable_message(value):
    wired = to_wire(Reading("1.7", 0, 1, 7, {"x": 1}))
    wired["values"]["x"] = value

    with pytest.raises(UnreadableMessage, match=r"^Reading\.values: "):
        from_wire(Reading, wired)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(Reading("1.7", 0, 1, 7, {"x": object()}), id="a thing that is no value"),
        pytest.param(CompositeNode(MASTER, (), datetime(2026, 3, 1, 10, 0)), id="a time of nowhere"),  # noqa: DTZ001 - that is the point
        pytest.param(
            Olt(7, "OLT-CENTRAL-01", "huawei", Agent("127.0.0.1", 161, Version.V2C, Community("s3cret"))),
            id="an OLT, whose credentials are nobody else's business",
        ),
    ],
)
def test_what_has_no_place_in_a_message_is_refused_by_the_writer(value):
    with pytest.raises(TypeError, match="cannot be sent in a message") as error:
        to_wire(value)

    assert "s3cret" not in str(error.value)
