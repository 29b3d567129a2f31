"""How hard an OLT is asked: as hard as it can bear, which nobody has to tell, and never beyond its limits."""

import json
from functools import partial
from itertools import pairwise

import pytest
from virtual_olt import VirtualOlt, in_virtual_time

from facho.engine.collect import flow as pace_module
from facho.engine.collect import flow as size_module
from facho.engine.collect import learned as learned_module
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

    def __init__(self, limit: int, stored: object = None) -> None:
        super().__init__(limit)
        self.window = self.limit

    def answered(self, *args: object, **options: object) -> None: ...

    def lost(self, *args: object) -> None: ...


def seconds(olt, *args, **settings):
    """Return how long a whole collection takes."""
    collected = in_virtual_time(lambda: olt.collect(*args, **settings))
    assert collected.completeness is Completeness.COMPLETE
    return seconds_in(olt.log)


def seconds_in(log):
    pdus = log.pdus()
    return max(pdu.ended for pdu in pdus) - pdus[0].arrived


def best_fixed(monkeypatch, faults):
    """Return the time of the best window there is, at the sizes that fit."""
    with monkeypatch.context() as patch:
        patch.setattr(learned_module, "Pace", FixedPace)
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


AUTOMATIC = [
    *AGENTS,
    pytest.param(Faults(latency=0.05, jitter=0.01), id="parallel"),
    pytest.param(Faults(per_pdu=0.02, per_varbind=0.002, latency=0.02, queue_limit=8), id="serial, holds eight"),
    pytest.param(Faults(latency=0.05, loss=0.02), id="loses two in a hundred"),
]


def run_again_and_again(faults, runs, *, onus=2000, **settings):
    """Collect several times, each time with what the last run has learned. Yield the OLT and the result of each."""
    learned = {}
    for _ in range(runs):
        olt = VirtualOlt(onus, faults)
        collected = in_virtual_time(
            partial(olt.collect, JobKind.DISCOVERY, *COLUMNS, known=olt.known(), learned=learned, **settings)
        )
        # As the database keeps it.
        learned = json.loads(json.dumps(collected.learned))
        yield olt, collected


@pytest.mark.parametrize("faults", AUTOMATIC)
def test_an_automatic_window_comes_near_the_best_after_the_first_run(monkeypatch, faults):
    best = best_fixed(monkeypatch, faults)

    runs = list(run_again_and_again(faults, 3))

    assert all(collected.completeness is Completeness.COMPLETE for _, collected in runs)
    assert all(olt.log.peak_in_flight() <= LIMIT for olt, _ in runs)
    assert all(seconds_in(olt.log) <= best * 1.1 for olt, _ in runs[1:])


def test_a_serial_agent_that_holds_eight_requests_drops_none():
    faults = Faults(per_pdu=0.02, per_varbind=0.002, latency=0.02, queue_limit=8)

    for olt, collected in run_again_and_again(faults, 3):
        assert all(pdu.answered is not None for pdu in olt.log.pdus())
        assert collected.traffic.retransmissions == 0
        assert collected.traffic.pdus == olt.log.count()


def test_a_run_starts_where_the_last_one_ended():
    (first, _), (second, _) = run_again_and_again(Faults(latency=0.05), 2)

    assert requests_until(first.log, LIMIT) > 15
    # The ports are counted first, one request after the other. Then the window is open.
    assert requests_until(second.log, LIMIT) <= LIMIT + 3


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(Faults(per_pdu=0.05, per_varbind=0.005, latency=0.05), id="serial by now"),
        pytest.param(Faults(per_pdu=0.05, latency=0.05, queue_limit=3), id="drops more than three by now"),
    ],
)
def test_a_learned_window_is_left_at_once_when_it_no_longer_holds(now):
    (_, learned), *_ = run_again_and_again(Faults(latency=0.05), 1)
    assert learned.learned["pace"]["cheap"]["window"] == LIMIT
    olt = VirtualOlt(2000, now)

    collected = in_virtual_time(
        lambda: olt.collect(JobKind.DISCOVERY, *COLUMNS, known=olt.known(), learned=learned.learned)
    )

    pace = collected.learned["pace"]["cheap"]
    assert collected.completeness is Completeness.COMPLETE
    assert pace["window"] < LIMIT
    assert pace["why"] in ("slower", "lost", "no_gain")
    # Three windows of answers are enough to notice.
    assert peak_between(olt.log, 3 * LIMIT, 6 * LIMIT) <= LIMIT // 2


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_learned_window_never_exceeds_a_limit_that_was_set_since(limit):
    (_, learned), *_ = run_again_and_again(Faults(latency=0.05), 1)
    olt = VirtualOlt(1000, Faults(latency=0.05))

    in_virtual_time(
        lambda: olt.collect(
            JobKind.DISCOVERY, *COLUMNS, "rx_dbm", known=olt.known(), learned=learned.learned, max_in_flight=limit
        )
    )

    assert olt.log.peak_in_flight() == limit


def requests_until(log, in_flight):
    """Return how many requests had arrived when so many were in flight for the first time."""
    pdus = log.pdus()
    for place, pdu in enumerate(pdus):
        if sum(other.ended > pdu.arrived for other in pdus[: place + 1]) >= in_flight:
            return place + 1
    return len(pdus) + 1


def peak_between(log, first, last):
    """Return the most requests in flight when one of these arrived."""
    pdus = log.pdus()
    return max(
        sum(other.ended > pdu.arrived for other in pdus[: place + 1])
        for place, pdu in enumerate(pdus)
        if first <= place < last
    )


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
