"""The log of an agent's PDUs can tell who asked at once, how many at a time and how fast."""

import json

import pytest

from facho.adapters.snmp.codec import PduType, prepare
from facho.engine.oid import parse
from facho.engine.snmp import Version
from facho.simulator.agent import SimulatedAgent
from facho.simulator.faults import Faults
from facho.simulator.pdulog import Pdu, PduLog, read_log
from facho.simulator.request_handler import RequestHandler

CENTRAL, NORTE = "OLT-CENTRAL-01", "OLT-NORTE-02"


def pdu(arrived, answered, agent=CENTRAL, source=40000, kind="get"):
    return Pdu(arrived, answered, agent, source, kind, asked=1, answered_variables=1)


def log_of(*pdus):
    log = PduLog()
    for each in pdus:
        log.add(each)
    return log


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        pytest.param(pdu(0, 2), pdu(1, 3, source=40001), 1, id="two askers at once"),
        pytest.param(pdu(0, 2), pdu(2, 3, source=40001), 0, id="one after the other"),
        pytest.param(pdu(0, 2), pdu(1, 3), 0, id="one asker with two requests"),
        pytest.param(pdu(0, 2), pdu(1, 3, source=40001, agent=NORTE), 0, id="two agents"),
        pytest.param(pdu(0, None), pdu(1, 3, source=40001), 0, id="the first was never served"),
    ],
)
def test_overlaps_are_of_different_askers_at_one_agent(first, second, pairs):
    assert len(log_of(first, second).overlaps()) == pairs


def test_askers_can_be_told_apart_by_something_else():
    log = log_of(pdu(0, 2, kind="get"), pdu(1, 3, kind="getbulk"))

    assert log.overlaps(by=lambda each: each.kind) == [(log.pdus()[0], log.pdus()[1])]


def test_the_peak_in_flight_is_that_of_one_agent():
    log = log_of(pdu(0, 9), pdu(1, 2), pdu(1.5, 9), pdu(3, 9), pdu(3, 9, agent=NORTE), pdu(4, 4.5))

    assert log.peak_in_flight() == 4
    assert log.peak_in_flight(NORTE) == 1
    assert PduLog().peak_in_flight() == 0


def test_the_peak_rate_is_that_of_the_busiest_window():
    log = log_of(*(pdu(at, at) for at in (0, 5, 5.2, 5.9, 6.0, 9)))

    assert log.peak_rate() == 3.0
    assert log.peak_rate(window=0.5) == 4.0
    assert log.peak_rate(NORTE) == 0.0


def test_counts_go_on_when_old_pdus_are_forgotten():
    log = PduLog(kept=10)

    for at in range(25):
        log.add(pdu(at, at, kind="getbulk" if at % 5 else "get"))

    assert [each.arrived for each in log.pdus()] == list(range(15, 25))
    assert (log.count(), log.count(CENTRAL, "get"), log.count(kind="getbulk"), log.count(NORTE)) == (25, 5, 20, 0)


def test_a_cleared_log_begins_again():
    log = log_of(pdu(0, 1), pdu(1, 2))

    log.clear()

    assert (log.count(), log.pdus()) == (0, [])


def test_one_agent_can_begin_again_and_leave_the_others_as_they_are():
    log = log_of(pdu(0, 1), pdu(1, 2, agent=NORTE), pdu(2, 3, kind="getbulk"))

    log.clear(CENTRAL)

    assert (log.count(CENTRAL), log.count(NORTE), log.count()) == (0, 1, 1)
    assert [each.agent for each in log.pdus()] == [NORTE]


def test_kinds_and_askers_are_counted():
    log = log_of(
        pdu(0, 1),
        pdu(1, None, kind="getbulk", source=40001),
        pdu(2, 3, kind="getbulk"),
        pdu(2, 3, agent=NORTE, source=7),
    )

    assert log.kinds(CENTRAL) == {"get": 1, "getbulk": 2}
    assert log.kinds() == {"get": 2, "getbulk": 2}
    assert log.sources(CENTRAL) == {40000, 40001}
    assert (log.unanswered(CENTRAL), log.unanswered(NORTE)) == (1, 0)


@pytest.mark.parametrize(
    ("arrivals", "rate"),
    [
        pytest.param([], 0.0, id="nobody asked"),
        pytest.param([5], 0.0, id="once is no rate"),
        pytest.param([5, 6, 7, 9], 0.75, id="three more in four seconds"),
    ],
)
def test_the_rate_is_from_the_first_to_the_last(arrivals, rate):
    assert log_of(*(pdu(at, at) for at in arrivals)).rate() == rate


def test_a_report_has_all_of_it_in_plain_values():
    log = log_of(pdu(0, 4), pdu(2, 5, kind="getbulk", source=40001), pdu(4, None))

    report = log.report(CENTRAL)

    assert json.loads(json.dumps(report)) == report
    assert report == {
        "pdus": 3,
        "kinds": {"get": 2, "getbulk": 1},
        "unanswered": 1,
        "variables": 3,
        "sources": 2,
        "overlaps": 2,
        "peak_in_flight": 2,
        "peak_rate": 1.0,
        "rate": 0.5,
    }


def test_a_log_survives_in_a_file(tmp_path):
    path = tmp_path / "pdus.jsonl"
    with PduLog(path) as log:
        log.add(pdu(1.5, 2.5))
        written_at_once = path.read_text().splitlines()
        log.add(pdu(2.0, None, source=40001))

    assert json.loads(written_at_once[0])["agent"] == CENTRAL
    assert read_log(path).pdus() == log.pdus()


def test_the_handler_logs_every_request_whether_answered_or_not(central, now):
    agent, log = SimulatedAgent(central, faults=Faults(per_pdu=2.0, queue_limit=1)), PduLog()
    handler = RequestHandler(agent, log)
    oids = [parse("1.3.6.1.2.1.1.5.0"), parse("1.3.6.1.2.1.1.1.0")]

    def ask(community=b"public", kind=PduType.GET):
        handler.take(prepare(Version.V2C, community, kind, oids, 0, 3).datagram(0x01020304), 40000, now)

    ask(community=b"wrong")
    ask(kind=PduType.GET_BULK)
    ask()
    handler.take(b"?", 40001, now)

    assert log.pdus() == [
        Pdu(now, None, CENTRAL, 40000, "get", 2, 0),
        Pdu(now, now + 2.0, CENTRAL, 40000, "getbulk", 2, 6),
        Pdu(now, None, CENTRAL, 40000, "get", 2, 0),
        Pdu(now, None, CENTRAL, 40001, "unreadable", 0, 0),
    ]
