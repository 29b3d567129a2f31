"""Raw values into ours: what each decoder makes of real values, of sentinels, and of nonsense."""

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.brands import BRANDS
from facho.brands.decode import (
    RAW_DECODERS,
    UNKNOWN,
    cause,
    choice,
    counter,
    date,
    date_in_text,
    mac,
    milliwatts,
    number_at,
    number_in_text,
    place,
    power,
    scaled,
    serial,
    signed_16,
    text,
    whole,
    word,
)
from facho.engine.brand import ONU_FIELDS, Position
from facho.engine.oid import parse
from facho.engine.snmp import Missing

values = st.one_of(
    st.none(),
    st.sampled_from(Missing),
    st.integers(),
    st.binary(max_size=40),
    # Lengths at which decoders look closer.
    *(st.binary(min_size=size, max_size=size) for size in (4, 6, 8, 11, 12, 16)),
)
decoders = st.sampled_from(
    [raw.decode for raw in RAW_DECODERS.values()]
    + [column.decode for brand in BRANDS.values() for column in brand.columns.values()]
)


@given(decode=decoders, value=values)
def test_no_decoder_raises_whatever_an_agent_answers(decode, value):
    decode(value)


@pytest.mark.parametrize("missing", [None, *Missing], ids=str)
def test_what_is_missing_is_none_for_every_decoder(missing):
    columns = [column.decode for brand in BRANDS.values() for column in brand.columns.values()]
    raw = [decoder.decode for decoder in RAW_DECODERS.values()]

    assert {decode(missing) for decode in columns + raw} == {None}


@given(name=st.sampled_from(sorted(RAW_DECODERS)), value=values)
def test_what_a_raw_decoder_gives_can_be_stored_as_json(name, value):
    decoded = RAW_DECODERS[name].decode(value)

    assert json.loads(json.dumps(decoded, allow_nan=False)) == decoded


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("integer", -7, -7),
        ("tenths", -231, -23.1),
        ("hundredths", 711, 7.11),
        ("thousandths", -28544, -28.544),
        ("number", b"0.03 mW", 0.03),
        ("counter", 2**40, 2**40),
        ("truth", 2, "no"),
        ("seconds", 12345, 123.45),
        ("text", b"OLT-1 ", "OLT-1"),
        ("hex", b"\xf4\x4c", "f44c"),
        ("mac", b"\xf4\x4c\x7f\x24\x1a\xf0", "f4:4c:7f:24:1a:f0"),
        ("ip", b"\x0a\x00\x00\x01", "10.0.0.1"),
        ("serial", bytes.fromhex("485754437d4630c3"), "HWTC7D4630C3"),
        ("date", bytes.fromhex("07e8030a0c1e0f05"), "2024-03-10T12:30:15.500000+00:00"),
        ("oid", parse("1.3.6.1.4.1.2011.2.123"), "1.3.6.1.4.1.2011.2.123"),
    ],
)
def test_an_admin_can_read_a_raw_oid_as(name, value, expected):
    assert RAW_DECODERS[name].decode(value) == expected


