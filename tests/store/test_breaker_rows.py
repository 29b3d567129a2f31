"""What a breaker leaves in the row of its OLT, and what is told of it: each turn once."""

import logging

import pytest
from builders import MIN, SEC, T0

from contracts.worlds import DbWorld, done, scheduled
from facho.apps.inventory.models import Olt
from facho.engine.model import Cause, Outcome, Status, Traffic
from facho.store.breakers import BreakerPolicy

pytestmark = pytest.mark.django_db

SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")
ANSWERED = Outcome(Status.SUCCESS, traffic=Traffic(pdus=3, rtt_p50=0.02, rtt_p95=2.5))
REFUSED = Outcome(Status.FAILED, None, "wrong password", "Refused", traffic=Traffic(pdus=1))
OPENED = T0 + 10 * MIN + 1 * SEC


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def told(caplog):
    """What is told in the test itself, as name and sentence."""
    caplog.set_level(logging.INFO)
    return lambda: [(each.event.name, each.getMessage()) for each in caplog.records if hasattr(each, "event")]


@pytest.fixture
def end(world):
    """Run Optical power once more, and end it in this way."""
    power = world.add("Optical power", next_check=T0)

    def end(outcome):
        slot = world.now_of(power)[0]
        (id_,) = world.claim(scheduled(power, slot=slot)).execution_ids
        world.start(id_, now=slot)
        world.close([id_], outcome, now=slot + 1 * SEC)

    return end


@pytest.fixture
def broken(end):
    for _ in range(3):
        end(SILENT)
    return end


def sur():
    return Olt.objects.get()


def test_a_breaker_opens_once_and_leaves_the_admins_flag_alone(world, end, told):
    for _ in range(4):
        end(SILENT)

    olt = sur()
    assert (olt.enabled, olt.failures, olt.breaker_opened_at) == (True, 4, OPENED)
    assert (olt.reachability, olt.last_error) == ("unreachable", "no answer")
    assert [name for name, _ in told()] == ["BREAKER_OPENED"]
    assert "OLT-CENTRAL-01 did not answer 3 attempts in a row" in told()[0][1]


def test_how_many_silent_attempts_open_it_can_be_set(world, end):
    world.follow(BreakerPolicy(opens_after=1))

    end(SILENT)

    assert sur().breaker_opened_at is not None


def test_an_attempt_that_is_put_off_shows_how_the_olt_is(world):
    power = world.add("Optical power", next_check=T0)
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)

    world.put_off([id_], SILENT, retry_at=T0 + 2 * MIN)

    assert (sur().reachability, sur().last_error, sur().failures) == ("unreachable", "no answer", 1)


@pytest.mark.parametrize(
    ("answer", "reachability"),
    [
        pytest.param(ANSWERED, "slow", id="as slow as it was heard"),
        pytest.param(REFUSED, "reachable", id="an error is an answer"),
    ],
)
def test_an_answer_to_a_run_closes_it(broken, told, answer, reachability):
    broken(answer)

    olt = sur()
    assert (olt.failures, olt.breaker_opened_at, olt.reachability) == (0, None, reachability)
    assert told() == [("BREAKER_CLOSED", "OLT-CENTRAL-01 answers again: polling resumed")]


def test_an_answer_to_a_probe_closes_it_once(world, broken, told):
    revision = sur().revision

    for minute in (20, 21):
        done(world.slots.answered(world.olt_id, now=T0 + minute * MIN))

    olt = sur()
    assert (olt.failures, olt.breaker_opened_at, olt.reachability) == (0, None, "reachable")
    assert (olt.breaker_probed_at, olt.last_answer_at) == (T0 + 21 * MIN, T0 + 21 * MIN)
    assert olt.revision == revision
    assert [name for name, _ in told()] == ["BREAKER_CLOSED"]


def test_a_silent_probe_is_noted_and_changes_nothing_else(world, broken):
    before = sur()

    done(world.slots.probed(world.olt_id, now=T0 + 20 * MIN))

    olt = sur()
    assert olt.breaker_probed_at == T0 + 20 * MIN
    assert (olt.breaker_opened_at, olt.failures, olt.last_answer_at) == (
        before.breaker_opened_at,
        before.failures,
        before.last_answer_at,
    )


