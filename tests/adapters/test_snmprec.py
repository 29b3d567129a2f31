"""Recordings in the `.snmprec` format are read as they are meant, and written so that they can be read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.adapters.snmp.snmprec import BadRecording, Record, format_record, parse_records, read_records
from facho.engine.oid import from_arcs, parse
from facho.engine.snmp import Missing, Tag

SYS_NAME = "1.3.6.1.2.1.1.5.0"


@pytest.mark.parametrize(
    ("line", "tag", "value"),
    [
        pytest.param("2|-2153", Tag.INTEGER, -2153, id="a number"),
        pytest.param("4|OLT-CENTRAL-01", Tag.OCTET_STRING, b"OLT-CENTRAL-01", id="a text"),
        pytest.param("4|", Tag.OCTET_STRING, b"", id="an empty text"),
        pytest.param("4| ", Tag.OCTET_STRING, b" ", id="a blank stays"),
        pytest.param("4|a|b", Tag.OCTET_STRING, b"a|b", id="a bar in a text"),
        pytest.param("4|Peña", Tag.OCTET_STRING, "Peña".encode(), id="a text in UTF-8"),
        pytest.param("4x|485754437D4630c3", Tag.OCTET_STRING, b"HWTC\x7d\x46\x30\xc3", id="hexadecimal"),
        pytest.param("4x|", Tag.OCTET_STRING, b"", id="nothing in hexadecimal"),
        pytest.param(r"4e|\x07\xe5\x0b\r*\x15", Tag.OCTET_STRING, b"\x07\xe5\x0b\r*\x15", id="escapes"),
        pytest.param(r"4e|\\x41 \\\"a\" \d", Tag.OCTET_STRING, rb'\x41 \"a" \d', id="escaped backslashes"),
        pytest.param("6|1.3.6.1.4.1.2011.2.123", Tag.OBJECT_IDENTIFIER, parse("1.3.6.1.4.1.2011.2.123"), id="an OID"),
        pytest.param("6|.1.3.6.1", Tag.OBJECT_IDENTIFIER, parse("1.3.6.1"), id="an OID with a dot in front"),
        pytest.param("64|192.168.120.1", Tag.IP_ADDRESS, bytes([192, 168, 120, 1]), id="an address"),
        pytest.param("64x|C0A87801", Tag.IP_ADDRESS, bytes([192, 168, 120, 1]), id="an address in hexadecimal"),
        pytest.param("65|4294967295", Tag.COUNTER32, 2**32 - 1, id="a counter"),
        pytest.param("66|29", Tag.GAUGE32, 29, id="a gauge"),
        pytest.param("67|294400216", Tag.TIME_TICKS, 294400216, id="ticks"),
        pytest.param("70|18446744073709551615", Tag.COUNTER64, 2**64 - 1, id="a counter of 64 bits"),
        pytest.param("5|", Tag.NULL, None, id="nothing"),
    ],
)
def test_a_line_is_read_by_its_type(line, tag, value):
    assert parse_records([f"{SYS_NAME}|{line}"]) == [Record(parse(SYS_NAME), tag, value)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("1.3.6.1|4", r"oid\|type\|value", id="a part is missing"),
        pytest.param("1.3.six|4|x", "not an OID", id="a name that is no OID"),
        pytest.param("1.3.6.1|99|x", "'99' is not a type", id="a type that does not exist"),
        pytest.param("1.3.6.1|128|", "'128' is not a type", id="a variable that is not there"),
        pytest.param("1.3.6.1|67:numeric|x", "not a type", id="a value that another program works out"),
        pytest.param("1.3.6.1|2x|ff", "only strings", id="a number in hexadecimal"),
        pytest.param("1.3.6.1|2|many", "'many' is not a whole number", id="a word for a number"),
        pytest.param("1.3.6.1|65|-1", "-1", id="a counter below nothing"),
        pytest.param("1.3.6.1|66|4294967296", "4294967296", id="a gauge that is too large"),
        pytest.param("1.3.6.1|4x|abc", "hex", id="half an octet"),
        pytest.param("1.3.6.1|64|192.168.1", "192.168.1", id="an address that is too short"),
    ],
)
def test_a_line_that_is_wrong_is_named_with_its_number(line, reason):
    lines = ["# a remark", "", f"{SYS_NAME}|4|OLT-CENTRAL-01", line]

    with pytest.raises(BadRecording, match=f"^central.snmprec, line 4: .*{reason}"):
        parse_records(lines, "central.snmprec")


def test_a_file_is_read_in_its_own_order_with_duplicates(tmp_path):
    path = tmp_path / "norte.snmprec"
    path.write_bytes(b"1.3.6.1.2|2|1\r\n1.3.6.1.1|4|\xf1\r\n1.3.6.1.2|2|1\r\n")

    records = read_records(path)

    assert [record.oid for record in records] == [parse("1.3.6.1.2"), parse("1.3.6.1.1"), parse("1.3.6.1.2")]
    assert records[1].value == b"\xf1"


@pytest.mark.parametrize(
    ("tag", "value", "line"),
    [
        pytest.param(Tag.OCTET_STRING, b"ONU 7", "4|ONU 7", id="printable text as it is"),
        pytest.param(Tag.OCTET_STRING, b"HWTC\x7d\x46\x30\xc3", "4x|485754437d4630c3", id="octets in hexadecimal"),
        pytest.param(Tag.OCTET_STRING, b"two\nlines", "4x|74776f0a6c696e6573", id="a line that would end too early"),
        pytest.param(Tag.IP_ADDRESS, bytes([10, 0, 0, 1]), "64|10.0.0.1", id="an address"),
        pytest.param(Tag.IP_ADDRESS, b"\x0a", "64x|0a", id="an address that is none"),
        pytest.param(Tag.OPAQUE, b"A", "68x|41", id="an opaque value"),
        pytest.param(Tag.OBJECT_IDENTIFIER, parse("1.3.6.1"), "6|1.3.6.1", id="an OID"),
        pytest.param(Tag.COUNTER64, 2**40, "70|1099511627776", id="a counter"),
        pytest.param(Tag.NULL, None, "5|", id="nothing"),
    ],
)
def test_a_variable_is_written_so_that_people_can_read_it(tag, value, line):
    assert format_record(Record(parse(SYS_NAME), tag, value)) == f"{SYS_NAME}|{line}"


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        pytest.param(Tag.NO_SUCH_INSTANCE, Missing.NO_SUCH_INSTANCE, id="there is no such row"),
        pytest.param(Tag.INTEGER, b"7", id="a text for a number"),
        pytest.param(Tag.COUNTER32, 2**32, id="a counter that is too large"),
    ],
)
def test_what_cannot_be_recorded_is_refused(tag, value):
    with pytest.raises(ValueError, match=r"value|recorded"):
        format_record(Record(parse(SYS_NAME), tag, value))


OIDS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=12).map(lambda arcs: from_arcs((1, 3, *arcs)))
RECORDS = st.one_of(
    st.builds(Record, OIDS, st.just(Tag.INTEGER), st.integers(-(2**31), 2**31 - 1)),
    st.builds(Record, OIDS, st.sampled_from([Tag.COUNTER32, Tag.GAUGE32, Tag.TIME_TICKS]), st.integers(0, 2**32 - 1)),
    st.builds(Record, OIDS, st.just(Tag.COUNTER64), st.integers(0, 2**64 - 1)),
    st.builds(Record, OIDS, st.sampled_from([Tag.OCTET_STRING, Tag.OPAQUE]), st.binary(max_size=40)),
    st.builds(Record, OIDS, st.just(Tag.OCTET_STRING), st.text(max_size=20).map(str.encode)),
    st.builds(Record, OIDS, st.just(Tag.IP_ADDRESS), st.binary(min_size=4, max_size=4)),
    st.builds(Record, OIDS, st.just(Tag.OBJECT_IDENTIFIER), OIDS),
    st.builds(Record, OIDS, st.just(Tag.NULL), st.none()),
)


@pytest.mark.slow
@given(st.lists(RECORDS, max_size=8))
def test_what_was_written_is_read_again(tmp_path_factory, records):
    path = tmp_path_factory.getbasetemp() / "again.snmprec"

    path.write_text("".join(f"{format_record(record)}\n" for record in records), encoding="ascii", newline="\n")

    assert read_records(path) == records
