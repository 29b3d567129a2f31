"""One composite, from the lease of its OLT to the last reading: what each link ends as, and what is left behind."""

import asyncio
import logging
from dataclasses import replace

import pytest
from builders import MIN, SEC, T0, make_node
from runner_stage import COMPLETE, SILENCE, Mute

from facho.engine.errors import LeaseLost, Refused
from facho.engine.model import (
    Cause,
    Collected,
    Completeness,
    CompositeNode,
    Coverage,
    JobKind,
    Outcome,
    Status,
    Traffic,
)
from facho.engine.observer import Observer


def test_links_run_one_behind_the_other_under_one_lease(stage, virtually):
    play = stage()

    outcomes = virtually(play.run())

    assert [node_id for node_id, _, _ in play.asked] == [1, 2, 3]
    assert play.seated == [(1, 1), (2, 2), (3, 3)]
    assert [(row.started_at, row.ended_at) for row in play.slots.rows] == [
        (T0, T0 + 1 * SEC),
        (T0 + 1 * SEC, T0 + 2 * SEC),
        (T0 + 2 * SEC, T0 + 3 * SEC),
    ]
    assert {row.token for row in play.slots.rows} == {1}
    assert [token for _, _, token in play.runs.written] == [1, 1, 1]
    assert [outcome.status for outcome in outcomes] == [Status.SUCCESS] * 3
    assert [outcome.readings for outcome in outcomes] == [1] * 3


def test_each_link_has_its_own_time_limit(stage, virtually):
    play = stage()

    virtually(play.run())

    assert [limit for _, limit, _ in play.asked] == [5 * MIN, 2 * MIN, 5 * MIN]


def test_every_link_knows_the_onus_that_are_there(stage, virtually):
    play = stage(kinds={2: JobKind.GET, 3: JobKind.DISCOVERY})

    virtually(play.run())

    assert [known for _, _, known in play.asked] == [1, 1, 1]


def test_what_a_link_learned_of_the_agent_is_there_for_the_next_one(stage, virtually):
    play = stage({1: replace(COMPLETE, learned={"sizes": {"onus": 20}}), 3: COMPLETE})

    virtually(play.run())

    assert play.learned == [{}, {"sizes": {"onus": 20}}, {"sizes": {"onus": 20}}]


def test_a_master_that_fails_does_not_stop_its_chain(stage, virtually):
    play = stage({1: Refused("unknown user")})

    outcomes = virtually(play.run())

    assert play.ended == [(Status.FAILED, None), (Status.SUCCESS, None), (Status.SUCCESS, None)]
    assert (outcomes[0].error, outcomes[0].error_class) == ("unknown user", "Refused")


def test_an_unreachable_olt_is_not_asked_again_by_the_chain(stage, virtually):
    play = stage({1: SILENCE})

    outcomes = virtually(play.run())

    assert [node_id for node_id, _, _ in play.asked] == [1]
    assert play.ended == [
        (Status.FAILED, Cause.UNREACHABLE),
        (Status.SKIPPED, Cause.UNREACHABLE),
        (Status.SKIPPED, Cause.UNREACHABLE),
    ]
    assert outcomes[0].error == str(SILENCE)


def test_an_olt_that_falls_silent_in_the_chain_skips_the_rest_of_it(stage, virtually):
    play = stage({2: SILENCE})

    virtually(play.run())

    assert play.ended == [
        (Status.SUCCESS, None),
        (Status.FAILED, Cause.UNREACHABLE),
        (Status.SKIPPED, Cause.UNREACHABLE),
    ]


def test_an_olt_disabled_before_its_turn_is_not_asked(stage, virtually):
    play = stage()

    async def story():
        claim = await play.claim()
        play.nodes.enable(1, False)
        return await play.runner.run(claim, play)

    outcomes = virtually(story())

    assert play.asked == []
    assert play.ended == [(Status.SKIPPED, Cause.DISABLED)] * 3
    assert "disabled" in outcomes[0].error


