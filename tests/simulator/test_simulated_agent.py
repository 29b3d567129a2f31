"""A simulated agent keeps to the rules of SNMP, at the ends of its tables above all."""

import pytest

from facho.adapters.snmp.codec import PduType, prepare
from facho.engine import oid
from facho.engine.oid import parse
from facho.engine.snmp import ErrorStatus, Missing, Tag, Version
from facho.simulator.agent import SimulatedAgent
from facho.simulator.device import Device, fixed_column
from facho.simulator.mib import SCALAR, Mib, MibRows
from facho.simulator.plant import NOTHING

NAME = "1.3.6.1.2.1.1.5"
TABLE = "1.3.6.1.4.1.99.1"
COUNTERS = "1.3.6.1.4.1.99.2"
LAST = "1.3.6.1.4.1.99.3"


@pytest.fixture
def agent():
    """An agent with a scalar and three columns. As text, or as bytes, their rows would be in another order."""
    rows = MibRows(((index,), index) for index in (16384, 23, 128, 8))
    values = range(16385)
    columns = [
        fixed_column(NAME, SCALAR, Tag.OCTET_STRING, [b"OLT-CENTRAL-01"]),
        fixed_column(TABLE, rows, Tag.INTEGER, values),
        fixed_column(COUNTERS, rows, Tag.COUNTER64, values),
        fixed_column(LAST, rows, Tag.GAUGE32, values),
    ]
    return SimulatedAgent(Device("OLT-CENTRAL-01", "none", NOTHING, Mib(columns)))


def found(answer):
    return [(oid.text(name), value) for name, value in answer]


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        pytest.param(f"{NAME}.0", b"OLT-CENTRAL-01", id="a scalar"),
        pytest.param(f"{TABLE}.23", 23, id="a row"),
        pytest.param(NAME, Missing.NO_SUCH_INSTANCE, id="a scalar without its zero"),
        pytest.param(f"{TABLE}.9", Missing.NO_SUCH_INSTANCE, id="a row that is not there"),
        pytest.param(f"{TABLE}.8.0", Missing.NO_SUCH_INSTANCE, id="more than a row"),
        pytest.param("1.3.6.1.4.1.99.4.8", Missing.NO_SUCH_OBJECT, id="no such column"),
        pytest.param("1.3.6.1.4.1.99", Missing.NO_SUCH_OBJECT, id="above the columns"),
        pytest.param("2.999.1", Missing.NO_SUCH_OBJECT, id="another world"),
    ],
)
def test_get_tells_a_value_from_each_kind_of_none(agent, ask, asked, value):
    answer = ask(agent, "GET", asked)

    assert answer.error_status == ErrorStatus.NO_ERROR
    assert found(answer) == [(asked, value)]


@pytest.mark.parametrize(
    ("asked", "name", "value"),
    [
        pytest.param("0.0", f"{NAME}.0", b"OLT-CENTRAL-01", id="before everything"),
        pytest.param(NAME, f"{NAME}.0", b"OLT-CENTRAL-01", id="a column gives its first row"),
        pytest.param(f"{NAME}.0", f"{TABLE}.8", 8, id="after the last row comes the next column"),
        pytest.param(f"{TABLE}.8", f"{TABLE}.23", 23, id="numbers, not text"),
        pytest.param(f"{TABLE}.23", f"{TABLE}.128", 128, id="one byte, then two"),
        pytest.param(f"{TABLE}.128", f"{TABLE}.16384", 16384, id="two bytes, then three"),
        pytest.param(f"{TABLE}.16383", f"{TABLE}.16384", 16384, id="numbers, not bytes"),
        pytest.param(f"{TABLE}.9", f"{TABLE}.23", 23, id="after a row that is not there"),
        pytest.param(f"{TABLE}.8.5", f"{TABLE}.23", 23, id="below a row"),
        pytest.param(f"{TABLE}.16384", f"{COUNTERS}.8", 8, id="the end of a column spills into the next"),
        pytest.param("1.3.6.1.4.1.98.7", f"{TABLE}.8", 8, id="between columns"),
    ],
)
def test_getnext_gives_the_next_larger_name(agent, ask, asked, name, value):
    answer = ask(agent, "GET_NEXT", asked)

    assert found(answer) == [(name, value)]


@pytest.mark.parametrize("asked", [f"{LAST}.16384", "1.3.6.1.4.1.99.4", "2.5"])
def test_getnext_says_where_the_mib_ends(agent, ask, asked):
    answer = ask(agent, "GET_NEXT", f"{TABLE}.8", asked)

    assert found(answer)[1] == (asked, Missing.END_OF_MIB_VIEW)
    assert answer.error_status == ErrorStatus.NO_ERROR