def test_every_raw_decoder_is_listed_under_its_own_name_with_a_label():
    assert [decoder.name for decoder in RAW_DECODERS.values()] == list(RAW_DECODERS)
    assert all(decoder.label for decoder in RAW_DECODERS.values())


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(bytes.fromhex("485754437d4630c3"), "HWTC7D4630C3", id="eight octets"),
        pytest.param(bytes.fromhex("4344544350573a79"), "CDTC50573A79", id="eight octets that happen to be printable"),
        pytest.param(b"HWTC&BY ", "HWTC26425920", id="a blank at the end is part of it"),
        pytest.param(b"HWTC\x01\x02\x03\x00", "HWTC01020300", id="so is a zero"),
        pytest.param(b"\xdd\x72\xe6\x8f\x39\xe5\x00\x01", "DD72E68F39E50001", id="a vendor that is no text"),
        pytest.param(b"HWTC7d4630c3", "HWTC7D4630C3", id="written out already"),
        pytest.param(b'"HWTC7D4630C3"\x00', "HWTC7D4630C3", id="written out, with quotes and a zero"),
        pytest.param(b"485754437D4630C3", "HWTC7D4630C3", id="sixteen hex digits"),
        pytest.param(bytes(8), None, id="all zero"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b"HWTC7D46", "HWTC37443436", id="eight characters are eight octets"),
        pytest.param(b"HWTC7D4630CX", None, id="no hex digits"),
        pytest.param(7, None, id="a number"),
    ],
)
def test_a_serial_is_read_from_its_octets(raw, expected):
    assert serial(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("Peña Núñez".encode(), "Peña Núñez", id="utf-8"),
        pytest.param("Peña Núñez".encode("latin-1"), "Peña Núñez", id="Spanish in latin-1"),
        pytest.param("PEÑÓN".encode("latin-1"), "PEÑÓN", id="two accents together"),
        pytest.param("Иванов кв. 5".encode("cp1251"), "Иванов кв. 5", id="Russian in cp1251"),
        pytest.param("ул. Ёлкина 3".encode("cp1251"), "ул. Ёлкина 3", id="with the letter that stands apart"),
        pytest.param("阳光小区A座".encode("gbk"), "阳光小区A座", id="Chinese in GBK"),
        pytest.param(b"\xff\xfe\x98\xff", "ÿþ\x98ÿ", id="no encoding fits: latin-1"),
        pytest.param(b"casa\x00\x00 \x00", "casa", id="zeros and blanks at the end"),
        pytest.param(b"ca\x00sa", "casa", id="a zero inside"),
        pytest.param(b"  ", None, id="nothing but blanks"),
        pytest.param(b"", None, id="empty"),
        pytest.param(5, None, id="a number"),
    ],
)
def test_text_is_read_in_the_encoding_it_was_most_likely_written_in(raw, expected):
    assert text(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("07e8030a0c1e0f00", datetime(2024, 3, 10, 12, 30, 15, tzinfo=UTC), id="no zone: UTC"),
        pytest.param("07e8030a0c1e0f002d0500", datetime(2024, 3, 10, 17, 30, 15, tzinfo=UTC), id="five hours behind"),
        pytest.param("07e8030a0c1e0f002b051e", datetime(2024, 3, 10, 7, 0, 15, tzinfo=UTC), id="five and a half ahead"),
        pytest.param("07e8030a0c1e0f00000000", datetime(2024, 3, 10, 12, 30, 15, tzinfo=UTC), id="a zone of zeros"),
        pytest.param("07e8030a0c1e0f09", datetime(2024, 3, 10, 12, 30, 15, 900_000, tzinfo=UTC), id="tenths"),
        pytest.param("07e80c1f173b3c00", datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC), id="a leap second"),
        pytest.param("0000000000000000", None, id="all zero"),
        pytest.param("07e70d0a0c1e0f00", None, id="month 13"),
        pytest.param("07e7021d0c1e0f00", None, id="29 February of no leap year"),
        pytest.param("0001010100000000" + "2b0e00", None, id="before the first year"),
        pytest.param("07e8030a0c1e0f00580500", None, id="a zone neither ahead nor behind"),
        pytest.param("07e8030a0c1e0f", None, id="seven octets"),
    ],
)
def test_a_date_is_read_in_utc(raw, expected):
    assert date(bytes.fromhex(raw)) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"\x00\x25\x9e\x0a\x1b\x2c", "00:25:9e:0a:1b:2c", id="six octets"),
        pytest.param(b"00:25:9E:0A:1B:2C", "00:25:9e:0a:1b:2c", id="text with colons"),
        pytest.param(b"0025.9e0a.1b2c", "00:25:9e:0a:1b:2c", id="text with dots"),
        pytest.param(b"00259E0A1B2C\x00", "00:25:9e:0a:1b:2c", id="text without anything"),
        pytest.param(bytes(6), None, id="all zero"),
        pytest.param(b"00:25:9E:0A:1B", None, id="too short"),
    ],
)
def test_a_mac_is_read_from_octets_and_from_text(raw, expected):
    assert mac(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(0, 0, id="zero is a count"),
        pytest.param(2**40, 2**40, id="more than 32 bits"),
        pytest.param(2**64 - 1, None, id="all ones are no count"),
        pytest.param(-1, None, id="negative"),
        pytest.param(b"12", None, id="text"),
    ],
)
def test_a_counter_is_a_count(raw, expected):
    assert counter(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"-21.50(dBm)", -21.5, id="with a unit"),
        pytest.param(-3, -3.0, id="a number as it is"),
        pytest.param(b"--", None, id="no number in it"),
        pytest.param(b"9" * 400, None, id="too large for a number"),
    ],
)
def test_a_number_is_found_in_text(raw, expected):
    assert number_in_text(raw) == expected


def test_a_scaled_number_has_no_float_noise_no_sentinel_and_no_nonsense():
    decode = scaled(0.01, -100, none=(UNKNOWN,), low=-60, high=20)

    assert [decode(raw) for raw in (8775, 8413, UNKNOWN, 0, 10**30, b"8775")] == [
        -12.25,
        -15.87,
        None,
        None,
        None,
        None,
    ]


