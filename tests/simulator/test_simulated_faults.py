"""Each way in which a simulated agent misbehaves, as somebody who asks it sees it."""

from dataclasses import replace

import pytest

from facho.adapters.snmp.codec import PduType, decode_answer, open_answer, prepare
from facho.brands.huawei import HUAWEI
from facho.engine.errors import BadAnswer
from facho.engine.oid import Oid, pack
from facho.engine.snmp import ErrorStatus, Version
from facho.simulator.agent import SimulatedAgent
from facho.simulator.faults import Disorder, Faults, Spoiling
from facho.simulator.pdulog import PduLog
from facho.simulator.request_handler import RequestHandler

SYS_NAME = "1.3.6.1.2.1.1.5.0"
SERIAL = HUAWEI.columns["serial"].oid
RX = HUAWEI.columns["rx_dbm"].oid
TX = HUAWEI.columns["tx_dbm"].oid


@pytest.fixture
def agent(central):
    return SimulatedAgent(central)


def row_oid(column, device, row):
    """Return the name of a column's row, counted from 1."""
    return Oid(column + pack(HUAWEI.space.encode(device.plant.onus[row - 1].position)))


def rows_of(answer, device, column=SERIAL):
    """Return which rows of the column were answered."""
    numbers = {row_oid(column, device, row): row for row in range(1, len(device.plant.onus) + 1)}
    return [numbers[name] for name, _ in answer]


def request(kind, *oids, repetitions=0):
    return prepare(Version.V2C, b"public", kind, oids, 0, repetitions).datagram(0x01020304)


def test_a_mute_agent_speaks_again_when_the_fault_is_gone(agent, ask):
    agent.faults = Faults(mute=True)
    silence = ask(agent, "GET", SYS_NAME)
    agent.faults = Faults()

    answer = ask(agent, "GET", SYS_NAME)

    assert silence is None
    assert list(answer) == [(answer.oids[0], b"OLT-CENTRAL-01")]


@pytest.mark.parametrize(
    ("kind", "oids", "repetitions", "status"),
    [
        pytest.param("GET", 4, 0, ErrorStatus.NO_ERROR, id="a get of as many"),
        pytest.param("GET", 5, 0, ErrorStatus.TOO_BIG, id="a get of one more"),
        pytest.param("GET_NEXT", 5, 0, ErrorStatus.TOO_BIG, id="a getnext of one more"),
        pytest.param("GET_BULK", 2, 2, ErrorStatus.NO_ERROR, id="a getbulk of as many"),
        pytest.param("GET_BULK", 2, 3, ErrorStatus.TOO_BIG, id="a getbulk of more"),
    ],
)
def test_too_many_variables_are_too_big(agent, ask, kind, oids, repetitions, status):
    agent.faults = Faults(too_big_above=4)

    answer = ask(agent, kind, *[SYS_NAME] * oids, repetitions=repetitions)

    assert answer.error_status == status


def test_one_onu_poisons_whatever_touches_it(agent, central, ask):
    agent.faults = Faults(gen_err_at=central.plant.onus[6].position)
    before, poisoned = row_oid(SERIAL, central, 6), row_oid(SERIAL, central, 7)

    by_get = ask(agent, "GET", before, poisoned)
    by_next = ask(agent, "GET_NEXT", before)
    by_bulk = ask(agent, "GET_BULK", SYS_NAME, SERIAL, repetitions=10)
    beside = ask(agent, "GET", before)

    assert (by_get.error_status, by_get.error_index) == (ErrorStatus.GEN_ERR, 2)
    assert by_next.error_status == ErrorStatus.GEN_ERR
    assert (by_bulk.error_status, by_bulk.error_index) == (ErrorStatus.GEN_ERR, 2)
    assert by_get.oids == [before, poisoned]
    assert beside.error_status == ErrorStatus.NO_ERROR


def test_an_agent_that_dies_answers_the_rows_before_and_then_nothing(agent, central, ask):
    agent.faults = Faults(dies_at_row=12)

    until_then = ask(agent, "GET_BULK", row_oid(SERIAL, central, 8), repetitions=10)
    by_bulk = ask(agent, "GET_BULK", row_oid(SERIAL, central, 12), repetitions=10)
    by_next = ask(agent, "GET_NEXT", row_oid(SERIAL, central, 12))
    by_get = ask(agent, "GET", row_oid(SERIAL, central, 13))
    elsewhere = ask(agent, "GET", SYS_NAME)

    assert rows_of(until_then, central) == [9, 10, 11, 12]
    assert by_bulk is by_next is by_get is None
    assert elsewhere is not None


