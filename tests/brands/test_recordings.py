"""Recordings of real devices decode to what was worked out for them, row by row and null by null."""

import pytest
from recorded import column, expected, number, onus_of, recording, said, with_recordings

from facho.brands import BRANDS, brand, candidates
from facho.brands.decode import counter, integer, text
from facho.brands.huawei import CELSIUS, DBM, HUAWEI, decode_port
from facho.brands.zte import ZTE_C300, decode_if_index, decode_pon
from facho.engine.brand import Position
from facho.engine.oid import text as oid_text

pytestmark = with_recordings

IF_DESCR = "1.3.6.1.2.1.2.2.1.2"
IF_NAME = "1.3.6.1.2.1.31.1.1.1.1"
PORT = "1.3.6.1.4.1.2011.6.128.1.1"
BDCOM_PORT = "1.3.6.1.4.1.3320.10.2.1.1"

# The cells of every expected table. `extra` is in words, and looked at apart.
INTEGERS = ("slot", "port", "onu", "in_octets", "out_octets")
NUMBERS = ("rx_dbm", "tx_dbm", "olt_rx_dbm", "distance_m")
WORDS = ("name", "serial", "state", "model")
# The words of an interface for the states of an ONU.
STATES = {"up": "online", "down": "offline"}

RECORDED = {
    "edgeosolt": ("ubiquiti", "edgeosolt", 29),
    "vsolution_v1600d": ("vsol_epon", "vsolution_v1600d", 16),
    "bdcom": ("bdcom_gpon", "bdcom_gp3600", 64),
    "zxa10_c320": ("zte_c300", "zxa10_c320_onu_distance", 125),
}


def should_be(row):
    """Return the cells of an expected row as values; an empty one must be null."""
    cells = {name: int(row[name]) if row[name] else None for name in INTEGERS}
    cells |= {name: number(row[name]) for name in NUMBERS}
    cells |= {name: row[name] or None for name in WORDS}
    return {**cells, "state": STATES.get(cells["state"], cells["state"])}


@pytest.mark.parametrize(("name", "brand_id", "table", "count"), [(name, *rest) for name, rest in RECORDED.items()])
def test_every_onu_of_a_recording_decodes_as_expected(name, brand_id, table, count):
    onus = onus_of(brand(brand_id), recording(name))

    rows = expected(table)
    cells = (*INTEGERS, *NUMBERS, *WORDS)
    assert {index: {cell: onu.get(cell) for cell in cells} for index, onu in onus.items()} == {
        row["index"]: should_be(row) for row in rows
    }
    assert len(onus) == count


def _extra(row):
    return dict(pair.split("=", 1) for pair in row["extra"].split(";") if pair)


def test_how_long_an_onu_of_a_ubiquiti_is_up_decodes_as_expected():
    onus = onus_of(brand("ubiquiti"), recording("edgeosolt"))

    for row in expected("edgeosolt"):
        onu, extra = onus[row["index"]], _extra(row)
        for field in ("connected_s", "uptime_s"):
            assert onu[field] == (int(extra[field]) if field in extra else None), row


def test_how_warm_an_onu_of_a_vsol_is_decodes_as_expected():
    onus = onus_of(brand("vsol_epon"), recording("vsolution_v1600d"))

    should = {row["index"]: float(_extra(row)["temp"].removesuffix(" C")) for row in expected("vsolution_v1600d")}
    assert {index: onu["temperature_c"] for index, onu in onus.items()} == should


@pytest.mark.parametrize(
    ("name", "brand_id"), [("smartax", "huawei"), *((name, rest[0]) for name, rest in RECORDED.items())]
)
def test_the_maker_of_a_recording_is_found_and_answers_its_probe(name, brand_id):
    rows = recording(name)

    found = candidates(*said(rows))

    assert [each.id for each in found] == [brand_id]
    assert column(rows, oid_text(found[0].probe))


@pytest.mark.parametrize("name", ["smartax", *RECORDED])
def test_no_other_maker_answers_the_probe_of_a_recording(name):
    rows = recording(name)
    own = candidates(*said(rows))[0]

    answering = [each.id for each in BRANDS.values() if each.probe and column(rows, oid_text(each.probe))]

    assert answering == [own.id]


def test_interfaces_of_a_bdcom_that_are_no_onus_fall_out():
    place = brand("bdcom_gpon").columns["place"]
    names = column(recording("bdcom"), IF_DESCR)

    onus = {index for index, name in names.items() if place.decode(name)}

    assert onus == {index for index, name in names.items() if b":" in name}
    assert 0 < len(onus) < len(names)


def test_the_ports_of_a_bdcom_decode_as_expected():
    rows = recording("bdcom")

    decoded = [
        {
            "ifIndex": index,
            "name": text(rows[f"{IF_DESCR}.{index}"]),
            "active": str(integer(rows[f"{BDCOM_PORT}.4.{index}"])),
            "inactive": str(integer(rows[f"{BDCOM_PORT}.5.{index}"])),
            "onu_ifindexes": text(rows[f"{BDCOM_PORT}.6.{index}"]) or "",
        }
        for index in column(rows, f"{BDCOM_PORT}.1")
    ]

    assert decoded == expected("bdcom_gp3600_ponports")
    assert len(decoded) == 16


def test_every_onu_that_a_port_of_a_bdcom_lists_is_placed_on_it():
    onus = onus_of(brand("bdcom_gpon"), recording("bdcom"))

    for row in expected("bdcom_gp3600_ponports"):
        listed = [index for index in row["onu_ifindexes"].split(",") if index]
        assert {f"GPON{onus[index]['slot']}/{onus[index]['port']}" for index in listed} <= {row["name"]}
        assert len(listed) == int(row["active"]) + int(row["inactive"])


def test_the_pon_ports_of_a_huawei_decode_as_expected():
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


def test_the_port_table_of_a_huawei_names_its_ports_and_counts_their_onts():
    table = HUAWEI.ports
    counts = {
        table.decode((int(index),)): value for index, value in column(recording("smartax"), oid_text(table.oid)).items()
    }

    assert table.counts
    assert len(counts) == 32
    assert {port: count for port, count in counts.items() if count} == {Position(0, 0, 15): 11}


def test_the_port_table_of_a_zte_has_every_port_on_which_there_are_onus():
    rows = recording("zxa10_c320")
    table = ZTE_C300.ports

    ports = {table.decode((int(index),)) for index in column(rows, oid_text(table.oid))}

    onus = onus_of(ZTE_C300, rows).values()
    assert {Position(1, onu["slot"], onu["port"]) for onu in onus} < ports
    assert not table.counts


def test_only_the_gpon_ports_of_a_huawei_decode_as_such():
    names = column(recording("smartax"), IF_NAME)

    gpon = {index for index in names if decode_port(int(index))}

    assert gpon == {index for index, name in names.items() if name.startswith(b"GPON ")}


def test_the_ports_of_a_zte_decode_in_both_spaces_as_expected():
    rows = expected("zxa10_c320_ports_1012_vs_ifmib")

    for row in rows:
        decode = decode_pon if row["name"].startswith("OLT-") else decode_if_index
        assert decode(int(row["index"])) == Position(1, int(row["slot"]), int(row["port"])), row
    assert len(rows) == 19