def test_what_was_so_long_under_way_that_its_slot_is_over_is_not_asked_for(stage, virtually):
    play = stage()

    async def story():
        claim = await play.claim()
        await play.clock.sleep((claim.next_check - play.clock.now()).total_seconds())
        return await play.runner.run(claim, play)

    virtually(story())

    assert play.asked == []
    assert play.ended == [(Status.SKIPPED, Cause.NO_FREE_POLLER)] * 3


def test_an_olt_that_somebody_else_holds_is_not_asked(stage, virtually):
    play = stage()

    async def story():
        async with play.leases.hold(1, "a probe", device="127.0.0.1:161"):
            return await play.run()

    virtually(story())

    assert play.asked == []
    assert play.ended == [(Status.SKIPPED, Cause.OLT_BUSY)] * 3


def test_an_olt_whose_device_is_held_for_another_olt_is_not_asked(stage, virtually):
    play = stage()
    play.nodes.hosts[1] = "::ffff:10.0.0.7"

    async def story():
        async with play.leases.hold(2, "noc/2", device="10.0.0.7:161"):
            return await play.run()

    virtually(story())

    assert play.asked == []
    assert play.ended == [(Status.SKIPPED, Cause.OLT_BUSY)] * 3


def test_an_olt_with_an_execution_running_elsewhere_is_not_asked(stage, virtually):
    play = stage()

    async def story():
        play.nodes.put(make_node(9, next_check=T0))
        other = await play.slots.claim(CompositeNode(make_node(9), (), T0), poller_id=9, now=T0, waits={})
        later = replace((await _any_lease(play)), token=99)
        await play.runs.start(other.execution_ids[0], lease=later, now=T0)
        return await play.run()

    virtually(story())

    assert play.asked == []
    assert play.ended == [(Status.RUNNING, None), *[(Status.SKIPPED, Cause.OLT_BUSY)] * 3]


async def _any_lease(play):
    async with play.leases.hold(1, "elsewhere", device="127.0.0.1:161") as lease:
        return lease


def test_a_holder_whose_lease_is_lost_stops_and_reports_it(stage, virtually):
    play = stage()
    play.runs.errors = [LeaseLost("execution 0 is no longer ours")]

    virtually(play.run())

    assert [node_id for node_id, _, _ in play.asked] == [1]
    assert play.ended == [
        (Status.INTERRUPTED, Cause.LEASE_LOST),
        (Status.SKIPPED, Cause.LEASE_LOST),
        (Status.SKIPPED, Cause.LEASE_LOST),
    ]


def test_a_link_that_somebody_ended_meanwhile_is_not_run(stage, virtually):
    play = stage()

    async def story():
        claim = await play.claim()
        stopped = Outcome(Status.INTERRUPTED, Cause.STOPPED)
        await play.slots.close(claim.execution_ids[1:2], stopped, now=T0)
        return await play.runner.run(claim, play)

    outcomes = virtually(story())

    assert [node_id for node_id, _, _ in play.asked] == [1, 3]
    assert play.ended[1] == (Status.INTERRUPTED, Cause.STOPPED)
    assert [outcome.status for outcome in outcomes] == [Status.SUCCESS, Status.INTERRUPTED, Status.SUCCESS]


def cancelled_after(play, seconds, virtually):
    """Run, and stop it after a while; return whether the stop was passed on and whether the OLT is free again."""

    async def story():
        task = asyncio.create_task(play.run())
        await play.clock.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with play.leases.hold(1, "the next one", device="127.0.0.1:161"):
            return task.cancelled()

    return virtually(story())


def test_stopping_interrupts_the_running_link_and_the_ones_to_come(stage, virtually):
    play = stage()

    passed_on = cancelled_after(play, 1.5, virtually)

    assert passed_on
    assert play.ended == [
        (Status.SUCCESS, None),
        (Status.INTERRUPTED, Cause.STOPPED),
        (Status.INTERRUPTED, Cause.STOPPED),
    ]


