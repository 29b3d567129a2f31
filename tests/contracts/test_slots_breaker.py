"""What slots and runs promise about breakers: silence opens them, any answer closes them, nothing else counts."""

import pytest
from builders import MIN, SEC, T0
from worlds import PRESENT, WORLDS, done, scheduled

from facho.engine.model import Cause, Outcome, Status, Traffic

SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable", traffic=Traffic(pdus=3))
ANSWERED = Outcome(Status.SUCCESS, traffic=Traffic(pdus=3, rtt_p50=0.02, rtt_p95=0.03))
REFUSED = Outcome(Status.FAILED, None, "wrong password", "Refused", traffic=Traffic(pdus=1))
BROKEN = Outcome(Status.FAILED, None, "disk full", "OSError")


@pytest.fixture(params=WORLDS)
def world(request, db):
    return request.param()


@pytest.fixture
def power(world):
    return world.add("Optical power", next_check=T0)


class Runs:
    """Runs a node again and again, one slot after the other."""

    def __init__(self, world, node):
        self._world = world
        self._node = node
        self.slot = T0

    def end(self, *outcomes):
        for outcome in outcomes:
            (id_,) = self._world.claim(scheduled(self._node, slot=self.slot)).execution_ids
            self._world.start(id_, now=self.slot)
            self._world.close([id_], outcome, now=self.slot + 1 * SEC)
            self.slot += 5 * MIN


@pytest.fixture
def runs(world, power):
    return Runs(world, power)


@pytest.fixture
def broken(world, runs):
    runs.end(SILENT, SILENT, SILENT)
    assert world.breaker() is not None
    return runs


def test_silent_attempts_of_several_executions_open_the_breaker(world, runs):
    seen = []
    for _ in range(3):
        runs.end(SILENT)
        seen.append(world.breaker())

    assert seen == [None, None, T0 + 10 * MIN + 1 * SEC]


def test_an_open_breaker_stays_open_since_when_it_opened(world, broken):
    broken.end(SILENT, SILENT)

    assert world.breaker() == T0 + 10 * MIN + 1 * SEC


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ANSWERED, id="a success"),
        pytest.param(REFUSED, id="a refusal is an answer"),
        pytest.param(Outcome(Status.FAILED, error="cut", traffic=Traffic(rtt_p50=0.1)), id="a failure that was heard"),
    ],
)
def test_silence_counts_only_in_a_row(world, runs, answer):
    runs.end(SILENT, SILENT, answer, SILENT, SILENT)

    assert world.breaker() is None


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(BROKEN, id="a defect of ours"),
        pytest.param(Outcome(Status.INTERRUPTED, Cause.STOPPED), id="being stopped"),
        pytest.param(Outcome(Status.SUCCESS), id="nothing to ask"),
    ],
)
def test_what_says_nothing_of_the_olt_neither_counts_nor_clears(world, runs, outcome):
    runs.end(SILENT, SILENT, outcome)
    before = world.breaker()

    runs.end(SILENT)

    assert before is None
    assert world.breaker() is not None


def test_links_that_were_skipped_for_silence_count_for_nothing(world, power):
    names = world.add("Names", master_id=power.id)
    software = world.add("Software", master_id=power.id)
    ids = world.claim(scheduled(power, names, software)).execution_ids
    world.start(ids[0])
    world.close(ids[:1], SILENT)

    world.close(ids[1:], Outcome(Status.SKIPPED, Cause.UNREACHABLE))

    assert world.breaker() is None


@pytest.fixture
def attempt(world, power):
    """Let attempts at one execution end in this way, two minutes apart; each waits for the next one."""
    claim = world.claim(scheduled(power))
    (id_,) = claim.execution_ids
    made = []

    def attempt(outcome):
        began = T0 + len(made) * 2 * MIN
        if made:
            world.reclaim(claim, now=began)
        made.append(began)
        world.start(id_, now=began)
        world.put_off([id_], outcome, retry_at=began + 2 * MIN, now=began + 1 * SEC)
        return id_

    return attempt


