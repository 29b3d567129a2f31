"""No byte string does more to the codec than to be refused: random ones, and valid ones with every kind of damage."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from facho.adapters.snmp import codec
from facho.engine import oid as oids
from facho.engine.errors import BadAnswer
from facho.engine.snmp import Answer, Missing, Tag, Version

ONU_7 = "4194304000.7"
ASKED = [
    oids.parse("1.3.6.1.2.1.1.5.0"),
    oids.parse(f"1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4.{ONU_7}"),
    oids.parse(f"1.3.6.1.4.1.2011.6.128.1.1.2.43.1.3.{ONU_7}"),
    oids.parse(f"1.3.6.1.4.1.2011.6.128.1.1.4.23.1.3.{ONU_7}"),
    oids.parse("1.3.6.1.2.1.1.2.0"),
    oids.parse("1.3.6.1.2.1.1.3.0"),
]
VALUES = [
    (Tag.OCTET_STRING, b"OLT-CENTRAL-01" * 10),
    (Tag.INTEGER, -2153),
    (Tag.OCTET_STRING, b"HWTC}F0\xc3"),
    (Tag.COUNTER64, 2**64 - 1),
    (Tag.OBJECT_IDENTIFIER, oids.parse("1.3.6.1.4.1.2011.2.248")),
    (Tag.TIME_TICKS, 2**32 - 1),
]
GET = codec.prepare(Version.V2C, b"public", codec.PduType.GET, ASKED)
BULK = codec.prepare(Version.V2C, b"public", codec.PduType.GET_BULK, ASKED, 1, 25)
REQUESTS = [GET.datagram(0x01020304), BULK.datagram(0x7FFFFFFF)]


def make_answers() -> Iterator[bytes]:
    """Answers of every kind: values, an error, missing ones, none at all, and one in long form only."""
    request = codec.decode_request(REQUESTS[0])
    yield codec.encode_response(request, 0, 0, [(oid, *value) for oid, value in zip(ASKED, VALUES, strict=True)])
    yield codec.encode_response(request, 5, 3, [(oid, Tag.NULL, None) for oid in ASKED])
    yield codec.encode_response(request, 0, 0, [(ASKED[0], Tag(kind.value), kind) for kind in Missing])
    yield codec.encode_response(request, 1, 0, [])
    long_form = b"\x30\x82\x00\x0d\x06\x82\x00\x02\x2b\x06\x02\x83\x00\x00\x02\x08\x69"
    numbers = b"\x02\x04\x01\x02\x03\x04\x02\x01\x00\x02\x01\x00"
    pdu = b"\xa2\x82\x00\x21" + numbers + b"\x30\x82\x00\x11" + long_form
    yield b"\x30\x82\x00\x30\x02\x01\x01\x04\x06public" + pdu


ANSWERS = list(make_answers())


def read_whatever_it_is(data: bytes) -> None:
    """Read bytes in every way there is; anything but a value or BadAnswer fails the test."""
    for expected in ((), GET.expected):
        with suppress(BadAnswer):
            check(codec.decode_answer(data, expected)[3])
    with suppress(BadAnswer):
        codec.decode_request(data)
    with suppress(BadAnswer):
        check(codec.decode_pdu(data)[1])


def check(answer: Answer) -> None:
    """What was read has one tag for each value, whole names, and values that their tags allow."""
    assert len(answer.oids) == len(answer.values) == len(answer.tags)
    for tag, (oid, value) in zip(answer.tags, answer, strict=True):
        assert oids.text(oid)
        assert codec.encode_value(tag, value)


def test_the_corpus_itself_is_valid():
    for data in ANSWERS:
        codec.decode_answer(data)
    for data in REQUESTS:
        codec.decode_request(data)


def test_a_pdu_alone_is_read_as_it_is_inside_a_message():
    for data in ANSWERS:
        request_id, _, _, answer = codec.decode_answer(data)
        content = data[data.index(b"\x02\x04\x01\x02\x03\x04") :]

        found_id, found = codec.decode_pdu(content)

        assert (found_id, list(found), found.error_status) == (request_id, list(answer), answer.error_status)


@given(st.binary(max_size=2000))
@example(b"\x30\x84\xff\xff\xff\xff")
@example(b"\x30\x84\x7f\xff\xff\xff\x02\x01\x01\x04\x84\xff\xff\xff\xff")
def test_random_bytes_are_refused_or_read(data):
    read_whatever_it_is(data)


PDUS = [data[data.index(b"\x02\x04\x01\x02\x03\x04") :] for data in ANSWERS]


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from(ANSWERS + REQUESTS + PDUS), st.data())
def test_mutated_packets_are_refused_or_read(packet, data):
    mutated = bytearray(packet)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(mutated)))
        end = at + data.draw(st.integers(0, 4))
        mutated[at:end] = data.draw(st.binary(max_size=4))

    read_whatever_it_is(bytes(mutated))


@pytest.mark.parametrize("packet", ANSWERS + REQUESTS)
def test_a_packet_cut_off_anywhere_is_refused(packet):
    for size in range(len(packet)):
        with pytest.raises(BadAnswer):
            codec.decode_answer(packet[:size])
        with pytest.raises(BadAnswer):
            codec.decode_request(packet[:size])


@pytest.mark.parametrize("packet", ANSWERS + REQUESTS)
def test_a_packet_with_any_bit_flipped_is_refused_or_read(packet):
    for at in range(len(packet)):
        for bit in range(8):
            flipped = bytearray(packet)
            flipped[at] ^= 1 << bit
            read_whatever_it_is(bytes(flipped))


@pytest.mark.parametrize("packet", ANSWERS + REQUESTS)
def test_a_packet_with_any_byte_at_its_extremes_is_refused_or_read(packet):
    for at in range(len(packet)):
        for byte in (0x00, 0x7F, 0x80, 0x81, 0x82, 0x84, 0xFF):
            changed = bytearray(packet)
            changed[at] = byte
            read_whatever_it_is(bytes(changed))


PLAIN = [
    (Tag.OCTET_STRING, b"HWTC}F0\xc3"),
    (Tag.INTEGER, -2153),
    (Tag.OCTET_STRING, b""),
    (Tag.COUNTER64, 2**40),
    (Tag.GAUGE32, 2**31 - 1),
    (Tag.TIME_TICKS, 4711),
]
PLAIN_ANSWER = codec.encode_response(
    codec.decode_request(REQUESTS[0]), 0, 0, [(oid, *value) for oid, value in zip(ASKED, PLAIN, strict=True)]
)
NAME_LENGTHS = bytes(map(len, ASKED))


def test_an_answer_with_plain_values_is_split_into_names_and_values():
    answer = codec.read_answer(codec.open_answer(PLAIN_ANSWER))
    names, values = answer.split(NAME_LENGTHS)
    assert names == b"".join(ASKED)
    assert [answer.value_of(value) for value in values] == [value for _, value in PLAIN]


@pytest.mark.parametrize(
    ("place", "damage"),
    [
        pytest.param(3, b"\x7f", id="another length of a name"),
        pytest.param(0, b"\x31", id="no sequence"),
        pytest.param(1, b"\x7f", id="a length that leads elsewhere"),
        pytest.param(2, b"\x05", id="no name"),
    ],
)
def test_an_answer_is_not_split_where_its_structure_is_not_the_expected_one(place, damage):
    answer = codec.read_answer(codec.open_answer(PLAIN_ANSWER))
    variables = answer._variables
    answer._variables = variables[:place] + damage + variables[place + 1 :]
    assert answer.split(NAME_LENGTHS) is None


@pytest.mark.slow
@settings(max_examples=500)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(PLAIN_ANSWER) - 1), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 30),
)
def test_what_split_accepts_the_codec_reads_with_the_same_names_and_values(changes, cut):
    data = bytearray(PLAIN_ANSWER)
    for place, byte in changes:
        data[place] = byte
    try:
        answer = codec.unread_answer(codec.open_answer(bytes(data[: len(data) - cut])), ())
    except BadAnswer:
        return
    found = answer.split(NAME_LENGTHS)
    if found is None or found[0] != b"".join(ASKED):
        # A replay compares the names and leaves the rest to the codec.
        return
    assert answer.oids == ASKED
    assert answer.values == [answer.value_of(value) for value in found[1]]
    assert bytes(value[0] for value in found[1]) == answer.tags


@settings(max_examples=300)
@given(
    sizes=st.lists(st.integers(0, 12), min_size=6, max_size=6),
    tags=st.lists(st.sampled_from([*Tag, 0x47, 0x00]), min_size=6, max_size=6),
)
def test_values_of_any_tag_and_length_are_read_as_the_codec_reads_them(sizes, tags):
    variables = b"".join(
        bytes((0x30, len(oid) + size + 4, 0x06, len(oid))) + oid + bytes((tag, size)) + b"\x01" * size
        for oid, tag, size in zip(ASKED, tags, sizes, strict=True)
    )
    answer = codec.unread_answer(codec.open_answer(PLAIN_ANSWER), ())
    answer._variables = variables
    found = answer.split(NAME_LENGTHS)
    if found is not None:
        assert answer.values == [answer.value_of(value) for value in found[1]]
