"""Probes: spread over their minute, never beside a run, and followed whatever else fails."""

from builders import HOUR, MIN, SEC, T0, make_node
from test_breaker import BreakingWorld
from test_more_races import away

from facho.engine.model import Cause, Status
from facho.engine.scheduling.prober import Prober


def test_a_person_who_asks_during_a_probe_waits_for_its_end_and_is_served(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0, interval=HOUR, retries=0)])
        world.nodes.breakers[1] = T0
        while not world.agents.asked:
            await world.run_for(1 * SEC)
        world.nodes.request_run(1, clock.now())
        await world.run_for(20 * SEC)
        return world

    world = virtually(story())

    (row,) = [row for row in world.rows if row.node.id == 1]
    assert row.status is Status.SUCCESS
    assert row.waits[Cause.OLT_BUSY] > 0


def test_an_olt_whose_name_has_no_address_is_not_asked_and_stays_unreachable(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0, interval=HOUR, retries=0)])
        world.nodes.hosts[1] = "olt-7.example.net"
        world.nodes.breakers[1] = T0
        await world.run_for(5 * MIN)
        return world

    world = virtually(story())

    assert (world.agents.asked, set(world.nodes.breakers)) == ([], {1})


def test_an_olt_that_nothing_may_be_sent_to_fails_with_the_reason(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0, interval=HOUR, retries=0)])
        world.nodes.barred[1] = "OLT 1 has no community."
        await world.run_for(5 * MIN)
        return world

    world = virtually(story())

    (row,) = world.rows
    assert world.agents.asked == []
    assert (row.status, row.cause) == (Status.FAILED, Cause.UNREACHABLE)
    assert row.outcome.error == "OLT 1 has no community."


class Gate(set):
    """OLTs that are held."""

    is_busy, hold, release = set.__contains__, set.add, set.discard

    def mark_silent(self, olt_id): ...


def probe_times(clock, virtually, since, span):
    """Return when OLTs 1 to 20 are probed whose breakers have been open since then."""

    async def story():
        asked = []

        class Noting(Prober):
            async def probe(self, olt_id):
                asked.append((olt_id, clock.now() - T0))

        prober = Noting(name="noc", nodes=None, slots=None, runs=None, leases=None, snmp=None, bus=None, clock=clock)
        prober.follow(dict.fromkeys(range(1, 21), since))
        gate = Gate()
        while clock.now() < T0 + span:
            prober.tick(clock.now(), gate)
            await clock.sleep(1)
        return asked

    return virtually(story())


def test_a_restart_does_not_probe_all_dark_olts_at_once(clock, virtually):
    asked = probe_times(clock, virtually, T0 - 100 * MIN, 1 * MIN)

    assert sorted(olt_id for olt_id, _ in asked) == list(range(1, 21))
    times = [at for _, at in asked]
    assert max(times.count(at) for at in times) <= 2


def test_a_stall_of_the_scheduler_is_not_followed_by_two_probes(clock, virtually):
    asked = probe_times(clock, virtually, T0 - 3 * MIN, 90 * SEC)

    for olt_id in range(1, 21):
        times = [at for each, at in asked if each == olt_id]
        assert len(times) == 1 or times[1] - times[0] == 1 * MIN


def test_breakers_are_followed_although_a_change_cannot_be_written_down(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0 + 10 * SEC), make_node(2, olt_id=2)])
        await world.run_for(2 * SEC)
        world.slots.reschedule = away
        world.nodes.put(make_node(3, olt_id=2))
        world.nodes.breakers[1] = clock.now()
        await world.run_for(30 * SEC)
        return world

    world = virtually(story())

    assert world.runner.ran == []
