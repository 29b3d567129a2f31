"""Positions on a map: Web Mercator in whole units, in which a database can group rows into cells."""

import math
from dataclasses import dataclass

# Side of the world in units, and of a tile in pixels at every zoom: 2**30 and 2**8.
WORLD_BITS, TILE_BITS = 30, 8
# Side of a cell in pixels: 2**6. Larger markers would cover each other.
CELL_BITS = 6
MOST_ZOOM = 19
# Cells beside each other in an answer: 1 << 6. A larger area gets larger cells.
MOST_CELL_BITS = 6

# Where the square of the projection ends.
NORTHMOST = 85.05112877980659


class BadArea(ValueError):
    """A text is not an area of the map."""


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the map, in degrees."""

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def parse(cls, text: str) -> "Area":
        """Return the area of west,south,east,north. Raises BadArea."""
        try:
            west, south, east, north = map(float, text.split(","))
        except ValueError as error:
            raise BadArea(text) from error
        if not (-180 <= west <= east <= 180 and -90 <= south <= north <= 90):
            raise BadArea(text)
        return cls(west, south, east, north)


def project(latitude: float, longitude: float) -> tuple[int, int]:
    """Return x from the west and y from the north."""
    sine = math.sin(math.radians(max(-NORTHMOST, min(latitude, NORTHMOST))))
    share_x = (longitude + 180) / 360
    share_y = 0.5 - math.log((1 + sine) / (1 - sine)) / (4 * math.pi)
    world = 1 << WORLD_BITS
    return _inside(int(share_x * world), world), _inside(int(share_y * world), world)


def _inside(units: int, world: int) -> int:
    return max(0, min(units, world - 1))


def cell_bits(area: Area, zoom: int) -> int:
    """Return how many bits of x and y are within a cell, at a zoom and for an area."""
    left, bottom = project(area.south, area.west)
    right, top = project(area.north, area.east)
    by_zoom = WORLD_BITS - TILE_BITS - zoom + CELL_BITS
    by_area = max(right - left, bottom - top).bit_length() - MOST_CELL_BITS
    return max(by_zoom, by_area)