def test_stopping_while_an_end_is_being_written_leaves_nothing_open(stage, virtually):
    play = stage()
    finish = play.runs.finish

    async def slow(result):
        await play.clock.sleep(1)
        await finish(result)

    play.runs.finish = slow

    assert cancelled_after(play, 1.5, virtually)
    assert {status for status, _ in play.ended} == {Status.INTERRUPTED}


@pytest.mark.parametrize(
    ("collected", "expected"),
    [
        pytest.param(COMPLETE, Status.SUCCESS, id="everything"),
        pytest.param(Collected(Completeness.EMPTY), Status.SUCCESS, id="an empty table, read to its end"),
        pytest.param(replace(COMPLETE, completeness=Completeness.PARTIAL, errors=("cut",)), Status.PARTIAL, id="some"),
        pytest.param(Collected(Completeness.PARTIAL, scalars={"a": 1}, errors=("cut",)), Status.PARTIAL, id="scalars"),
        pytest.param(Collected(Completeness.PARTIAL, errors=("cut",)), Status.FAILED, id="nothing, and it was cut"),
    ],
)
def test_some_rows_are_partial_and_none_with_errors_are_a_failure(stage, virtually, collected, expected):
    play = stage({1: collected})

    outcome = virtually(play.run())[0]

    assert outcome.status is expected
    assert outcome.completeness is collected.completeness


def test_an_outcome_tells_what_it_cost_what_it_covered_and_all_that_went_wrong(stage, virtually):
    traffic = Traffic(pdus=12, retransmissions=2, varbinds=120, rtt_p95=0.4)
    told = {
        "errors": ("port 0/1 was cut", "port 0/2 was cut"),
        "coverage": (Coverage("rx_dbm", 0, 1, Completeness.PARTIAL, 12, "cut"),),
        "failed_onus": ("ONU 0/1/7",),
    }
    play = stage({1: Collected(Completeness.PARTIAL, COMPLETE.readings, traffic=traffic, **told)})

    outcome = virtually(play.run())[0]

    assert outcome.traffic == traffic
    assert outcome.error == "port 0/1 was cut\nport 0/2 was cut"
    stored = play.runs.results[0].collected
    assert (stored.coverage, stored.failed_onus) == (told["coverage"], told["failed_onus"])


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda play: play.runs.errors.append(OSError("disk full")), id="a result that cannot be stored"),
        pytest.param(lambda play: play.results.update({1: OSError("disk full")}), id="a defect of ours"),
    ],
)
def test_what_a_link_runs_into_is_its_own(stage, virtually, fault):
    play = stage()
    fault(play)

    outcomes = virtually(play.run())

    assert play.ended == [(Status.FAILED, None), (Status.SUCCESS, None), (Status.SUCCESS, None)]
    assert (outcomes[0].error, outcomes[0].error_class) == ("disk full", "OSError")


def test_an_olt_whose_secret_cannot_be_read_leaves_no_execution_open(stage, virtually):
    play = stage()

    async def unreadable(olt_id):
        raise ValueError("a stored secret cannot be read with the keys at hand")

    play.nodes.olt = unreadable

    outcomes = virtually(play.run())

    assert play.ended == [(Status.FAILED, None)] * 3
    assert outcomes[0].error == "a stored secret cannot be read with the keys at hand"


@pytest.mark.parametrize(
    ("step", "ended"),
    [
        pytest.param("start", [Status.FAILED] * 3, id="start"),
        pytest.param("finish", [Status.FAILED, Status.SUCCESS, Status.SUCCESS], id="finish"),
    ],
)
def test_a_database_that_misses_one_step_leaves_no_execution_open(stage, virtually, step, ended):
    play = stage()
    real = getattr(play.runs, step)
    calls = []

    async def away_once(*args, **kwargs):
        calls.append(args)
        if len(calls) == 1:
            raise OSError("the database is away")
        return await real(*args, **kwargs)

    setattr(play.runs, step, away_once)

    virtually(play.run())

    assert play.ended == [(status, None) for status in ended]