def test_a_power_that_no_transceiver_measures_is_none():
    decode = power(0.01)

    assert [decode(raw) for raw in (-6000, -6001, 2000, 2001)] == [-60.0, None, 20.0, None]


def test_words_for_numbers():
    state = choice({1: "online"}, other="unknown")
    admin = choice({1: "enabled"})
    reason = cause({13: "dying_gasp"}, none=(-1,))
    metres = whole(none=(-1,))

    assert [state(1), state(9), state(b"1")] == ["online", "unknown", None]
    assert [admin(1), admin(9)] == ["enabled", None]
    assert [reason(13), reason(99), reason(-1), reason(b"13")] == ["dying_gasp", "code_99", None, None]
    assert [metres(0), metres(-1), metres(b"0")] == [0, None, None]


@given(value=values, column=st.sampled_from([each for brand in BRANDS.values() for each in brand.columns.values()]))
def test_what_a_field_of_one_maker_gives_can_be_stored_as_json(value, column):
    if column.field not in ONU_FIELDS and not column.places:
        decoded = column.decode(value)
        assert json.loads(json.dumps(decoded, allow_nan=False)) == decoded


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"2024-12-23 10:34:15", datetime(2024, 12, 23, 10, 34, 15, tzinfo=UTC), id="with dashes"),
        pytest.param(b"2024/5/1 1:02:03", datetime(2024, 5, 1, 1, 2, 3, tzinfo=UTC), id="with slashes, without zeros"),
        pytest.param(b"since 2024-12-23T10:34:15Z", datetime(2024, 12, 23, 10, 34, 15, tzinfo=UTC), id="inside a text"),
        pytest.param(b"2024-13-23 10:34:15", None, id="a month that is none"),
        pytest.param(b"0000-00-00 00:00:00", None, id="never"),
        pytest.param(b"N/A", None, id="none"),
        pytest.param(20241223, None, id="a number"),
    ],
)
def test_a_date_that_is_written_out_is_read(raw, expected):
    assert date_in_text(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"Dying-Gasp", "dying_gasp"),
        (b"LOS", "los"),
        (b" LOSi/LOBi ", "losi_lobi"),
        (b"--", None),
        (b"N/A", None),
        (b"", None),
        (7, None),
    ],
)
def test_a_text_becomes_a_word(raw, expected):
    assert word(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [(301, -15.21), (10_000, 0.0), (1, -40.0), (0, None), (-5, None), (UNKNOWN, None), (b"1", None)],
)
def test_milliwatts_become_power(raw, expected):
    assert milliwatts(0.0001)(raw) == expected


def test_milliwatts_that_no_transceiver_gives_are_no_power():
    assert milliwatts(1)(1000) is None
    assert milliwatts(1e-9)(1) is None
    assert milliwatts(1, none=(7,))(7) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [(30000, 30000), (30001, -35535), (65534, -2), (65535, None), (65536, 65536), (-5, -5), (b"", None)],
)
def test_a_number_of_16_bits_has_a_sign(raw, expected):
    assert signed_16(scaled(1, digits=0))(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"(-14.61 dBm)", -14.61),
        (b"(-14.61 dBm) (3.0 dBm)", -14.61),
        (b"(-65535 dBm)", None),
        (b"(1..2 dBm)", None),
        (b"dBm", None),
        (-14, None),
    ],
)
def test_a_number_is_found_in_a_text(raw, expected):
    assert number_at(re.compile(r"\((-?[\d.]+) dBm\)"), low=-60, high=20)(raw) == expected


def test_a_number_in_a_text_that_is_too_large_for_any_bound_is_none():
    decode = number_at(re.compile(r"(\d+)"), low=-float("inf"), high=float("inf"))

    assert decode(b"9" * 400) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"1/2/3:7", Position(1, 2, 3, 7)),
        (b"2/3:7", Position(0, 2, 3, 7)),
        (b"3:7", None),
        (b"1/2/3", None),
        (None, None),
    ],
)
def test_a_place_is_found_in_a_text(raw, expected):
    pattern = re.compile(r"^(?:(?P<shelf>\d+)/)?(?P<slot>\d+)/(?P<port>\d+):(?P<onu>\d+)$")

    assert place(pattern)(raw) == expected


def test_a_part_of_a_place_that_is_missing_is_no_place():
    assert place(re.compile(r"(?P<port>\d+)(:(?P<onu>\d+))?"))(b"3") is None
    assert place(re.compile(r"(?P<port>.+):(?P<onu>.+)"))(b"a:b") is None


def test_a_whole_number_is_whole_whatever_it_is_made_from():
    assert isinstance(scaled(0.01, digits=0)(302325200), int)