@pytest.mark.parametrize(
    ("disorder", "expected"),
    [
        pytest.param(Disorder.LOOP, [3, 4, 5, 1, 2, 3, 4, 5, 1, 2], id="back to the first row, for ever"),
        pytest.param(Disorder.REPEAT, [3, 4, 5, 5, 5, 5, 5, 5, 5, 5], id="the same row, for ever"),
        pytest.param(Disorder.SWAP, [3, 4, 5, 7, 6, 8, 9, 10, 11, 12], id="two rows in the wrong order"),
    ],
)
def test_rows_come_out_of_order(agent, central, ask, disorder, expected):
    agent.faults = Faults(disorder=disorder, disorder_at_row=5)

    bulk = ask(agent, "GET_BULK", row_oid(SERIAL, central, 2), repetitions=10)
    steps, name = [], row_oid(SERIAL, central, 2)
    for _ in expected:
        name = ask(agent, "GET_NEXT", name).oids[0]
        steps.append(name)

    assert rows_of(bulk, central) == expected
    assert steps == bulk.oids


def test_a_swap_at_the_very_end_leaves_the_column_as_it_is(agent, central, ask):
    last = len(central.plant.onus)
    agent.faults = Faults(disorder=Disorder.SWAP, disorder_at_row=last - 1)

    answer = ask(agent, "GET_BULK", row_oid(SERIAL, central, last - 2), repetitions=3)

    assert answer.oids[:2] == [row_oid(SERIAL, central, last - 1), row_oid(SERIAL, central, last)]
    assert not answer.oids[2].startswith(SERIAL)


def test_noise_is_no_message(agent, now):
    agent.faults = Faults(spoiled=1.0, spoiling=Spoiling.NOISE)

    datagram = agent.serve(request(PduType.GET, row_oid(SERIAL, agent.device, 7)), now).payload

    with pytest.raises(BadAnswer):
        decode_answer(datagram)


def test_an_answer_that_is_cut_still_shows_whose_it_is(agent, now):
    agent.faults = Faults(spoiled=1.0, spoiling=Spoiling.CUT)

    datagram = agent.serve(request(PduType.GET_BULK, SERIAL, repetitions=10), now).payload

    assert open_answer(datagram).request_id == 0x01020304
    with pytest.raises(BadAnswer):
        decode_answer(datagram)


def test_a_stray_answer_has_another_request_id(agent, now):
    agent.faults = Faults(spoiled=1.0, spoiling=Spoiling.STRAY)

    datagram = agent.serve(request(PduType.GET_BULK, SERIAL, repetitions=10), now).payload

    assert decode_answer(datagram)[0] != 0x01020304


@pytest.mark.parametrize(("spoiling", "rows"), [(Spoiling.EMPTY, []), (Spoiling.HALF, [1, 2, 3, 4, 5])])
def test_variables_are_missing_without_an_error(agent, central, ask, spoiling, rows):
    agent.faults = Faults(spoiled=1.0, spoiling=spoiling)

    answer = ask(agent, "GET_BULK", SERIAL, repetitions=10)

    assert answer.error_status == ErrorStatus.NO_ERROR
    assert rows_of(answer, central) == rows


def test_only_a_share_of_answers_is_spoiled(agent, ask):
    agent.faults = Faults(spoiled=0.3, spoiling=Spoiling.EMPTY)

    empty = sum(len(ask(agent, "GET", SYS_NAME)) == 0 for _ in range(500))

    assert 100 < empty < 200


def test_no_repetitions_keep_the_agent_busy_and_then_bring_nothing(agent, now):
    agent.faults = Faults(zero_repetitions_hang=45.0)

    hanging = agent.serve(request(PduType.GET_BULK, SERIAL, repetitions=0), now)
    usual = agent.serve(request(PduType.GET_BULK, SERIAL, repetitions=1), now)

    assert hanging.work == 45.0
    assert len(decode_answer(hanging.payload)[3]) == 0
    assert usual.work == 0.0
    assert len(decode_answer(usual.payload)[3]) == 1


@pytest.mark.parametrize(
    ("columns", "repetitions", "work"),
    [
        pytest.param([SERIAL], 10, 1 + 10 * 0.1, id="plain rows cost by the variable"),
        pytest.param([RX], 10, 1 + 10 * 0.1 + 10 * 5, id="optical rows cost by the ONU"),
        pytest.param([RX, TX], 10, 1 + 20 * 0.1 + 10 * 5, id="once, however many columns are asked for together"),
    ],
)
def test_work_is_counted_by_request_variable_and_optical_row(agent, now, columns, repetitions, work):
    agent.faults = Faults(per_pdu=1.0, per_varbind=0.1, per_optical_row=5.0)

    reply = agent.serve(request(PduType.GET_BULK, *columns, repetitions=repetitions), now)

    assert reply.work == pytest.approx(work)


@pytest.mark.parametrize(
    ("faults", "rows"),
    [
        pytest.param(Faults(bulk_rows=3), 3, id="no more rows than so many"),
        pytest.param(Faults(bulk_rows=99), 20, id="as many rows as were asked for"),
        # 36 bytes for each of Huawei's serials, and about as many around them.
        pytest.param(Faults(bulk_bytes=150), 3, id="no more bytes than so many"),
    ],
)
def test_a_getbulk_is_answered_with_fewer_rows_than_would_fit(agent, central, ask, faults, rows):
    agent.faults = faults

    answer = ask(agent, "GET_BULK", SERIAL, repetitions=20)

    assert answer.error_status == ErrorStatus.NO_ERROR
    assert rows_of(answer, central) == list(range(1, rows + 1))


