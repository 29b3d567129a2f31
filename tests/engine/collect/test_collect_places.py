"""ONUs whose index does not tell where they sit: a column does, the inventory does, or nobody."""

from dataclasses import replace

import pytest
from collect_fakes import FakeAgent, FakeClock, Faults, as_state, as_text, make_brand, make_node, run

from facho.engine.brand import OPAQUE, Column, Position
from facho.engine.collect.join import Harvest
from facho.engine.model import Completeness, JobKind, KnownOnu
from facho.engine.oid import Oid, pack, parse

TABLE = "1.3.6.1.4.1.99999.7"
UPLINK, SEVEN, EIGHT = 1, 207, 208


def as_place(value):
    """Return where `GPON0/1:7` sits; an uplink is no ONU."""
    text = as_text(value)
    if not text.startswith("GPON"):
        return None
    port, onu = text.removeprefix("GPON0/").split(":")
    return Position(0, 0, int(port), int(onu))


PLACE = Column("place", parse(f"{TABLE}.1"), as_place, OPAQUE, places=True)
NAME = Column("name", parse(f"{TABLE}.2"), as_text, OPAQUE)
STATE = Column("state", parse(f"{TABLE}.3"), as_state, OPAQUE)
RX = Column("rx_dbm", parse(f"{TABLE}.4"), lambda value: value / 100, OPAQUE, optical=True)
COLUMNS = {column.field: column for column in (PLACE, NAME, STATE, RX)}
BRAND = make_brand(space=OPAQUE, columns=COLUMNS, discovery=("place", "name"))

ROWS = {
    UPLINK: {"place": b"gigaEthernet0/1", "name": b"to the core", "state": 1},
    SEVEN: {"place": b"GPON0/1:7", "name": b"customer 7", "state": 1, "rx_dbm": -2153},
    EIGHT: {"place": b"GPON0/1:8", "name": b"customer 8", "state": 2, "rx_dbm": -1900},
}


def make_mib(rows=ROWS):
    return {
        Oid(COLUMNS[name].oid + pack((number,))): value for number, row in rows.items() for name, value in row.items()
    }


def read(kind, *columns, onus=(), brand=BRAND, faults=None, mib=None):
    agent = FakeAgent(FakeClock(), make_mib() if mib is None else mib, faults)
    return run(agent, make_node(kind, *columns), brand=brand, onus=onus)


def places(collected):
    return {reading.index: (reading.slot, reading.port, reading.onu) for reading in collected.readings}


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.WALK])
async def test_a_column_tells_where_an_onu_sits_and_which_rows_are_none(kind):
    collected = await read(kind, "place", "name", "state")

    assert collected.completeness is Completeness.COMPLETE
    assert places(collected) == {"207": (0, 1, 7), "208": (0, 1, 8)}
    assert collected.readings[0].values == {"name": "customer 7", "state": "online"}


async def test_dear_columns_are_asked_of_onus_and_not_of_other_rows():
    agent = FakeAgent(FakeClock(), make_mib())

    collected = await run(agent, make_node(JobKind.TABLE, "place", "state", "rx_dbm"), brand=BRAND)

    asked = [request.oids for request in agent.log if request.kind == "get"]
    assert asked == [[Oid(RX.oid + pack((SEVEN,)))]]
    assert [reading.values["rx_dbm"] for reading in collected.readings] == [-21.53, None]


async def test_where_no_column_was_read_the_place_is_recalled():
    onus = [KnownOnu("207", "online", slot=0, port=1, onu=7)]

    collected = await read(JobKind.GET, "name", onus=onus)

    assert places(collected) == {"207": (0, 1, 7)}
    assert collected.readings[0].values == {"name": "customer 7"}


async def test_an_onu_that_was_moved_gets_the_place_that_was_read():
    onus = [KnownOnu("207", "online", slot=0, port=9, onu=9)]

    collected = await read(JobKind.GET, "place", "name", onus=onus)

    assert places(collected) == {"207": (0, 1, 7)}


async def test_a_row_that_nobody_can_place_is_no_onu_yet():
    collected = await read(JobKind.TABLE, "name", onus=[KnownOnu("207", "online", slot=0, port=1, onu=7)])

    assert places(collected) == {"207": (0, 1, 7)}


