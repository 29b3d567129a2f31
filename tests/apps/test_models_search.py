"""What a search finds, in each spelling that people write."""

import pytest
from cast import BOSS, make_olt, make_onu
from django.db import connection

from facho.apps.inventory.models import Olt, Site
from facho.apps.inventory.search import matching_olts, normal
from facho.apps.telemetry.models import Onu, OnuSearch, PonPort
from facho.apps.telemetry.search import Place, Search, Word, exact, find, matching, matching_ports, places

pytestmark = pytest.mark.django_db


@pytest.fixture
def olts(db):
    site = Site.objects.create(name="Almacén")
    return [
        make_olt("OLT-CENTRAL-01", host="10.20.0.5", location="Lima Norte"),
        make_olt("San Martín", host="10.20.0.50", site=site),
        make_olt(
            "OLT-SUR-03", host="olt-sur.example.net", resolved_name="olt-sur.example.net", addresses="2001:db8::7"
        ),
    ]


@pytest.fixture
def onus(olts):
    """Four ONUs, by the names of the test cases."""
    central, martin, sur = olts
    return {
        "maria": make_onu(
            central, 23, slot=1, port=9, name="Pérez Ñáñez, María José", description="CTO-12 O'Higgins 4/7",
            serial="HWTC1234ABCD", mac="00:11:22:aa:bb:cc",
        ),
        "jose": make_onu(martin, 23, slot=1, port=9, name="JOSÉ PEREZ", serial="ZTEGC0FFEE01", mac="dc:1a:c5:01:02:03"),
        "martin": make_onu(sur, 3, slot=0, port=1, name="Martín Straße 100%", serial="4857000012345678"),
        "cyrillic": make_onu(sur, 4, slot=11, port=9, name="Иванов", serial=None, mac=None, description="x_y"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("maría", "maria", id="a word"),
        pytest.param("MARIA", "maria", id="without accents, in capitals"),
        pytest.param("nanez", "maria", id="without a tilde"),
        pytest.param("Jose\u0301", "maria jose", id="an accent of its own, as a Mac writes it"),
        pytest.param("josé maría", "maria", id="words in any order"),
        pytest.param("perez jose", "maria jose", id="words in any order, in several names"),
        pytest.param("ere", "maria jose", id="inside of a word"),
        pytest.param("maria zzz", "", id="not each word"),
        pytest.param("cto 12", "maria", id="a space for a dash"),
        pytest.param("o higgins", "maria", id="a space for an apostrophe"),
        pytest.param("strasse", "martin", id="ss for ß"),
        pytest.param("ИВАНОВ", "cyrillic", id="another script"),
        pytest.param("p", "maria jose", id="one letter starts a word"),
        pytest.param("pe", "maria jose", id="two letters start a word"),
        pytest.param("er", "", id="two letters inside of a word"),
        pytest.param("maria j", "maria", id="one letter after a word"),
        pytest.param("z", "jose", id="a letter that starts a serial"),
        pytest.param("q", "", id="a letter that no word starts with"),
        pytest.param("100%", "martin", id="a percent sign is no wildcard"),
        pytest.param("x_y", "cyrillic", id="nor is an underscore"),
        pytest.param("x%y", "cyrillic", id="punctuation is a space"),
        pytest.param("%", "", id="nothing but punctuation"),
        pytest.param('"maria" -', "maria", id="quotes and dashes do not count"),
        pytest.param("hwtc1234abcd", "maria", id="serial"),
        pytest.param("HWTC-1234ABCD", "maria", id="serial with a dash"),
        pytest.param("HWTC:1234ABCD", "maria", id="serial with a colon"),
        pytest.param("HWTC 1234ABCD", "maria", id="serial with a space"),
        pytest.param("485754431234ABCD", "maria", id="serial in hex"),
        pytest.param("0x485754431234ABCD", "maria", id="serial in hex with a prefix"),
        pytest.param("48575443-1234abcd", "maria", id="serial in hex with a dash"),
        pytest.param("48 57 54 43 12 34 AB CD", "maria", id="serial in hex with spaces"),
        pytest.param("c0ffee", "jose", id="a part of a serial"),
        pytest.param("4857000012345678", "martin", id="serial that is hex"),
        pytest.param("00:11:22:aa:bb:cc", "maria", id="MAC with colons"),
        pytest.param("00-11-22-AA-BB-CC", "maria", id="MAC with dashes"),
        pytest.param("0011.22aa.bbcc", "maria", id="MAC with points"),
        pytest.param("0011-22aa-bbcc", "maria", id="MAC in groups of four with dashes"),
        pytest.param("00.11.22.aa.bb.cc", "maria", id="MAC in pairs with points"),
        pytest.param("00 11 22 aa bb cc", "maria", id="MAC with spaces"),
        pytest.param("001122aabbcc", "maria", id="MAC without anything"),
        pytest.param("22:aa:b", "maria", id="a part of a MAC, while it is typed"),
        pytest.param("22aa.bb", "maria", id="a part of a MAC with points"),
        pytest.param("dc-1a", "jose", id="the vendor of a MAC"),
        pytest.param("1/9/23", "maria jose", id="place"),
        pytest.param("1/9:23", "maria jose", id="place with a colon"),
        pytest.param("0/1/9/23", "maria jose", id="place with a frame"),
        pytest.param("0/1/9:23", "maria jose", id="place as Huawei writes it"),
        pytest.param("gpon-onu_1/1/9:23", "maria jose", id="place as ZTE writes it"),
        pytest.param("1/9", "maria jose", id="port"),
        pytest.param("0/1/9", "maria jose", id="port with a frame"),
        pytest.param("gpon-olt_1/1/9", "maria jose", id="port as ZTE writes it"),
        pytest.param("1/9/2", "", id="the start of a number is another place"),
        pytest.param("0/1/3", "martin", id="slot 0"),
        pytest.param("4/7", "maria", id="a place in a description"),
        pytest.param("central 1/9/23", "maria", id="OLT and place"),
        pytest.param("1/9/23 OLT-CENTRAL-01", "maria", id="place and OLT"),
        pytest.param("10.20.0.5 perez", "maria jose", id="address of an OLT, which starts another, and word"),
        pytest.param("martin", "martin", id="a word that an OLT has too, without all of its ONUs"),
        pytest.param("san martín", "jose", id="the complete name of an OLT finds all of its ONUs"),
        pytest.param("10.20.0.5", "maria", id="the complete address of an OLT"),
        pytest.param("2001:DB8:0::7", "martin cyrillic", id="the resolved address of an OLT, spelled differently"),
        pytest.param("olt-central", "", id="a part of the name of an OLT"),
    ],
)  # fmt: skip
def test_onus_are_found_in_each_spelling(onus, text, expected):
    names = {onu.pk: name for name, onu in onus.items()}

    assert {names[onu.pk] for onu in matching(Onu.objects.all(), text)} == set(expected.split())


