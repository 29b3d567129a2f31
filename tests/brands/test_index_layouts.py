"""How the numbers of an index are described, and what is wrong with a description that cannot be."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.brands import huawei
from facho.brands.index import layout, space
from facho.engine.brand import Position

HUAWEI_LINES = ["type:7=125 shelf:6 slot:6 port:5 spare:8=0", "onu=0..255"]


@pytest.mark.parametrize(
    ("lines", "arcs", "position"),
    [
        pytest.param(["port", "onu"], (3, 7), Position(0, 0, 3, 7), id="a number each"),
        pytest.param([1, "port", "onu"], (1, 3, 7), Position(0, 0, 3, 7), id="a number that must stand there"),
        pytest.param(["1", "port", "onu"], (1, 3, 7), Position(0, 0, 3, 7), id="the same as text"),
        pytest.param(["shelf:4 slot:4 port:8", "onu"], (0x1203, 7), Position(1, 2, 3, 7), id="bits, highest first"),
        pytest.param(["slot:8+1 port:8-1", "onu+1"], (0x0104, 6), Position(0, 2, 3, 7), id="counted otherwise"),
        pytest.param(["port:8 onu:8"], (0x0307,), Position(0, 0, 3, 7), id="all in one number"),
        pytest.param(["kind:8=0x48 port:8 onu:8"], (0x480307,), Position(0, 0, 3, 7), id="in hexadecimal"),
        pytest.param(["port", "onu", 0, 1], (3, 7, 0, 1), Position(0, 0, 3, 7), id="with something behind"),
    ],
)
def test_a_layout_reads_and_writes_an_index(lines, arcs, position):
    made = space(layout(lines))

    assert made.decode(arcs) == position
    assert made.encode(position) == arcs


@pytest.mark.parametrize(
    ("lines", "arcs"),
    [
        pytest.param(["port", "onu"], (3,), id="too few numbers"),
        pytest.param(["port", "onu"], (3, 7, 1), id="too many numbers"),
        pytest.param([1, "port", "onu"], (2, 3, 7), id="another number where one must stand"),
        pytest.param(["port:8", "onu"], (256, 7), id="bits above those that are described"),
        pytest.param(["type:4=1 port:4", "onu"], (0x23, 7), id="another type"),
        pytest.param(["port", "onu=1..128"], (3, 0), id="below what it may be"),
        pytest.param(["port", "onu=1..128"], (3, 129), id="above what it may be"),
        pytest.param(["port:8-1", "onu"], (0, 7), id="less than nothing"),
        pytest.param(["port", "onu", 0], (3, 7, 1), id="something else behind"),
    ],
)
def test_an_index_that_is_laid_out_otherwise_is_none_of_ours(lines, arcs):
    assert space(layout(lines)).decode(arcs) is None


@given(number=st.integers(0, 2**32 - 1), onu=st.integers(0, 300))
def test_a_described_layout_is_as_good_as_one_that_is_programmed(number, onu):
    described = space(layout(HUAWEI_LINES))

    for index in ((number, onu), (huawei.GPON_TYPE << 25 | number & 0x1FFFF00, onu)):
        assert described.decode(index) == huawei.SPACE.decode(index)


def test_a_port_is_written_as_what_its_onus_begin_with():
    assert space(layout(["slot:8 port:8", "onu", 1])).encode(Position(0, 2, 3)) == (0x0203,)
    assert space(layout(["slot:8 port:8", "onu", 1])).by_port


def test_a_port_whose_onus_begin_differently_is_written_as_nothing():
    assert space(layout(["port:8 onu:8"])).encode(Position(0, 0, 3)) == ()
    assert not space(layout(["port:8 onu:8"])).by_port


def test_a_space_with_several_layouts_takes_the_one_that_fits():
    either = space(
        layout(["type:4=1 shelf:4=1..9 port:8", "onu"]), layout(["type:4=2 shelf:4+10=11..19 port:8", "onu"])
    )

    assert either.decode((0x1103, 7)) == Position(1, 0, 3, 7)
    assert either.decode((0x2103, 7)) == Position(11, 0, 3, 7)
    assert either.encode(Position(11, 0, 3, 7)) == (0x2103, 7)
    with pytest.raises(ValueError, match="is not a valid ONU of this index: shelf 10 is not between 11 and 19"):
        either.encode(Position(10, 0, 3, 7))


def test_a_space_is_walked_by_port_only_if_all_of_its_layouts_can_be():
    assert not space(layout(["port", "onu"]), layout(["port:8 onu:8"])).by_port


@pytest.mark.parametrize(
    ("position", "why"),
    [
        pytest.param(
            Position(0, 0, 3, 129), "is not a valid ONU of this index: onu 129 is not between 1 and 128", id="ONU"
        ),
        pytest.param(
            Position(0, 0, 300), "is not a valid port of this index: port 300 is not between 0 and 255", id="port"
        ),
        pytest.param(Position(1, 0, 3, 7), "it has no shelf", id="shelf"),
        pytest.param(Position(0, 1, 3, 7), "it has no slot", id="slot"),
    ],
)
def test_a_place_that_an_index_cannot_name_is_refused(position, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        space(layout(["port:8", "onu=1..128"])).encode(position)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        pytest.param(["slot", "onu"], "no part is called port", id="no port"),
        pytest.param(["port"], "no part is called onu", id="no ONU"),
        pytest.param(["port", "port", "onu"], "port is repeated", id="a part twice"),
        pytest.param(["onu", "port"], "after the number with onu only fixed numbers may follow", id="the wrong way"),
        pytest.param(["port onu"], "'port' shares its number with other parts: add its number of bits", id="no bits"),
        pytest.param(["spare:8 port:8", "onu"], "'spare:8' has no name: give it a fixed value", id="a loose part"),
        pytest.param(["port:30 onu:8"], "'port:30 onu:8' has 38 bits: a number of an OID has 32", id="too many bits"),
        pytest.param(["port:4=16", "onu"], "'port:4=16' is impossible: 4 bits give 0 to 15", id="a value out of reach"),
        pytest.param(["port=9..3", "onu"], "'port=9..3' is impossible", id="a range the wrong way"),
        pytest.param(["port!", "onu"], "'port!' cannot be read: write name:bits", id="nonsense"),
        pytest.param(["", "port", "onu"], "a line is empty", id="nothing"),
        pytest.param([-1, "port", "onu"], "-1 cannot be part of an OID", id="a number that cannot be"),
    ],
)
def test_a_description_that_cannot_be_is_refused(lines, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        layout(lines)


def test_a_port_is_described_without_an_onu():
    assert layout(["slot:8 port:8"], with_onu=False).decode((0x0203,)) == Position(0, 2, 3)
    with pytest.raises(ValueError, match="a port has no part called onu"):
        layout(["port", "onu"], with_onu=False)