async def test_an_onu_whose_place_cannot_be_read_now_keeps_the_one_it_had():
    poisoned = frozenset({Oid(PLACE.oid + pack((SEVEN,)))})
    onus = [KnownOnu("207", "online", slot=0, port=1, onu=7)]

    collected = await read(JobKind.GET, "place", "name", onus=onus, faults=Faults(gen_err_at=poisoned))

    assert places(collected) == {"207": (0, 1, 7)}
    assert collected.completeness is Completeness.PARTIAL


async def test_an_olt_that_has_no_row_for_a_place_any_more_does_not_unplace_the_onu():
    mib = make_mib({SEVEN: {"name": b"customer 7"}})
    onus = [KnownOnu("207", "online", slot=0, port=1, onu=7)]

    collected = await read(JobKind.GET, "place", "name", onus=onus, mib=mib)

    assert places(collected) == {"207": (0, 1, 7)}


async def test_a_place_that_cannot_be_decoded_is_told_and_its_row_is_left_out():
    mib = make_mib({SEVEN: {"place": b"GPON0/one:7", "name": b"customer 7"}, EIGHT: ROWS[EIGHT]})

    collected = await read(JobKind.DISCOVERY, mib=mib)

    assert places(collected) == {"208": (0, 1, 8)}
    assert collected.errors == ("place: could not be decoded for 1 ONUs",)


async def test_rows_of_which_none_is_an_onu_are_empty():
    collected = await read(JobKind.DISCOVERY, mib=make_mib({UPLINK: ROWS[UPLINK]}))

    assert collected.completeness is Completeness.EMPTY
    assert collected.readings == ()


@pytest.mark.parametrize("told", [b"GPON0/1:7", b"gigaEthernet0/2"], ids=["an ONU", "no ONU any more"])
async def test_a_known_row_that_the_column_calls_no_onu_falls_out(told):
    mib = make_mib({SEVEN: {"place": told, "name": b"customer 7"}})

    collected = await read(JobKind.DISCOVERY, mib=mib, onus=[KnownOnu("207", "online", slot=0, port=1, onu=7)])

    assert places(collected) == ({"207": (0, 1, 7)} if told.startswith(b"GPON") else {})


async def test_parts_of_a_place_may_be_values_like_any_other():
    port = Column("port", parse(f"{TABLE}.5"), int, OPAQUE)
    brand = replace(BRAND, columns={"port": port, "name": NAME}, discovery=("name", "port"))
    mib = {Oid(NAME.oid + pack((SEVEN,))): b"customer 7", Oid(port.oid + pack((SEVEN,))): 3}

    collected = await read(JobKind.DISCOVERY, mib=mib, brand=brand)

    assert places(collected) == {"207": (None, 3, None)}
    assert collected.readings[0].values == {"name": "customer 7"}


async def test_a_rule_of_the_brand_may_tell_where_an_onu_sits():
    def finish(values):
        return values | {"slot": 2, "port": 4, "onu": int(values["name"].split()[-1])}

    brand = replace(BRAND, columns={"name": NAME}, discovery=("name",), finish=finish)

    collected = await read(JobKind.DISCOVERY, mib=make_mib({SEVEN: ROWS[SEVEN]}), brand=brand)

    assert places(collected) == {"207": (2, 4, 7)}


async def test_an_onu_without_a_place_is_called_by_its_index():
    poisoned = frozenset({Oid(NAME.oid + pack((SEVEN,)))})
    brand = replace(BRAND, columns={"name": NAME, "state": STATE}, discovery=("name",))

    collected = await read(
        JobKind.GET, "name", onus=[KnownOnu("207", "online")], faults=Faults(gen_err_at=poisoned), brand=brand
    )

    assert collected.failed_onus == ("ONU 207",)


@pytest.mark.parametrize(
    ("index", "name"),
    [
        pytest.param(pack((SEVEN,)), "ONU 207", id="a name"),
        pytest.param(b"\x81", "a broken index", id="cut off"),
    ],
)
def test_a_row_can_always_be_named_in_a_sentence(index, name):
    assert Harvest(BRAND).name_of(OPAQUE, index) == name