def test_an_empty_search_is_no_filter(onus):
    assert matching(Onu.objects.all(), "  ").count() == len(onus)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("maria " * 11, id="too many words"),
        pytest.param("m" * 201, id="too many characters"),
        pytest.param("\x00\x01", id="control characters"),
    ],
)
def test_what_cannot_be_searched_finds_nothing(onus, text):
    assert not matching(Onu.objects.all(), text).exists()
    assert not matching_olts(Olt.objects.all(), text).exists()
    assert not matching_ports(PonPort.objects.all(), text).exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("sur", ["OLT-SUR-03"], id="a part of the name"),
        pytest.param("03 olt", ["OLT-SUR-03"], id="words in any order"),
        pytest.param("SAN MARTIN", ["San Martín"], id="without accents, in capitals"),
        pytest.param("10.20.0.5", ["OLT-CENTRAL-01", "San Martín"], id="address, and one that it starts"),
        pytest.param("2001:db8:0:0::7", ["OLT-SUR-03"], id="another spelling of the resolved address"),
        pytest.param("lima central", ["OLT-CENTRAL-01"], id="location"),
        pytest.param("almacen", ["San Martín"], id="site"),
        pytest.param("1/9", [], id="no place"),
    ],
)
def test_olts_are_found(olts, text, expected):
    found = matching_olts(Olt.objects.all(), text)

    assert sorted(found.values_list("name", flat=True)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1/9", ["OLT-CENTRAL-01 1/9", "San Martín 1/9"], id="on each OLT"),
        pytest.param("central 1/9", ["OLT-CENTRAL-01 1/9"], id="on an OLT"),
        pytest.param("0/1/9 martin", ["San Martín 1/9"], id="with a frame"),
        pytest.param("1/1/9 martin", ["San Martín 1/9"], id="with a shelf from 1"),
        pytest.param("San Martín", ["San Martín 1/10", "San Martín 1/9"], id="all of an OLT"),
        pytest.param("martin", [], id="a part of the name of an OLT"),
        pytest.param("1/9/23", [], id="an ONU"),
    ],
)
def test_ports_are_found(olts, text, expected):
    central, martin, _sur = olts
    for olt, port in ((central, 9), (central, 10), (martin, 9), (martin, 10)):
        PonPort.objects.create(olt=olt, slot=1, port=port)

    found = matching_ports(PonPort.objects.select_related("olt"), text)

    assert sorted(str(port) for port in found) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("HWTC-1234ABCD", "maria", id="serial"),
        pytest.param("hwtc 1234abcd", "maria", id="serial with a space"),
        pytest.param("485754431234abcd", "maria", id="serial in hex"),
        pytest.param("0011.22aa.bbcc", "maria", id="MAC"),
        pytest.param("central 1/9/23", "maria", id="OLT and place"),
        pytest.param("0/1/3", "martin", id="place of one ONU"),
        pytest.param("1/9/23", None, id="place of two ONUs"),
        pytest.param("1234abcd", None, id="a part of a serial"),
        pytest.param("00:11:22", None, id="a part of a MAC"),
        pytest.param("0011.22aa.bbcc maria", None, id="and another word"),
        pytest.param("straße", None, id="a name of one ONU"),
    ],
)
def test_a_serial_mac_or_place_of_one_onu_means_it(onus, text, expected):
    search = Search(text)

    found = exact(search, find(search, BOSS, 10)["onus"].rows)

    assert found == (onus[expected] if expected else None)


