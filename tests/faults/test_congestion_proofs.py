"""How hard an OLT is asked: as hard as it can bear, which nobody has to tell, and never beyond its limits."""

from itertools import pairwise

import pytest
from virtual_olt import VirtualOlt, in_virtual_time

from facho.engine.collect import pace as pace_module
from facho.engine.collect import requester as requester_module
from facho.engine.collect import size as size_module
from facho.engine.model import Completeness, JobKind
from facho.simulator.faults import Faults

COLUMNS = ("serial", "name", "state", "distance_m", "down_cause")
LIMIT = 8

# 2,000 ONUs, six columns.
AGENTS = [
    pytest.param(Faults(per_pdu=0.02, per_varbind=0.002), id="serial, and near"),
    pytest.param(Faults(per_pdu=0.02, per_varbind=0.002, latency=0.1), id="serial, and far away"),
    pytest.param(Faults(per_pdu=0.02, per_varbind=0.002, latency=0.02, crowding=0.3), id="slower the more wait"),
    pytest.param(Faults(per_pdu=0.001, latency=0.05), id="quick, behind a slow line"),
    pytest.param(Faults(per_pdu=0.02, per_varbind=0.001, latency=0.02, queue_limit=4), id="drops what it cannot hold"),
]


class FixedPace(pace_module.Pace):
    """A window that somebody has set."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.window = self.limit

    def answered(self, *args: object) -> None: ...

    def lost(self, *args: object) -> None: ...


def seconds(olt, *args, **settings):
    """Return how long a whole collection takes."""
    collected = in_virtual_time(lambda: olt.collect(*args, **settings))
    assert collected.completeness is Completeness.COMPLETE
    pdus = olt.log.pdus()
    return max(pdu.ended for pdu in pdus) - pdus[0].arrived


def best_fixed(monkeypatch, faults):
    """Return the time of the best window there is, at the sizes that fit."""
    with monkeypatch.context() as patch:
        patch.setattr(requester_module, "Pace", FixedPace)
        times = []
        for window in range(1, LIMIT + 1):
            olt = VirtualOlt(2000, faults)
            times.append(seconds(olt, JobKind.DISCOVERY, *COLUMNS, known=olt.known(), max_in_flight=window))
    return min(times)


@pytest.mark.parametrize("faults", AGENTS)
def test_the_pace_comes_near_the_best_that_could_have_been_set(monkeypatch, faults):
    best = best_fixed(monkeypatch, faults)
    olt = VirtualOlt(2000, faults)

    found = seconds(olt, JobKind.DISCOVERY, *COLUMNS, known=olt.known(), max_in_flight=LIMIT)

    assert best / found >= 0.85
    assert olt.log.peak_in_flight() <= LIMIT


@pytest.mark.parametrize("rows", [1, 5, 10, 50])
def test_the_size_comes_near_the_best_that_could_have_been_set(monkeypatch, rows):
    """On a serial agent a request costs 20 ms besides its rows, so that few large ones are best."""
    faults = Faults(per_pdu=0.02, per_varbind=0.0005, bulk_rows=40, bulk_bytes=60_000)
    with monkeypatch.context() as patch:
        patch.setattr(size_module.Size, "rows_for", lambda self, columns: rows)
        olt = VirtualOlt(4000, faults)
        fixed = seconds(olt, JobKind.DISCOVERY, *COLUMNS, known=olt.known())
    olt = VirtualOlt(4000, faults)

    found = seconds(olt, JobKind.DISCOVERY, *COLUMNS, known=olt.known())

    assert fixed / found >= 0.85


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_limits_of_an_olt_are_never_exceeded(limit):
    olt = VirtualOlt(1000, Faults(latency=0.05, jitter=0.05, loss=0.02))

    in_virtual_time(
        lambda: olt.collect(JobKind.DISCOVERY, *COLUMNS, known=olt.known(), max_in_flight=limit, max_pdus_per_second=20)
    )

    arrivals = [pdu.arrived for pdu in olt.log.pdus()]
    assert olt.log.peak_in_flight() <= limit
    assert min(later - earlier for earlier, later in pairwise(arrivals)) >= 1 / 20 - 1e-6


def test_when_the_agent_halves_its_speed_the_rate_follows_within_20_requests():
    olt = VirtualOlt(4000, Faults(per_pdu=0.02, per_varbind=0.001, latency=0.05))
    slowed_at = 300

    def slow_down(count):
        if count == slowed_at:
            olt.agent.faults = Faults(per_pdu=0.04, per_varbind=0.002, latency=0.05)

    olt.on_request = slow_down
    in_virtual_time(lambda: olt.collect(JobKind.DISCOVERY, *COLUMNS, known=olt.known(), max_in_flight=LIMIT))

    arrivals = [pdu.arrived for pdu in olt.log.pdus()]
    before = rate(arrivals[slowed_at - 40 : slowed_at])
    after = rate(arrivals[slowed_at + 20 : slowed_at + 60])
    assert after == pytest.approx(before / 2, rel=0.15)
    # No more wait at the agent than before it slowed down.
    waiting = [pdu.ended - pdu.arrived for pdu in olt.log.pdus()]
    assert max(waiting[slowed_at + 40 :]) <= 2.2 * max(waiting[slowed_at - 40 : slowed_at])


def rate(arrivals):
    return (len(arrivals) - 1) / (arrivals[-1] - arrivals[0])