def test_a_breaker_that_waits_for_a_person_says_once_that_it_could_be_closed(world, broken, told):
    world.recovers_by_hand()

    for minute in (20, 21):
        done(world.slots.answered(world.olt_id, now=T0 + minute * MIN))
    broken(ANSWERED)

    assert (sur().breaker_opened_at, sur().breaker_answered_at) == (OPENED, T0 + 20 * MIN)
    assert [name for name, _ in told()] == ["BREAKER_WAITS"]


def test_a_person_closes_it_and_is_named(world, broken, told):
    world.recovers_by_hand()
    done(world.slots.answered(world.olt_id, now=T0 + 20 * MIN))
    olt, revision = sur(), sur().revision

    closed = [olt.close_breaker(by="ana"), olt.close_breaker(by="ana")]

    assert closed == [True, False]
    assert (olt.failures, olt.breaker_opened_at, olt.breaker_answered_at) == (0, None, None)
    assert (sur().failures, sur().breaker_opened_at, sur().breaker_answered_at) == (0, None, None)
    assert sur().revision == revision + 1
    assert told()[-1] == ("BREAKER_CLOSED_BY_HAND", "OLT-CENTRAL-01: ana closed the breaker")
    assert [name for name, _ in told()].count("BREAKER_CLOSED_BY_HAND") == 1


def test_an_answer_to_a_probe_that_came_too_late_finds_the_breaker_closed(world, end):
    world.recovers_by_hand()

    assert done(world.slots.answered(world.olt_id, now=T0)) is True
    assert (sur().last_answer_at, sur().breaker_answered_at) == (T0, None)


def test_what_waited_without_success_for_another_attempt_says_nothing_new_of_its_olt(world):
    power, names = (world.add(name, next_check=T0) for name in ("Optical power", "Names"))
    waiting = world.claim(scheduled(power)).execution_ids
    world.start(waiting[0])
    world.put_off(waiting, SILENT, retry_at=T0 + 2 * MIN)
    (heard,) = world.claim(scheduled(names)).execution_ids
    world.start(heard, now=T0 + 1 * MIN)
    world.close([heard], ANSWERED, now=T0 + 1 * MIN)

    world.close(waiting, SILENT, token=None, now=T0 + 5 * MIN)

    assert (sur().reachability, sur().last_error, sur().failures) == ("slow", "", 0)


def test_a_probe_of_an_olt_that_was_deleted_says_nothing(world):
    assert done(world.slots.answered(999_999, now=T0)) is False


def test_nobody_knows_yet_how_an_olt_with_another_address_is(world, broken):
    done(world.slots.reset_breakers([world.olt_id], now=T0 + 20 * MIN))

    olt = sur()
    assert (olt.failures, olt.breaker_opened_at, olt.reachability) == (0, None, "unknown")


def test_an_olt_against_which_nothing_is_held_stays_as_it_is(world, end):
    end(ANSWERED)

    done(world.slots.reset_breakers([world.olt_id], now=T0 + 20 * MIN))

    assert sur().reachability == "slow"


def test_a_breaker_that_closes_for_another_address_is_told(world, broken, caplog):
    caplog.clear()
    caplog.set_level("INFO")

    done(world.slots.reset_breakers([world.olt_id], now=T0 + 20 * MIN))
    done(world.slots.reset_breakers([world.olt_id], now=T0 + 21 * MIN))

    [record] = [each for each in caplog.records if hasattr(each, "event")]
    assert (record.event.name, record.olt_id) == ("BREAKER_FORGIVEN", world.olt_id)


def test_silence_that_opened_no_breaker_is_forgiven_without_a_word(world, end, caplog):
    end(SILENT)
    caplog.clear()
    caplog.set_level("INFO")

    done(world.slots.reset_breakers([world.olt_id], now=T0 + 20 * MIN))

    assert sur().failures == 0
    assert [each for each in caplog.records if hasattr(each, "event")] == []