def test_the_attempts_of_one_execution_open_the_breaker(world, attempt):
    seen = []
    for _ in range(3):
        attempt(SILENT)
        seen.append(world.breaker())

    assert seen == [None, None, T0 + 4 * MIN + 1 * SEC]


def test_an_answer_to_one_of_the_attempts_resets_the_count(world, attempt):
    for outcome in (SILENT, SILENT, REFUSED, SILENT, SILENT):
        attempt(outcome)

    assert world.breaker() is None


def test_an_attempt_that_is_put_off_twice_counts_once(world, attempt):
    id_ = attempt(SILENT)

    for _ in range(3):
        world.put_off([id_], SILENT, retry_at=T0 + 2 * MIN, now=T0 + 1 * SEC)

    assert world.breaker() is None


def test_an_execution_that_waited_for_an_attempt_it_did_not_get_counts_for_nothing(world, attempt):
    attempt(SILENT)
    id_ = attempt(SILENT)

    world.close([id_], SILENT, token=None, now=T0 + 5 * MIN)

    assert world.breaker() is None


def test_what_an_older_holder_heard_is_not_counted(world, runs, power):
    runs.end(SILENT, SILENT)
    (id_,) = world.claim(scheduled(power, slot=runs.slot)).execution_ids
    world.start(id_, now=runs.slot)

    world.close([id_], SILENT, token=PRESENT - 1)

    assert world.breaker() is None


def test_an_answer_closes_an_open_breaker_and_counting_begins_again(world, broken):
    broken.end(ANSWERED)
    closed = world.breaker()

    broken.end(SILENT, SILENT)

    assert closed is None
    assert world.breaker() is None


def test_a_probe_that_is_answered_closes_the_breaker_and_counting_begins_again(world, broken):
    closed = done(world.slots.answered(world.olt_id, now=T0 + 20 * MIN))

    broken.end(SILENT, SILENT)

    assert closed is True
    assert world.breaker() is None


def test_an_answer_to_a_check_resets_the_count(world, runs):
    runs.end(SILENT, SILENT)

    done(world.slots.answered(world.olt_id, now=T0 + 12 * MIN))
    runs.end(SILENT, SILENT)

    assert world.breaker() is None


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        pytest.param([], None, id="never asked"),
        pytest.param([ANSWERED, ANSWERED], T0 + 5 * MIN + 1 * SEC, id="answered"),
        pytest.param([ANSWERED, SILENT], None, id="silent"),
        pytest.param([SILENT, ANSWERED], T0 + 5 * MIN + 1 * SEC, id="back"),
        pytest.param([ANSWERED, BROKEN], T0 + 1 * SEC, id="a defect of ours"),
    ],
)
def test_an_olt_is_known_to_have_answered_until_it_is_silent(world, runs, outcomes, expected):
    runs.end(*outcomes)

    assert done(world.nodes.standings())[world.olt_id].answered_at == expected


def test_a_probe_without_an_answer_leaves_it_open(world, broken):
    done(world.slots.probed(world.olt_id, now=T0 + 20 * MIN))

    assert world.breaker() == T0 + 10 * MIN + 1 * SEC


def test_a_breaker_that_waits_for_a_person_is_closed_by_no_answer(world, broken):
    world.recovers_by_hand()

    closed = done(world.slots.answered(world.olt_id, now=T0 + 20 * MIN))
    broken.end(ANSWERED)

    assert closed is False
    assert world.breaker() == T0 + 10 * MIN + 1 * SEC


def test_another_address_is_no_longer_held_to_the_silence_of_the_old_one(world, broken):
    done(world.slots.reset_breakers([world.olt_id], now=T0 + 20 * MIN))
    closed = world.breaker()

    broken.end(SILENT, SILENT)

    assert closed is None
    assert world.breaker() is None


def test_silence_before_the_breaker_opened_is_forgiven_too(world, runs):
    runs.end(SILENT, SILENT)

    done(world.slots.reset_breakers([world.olt_id], now=T0 + 20 * MIN))
    runs.end(SILENT)

    assert world.breaker() is None


def test_others_are_not_forgiven(world, broken):
    done(world.slots.reset_breakers([world.olt_id + 1], now=T0 + 20 * MIN))

    assert world.breaker() is not None