@pytest.mark.parametrize(
    ("asked", "non_repeaters", "repetitions", "expected"),
    [
        pytest.param([TABLE], 0, 2, [(TABLE, 8), (TABLE, 23)], id="one column"),
        pytest.param(
            [TABLE, COUNTERS], 0, 2, [(TABLE, 8), (COUNTERS, 8), (TABLE, 23), (COUNTERS, 23)], id="row by row"
        ),
        pytest.param([f"{TABLE}.23", COUNTERS], 1, 2, [(TABLE, 128), (COUNTERS, 8), (COUNTERS, 23)], id="one once"),
        pytest.param([TABLE, COUNTERS], 7, 2, [(TABLE, 8), (COUNTERS, 8)], id="more once than there are"),
        pytest.param([TABLE], -1, 1, [(TABLE, 8)], id="non-repeaters below zero"),
        pytest.param([TABLE], 0, 0, [], id="no repetitions"),
        pytest.param([TABLE], 0, -4, [], id="repetitions below zero"),
        pytest.param([TABLE, COUNTERS], 1, 0, [(TABLE, 8)], id="no repetitions for the one that has some"),
        pytest.param([f"{TABLE}.128"], 0, 2, [(TABLE, 16384), (COUNTERS, 8)], id="spills into the next column"),
    ],
)
def test_getbulk_repeats_what_is_not_read_once(agent, ask, asked, non_repeaters, repetitions, expected):
    answer = ask(agent, "GET_BULK", *asked, non_repeaters=non_repeaters, repetitions=repetitions)

    assert found(answer) == [(f"{column}.{index}", index) for column, index in expected]


def test_getbulk_ends_with_one_round_that_is_all_end(agent, ask):
    answer = ask(agent, "GET_BULK", f"{LAST}.128", f"{LAST}.16384", repetitions=50)

    end = (f"{LAST}.16384", Missing.END_OF_MIB_VIEW)
    assert found(answer) == [(f"{LAST}.16384", 16384), end, end, end]


def test_getbulk_answers_as_many_variables_as_fit(agent, ask):
    whole = ask(agent, "GET_BULK", TABLE, COUNTERS, repetitions=4)
    agent.bulk_size = 150

    cut = ask(agent, "GET_BULK", TABLE, COUNTERS, repetitions=4)

    assert 0 < len(cut) < len(whole)
    assert found(cut) == found(whole)[: len(cut)]
    assert cut.bytes_received <= 150


def test_getbulk_says_too_big_if_not_even_one_variable_fits(agent, ask):
    agent.bulk_size = 40

    answer = ask(agent, "GET_BULK", TABLE, repetitions=4)

    assert (answer.error_status, answer.error_index, len(answer)) == (ErrorStatus.TOO_BIG, 0, 0)


@pytest.mark.parametrize("kind", ["GET", "GET_NEXT"])
def test_what_does_not_fit_is_never_cut_but_refused(agent, ask, kind):
    agent.max_size = 100

    answer = ask(agent, kind, *[f"{TABLE}.8"] * 10)

    assert (answer.error_status, len(answer)) == (ErrorStatus.TOO_BIG, 0)


@pytest.mark.parametrize(
    ("kind", "asked", "status"),
    [
        pytest.param("GET", f"{TABLE}.9", ErrorStatus.NO_SUCH_NAME, id="no such row"),
        pytest.param("GET", "1.3.6.1.4.1.99.4.8", ErrorStatus.NO_SUCH_NAME, id="no such column"),
        pytest.param("GET", f"{COUNTERS}.8", ErrorStatus.NO_SUCH_NAME, id="a counter that it cannot show"),
        pytest.param("GET_NEXT", f"{LAST}.16384", ErrorStatus.NO_SUCH_NAME, id="the end of everything"),
        pytest.param("SET", f"{TABLE}.8", ErrorStatus.NO_SUCH_NAME, id="nothing can be set"),
    ],
)
def test_version_1_knows_only_errors_and_says_which_variable(agent, ask, kind, asked, status):
    answer = ask(agent, kind, asked, f"{TABLE}.8", version=Version.V1)

    assert (answer.error_status, answer.error_index) == (status, 1)
    assert found(answer) == [(asked, None), (f"{TABLE}.8", None)]


def test_version_1_steps_over_counters_of_64_bits(agent, ask):
    answer = ask(agent, "GET_NEXT", f"{TABLE}.16384", version=Version.V1)

    assert found(answer) == [(f"{LAST}.8", 8)]


def test_version_1_echoes_what_is_too_big(agent, ask):
    agent.max_size = 60

    answer = ask(agent, "GET", f"{TABLE}.8", f"{TABLE}.23", version=Version.V1)

    assert (answer.error_status, answer.error_index, len(answer)) == (ErrorStatus.TOO_BIG, 0, 2)


def test_nothing_can_be_set(agent, ask):
    answer = ask(agent, "SET", f"{TABLE}.8")

    assert (answer.error_status, answer.error_index) == (ErrorStatus.NO_ACCESS, 1)


def test_a_wrong_community_gets_no_answer(agent, ask):
    assert ask(agent, "GET", f"{NAME}.0", community=b"private") is None


def test_version_1_has_no_getbulk(agent, ask):
    assert ask(agent, "GET_BULK", TABLE, repetitions=4, version=Version.V1) is None


def test_bytes_that_are_no_request_get_no_answer(agent, now):
    request = prepare(Version.V2C, b"public", PduType.GET, [parse(f"{NAME}.0")]).datagram(0x01020304)
    spoiled = [request[:length] for length in range(len(request))] + [b"\xff" * 60]

    answers = [agent.serve(datagram, now).payload for datagram in spoiled]

    assert set(answers) == {None}


def test_columns_that_lie_within_each_other_are_refused():
    rows = MibRows([((1,), 0)])

    with pytest.raises(ValueError, match="overlap"):
        Mib([fixed_column(TABLE, rows, Tag.INTEGER, [1]), fixed_column(f"{TABLE}.1", rows, Tag.INTEGER, [1])])
