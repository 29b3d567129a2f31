"""Pairs of a raw value and what it must become, gathered from devices, MIBs and programs. None is left out."""

import re

import pytest
from recorded import vectors, with_recordings

from facho.brands import BUILT_IN, brand
from facho.brands.decode import place, scaled, serial
from facho.brands.huawei import DBM, OLT_DBM, decode_port
from facho.brands.zte import OLT_DBM as ZTE_OLT_DBM
from facho.brands.zte import ONU_DBM, SPACE, XPON_SPACE, decode_if_index, decode_pon

pytestmark = with_recordings

# A vector writes a field of ours in the words of its maker.
WORDS = {
    "slot": "slot",
    "lt": "slot",
    "card": "slot",
    "portbyte": "port",
    "pon": "port",
    "ont": "onu",
    "device": "shelf",
}
NAMED = re.compile(r"(\w+) (\d+)")


def decode_of(brand_id, field):
    return brand(brand_id).columns[field].decode


def space_of(brand_id, field=None):
    profile = brand(brand_id)
    return profile.columns[field].space if field else profile.space


# What the value of a column becomes.
NUMBERS = {
    ("huawei", "olt_rx 51.1.6"): OLT_DBM,
    ("huawei", "any DDM"): DBM,
    ("huawei", "olt port tx 23.1.4"): DBM,
    ("huawei", "olt port volt 23.1.2"): scaled(0.01),
    ("huawei", "distance 46.1.20"): decode_of("huawei", "distance_m"),
    ("fiberhome", "olt_rx 9.3.7.1.2"): decode_of("fiberhome", "olt_rx_dbm"),
    ("nokia-isam", "rx/tx 35.10.14.1.2/.4"): decode_of("nokia_isam", "tx_dbm"),
    ("nokia-isam", "rx 35.10.14.1.2"): decode_of("nokia_isam", "rx_dbm"),
    ("nokia-isam", "olt rx 35.10.18.1.2"): decode_of("nokia_isam", "olt_rx_dbm"),
    ("nokia-isam", "olt rx/distance"): decode_of("nokia_isam", "distance_m"),
    ("ubiquiti", "rx"): decode_of("ubiquiti", "rx_dbm"),
    ("ubiquiti", "rx of offline ONU"): decode_of("ubiquiti", "rx_dbm"),
    ("calix-axos", "rx (value/10000 mW)"): decode_of("calix_axos", "rx_dbm"),
    ("vsol-epon", "rx text"): decode_of("vsol_epon", "rx_dbm"),
    ("vsol-epon", "rx text offline"): decode_of("vsol_epon", "rx_dbm"),
    ("bdcom", "rx x0.1"): decode_of("bdcom_gpon", "rx_dbm"),
    ("bdcom", "rx sentinel"): decode_of("bdcom_gpon", "tx_dbm"),
}
ZTE_NUMBERS = {
    "onu_rx/tx": (ONU_DBM, decode_of("zte_c600", "rx_dbm"), decode_of("zte_c600", "tx_dbm")),
    "olt_rx": (ZTE_OLT_DBM, decode_of("zte_c600", "olt_rx_dbm")),
}


def huawei_port(raw):
    return decode_port(raw)


def c600_port(raw):
    # An ONU behind it, since only ONUs are placed.
    return space_of("zte_c600").decode((raw, 7))


def fiberhome_onu(raw):
    # What is behind the ONU, its own port, is not part of where it sits.
    return space_of("fiberhome").decode((raw & ~0xFF,))


# Where the index of a row is.
PLACES = {
    ("huawei", "pon_ifindex"): huawei_port,
    ("zte-1012", "pon_index"): decode_pon,
    ("zte-ifmib", "ifIndex"): decode_if_index,
    ("zte-1082", "index"): c600_port,
    ("zte-epon", "onu_index"): lambda raw: XPON_SPACE.decode((raw,)),
    ("fiberhome-5516", "onuIndex"): fiberhome_onu,
    ("fiberhome-5516", "ponIndex"): lambda raw: space_of("fiberhome", "olt_rx_dbm").decode((raw, 7)),
    ("nokia-isam", "ONT"): lambda raw: space_of("nokia_isam").decode((raw,)),
    ("cdata-nscrtv", "onuDeviceIndex"): lambda raw: space_of("cdata_epon").decode((raw,)),
    ("cdata-fd16xx", "onuDeviceIndex"): lambda raw: space_of("cdata_gpon").decode((raw,)),
}


