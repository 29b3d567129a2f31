"""The v1/v2c codec: what it writes is what the standard says, and what it reads is a value or BadAnswer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.adapters.snmp import codec
from facho.engine.errors import BadAnswer
from facho.engine.oid import Oid, parse
from facho.engine.snmp import Missing, Tag, Version

SYS_NAME = parse("1.3.6.1.2.1.1.5.0")
RX_POWER_OF_ONU_7 = parse("1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4.4194304000.7")
SERIAL_OF_ONU_7 = parse("1.3.6.1.4.1.2011.6.128.1.1.2.43.1.3.4194304000.7")
REQUEST_ID = 0x01020304


def wrap(tag: int, content: bytes) -> bytes:
    """A TLV with a length in long form, as some agents write every length."""
    return bytes((tag, 0x82)) + len(content).to_bytes(2, "big") + content


def answer_with(varbinds: bytes, status: int = 0, index: int = 0) -> bytes:
    """An answer around variables that no encoder of ours would write."""
    numbers = bytes.fromhex("020401020304") + bytes((2, 1, status, 2, 1, index))
    pdu = wrap(0xA2, numbers + wrap(0x30, varbinds))
    return wrap(0x30, bytes.fromhex("020101") + b"\x04\x06public" + pdu)


def variable(oid: Oid, tag: int, content: bytes) -> bytes:
    return wrap(0x30, wrap(0x06, oid) + wrap(tag, content))


def short(tag: int, content: bytes) -> bytes:
    """A TLV with a length in short form, right or not."""
    return bytes((tag, len(content))) + content


def request_for(*oids: Oid, pdu_type: codec.PduType = codec.PduType.GET) -> codec.Request:
    return codec.decode_request(codec.prepare(Version.V2C, b"public", pdu_type, oids).datagram(REQUEST_ID))


def test_a_get_is_written_as_other_implementations_write_it():
    prepared = codec.prepare(Version.V2C, b"public", codec.PduType.GET, [SYS_NAME])

    datagram = prepared.datagram(REQUEST_ID)

    # What `snmpget -v2c -c public` sends, with this request id.
    assert datagram.hex() == "302902010104067075626c6963a01c020401020304020100020100300e300c06082b060102010105000500"


def test_only_the_request_id_of_a_prepared_request_changes():
    prepared = codec.prepare(Version.V2C, b"public", codec.PduType.GET_BULK, [SYS_NAME, RX_POWER_OF_ONU_7], 1, 25)

    first, second = (codec.decode_request(prepared.datagram(id)) for id in (codec.MIN_REQUEST_ID, codec.MAX_REQUEST_ID))

    assert (first.request_id, second.request_id) == (codec.MIN_REQUEST_ID, codec.MAX_REQUEST_ID)
    assert (first.pdu_type, first.non_repeaters, first.max_repetitions) == (codec.PduType.GET_BULK, 1, 25)
    assert first.oids == second.oids == (SYS_NAME, RX_POWER_OF_ONU_7)


def test_the_community_shows_in_no_repr():
    prepared = codec.prepare(Version.V2C, b"s3cret", codec.PduType.GET, [SYS_NAME])
    request = codec.decode_request(prepared.datagram(REQUEST_ID))
    envelope = codec.open_answer(codec.encode_response(request, 0, 0, []))

    assert "s3cret" not in repr(prepared) + repr(request) + repr(envelope)


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        pytest.param(Tag.INTEGER, -2153, id="a power in hundredths of dBm"),
        pytest.param(Tag.INTEGER, -(2**31), id="the smallest Integer32"),
        pytest.param(Tag.INTEGER, 2**31 - 1, id="the largest Integer32"),
        pytest.param(Tag.INTEGER, -128, id="a sign that just fits one octet"),
        pytest.param(Tag.INTEGER, 128, id="a sign that needs a second octet"),
        pytest.param(Tag.COUNTER32, 2**32 - 1, id="the largest Counter32"),
        pytest.param(Tag.GAUGE32, 0, id="a gauge of zero"),
        pytest.param(Tag.TIME_TICKS, 2**31, id="ticks with the top bit set"),
        pytest.param(Tag.COUNTER64, 2**64 - 1, id="the largest Counter64, with its leading zero"),
        pytest.param(Tag.OCTET_STRING, b"", id="an empty string"),
        pytest.param(Tag.OCTET_STRING, b"HWTC}F0\xc3", id="a serial"),
        pytest.param(Tag.OCTET_STRING, b"x" * 300, id="a string of 300 octets"),
        pytest.param(Tag.OBJECT_IDENTIFIER, SYS_NAME, id="an object identifier"),
        pytest.param(Tag.IP_ADDRESS, b"\x0a\x00\x00\x01", id="an address"),
        pytest.param(Tag.OPAQUE, b"\x9f\x78\x04\x42\xf6\x00\x00", id="an opaque float"),
        pytest.param(Tag.NULL, None, id="NULL"),
        pytest.param(Tag.NO_SUCH_OBJECT, Missing.NO_SUCH_OBJECT, id="noSuchObject"),
        pytest.param(Tag.NO_SUCH_INSTANCE, Missing.NO_SUCH_INSTANCE, id="noSuchInstance"),
        pytest.param(Tag.END_OF_MIB_VIEW, Missing.END_OF_MIB_VIEW, id="endOfMibView"),
    ],
)
def test_a_value_comes_back_as_it_was_sent(tag, value):
    data = codec.encode_response(request_for(RX_POWER_OF_ONU_7), 0, 0, [(RX_POWER_OF_ONU_7, tag, value)])

    request_id, community, version, answer = codec.decode_answer(data)

    assert (request_id, community, version) == (REQUEST_ID, b"public", Version.V2C)
    assert (answer.oids, answer.values, answer.tags) == ([RX_POWER_OF_ONU_7], [value], bytes([tag]))


@pytest.mark.parametrize(
    ("tag", "content", "value"),
    [
        pytest.param(Tag.COUNTER32, "00ffffffff", 2**32 - 1, id="a Counter32 of five octets"),
        pytest.param(Tag.COUNTER32, "0000000007", 7, id="a Counter32 with more zeros than it needs"),
        pytest.param(Tag.GAUGE32, "ffffffff", 2**32 - 1, id="a Gauge32 whose sign was forgotten"),
        pytest.param(Tag.GAUGE32, "fffffffff0", 2**32 - 16, id="a Gauge32 with its wrong sign extended"),
        pytest.param(Tag.TIME_TICKS, "80", 128, id="ticks in one octet with the top bit set"),
        pytest.param(Tag.COUNTER64, "00ffffffffffffffff", 2**64 - 1, id="a Counter64 of nine octets"),
        pytest.param(Tag.COUNTER64, "ffffffffffffffff", 2**64 - 1, id="a Counter64 without its leading zero"),
        pytest.param(Tag.INTEGER, "00fa000000", 4194304000, id="an ifIndex sent as an INTEGER of five octets"),
        pytest.param(Tag.INTEGER, "ffffffffff", -1, id="an INTEGER longer than it needs to be"),
        pytest.param(Tag.OBJECT_IDENTIFIER, "", b"\x00", id="an empty object identifier is 0.0"),
    ],
)
def test_odd_encodings_of_real_agents_are_read(tag, content, value):
    data = answer_with(variable(RX_POWER_OF_ONU_7, tag, bytes.fromhex(content)))

    _, _, _, answer = codec.decode_answer(data)

    assert answer.values == [value]


@pytest.mark.parametrize(
    ("tag", "content"),
    [
        pytest.param(Tag.INTEGER, "", id="an INTEGER without octets is not 0"),
        pytest.param(Tag.INTEGER, "01" * 10, id="an INTEGER of ten octets"),
        pytest.param(Tag.COUNTER32, "", id="a counter without octets is not 0"),
        pytest.param(Tag.COUNTER32, "0100000000", id="a Counter32 beyond 32 bits"),
        pytest.param(Tag.COUNTER64, "010000000000000000", id="a Counter64 beyond 64 bits"),
        pytest.param(Tag.NULL, "00", id="a NULL with content"),
        pytest.param(Tag.NO_SUCH_INSTANCE, "00", id="noSuchInstance with content"),
        pytest.param(Tag.OBJECT_IDENTIFIER, "2b0681", id="an object identifier that is cut off"),
        pytest.param(0x47, "01", id="a type that SNMP took back"),
        pytest.param(0x30, "", id="a sequence where a value belongs"),
    ],
)
def test_a_value_that_cannot_be_read_is_a_bad_answer(tag, content):
    value = bytes.fromhex(content)
    usual = short(0x30, short(0x06, SYS_NAME) + short(tag, value))
    prepared = codec.prepare(Version.V2C, b"public", codec.PduType.GET, [SYS_NAME])

    for varbind in (usual, variable(SYS_NAME, tag, value)):
        for expected in ((), prepared.expected):
            with pytest.raises(BadAnswer):
                codec.decode_answer(answer_with(varbind), expected)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x30", id="one byte"),
        pytest.param(b"\x30\x80\x02\x01\x01\x00\x00", id="an indefinite length"),
        pytest.param(b"\x30\x85\x00\x00\x00\x00\x05\x02\x01\x01", id="a length of five octets"),
        pytest.param(b"\x04\x03abc", id="not a sequence"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(answer_with(b"").replace(b"\x02\x01\x01\x04", b"\x02\x01\x03\x04"), id="SNMPv3"),
        pytest.param(answer_with(b"").replace(b"\xa2\x82", b"\xa8\x82"), id="a report instead of an answer"),
    ],
)
def test_bytes_that_are_no_answer_are_a_bad_answer(data):
    with pytest.raises(BadAnswer):
        codec.decode_answer(data)


NAME = short(0x06, SYS_NAME)


@pytest.mark.parametrize(
    "varbind",
    [
        pytest.param(variable(Oid(b""), Tag.NULL, b""), id="a name without numbers, in long form"),
        pytest.param(short(0x30, short(0x06, b"") + b"\x05\x00"), id="a name without numbers"),
        pytest.param(variable(Oid(b"\x2b\x86"), Tag.NULL, b""), id="a name that is cut off, in long form"),
        pytest.param(short(0x30, short(0x06, b"\x2b\x86") + b"\x05\x00"), id="a name that is cut off"),
        pytest.param(short(0x30, short(0x04, SYS_NAME) + b"\x05\x00"), id="a string where the name belongs"),
        pytest.param(short(0x31, NAME + b"\x05\x00"), id="a set where a sequence belongs"),
        pytest.param(b"\x30\x00", id="a variable without name and value"),
        pytest.param(short(0x30, NAME + b"\x05\x00") + b"\xff", id="a byte left over behind a variable"),
        pytest.param(short(0x30, NAME + b"\x04\x01AB"), id="a byte left over inside a variable"),
        pytest.param(short(0x30, NAME + b"\x04\x03AB"), id="a value longer than its variable"),
        pytest.param(short(0x30, NAME + b"\x04\x80"), id="a value of indefinite length"),
        pytest.param(short(0x30, NAME + b"\x04\x85\x00\x00\x00\x00\x01A"), id="a length of five octets"),
        pytest.param(b"\x30\x0f" + NAME + b"\x04\x03", id="a variable longer than its list"),
        pytest.param(b"\x30\x82\x00\x0f" + NAME + b"\x04\x03", id="a variable longer than its list, in long form"),
    ],
)
def test_variables_that_break_a_rule_are_a_bad_answer(varbind):
    prepared = codec.prepare(Version.V2C, b"public", codec.PduType.GET, [SYS_NAME])

    # Bytes behind the message are ignored, so nothing in it may reach them.
    for data in (answer_with(varbind), answer_with(varbind) + b"ABC" * 10):
        for expected in ((), prepared.expected):
            with pytest.raises(BadAnswer):
                codec.decode_answer(data, expected)


def test_something_behind_the_list_of_variables_is_a_bad_answer():
    numbers = bytes.fromhex("020401020304020100020100")
    pdu = wrap(0xA2, numbers + wrap(0x30, b"") + b"\x05\x00")
    data = wrap(0x30, bytes.fromhex("020101") + b"\x04\x06public" + pdu)

    with pytest.raises(BadAnswer, match="left over"):
        codec.decode_answer(data)


def test_the_request_id_of_a_truncated_answer_can_still_be_read():
    data = codec.encode_response(request_for(SYS_NAME), 0, 0, [(SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01")])[:-5]

    envelope = codec.open_answer(data)

    assert envelope.request_id == REQUEST_ID
    with pytest.raises(BadAnswer):
        codec.read_answer(envelope)


def test_bytes_behind_the_message_are_ignored():
    data = codec.encode_response(request_for(SYS_NAME), 0, 0, [(SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01")])

    _, _, _, answer = codec.decode_answer(data + bytes(100))

    assert answer.values == [b"OLT-CENTRAL-01"]


def test_the_agents_error_is_surfaced_with_its_index():
    request = request_for(SYS_NAME, RX_POWER_OF_ONU_7)
    data = codec.encode_response(request, 5, 2, [(oid, Tag.NULL, None) for oid in request.oids])

    _, _, _, answer = codec.decode_answer(data)

    assert (answer.error_status, answer.error_index) == (5, 2)
    assert answer.values == [None, None]


def test_an_error_status_that_no_standard_knows_is_kept_as_its_number():
    _, _, _, answer = codec.decode_answer(codec.encode_response(request_for(SYS_NAME), 77, 0, []))

    assert answer.error_status == 77


@pytest.mark.parametrize(
    "answered",
    [
        pytest.param([0, 1, 2], id="as asked"),
        pytest.param([0, 1], id="the last one missing"),
        pytest.param([], id="none at all"),
        pytest.param([0, 2, 1], id="in another order"),
        pytest.param([2, 0], id="another one first"),
        pytest.param([0, 1, 2, 3], id="one more than asked"),
    ],
)
def test_expecting_names_changes_nothing_in_what_is_read(answered):
    asked = [RX_POWER_OF_ONU_7, SERIAL_OF_ONU_7, SYS_NAME]
    prepared = codec.prepare(Version.V2C, b"public", codec.PduType.GET, asked)
    request = codec.decode_request(prepared.datagram(REQUEST_ID))
    known = [
        (RX_POWER_OF_ONU_7, Tag.INTEGER, -2153),
        (SERIAL_OF_ONU_7, Tag.OCTET_STRING, b"HWTC}F0\xc3"),
        (SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01" * 20),
        (Oid(SYS_NAME + b"\x00"), Tag.NO_SUCH_INSTANCE, Missing.NO_SUCH_INSTANCE),
    ]
    data = codec.encode_response(request, 0, 0, [known[i] for i in answered])

    _, _, _, answer = codec.decode_answer(data, prepared.expected)

    assert answer == codec.decode_answer(data)[3]
    assert answer.oids == [known[i][0] for i in answered]
    assert answer.values == [known[i][2] for i in answered]
    assert answer.bytes_received == len(data)


def test_a_name_that_only_begins_like_the_expected_one_is_not_taken_for_it():
    longer = Oid(RX_POWER_OF_ONU_7 + b"\x01")
    prepared = codec.prepare(Version.V2C, b"public", codec.PduType.GET, [RX_POWER_OF_ONU_7])
    data = codec.encode_response(request_for(longer), 0, 0, [(longer, Tag.INTEGER, 1)])

    _, _, _, answer = codec.decode_answer(data, prepared.expected)

    assert answer.oids == [longer]


def test_varbinds_prepared_by_an_agent_give_the_same_answer():
    request = request_for(SYS_NAME, RX_POWER_OF_ONU_7)
    varbinds = [(SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01"), (RX_POWER_OF_ONU_7, Tag.INTEGER, -2153)]

    parts = codec.encode_response_parts(request, 0, 0, [codec.encode_varbind(*varbind) for varbind in varbinds])

    assert parts == codec.encode_response(request, 0, 0, varbinds)


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        pytest.param(Tag.INTEGER, b"7", id="a string as INTEGER"),
        pytest.param(Tag.COUNTER32, -1, id="a negative counter"),
        pytest.param(Tag.COUNTER32, 2**32, id="a counter that is too large"),
        pytest.param(Tag.OCTET_STRING, None, id="nothing as a string"),
        pytest.param(Tag.NO_SUCH_OBJECT, Missing.END_OF_MIB_VIEW, id="one missing kind under the tag of another"),
        pytest.param(0x47, 1, id="a tag that SNMP does not know"),
    ],
)
def test_an_agent_cannot_encode_a_value_under_a_foreign_tag(tag, value):
    with pytest.raises(ValueError, match="is not a value of tag"):
        codec.encode_value(tag, value)


def test_an_answer_is_not_a_request():
    with pytest.raises(BadAnswer, match="not a request"):
        codec.decode_request(codec.encode_response(request_for(SYS_NAME), 0, 0, []))


oids = st.lists(st.integers(0, 2**32 - 1), max_size=20).map(lambda arcs: parse(".".join(map(str, [1, 3, *arcs]))))
variables = st.tuples(
    oids,
    st.one_of(
        st.tuples(st.just(Tag.INTEGER), st.integers(-(2**63), 2**64 - 1)),
        st.tuples(st.sampled_from([Tag.COUNTER32, Tag.GAUGE32, Tag.TIME_TICKS]), st.integers(0, 2**32 - 1)),
        st.tuples(st.just(Tag.COUNTER64), st.integers(0, 2**64 - 1)),
        st.tuples(st.sampled_from([Tag.OCTET_STRING, Tag.IP_ADDRESS, Tag.OPAQUE]), st.binary(max_size=200)),
        st.tuples(st.just(Tag.OBJECT_IDENTIFIER), oids),
        st.sampled_from([(Tag.NULL, None), *((Tag(missing.value), missing) for missing in Missing)]),
    ),
).map(lambda pair: (pair[0], *pair[1]))


@given(
    st.lists(variables, max_size=40),
    st.binary(max_size=40),
    st.sampled_from([Version.V1, Version.V2C]),
    st.integers(codec.MIN_REQUEST_ID, codec.MAX_REQUEST_ID),
    st.integers(0, 18),
    st.integers(0, 2**31 - 1),
)
def test_whatever_an_agent_encodes_is_decoded_to_the_same(varbinds, community, version, request_id, status, index):
    prepared = codec.prepare(version, community, codec.PduType.GET, [oid for oid, _, _ in varbinds])
    request = codec.decode_request(prepared.datagram(request_id))

    data = codec.encode_response(request, status, index, varbinds)
    decoded = codec.decode_answer(data, prepared.expected)

    assert decoded == codec.decode_answer(data)
    assert decoded[:3] == (request_id, community, version)
    assert (decoded[3].error_status, decoded[3].error_index) == (status, index)
    assert [(oid, Tag(tag), value) for (oid, value), tag in zip(decoded[3], decoded[3].tags, strict=True)] == varbinds


@given(
    st.sampled_from([codec.PduType.GET, codec.PduType.GET_NEXT, codec.PduType.GET_BULK]),
    st.lists(oids, max_size=40),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
)
def test_whatever_is_asked_arrives_at_the_agent(pdu_type, asked, non_repeaters, max_repetitions):
    prepared = codec.prepare(Version.V2C, b"public", pdu_type, asked, non_repeaters, max_repetitions)

    request = codec.decode_request(prepared.datagram(REQUEST_ID))

    assert request == codec.Request(
        Version.V2C, b"public", pdu_type, REQUEST_ID, non_repeaters, max_repetitions, tuple(asked)
    )