def test_watchers_hear_of_each_start_each_end_and_each_harvest(stage, virtually):
    play = stage({2: SILENCE})

    virtually(play.run())

    def execution(number, status):
        return ("execution", {"id": number - 1, "olt_id": 1, "node_id": number, "status": status})

    assert play.heard == [
        execution(1, "RUNNING"),
        ("readings", {"olt_id": 1, "node_id": 1, "count": 1}),
        execution(1, "SUCCESS"),
        execution(2, "RUNNING"),
        execution(2, "FAILED"),
        execution(3, "SKIPPED"),
    ]


def test_a_harvest_of_nothing_is_no_news(stage, virtually):
    play = stage(dict.fromkeys((1, 2, 3), Collected(Completeness.EMPTY)))

    virtually(play.run())

    assert {topic for topic, _ in play.heard} == {"execution"}


def test_a_harvest_that_was_not_kept_is_no_news(stage, virtually):
    play = stage()
    play.runs.errors = [OSError("disk full")] * 3

    virtually(play.run())

    assert {topic for topic, _ in play.heard} == {"execution"}


def test_failures_are_events_and_name_no_secret(stage, virtually, caplog):
    play = stage({1: Refused("unknown user"), 2: SILENCE})

    with caplog.at_level(logging.DEBUG):
        virtually(play.run())

    events = [(record.event.name, record.olt_id) for record in caplog.records if hasattr(record, "event")]
    assert events == [("RUN_FAILED", 1), ("OLT_UNREACHABLE", 1)]
    assert "public" not in caplog.text


def test_a_mute_olt_ends_as_unreachable(stage, clock, virtually, monkeypatch):
    play = stage()
    monkeypatch.undo()
    snmp = Mute(clock)
    play.runner = play._runner(snmp)
    play.composite = replace(play.composite, master=replace(play.composite.master, columns=("rx_dbm",)))

    virtually(play.run())

    assert [cause for _, cause in play.ended] == [Cause.UNREACHABLE] * 3
    assert snmp.pdus > 1
    assert play.runs.written == []


class Attempts(Observer):
    """Keeps when attempts started and how they ended."""

    def __init__(self):
        self.lateness, self.ended, self.leases = [], [], 0

    def attempt_started(self, lateness):
        self.lateness.append(lateness)

    def attempt_ended(self, outcome):
        self.ended.append((outcome.status, outcome.seconds))

    def lease_taken(self):
        self.leases += 1


def observed(play, *, later=0 * SEC, attempt=1):
    """Run a composite, and return what its runner reported."""
    observer = Attempts()
    play.runner = play._runner(None, observer=observer)

    async def story():
        await play.clock.sleep(later.total_seconds())
        await play.runner.run(replace(await play.claim(), attempt=attempt), play)

    return story(), observer


def test_only_the_master_can_be_late_and_every_attempt_that_starts_ends(stage, virtually):
    story, observer = observed(stage({2: SILENCE}), later=3 * SEC)

    virtually(story)

    assert observer.lateness == [3.0, None]
    assert observer.ended == [(Status.SUCCESS, 1.0), (Status.FAILED, 1.0)]
    assert observer.leases == 1


def test_a_retry_has_no_slot_to_be_late_for(stage, virtually):
    story, observer = observed(stage(), later=3 * SEC, attempt=2)

    virtually(story)

    assert observer.lateness == [None, None, None]


def test_an_attempt_that_is_stopped_has_ended(stage, virtually):
    play = stage()
    play.runner = play._runner(None, observer=(observer := Attempts()))

    cancelled_after(play, 1.5, virtually)

    assert observer.ended == [(Status.SUCCESS, 1.0), (Status.INTERRUPTED, 0.5)]