def check_number(decode, row):
    raw = row["raw"].encode() if "text" in row["field"] else int(row["raw"])
    assert decode(raw) == (None if row["expected"] == "null" else float(row["expected"]))


def check_place(decode, row):
    position = decode(int(row["raw"]))
    if slashes := re.search(r"(\d+)/(\d+)/(\d+)$", row["expected"]):
        assert (position.shelf, position.slot, position.port) == tuple(map(int, slashes.groups()))
    named = [(word, int(value)) for word, value in NAMED.findall(row["expected"])]
    assert slashes or named
    for word, value in named:
        # Racks are always the first; the port of an ONU itself, and a channel, are told apart below.
        if word in ("rack", "channel") or (word == "port" and "pon" in row["expected"] and "onu" in row["expected"]):
            continue
        if word == "shelf" and "channel" in row["expected"]:
            continue
        assert getattr(position, WORDS.get(word, word)) == value, word


def check(row):
    vendor, field = row["vendor"].split(" ")[0], row["field"]
    if field.startswith("serial"):
        assert serial(bytes.fromhex(row["raw"])) == row["expected"]
    elif field.startswith("eth_ifindex"):
        # An uplink is laid out otherwise, and must not be taken for a PON port.
        assert decode_port(int(row["raw"])) is None
    elif field == "ifDescr":
        position = decode_of("bdcom_gpon", "place")(row["raw"].encode())
        assert f"slot {position.slot} port {position.port} onu {position.onu}" == row["expected"]
    elif vendor == "zte":
        for decode in ZTE_NUMBERS[field.split(" ")[0]]:
            check_number(decode, row)
    elif (vendor, field) in NUMBERS:
        check_number(NUMBERS[vendor, field], row)
    else:
        check_place(PLACES[vendor, field.split(" ")[0]], row)


def test_every_vector_comes_out_as_it_should():
    rows = vectors()

    for row in rows:
        check(row)
    assert len(rows) == 68


def test_vectors_of_the_1082_tree_are_not_taken_for_those_of_the_1012_tree():
    rows = vectors("zte-1082")

    assert [row["raw"] for row in rows if SPACE.decode((int(row["raw"]), 1))] == []
    assert len(rows) == 4


def test_a_channel_of_a_port_has_a_shelf_of_its_own():
    assert c600_port(1360052481).shelf == 101
    assert c600_port(1360052482).shelf == 201


def test_a_row_of_a_port_of_an_onu_is_not_the_onu():
    assert space_of("fiberhome").decode((606089733,)) is None


@pytest.mark.parametrize("raw", [b"GPON0/2:29", b"gpon0/2:29"], ids=["large letters", "small letters"])
def test_names_of_interfaces_are_read_whatever_their_letters(raw):
    by_hand = place(re.compile(r"(?P<port>\d+):(?P<onu>\d+)"))

    assert decode_of("bdcom_gpon", "place")(raw) == by_hand(raw)


# The makers of the vectors, as brands of ours.
VENDORS = {
    "huawei": "huawei",
    "zte-1012": "zte_c300",
    "zte-1082": "zte_c600",
    "fiberhome-5516": "fiberhome",
    "nokia-isam": "nokia_isam",
    "ubiquiti": "ubiquiti",
    "calix-axos": "calix_axos",
    "vsol-epon": "vsol_epon",
    "bdcom-gpon": "bdcom_gpon",
    "cdata-nscrtv": "cdata_epon",
    "cdata-fd16xx": "cdata_gpon",
}


def test_every_brand_has_vectors():
    vendors = {row["vendor"].split(" ")[0] for row in vectors()}

    # Nobody has seen a row of this one: it is experimental, and tried on rows of our own.
    assert {VENDORS[vendor] for vendor in vendors & set(VENDORS)} == set(BUILT_IN) - {"cdata_fd11"}
