"""Positions on the map: projection, areas and the size of cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.geography import MOST_ZOOM, WORLD_BITS, Area, BadArea, cell_bits, project

WORLD = 1 << WORLD_BITS
LIMA = Area(-77.2, -12.3, -76.8, -11.9)


@pytest.mark.parametrize(
    ("latitude", "longitude", "expected"),
    [
        pytest.param(0, 0, (WORLD // 2, WORLD // 2), id="the middle"),
        pytest.param(85.05112877980659, -180, (0, 0), id="the north-west corner"),
        pytest.param(-85.05112877980659, 180, (WORLD - 1, WORLD - 1), id="the south-east corner"),
        pytest.param(90, 0, (WORLD // 2, 0), id="the pole is at the edge"),
        # In tile 292/546 of zoom 10.
        pytest.param(-12.046374, -77.042793, (307_082_000, 573_068_300), id="Lima"),
    ],
)
def test_a_position_is_projected(latitude, longitude, expected):
    x, y = project(latitude, longitude)

    assert (x, y) == pytest.approx(expected, abs=500)


@pytest.mark.parametrize(
    "text", ["", "1,2,3", "a,b,c,d", "10,0,-10,5", "0,10,5,-10", "-181,0,0,1", "0,nan,1,1", "0,0,1,91"]
)
def test_an_area_that_is_none_is_refused(text):
    with pytest.raises(BadArea):
        Area.parse(text)


@pytest.mark.parametrize(
    ("zoom", "expected"),
    [
        pytest.param(19, 15, id="a large area: no more cells than fit"),
        pytest.param(12, 16, id="64 pixels"),
        pytest.param(0, 28, id="the world has 16 cells"),
    ],
)
def test_cells_grow_with_the_area(zoom, expected):
    assert cell_bits(LIMA, zoom) == expected


@given(
    st.tuples(st.floats(-180, 180), st.floats(-180, 180)).map(sorted),
    st.tuples(st.floats(-90, 90), st.floats(-90, 90)).map(sorted),
    st.integers(0, MOST_ZOOM),
)
def test_no_area_has_many_cells(longitudes, latitudes, zoom):
    area = Area(longitudes[0], latitudes[0], longitudes[1], latitudes[1])
    left, bottom = project(area.south, area.west)
    right, top = project(area.north, area.east)
    bits = cell_bits(area, zoom)

    assert ((right >> bits) - (left >> bits) + 1) * ((bottom >> bits) - (top >> bits) + 1) <= 65**2
