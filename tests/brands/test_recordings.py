"""Recordings of real devices, where there are any at hand: FACHO_RECORDINGS names their folder.

They are not ours to publish. Each comes with what it must decode to, worked out
by others; nothing here shares code with that.
"""

import csv
import os
from pathlib import Path

import pytest

from facho.brands import detect
from facho.brands.decode import counter, scaled, serial, text
from facho.brands.huawei import CELSIUS, DBM, HUAWEI, OLT_DBM, decode_port
from facho.brands.zte import OLT_DBM as ZTE_OLT_DBM
from facho.brands.zte import ONU_DBM, SPACE, XPON_SPACE, ZTE_C300, decode_if_index, decode_pon
from facho.engine.brand import Position
from facho.engine.oid import parse
from facho.engine.oid import text as oid_text

RECORDINGS = Path(os.environ.get("FACHO_RECORDINGS") or "no-recordings")

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="FACHO_RECORDINGS does not name a folder of recordings")

INTEGERS = {"2", "65", "66", "67", "70"}
IF_NAME = "1.3.6.1.2.1.31.1.1.1.1"
PORT = "1.3.6.1.4.1.2011.6.128.1.1"


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
        return [row for row in csv.DictReader(file) if row["vendor"].split(" ")[0] in vendors]


def column(rows, base):
    """Return a column by the rest of its OIDs."""
    return {oid.removeprefix(f"{base}."): value for oid, value in rows.items() if oid.startswith(f"{base}.")}


def number(cell):
    return float(cell) if cell else None


@pytest.mark.parametrize(("name", "profile"), [("smartax", HUAWEI), ("zxa10_c320", ZTE_C300)])
def test_the_maker_of_a_recording_is_found(name, profile):
    rows = recording(name)

    assert detect(rows["1.3.6.1.2.1.1.2.0"], rows["1.3.6.1.2.1.1.1.0"].decode()) is profile


@pytest.mark.parametrize("name", ["bdcom", "edgeosolt", "vsolution_v1600d"])
def test_a_maker_that_is_not_known_is_not_taken_for_another(name):
    rows = recording(name)

    assert detect(rows["1.3.6.1.2.1.1.2.0"], rows["1.3.6.1.2.1.1.1.0"].decode()) is None


def test_the_ports_of_a_huawei_decode_as_expected():
    rows = recording("smartax")

    decoded = []
    for index in column(rows, f"{PORT}.2.21.1.16"):
        position = decode_port(int(index))
        decoded.append(
            (
                (position.shelf, position.slot, position.port),
                text(rows[f"{IF_NAME}.{index}"]),
                rows[f"{PORT}.2.21.1.16.{index}"],
                CELSIUS(rows[f"{PORT}.2.23.1.1.{index}"]),
                DBM(rows[f"{PORT}.2.23.1.4.{index}"]),
                DBM(rows[f"{PORT}.2.23.1.5.{index}"]),
                counter(rows[f"{PORT}.4.21.1.15.{index}"]),
                counter(rows[f"{PORT}.4.21.1.30.{index}"]),
            )
        )

    assert decoded == [
        (
            tuple(map(int, row["frame/slot/port"].split("/"))),
            row["ifName"],
            int(row["ont_num"]),
            number(row["temp_c"]),
            number(row["tx_dbm"]),
            number(row["rx_dbm"]),
            int(row["rx_bytes"]),
            int(row["tx_bytes"]),
        )
        for row in expected("smartax_ponports")
    ]
    assert len(decoded) == 32


def test_only_the_gpon_ports_of_a_huawei_decode_as_such():
    names = column(recording("smartax"), IF_NAME)

    gpon = {index for index in names if decode_port(int(index))}

    assert gpon == {index for index, name in names.items() if name.startswith(b"GPON ")}


def test_the_onus_of_a_zte_decode_as_expected():
    distance = ZTE_C300.columns["distance_m"]

    decoded = {}
    for index, value in column(recording("zxa10_c320"), oid_text(distance.oid)).items():
        position = distance.space.decode(tuple(map(int, index.split("."))))
        decoded[index] = (position.slot, position.port, position.onu, distance.decode(value))

    rows = expected("zxa10_c320_onu_distance")
    assert decoded == {
        row["index"]: tuple(int(row[name]) for name in ("slot", "port", "onu", "distance_m")) for row in rows
    }
    assert len(decoded) == 125


def test_the_ports_of_a_zte_decode_in_both_spaces_as_expected():
    rows = expected("zxa10_c320_ports_1012_vs_ifmib")

    for row in rows:
        decode = decode_pon if row["name"].startswith("OLT-") else decode_if_index
        assert decode(int(row["index"])) == Position(1, int(row["slot"]), int(row["port"])), row
    assert len(rows) == 19


NUMBERS = {
    "olt_rx 51.1.6": OLT_DBM,
    "any DDM": DBM,
    "olt port tx 23.1.4": DBM,
    "olt port volt 23.1.2": scaled(0.01),
    "distance 46.1.20": HUAWEI.columns["distance_m"].decode,
    "onu_rx/tx (1012.3.50.12.1.1.10/.14, 1082.500.20.2.2.2.1.10/.14)": ONU_DBM,
    "olt_rx (1015.1010.11.2.1.2, 1082.500.1.2.4.2.1.2)": ZTE_OLT_DBM,
}


def _huawei_port(raw):
    position = decode_port(int(raw))
    return position and f"{position.shelf}/{position.slot}/{position.port}"


def _zte_port(raw):
    position = decode_pon(int(raw))
    return f"slot {position.slot} port {position.port}"


def _zte_interface(raw):
    position = decode_if_index(int(raw))
    return f"{position.shelf}/{position.slot}/{position.port}"


def _zte_epon(raw):
    position = XPON_SPACE.decode((int(raw),))
    return f"shelf {position.shelf} slot {position.slot} port {position.port} onu {position.onu}"


def _read(row):
    """Return what we make of a vector, and what it should be."""
    field, raw, should = row["field"], row["raw"], row["expected"]
    if field.startswith("serial"):
        return serial(bytes.fromhex(raw)), should
    if field.startswith("eth_ifindex"):
        return _huawei_port(raw), None
    if field in NUMBERS:
        return NUMBERS[field](int(raw)), None if should == "null" else float(should)
    ways = {"pon_ifindex": _huawei_port, "pon_index": _zte_port, "ifIndex": _zte_interface, "onu_index": _zte_epon}
    return ways[field](raw), should.split("_")[-1]


def test_all_vectors_of_the_makers_we_have_come_out_as_they_should():
    rows = vectors("huawei", "any-gpon", "zte-1012", "zte-ifmib", "zte", "zte-epon")

    wrong = [(row, *_read(row)) for row in rows if _read(row)[0] != _read(row)[1]]

    assert not wrong
    assert len(rows) == 37


def test_vectors_of_the_1082_tree_are_not_taken_for_ours():
    rows = vectors("zte-1082")

    assert [row["raw"] for row in rows if SPACE.decode((int(row["raw"]), 1))] == []
    assert len(rows) == 4