def test_a_missing_onu_gives_way_to_the_one_at_its_place(onus):
    old = onus["martin"]
    Onu.objects.filter(pk=old.pk).update(missing_since=old.first_seen_at, place_taken=True)
    new = make_onu(old.olt, 3, index="new", slot=0, port=1, serial="HWTC99999999")
    search = Search("0/1/3")

    rows = find(search, BOSS, 10)["onus"].rows

    assert rows == [new, old]
    assert exact(search, rows) == new


def test_whole_words_come_first(olts):
    names = ["Anamaria", "Mariana", "Ana Maria", "Rosa"]
    for number, name in enumerate(names):
        make_onu(olts[0], number, name=name)

    found = find(Search("maria"), BOSS, 10)["onus"]

    assert [onu.name for onu in found.rows] == ["Ana Maria", "Mariana", "Anamaria"]
    assert (found.count, found.is_counted, found.more) == (3, True, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Jr. Los Álamos N° 12-B", "jr los alamos n 12 b", id="accents and punctuation"),
        pytest.param("ﬁbra Ａ ½", "fibra a 1 2", id="compatible forms"),
        pytest.param("İstanbul", "istanbul", id="a capital that has no small letter of its own"),
        pytest.param("tab\tline\nbell\x07", "tab line bell", id="control characters"),
        pytest.param("1/9 a/b", "1qz9 a b", id="a slash between digits"),
    ],
)
def test_texts_are_compared_without_what_does_not_matter(text, expected):
    assert normal(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/9", [Place(1, 9)]),
        ("1/9/", [Place(1, 9)]),
        ("1/9/23", [Place(1, 9, 23)]),
        ("0/1/9", [Place(0, 1, 9), Place(1, 9)]),
        ("0/1/9/23", [Place(1, 9, 23)]),
        ("gpon-olt_1/2/3", [Place(2, 3)]),
        ("1/2/3/4/5", []),
        ("1/2/3/4:5", []),
        ("1/x", []),
        ("12", []),
    ],
)
def test_places_are_read(text, expected):
    assert places(Word.of(text)) == expected


@pytest.mark.parametrize("text", ["maria perez", "1/9/23", "00:11:22", "central maria", "pe maria"])
def test_a_search_uses_the_index(onus, text):
    found = Search(text).texts()

    if connection.vendor == "sqlite":
        plan = found.explain()
        assert "onu_search_index VIRTUAL TABLE INDEX" in plan
        assert "SCAN onu_search\n" not in f"{plan}\n"
    else:
        # So few rows are read faster without it.
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
        assert "Bitmap Index Scan on onu_search_index" in found.explain()


def test_a_deleted_onu_is_not_found(onus):
    onus["maria"].delete()
    onus["jose"].olt.delete()

    assert OnuSearch.objects.count() == 2
    assert not matching(Onu.objects.all(), "perez").exists()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM onu_search_index WHERE onu_search_index MATCH 'per'")
            assert cursor.fetchone() == (0,)
