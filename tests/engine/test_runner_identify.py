"""An OLT that nobody has named: the runner finds out, hands it on, and says what to do where it cannot."""

import pytest
from builders import T0
from runner_stage import Mute, Stage

from facho.brands import BRANDS
from facho.engine.detect.detect import SYS_DESCR, SYS_NAME
from facho.engine.errors import LeaseLost
from facho.engine.model import Cause, JobKind, Status
from facho.engine.snmp import Answer, Missing, Tag

HUAWEI = BRANDS["huawei"]


class Talker:
    """An agent with a description, and with rows in the table that tells a brand, or without."""

    def __init__(self, clock, descr, rows_of=None):
        self._clock = clock
        self._said = {SYS_DESCR: descr.encode(), SYS_NAME: b"central"}
        self._rows_of = rows_of

    async def get(self, agent, oids, *, timeout):
        await self._clock.sleep(0.1)
        return self._answer(oids, [self._said.get(oid, Missing.NO_SUCH_OBJECT) for oid in oids])

    async def get_next(self, agent, oids, *, timeout):
        await self._clock.sleep(0.1)
        probe = self._rows_of and (self._rows_of.probe or self._rows_of.columns[self._rows_of.discovery[0]].oid)
        if probe and oids[0] == probe:
            return self._answer([probe + b"\x07"], [7])
        return self._answer(oids, [Missing.END_OF_MIB_VIEW])

    @staticmethod
    def _answer(oids, values):
        return Answer(0, 0, list(oids), list(values), bytes([Tag.OCTET_STRING] * len(values)), 50, 60)


@pytest.fixture
def play(clock, monkeypatch):
    return Stage(clock, monkeypatch, kinds={1: JobKind.IDENTIFY})


def test_an_olt_that_says_what_it_is_gets_its_brand(play, clock, virtually):
    play.runner = play._runner(Talker(clock, f"{HUAWEI.label} MA5800", rows_of=HUAWEI))

    outcome = virtually(play.run())[0]

    assert (outcome.status, outcome.error, outcome.readings) == (Status.SUCCESS, "", 0)
    assert play.runs.named == [(1, 0, 1, "huawei", {"sysDescr": f"{HUAWEI.label} MA5800", "sysName": "central"})]
    assert outcome.traffic.pdus == 2
    assert play.slots.rows[0].started_at == T0


def test_an_olt_that_says_nothing_of_itself_is_known_by_its_tables(play, clock, virtually):
    play.runner = play._runner(Talker(clock, "Linux", rows_of=HUAWEI))

    outcome = virtually(play.run())[0]

    assert outcome.status is Status.SUCCESS
    assert play.runs.named[0][3] == "huawei"


def test_an_olt_of_nobody_fails_with_what_was_seen_and_what_to_do(play, clock, virtually):
    play.runner = play._runner(Talker(clock, "Toaster 3000"))

    outcome = virtually(play.run())[0]

    assert (outcome.status, outcome.cause) == (Status.FAILED, None)
    assert "Toaster 3000" in outcome.error
    assert "manual" in outcome.error
    assert play.runs.named == [(1, 0, 1, "", {"sysDescr": "Toaster 3000", "sysName": "central"})]


def test_a_mute_olt_is_unreachable_and_not_of_nobody(play, clock, virtually):
    play.runner = play._runner(Mute(clock))

    outcome = virtually(play.run())[0]

    assert outcome.cause is Cause.UNREACHABLE
    assert outcome.traffic.pdus > 1
    assert play.runs.named == []


def test_what_a_lost_lease_found_out_is_not_kept(play, clock, virtually):
    play.runner = play._runner(Talker(clock, HUAWEI.label, rows_of=HUAWEI))
    play.runs.errors = [LeaseLost("execution 0 is no longer ours")]

    virtually(play.run())

    assert play.ended[0] == (Status.INTERRUPTED, Cause.LEASE_LOST)
    assert play.runs.named == []


def test_identifying_asks_for_no_columns(play, clock, virtually):
    play.runner = play._runner(Talker(clock, HUAWEI.label, rows_of=HUAWEI))

    virtually(play.run())

    assert [node_id for node_id, _, _ in play.asked] == [2, 3]
