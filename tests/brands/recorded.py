"""Recordings of real devices, where there are any at hand: FACHO_RECORDINGS names their folder.

They are not ours to publish. Each comes with what it must decode to, worked out
by others; nothing here shares code with that.
"""

import csv
import os
from pathlib import Path

import pytest

from facho.engine.brand import Position
from facho.engine.oid import parse, text

RECORDINGS = Path(os.environ.get("FACHO_RECORDINGS") or "no-recordings")
INTEGERS = {"2", "65", "66", "67", "70"}

with_recordings = pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason="FACHO_RECORDINGS does not name a folder of recordings"
)


def recording(name):
    """Return the values of a recording by OID."""
    rows = {}
    for line in (RECORDINGS / f"{name}.snmprec").read_text(encoding="utf-8").splitlines():
        oid, tag, value = line.split("|", 2)
        rows[oid] = _value(tag, value)
    return rows


def _value(tag, value):
    if tag in INTEGERS:
        return int(value)
    if tag == "6":
        return parse(value)
    return bytes.fromhex(value) if tag.endswith("x") else value.encode()


def expected(name):
    with (RECORDINGS / "expected" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def vectors(*vendors):
    with (RECORDINGS.parent / "vendors" / "vectors.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if not vendors or row["vendor"].split(" ")[0] in vendors]


def column(rows, base):
    """Return a column by the rest of its OIDs."""
    return {oid.removeprefix(f"{base}."): value for oid, value in rows.items() if oid.startswith(f"{base}.")}


def number(cell):
    return float(cell) if cell else None


def said(rows):
    """Return what a device says of itself: sysObjectID and sysDescr."""
    return rows["1.3.6.1.2.1.1.2.0"], rows["1.3.6.1.2.1.1.1.0"].decode()


def onus_of(brand, rows):
    """Return the ONUs of a recording by index, each with its place and the values that its columns make of it.

    Columns are joined by place; a column that places ONUs says which rows there are.
    """
    read = {}
    for each in brand.columns.values():
        for index, value in column(rows, text(each.oid)).items():
            place = each.space.decode(tuple(map(int, index.split("."))))
            if place is not None:
                read.setdefault(place, {})[each.field] = each.decode(value)
    placing = [each.field for each in brand.columns.values() if each.places]
    onus = {}
    for place, values in read.items():
        if all(values.get(field) is not None for field in placing):
            index = ".".join(map(str, brand.space.encode(place)))
            onus[index] = _finished(brand, values.pop(placing[0]) if placing else place, values)
    return onus


def _finished(brand, place, values):
    values = brand.finish(values) if brand.finish else values
    at = {name: getattr(place, name) if isinstance(place, Position) else None for name in ("slot", "port", "onu")}
    return {**at, **values}