def test_one_onu_silences_whatever_touches_it(agent, central, ask):
    agent.faults = Faults(silent_at=central.plant.onus[6].position)

    by_get = ask(agent, "GET", SYS_NAME, row_oid(SERIAL, central, 7))
    by_bulk = ask(agent, "GET_BULK", SERIAL, repetitions=10)
    before, behind = (ask(agent, "GET_BULK", row_oid(SERIAL, central, row), repetitions=3) for row in (3, 7))

    assert by_get is by_bulk is None
    assert rows_of(before, central) == [4, 5, 6]
    assert rows_of(behind, central) == [8, 9, 10]


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
def test_an_onu_can_be_poisonous_in_one_column_only(agent, central, ask, fault):
    agent.faults = Faults(only_column=RX, **{fault: central.plant.onus[6].position})

    elsewhere = ask(agent, "GET", row_oid(SERIAL, central, 7), row_oid(TX, central, 7))
    there = ask(agent, "GET", row_oid(RX, central, 7))

    assert elsewhere.error_status == ErrorStatus.NO_ERROR
    assert there is None or there.error_status == ErrorStatus.GEN_ERR


def test_the_shelf_of_a_poisonous_onu_does_not_matter(agent, central, ask):
    agent.faults = Faults(gen_err_at=replace(central.plant.onus[6].position, shelf=5))

    assert ask(agent, "GET", row_oid(SERIAL, central, 7)).error_status == ErrorStatus.GEN_ERR


def test_an_agent_can_become_slower_in_all_its_work(agent, now):
    agent.faults = Faults(per_pdu=1.0, per_varbind=0.1, per_optical_row=5.0, slow_by=2.0)

    reply = agent.serve(request(PduType.GET_BULK, RX, repetitions=10), now)

    assert reply.work == pytest.approx(2 * (1 + 10 * 0.1 + 10 * 5))


@pytest.fixture
def handler(agent):
    return RequestHandler(agent, PduLog())


def take(handler, now, repetitions=1, source=40000):
    return handler.take(request(PduType.GET_BULK, SERIAL, repetitions=repetitions), source, now)


def test_a_well_agent_answers_at_once(handler, now):
    assert take(handler, now).at == now


def test_latency_delays_each_answer_and_lets_them_overlap(handler, agent, now):
    agent.faults = Faults(latency=2.0)

    leaves = [take(handler, now + second).at for second in range(3)]

    assert leaves == [now + 2, now + 3, now + 4]


def test_jitter_makes_answers_later_but_never_earlier(handler, agent, now):
    agent.faults = Faults(latency=2.0, jitter=1.0)

    delays = [take(handler, now).at - now for _ in range(200)]

    assert 2.0 <= min(delays) < 2.1
    assert 2.9 < max(delays) <= 3.0


def test_a_serial_agent_does_one_thing_after_the_other(handler, agent, now):
    agent.faults = Faults(per_pdu=2.0)

    leaves = [take(handler, now + second).at for second in (0, 1, 9)]

    assert leaves == [now + 2, now + 4, now + 11]


def test_what_does_not_fit_the_queue_is_dropped_in_silence(handler, agent, now):
    agent.faults = Faults(per_pdu=2.0, queue_limit=2)

    departures = [take(handler, now + second) for second in (0, 0, 0, 3)]

    assert [departure and departure.at - now for departure in departures] == [2, 4, None, 6]


def test_requests_that_wait_make_the_work_for_others_longer(handler, agent, now):
    agent.faults = Faults(per_pdu=2.0, crowding=0.5)

    leaves = [take(handler, now).at - now for _ in range(3)]
    alone = take(handler, now + 100).at - now

    # 2 s alone, 3 s with one other, 4 s with two.
    assert leaves == [2, 5, 9]
    assert alone == 102


def test_a_share_of_answers_is_lost_but_the_work_was_done(handler, agent, now):
    agent.faults = Faults(loss=0.5, per_pdu=1.0)

    departures = [take(handler, now) for _ in range(400)]

    arrived = [departure.at for departure in departures if departure]
    assert 150 < len(arrived) < 250
    assert max(arrived) > now + 390


def test_loss_is_the_same_for_the_same_seed(central, now):
    agent = SimulatedAgent(central, faults=Faults(loss=0.5))

    runs = [
        [take(handler, now) is None for _ in range(50)]
        for handler in (RequestHandler(agent, PduLog(), 7), RequestHandler(agent, PduLog(), 7))
    ]

    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"loss": 1.5}, id="more than all is lost"),
        pytest.param({"spoiled": -0.1}, id="less than nothing is spoiled"),
        pytest.param({"latency": -1.0}, id="answers before questions"),
        pytest.param({"per_optical_row": -0.5}, id="negative work"),
        pytest.param({"slow_by": -2.0}, id="negative slowness"),
        pytest.param({"jitter": float("nan")}, id="not a number"),
        pytest.param({"disorder_at_row": 0}, id="a row before the first"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(Faults(), **wrong)
