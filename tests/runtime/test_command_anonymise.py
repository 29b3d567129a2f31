"""What an anonymised recording gives away: nothing but shapes."""

import re

import pytest
from probe_fakes import make_brand

from facho.adapters.snmp.snmprec import Record
from facho.brands import brand
from facho.brands.decode import mac, serial, text
from facho.engine.brand import OPAQUE, Column
from facho.engine.oid import Oid, arcs, pack, parse
from facho.engine.snmp import Tag
from facho.runtime.commands.anonymise import Anonymiser

HUAWEI = brand("huawei")
NAMES = HUAWEI.columns["name"].oid
MODELS = HUAWEI.columns["model"].oid


@pytest.fixture
def anonymiser():
    return Anonymiser(HUAWEI, key=b"always the same")


@pytest.mark.parametrize(
    ("raw", "kept", "shape"),
    [
        pytest.param(b"HWTC\x7d\x46\x30\xc3", 4, b"HWTC.{4}", id="four letters and four bytes"),
        pytest.param(b"ubnt7d4630c3", 4, rb"ubnt\d[a-f]\d\d\d\d[a-f]\d", id="as text"),
        pytest.param(b"485754437D4630C3", 8, rb"48575443\d[A-F]\d\d\d\d[A-F]\d", id="as hexadecimal text"),
        pytest.param(b"BDCM:7D4630C3", 4, rb"BDCM:\d[A-F]\d\d\d\d[A-F]\d", id="with a colon between"),
    ],
)
def test_a_serial_keeps_its_maker_and_its_shape(anonymiser, raw, kept, shape):
    changed = anonymiser.serial(raw)

    assert changed != raw
    assert changed[:kept] == raw[:kept]
    assert re.fullmatch(shape, changed, re.DOTALL)
    assert serial(changed) is not None
    assert serial(changed) != serial(raw)


@pytest.mark.parametrize(
    "raw", [pytest.param(b"\x00\x25\x9e\x77\xe6\xea", id="six bytes"), pytest.param(b"00:25:9E:77:E6:EA", id="text")]
)
def test_a_mac_keeps_its_maker(anonymiser, raw):
    changed = anonymiser.mac(raw)

    assert mac(changed) != mac(raw)
    assert mac(changed)[:8] == mac(raw)[:8] == "00:25:9e"


@pytest.mark.parametrize(
    ("name", "charset"),
    [
        pytest.param("Jose Rios - Calle 320", "ascii", id="plain"),
        pytest.param("María Ñuñez 12", "utf-8", id="UTF-8"),
        pytest.param("María Núñez", "latin-1", id="latin-1"),
        pytest.param("Иван Петров", "cp1251", id="Cyrillic"),
        pytest.param("你好王先生", "gbk", id="Chinese"),
        pytest.param("客户 😀", "utf-8", id="characters of three and four bytes"),
    ],
)
def test_a_name_keeps_its_length_its_blanks_and_its_charset(anonymiser, name, charset):
    raw = name.encode(charset)

    changed = anonymiser.text(raw)

    assert len(changed) == len(raw)
    assert text(changed) != text(raw)
    assert len(text(changed)) == len(text(raw))
    assert [place for place, char in enumerate(changed) if char == 0x20] == [
        place for place, char in enumerate(raw) if char == 0x20
    ]


def test_the_same_value_becomes_the_same_everywhere_in_one_recording_and_another_in_the_next(anonymiser):
    assert anonymiser.text(b"Maria") == anonymiser.text(b"Maria")
    assert anonymiser.serial(b"UBNT7D4630C3").lower() == anonymiser.serial(b"ubnt7d4630c3")
    assert Anonymiser(HUAWEI).text(b"Maria Rios Castillo") != Anonymiser(HUAWEI).text(b"Maria Rios Castillo")


def test_only_what_tells_people_apart_is_changed(anonymiser):
    records = [
        Record(parse("1.3.6.1.2.1.1.1.0"), Tag.OCTET_STRING, b"Huawei Integrated Access Software"),
        Record(parse("1.3.6.1.2.1.1.5.0"), Tag.OCTET_STRING, b"OLT-CENTRAL-01"),
        Record(Oid(NAMES + pack((4194304000, 7))), Tag.OCTET_STRING, b"Maria Rios"),
        Record(Oid(MODELS + pack((4194304000, 7))), Tag.OCTET_STRING, b"HG8310M"),
        Record(Oid(HUAWEI.columns["distance_m"].oid + pack((4194304000, 7))), Tag.INTEGER, 7344),
    ]

    changed = anonymiser(records)

    assert [record.oid for record in changed] == [record.oid for record in records]
    assert [one.value == other.value for one, other in zip(records, changed, strict=True)] == [
        True,
        False,
        False,
        True,
        True,
    ]


def test_addresses_become_ones_that_are_nobodys(anonymiser):
    (changed,) = anonymiser([Record(parse("1.3.6.1.4.1.1.1.0"), Tag.IP_ADDRESS, bytes((10, 20, 30, 40)))])

    assert changed.value[:3] == bytes((192, 0, 2))


def test_a_serial_that_is_the_index_is_changed_there_as_it_is_in_its_column():
    names = Column("name", parse("1.3.6.1.4.1.99999.9.2"), text, OPAQUE)
    serials = Column("serial", parse("1.3.6.1.4.1.99999.9.1"), serial, OPAQUE)
    anonymiser = Anonymiser(make_brand(columns={"serial": serials, "name": names}))
    index = pack((12, *b"ubnt7d4630c3"))

    changed = anonymiser(
        [
            Record(Oid(serials.oid + index), Tag.OCTET_STRING, b"ubnt7d4630c3"),
            Record(Oid(names.oid + index), Tag.OCTET_STRING, b"Maria"),
        ]
    )

    for record, column in zip(changed, (serials, names), strict=True):
        length, *letters = arcs(record.oid)[len(arcs(column.oid)) :]
        assert (length, bytes(letters)) == (12, changed[0].value)
    assert changed[0].value != b"ubnt7d4630c3"
