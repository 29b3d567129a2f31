"""Index to position and back. What is not of a space must not decode into it: it would become a wrong ONU."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.brands import BRANDS, brand, huawei, zte
from facho.engine.brand import OPAQUE, IndexSpace, Position, Unplaced

numbers = st.integers(0, 2**32 - 1)
huawei_onus = st.builds(
    Position, st.integers(0, 63), st.integers(0, 63), st.integers(0, 31), st.integers(0, huawei.MAX_ONU)
)
zte_onus = st.builds(
    Position, st.integers(1, 16), st.integers(1, 255), st.integers(1, 255), st.integers(1, zte.MAX_ONU)
)
zte_line_card_onus = st.builds(
    Position, st.integers(1, 8), st.integers(1, 31), st.integers(1, 16), st.integers(1, zte.MAX_ONU)
)


def onus(shelf, slot, port, onu):
    """Return ONUs anywhere between these, each a pair of the lowest and the highest number."""
    return st.builds(Position, *(st.integers(*each) for each in (shelf, slot, port, onu)))


def space_of(brand_id, field):
    return brand(brand_id).columns[field].space


NONE = (0, 0)
c600_onus = st.one_of(
    onus((1, 99), (1, 255), (1, 255), (1, 255)),
    onus((101, 115), (1, 63), (1, 63), (1, 255)),
    onus((201, 215), (1, 63), (1, 63), (1, 255)),
)
cdata_epon_onus = onus((1, 255), (0, 255), (0, 255), (1, 255))
cdata_gpon_onus = st.one_of(onus(NONE, NONE, (1, 16), (1, 4095)), cdata_epon_onus)
fiberhome_onus = onus(NONE, (0, 63), (0, 63), (1, 2047))

SPACES: dict[str, tuple[IndexSpace, st.SearchStrategy[Position]]] = {
    "huawei": (huawei.SPACE, huawei_onus),
    "zte 1012": (zte.SPACE, zte_onus),
    "zte 1012, optics": (zte.ANI_SPACE, zte_onus),
    "zte one number": (zte.XPON_SPACE, zte_line_card_onus),
    "zte 1082": (space_of("zte_c600", "serial"), c600_onus),
    "zte 1082, optics": (space_of("zte_c600", "rx_dbm"), c600_onus),
    "v-sol": (space_of("vsol_epon", "name"), onus(NONE, NONE, (1, 255), (1, 255))),
    "fiberhome": (space_of("fiberhome", "serial"), fiberhome_onus),
    "fiberhome, at the olt": (space_of("fiberhome", "olt_rx_dbm"), fiberhome_onus),
    "nokia": (space_of("nokia_isam", "serial"), onus(NONE, (0, 126), (1, 32), (1, 128))),
    "c-data gpon": (space_of("cdata_gpon", "name"), cdata_gpon_onus),
    "c-data gpon, optics": (space_of("cdata_gpon", "rx_dbm"), cdata_gpon_onus),
    "c-data epon": (space_of("cdata_epon", "name"), cdata_epon_onus),
    "c-data epon, optics": (space_of("cdata_epon", "rx_dbm"), cdata_epon_onus),
    "c-data fd11": (space_of("cdata_fd11", "name"), onus(NONE, NONE, (1, 255), (1, 255))),
}
each_space = pytest.mark.parametrize(("space", "onus"), SPACES.values(), ids=SPACES)
# All but the one that understands pairs beside its own numbers.
EXACT = {name: space for name, (space, _) in SPACES.items() if space is not zte.XPON_SPACE}


def test_every_space_of_a_brand_is_tried_here():
    used = {id(column.space) for each in BRANDS.values() for column in each.columns.values()}

    assert used == {id(OPAQUE), *(id(space) for space, _ in SPACES.values())}


def test_the_spaces_whose_ports_can_be_walked_are_those_where_the_onu_has_a_number_to_itself():
    walked = {name for name, (space, _) in SPACES.items() if space.by_port}

    assert walked == {
        "huawei",
        "zte 1012",
        "zte 1012, optics",
        "zte 1082",
        "zte 1082, optics",
        "v-sol",
        "fiberhome, at the olt",
        "c-data fd11",
    }


@given(arcs=st.lists(numbers, max_size=14).map(tuple))
def test_an_index_that_says_nothing_is_a_name(arcs):
    assert OPAQUE.decode(arcs) == Unplaced(arcs)
    assert OPAQUE.encode(Unplaced(arcs)) == arcs


@pytest.mark.slow
@each_space
@given(data=st.data())
def test_an_onu_keeps_its_position_through_its_index(space, onus, data):
    position = data.draw(onus)

    assert space.decode(space.encode(position)) == position


@pytest.mark.slow
@each_space
@given(data=st.data())
def test_the_index_of_a_port_is_the_beginning_of_those_of_its_onus(space, onus, data):
    onu = data.draw(onus)

    port = space.encode(replace(onu, onu=None))

    assert space.encode(onu)[: len(port)] == port
    assert bool(port) is space.by_port


@pytest.mark.slow
@pytest.mark.parametrize("space", EXACT.values(), ids=EXACT)
@given(arcs=st.lists(numbers | st.integers(0, 300), max_size=4).map(tuple))
def test_whatever_decodes_is_an_index_of_the_space(space, arcs):
    position = space.decode(arcs)

    assert position is None or space.encode(position) == arcs


# Numbers of which most are ONUs, for the spaces where few of all numbers are.
LIKELY = {
    "fiberhome": st.integers(0, 2**23 - 1).map(lambda number: number << 8),
    "nokia": st.builds(lambda slot, low: slot << 25 | 14 << 21 | low << 9, st.integers(0, 127), st.integers(0, 4095)),
    "c-data gpon": st.integers(0x480000, 0x48FFFF),
    "c-data epon": numbers,
}


@pytest.mark.parametrize("name", LIKELY)
@given(data=st.data())
def test_whatever_decodes_from_one_number_encodes_to_it(name, data):
    index = data.draw(LIKELY[name])

    position = EXACT[name].decode((index,))

    assert position is None or EXACT[name].encode(position) == (index,)


@given(port=huawei_onus.map(lambda onu: replace(onu, onu=None)), low=st.integers(1, 255))
def test_an_interface_below_a_huawei_port_is_not_the_port(port, low):
    index = huawei.encode_port(port)

    assert huawei.decode_port(index) == port
    assert huawei.decode_port(index | low) is None


@given(index=numbers.filter(lambda index: index >> 25 != huawei.GPON_TYPE))
def test_an_interface_that_is_not_gpon_is_no_huawei_port(index):
    assert huawei.decode_port(index) is None


@given(port=st.builds(Position, st.integers(1, 16), st.integers(1, 256), st.integers(1, 256)))
def test_a_zte_port_keeps_its_position_through_its_if_index(port):
    assert zte.decode_if_index(zte.encode_if_index(port)) == port


def test_one_number_is_two_ports_of_a_zte():
    number = 268501248

    assert zte.decode_pon(number) == Position(1, 1, 1)
    assert zte.decode_if_index(number) == Position(1, 2, 2)


@pytest.mark.parametrize(
    ("space", "arcs"),
    [
        pytest.param(huawei.SPACE, (4194304000,), id="a huawei port without an ONU"),
        pytest.param(huawei.SPACE, (4194304000, 7, 1), id="a huawei ONU with more behind it"),
        pytest.param(huawei.SPACE, (4194304000, 256), id="a huawei ONU id that is too large"),
        pytest.param(huawei.SPACE, (234938368, 7), id="a huawei ethernet port"),
        pytest.param(zte.SPACE, (268501248,), id="a zte port without an ONU"),
        pytest.param(zte.SPACE, (268501248, 0), id="zte counts ONUs from 1"),
        pytest.param(zte.SPACE, (268435456, 1), id="the ifIndex of zte's gpon_1/1/1: slot 0"),
        pytest.param(zte.SPACE, (268500992, 1), id="the ifIndex of zte's gpon_1/2/1: port 0"),
        pytest.param(zte.SPACE, (285278465, 1), id="an index of zte's 1082 tree"),
        pytest.param(zte.SPACE, (268501248, 7, 1), id="zte optics in the wrong table"),
        pytest.param(zte.ANI_SPACE, (268501248, 7), id="a zte ONU without its interface"),
        pytest.param(zte.ANI_SPACE, (268501248, 7, 2), id="a second interface of a zte ONU"),
        pytest.param(zte.XPON_SPACE, (805830912 & ~0xFF00,), id="a zte port by one number"),
        pytest.param(zte.XPON_SPACE, (805830913,), id="a zte UNI by one number"),
        pytest.param(zte.XPON_SPACE, (268501248,), id="a type that names no ONU"),
        pytest.param(zte.XPON_SPACE, (0x30000100,), id="slot 0 by one number"),
        pytest.param(zte.XPON_SPACE, (), id="nothing"),
        pytest.param(EXACT["zte 1082"], (285278465,), id="a c600 port without an ONU"),
        pytest.param(EXACT["zte 1082"], (268501248, 7), id="an index of zte's 1012 tree"),
        pytest.param(EXACT["zte 1082"], (0x12010101, 7), id="a second rack of a c600"),
        pytest.param(EXACT["zte 1082"], (285278465, 0), id="a c600 counts ONUs from 1"),
        pytest.param(EXACT["zte 1082"], (1360052483, 7), id="a third channel of a c600 port"),
        pytest.param(EXACT["v-sol"], (1,), id="a v-sol port"),
        pytest.param(EXACT["v-sol"], (1, 0), id="v-sol counts ONUs from 1"),
        pytest.param(EXACT["fiberhome"], (34078720,), id="a fiberhome port"),
        pytest.param(EXACT["fiberhome"], (34078977,), id="a port of a fiberhome ONU"),
        pytest.param(EXACT["fiberhome"], (34078976 + (1 << 31),), id="a bit above those of fiberhome"),
        pytest.param(EXACT["nokia"], (94371840,), id="a nokia port"),
        pytest.param(EXACT["nokia"], (96468993,), id="something below a nokia ONT"),
        pytest.param(EXACT["nokia"], (14 << 21,), id="no line card of a nokia"),
        pytest.param(EXACT["c-data gpon"], (0x490001,), id="another kind on a c-data"),
        pytest.param(EXACT["c-data gpon, optics"], (4718593, 0, 1), id="a port of a c-data ONU"),
        pytest.param(EXACT["c-data fd11"], (2, 1, 7), id="a c-data index that begins otherwise"),
    ],
)
def test_what_is_not_an_onu_of_a_space_is_none(space, arcs):
    assert space.decode(arcs) is None


def test_zte_traffic_is_placed_by_one_number_on_small_and_large_cards_and_by_pairs():
    assert zte.XPON_SPACE.decode((805830912,)) == Position(1, 1, 1, 1)
    assert zte.XPON_SPACE.decode((0x90290700,)) == Position(1, 2, 10, 7)
    assert zte.XPON_SPACE.decode((268501248, 7)) == Position(1, 1, 1, 7)


@pytest.mark.parametrize(
    ("space", "position"),
    [
        pytest.param(huawei.SPACE, Position(0, 64, 0, 7), id="huawei slot"),
        pytest.param(huawei.SPACE, Position(0, 1, 32), id="huawei port"),
        pytest.param(huawei.SPACE, Position(0, 1, 0, 256), id="huawei ONU"),
        pytest.param(zte.SPACE, Position(1, 0, 1, 7), id="zte slot"),
        pytest.param(zte.SPACE, Position(0, 1, 1), id="zte shelf"),
        pytest.param(zte.SPACE, Position(1, 1, 1, 0), id="zte ONU"),
        pytest.param(zte.ANI_SPACE, Position(1, 1, 1, 256), id="zte ONU, optics"),
        pytest.param(zte.XPON_SPACE, Position(1, 1, 17, 7), id="zte port by one number"),
        pytest.param(zte.XPON_SPACE, Position(9, 1, 9, 7), id="zte shelf of a large card"),
        pytest.param(EXACT["zte 1082"], Position(1, 0, 1, 7), id="c600 slot"),
        pytest.param(EXACT["zte 1082"], Position(100, 1, 1, 7), id="c600 shelf between channels"),
        pytest.param(EXACT["v-sol"], Position(0, 1, 1, 7), id="v-sol has no slots"),
        pytest.param(EXACT["fiberhome"], Position(1, 1, 1, 7), id="fiberhome has no shelves"),
        pytest.param(EXACT["nokia"], Position(0, 1, 1, 129), id="nokia ONT"),
        pytest.param(EXACT["c-data fd11"], Position(0, 0, 256), id="c-data port"),
    ],
)
def test_a_position_that_cannot_be_is_refused_and_not_bent_into_another(space, position):
    with pytest.raises(ValueError, match=r"is not an? (valid )?(port|ONU)"):
        space.encode(position)


def test_an_if_index_for_a_port_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="is not a port"):
        zte.encode_if_index(Position(1, 0, 1))
