"""Index to position and back. What is not of a space must not decode into it: it would become a wrong ONU."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.brands import BRANDS, huawei, zte
from facho.engine.brand import IndexSpace, Position

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

SPACES: dict[str, tuple[IndexSpace, st.SearchStrategy[Position]]] = {
    "huawei": (huawei.SPACE, huawei_onus),
    "zte 1012": (zte.SPACE, zte_onus),
    "zte 1012, optics": (zte.ANI_SPACE, zte_onus),
    "zte one number": (zte.XPON_SPACE, zte_line_card_onus),
}
each_space = pytest.mark.parametrize(("space", "onus"), SPACES.values(), ids=SPACES)


def test_every_space_of_a_brand_is_tried_here():
    used = {id(column.space) for brand in BRANDS.values() for column in brand.columns.values()}

    assert used == {id(space) for space, _ in SPACES.values()}


@each_space
@given(data=st.data())
def test_an_onu_keeps_its_position_through_its_index(space, onus, data):
    position = data.draw(onus)

    assert space.decode(space.encode(position)) == position


@each_space
@given(data=st.data())
def test_the_index_of_a_port_is_the_beginning_of_those_of_its_onus(space, onus, data):
    onu = data.draw(onus)

    port = space.encode(replace(onu, onu=None))

    assert space.encode(onu)[: len(port)] == port
    assert bool(port) is space.by_port


@pytest.mark.parametrize("space", [huawei.SPACE, zte.SPACE, zte.ANI_SPACE], ids=["huawei", "zte", "zte optics"])
@given(arcs=st.lists(numbers | st.integers(0, 300), max_size=4).map(tuple))
def test_whatever_decodes_is_an_index_of_the_space(space, arcs):
    position = space.decode(arcs)

    assert position is None or space.encode(position) == arcs


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
    ],
)
def test_a_position_that_cannot_be_is_refused_and_not_bent_into_another(space, position):
    with pytest.raises(ValueError, match=r"is no (port|ONU)"):
        space.encode(position)


def test_an_if_index_for_a_port_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="is no port"):
        zte.encode_if_index(Position(1, 0, 1))
