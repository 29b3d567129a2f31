"""How many requests are under way at once, against agents of every temper. Time is a number here."""

import heapq
import itertools
import json
import random
from dataclasses import dataclass, field

import pytest

from facho.engine.collect.flow import Pace, Why

# What one answer brings.
ROWS = 10
TIMEOUT = 1.0


@dataclass
class Agent:
    """Answers `workers` requests at a time, each in `service` seconds, behind a network of `latency` seconds.

    Requests beyond its queue are dropped in silence, and so is a share of all.
    From the time `slow_from` on it takes `slower` times as long.
    """

    service: float
    workers: int = 1
    latency: float = 0.0
    queue: int = 1000
    loss: float = 0.0
    slow_from: float = float("inf")
    slower: float = 2.0
    dice: random.Random = field(default_factory=lambda: random.Random(7))

    def __post_init__(self):
        self.free_at = [0.0] * self.workers
        self.ends = []

    def answer_at(self, now):
        """Return when the answer to a request sent now arrives; None if it never does."""
        self.ends = [end for end in self.ends if end > now]
        if len(self.ends) >= self.workers + self.queue or self.dice.random() < self.loss:
            return None
        worker = self.free_at.index(min(self.free_at))
        takes = self.service * (self.slower if now >= self.slow_from else 1.0)
        self.free_at[worker] = max(now + self.latency / 2, self.free_at[worker]) + takes
        self.ends.append(self.free_at[worker])
        return self.free_at[worker] + self.latency / 2


@dataclass(frozen=True)
class Event:
    at: float
    lost: bool
    window: int
    in_flight: int


def drive(pace, agent, requests):
    """Keep as many requests under way as the pace allows, and return what became of each."""
    now, sent, under_way, events = 0.0, 0, [], []
    while sent < requests or under_way:
        while sent < requests and len(under_way) < pace.window:
            arrives = agent.answer_at(now)
            heapq.heappush(under_way, (now + TIMEOUT if arrives is None else arrives, sent, now, arrives is None))
            sent += 1
        most = len(under_way)
        now, _, begun, is_lost = heapq.heappop(under_way)
        if is_lost:
            pace.lost(now, len(under_way))
        else:
            pace.answered(now, now - begun, ROWS, len(under_way))
        events.append(Event(now, is_lost, pace.window, most))
    return events


def rate(events):
    """Return answers a second."""
    answered = [event for event in events if not event.lost]
    return (len(answered) - 1) / (answered[-1].at - answered[0].at)


class Fixed:
    """A window that somebody chose."""

    def __init__(self, window):
        self.window = window

    def answered(self, *_):
        pass

    lost = answered


def best_rate(make_agent, limit):
    """Return what the best fixed window brings."""
    return max(rate(drive(Fixed(window), make_agent(), 400)) for window in range(1, limit + 1))


AGENTS = [
    pytest.param(lambda: Agent(0.1), id="serial"),
    pytest.param(lambda: Agent(0.1, workers=8), id="parallel"),
    pytest.param(lambda: Agent(0.001, workers=100, latency=0.05), id="fast behind a slow network"),
    pytest.param(lambda: Agent(0.01, latency=0.03), id="serial behind a network"),
    pytest.param(lambda: Agent(0.05, workers=3), id="three at a time"),
    pytest.param(lambda: Agent(0.1, workers=2, queue=1), id="drops what it cannot hold"),
    pytest.param(lambda: Agent(0.1, workers=8, loss=0.3), id="loses three in ten"),
]


@pytest.mark.parametrize("make_agent", AGENTS)
@pytest.mark.parametrize("limit", [1, 2, 3, 8])
def test_no_more_are_ever_under_way_than_the_limit(make_agent, limit):
    events = drive(Pace(limit), make_agent(), 400)

    assert max(event.in_flight for event in events) <= limit
    assert {event.window for event in events} <= set(range(1, limit + 1))


@pytest.mark.parametrize(("limit", "window"), [(1, 1), (8, 1), (0, 1), (-4, 1)])
def test_it_begins_with_one_at_a_time(limit, window):
    assert Pace(limit).window == window


@pytest.mark.parametrize("make_agent", AGENTS[:5])
def test_throughput_comes_near_to_that_of_the_best_window(make_agent):
    events = drive(Pace(8), make_agent(), 600)

    assert rate(events[100:]) >= 0.85 * best_rate(make_agent, 8)


def test_a_serial_agent_is_asked_for_one_at_a_time_nearly_always():
    events = drive(Pace(8), Agent(0.1), 600)

    alone = [event for event in events if event.in_flight == 1]
    assert len(alone) >= 0.8 * len(events)


@pytest.mark.parametrize("limit", [2, 4, 8])
def test_an_agent_that_can_do_more_gets_all_that_is_allowed_soon(limit):
    events = drive(Pace(limit), Agent(0.001, workers=100, latency=0.05), 300)

    assert next(place for place, event in enumerate(events) if event.window == limit) <= 60
    assert sum(event.window == limit for event in events[60:]) >= 0.9 * len(events[60:])


def test_an_agent_that_drops_what_it_cannot_hold_is_not_overrun_for_long():
    events = drive(Pace(8), Agent(0.1, workers=2, queue=1), 600)

    lost = sum(event.lost for event in events)
    careless = sum(event.lost for event in drive(Fixed(8), Agent(0.1, workers=2, queue=1), 600))
    assert lost <= 0.1 * len(events)
    assert careless > 2 * lost


@pytest.mark.parametrize("limit", [4, 8])
@pytest.mark.parametrize("seed", range(5))
def test_one_in_a_hundred_lost_by_chance_does_not_cut_the_window(limit, seed):
    agent = Agent(0.001, workers=100, latency=0.05, loss=0.01, dice=random.Random(seed))

    events = drive(Pace(limit), agent, 1000)

    assert sum(event.lost for event in events) > 0
    assert sum(event.window == limit for event in events[60:]) >= 0.85 * len(events[60:])


def test_when_many_are_lost_fewer_are_asked_for():
    pace = Pace(8)
    drive(pace, Agent(0.001, workers=100, latency=0.05), 300)
    before = pace.window

    events = drive(pace, Agent(0.001, workers=100, latency=0.05, loss=0.5), 40)

    assert before == 8
    assert min(event.window for event in events) <= 4


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(Agent(0.1, slow_from=20.0), id="serial"),
        pytest.param(Agent(0.1, workers=4, slow_from=5.0), id="four at a time"),
    ],
)
def test_when_an_agent_halves_its_speed_the_rate_follows_within_twenty_requests(agent):
    events = drive(Pace(8), agent, 600)

    answered = [event for event in events if not event.lost]
    turn = next(place for place, event in enumerate(answered) if event.at >= agent.slow_from)
    before, after = rate(answered[turn - 60 : turn]), rate(answered[turn + 20 : turn + 80])
    assert after <= 0.6 * before
    assert max(event.in_flight for event in answered[turn + 20 : turn + 80]) <= 8


def test_an_agent_that_becomes_serial_is_soon_asked_for_less_at_once():
    pace = Pace(8)
    drive(pace, Agent(0.01, workers=8), 300)
    before = pace.window

    events = drive(pace, Agent(0.08, workers=1), 200)

    assert before == 8
    assert min(event.window for event in events[:40]) <= 4
    assert sum(event.window == 8 for event in events[40:]) <= 0.3 * len(events[40:])


def test_more_at_once_is_not_kept_where_it_brings_no_more_even_if_nobody_waits_longer():
    pace = Pace(8)
    windows = []

    for answer in range(400):
        # Whatever is asked, one answer in a tenth of a second gets through, and each takes as long as ever.
        pace.answered(answer / 10, 0.05, ROWS, 0)
        windows.append(pace.window)

    assert max(windows) == 2
    assert windows.count(1) >= 0.8 * len(windows)


def test_what_brought_nothing_is_tried_less_and_less_often():
    events = drive(Pace(2), Agent(0.1), 2000)

    tries = [place for place, (one, two) in enumerate(itertools.pairwise(events)) if one.window < two.window]
    assert len(tries) >= 3
    assert tries[-1] - tries[-2] > tries[1] - tries[0]


def test_an_agent_that_comes_to_life_again_is_given_more_again():
    pace = Pace(8)
    drive(pace, Agent(0.1, workers=1), 300)

    events = drive(pace, Agent(0.01, workers=8), 600)

    assert max(event.window for event in events) == 8


def learned_from(make_agent, limit=8, requests=600):
    pace = Pace(limit)
    drive(pace, make_agent(), requests)
    return json.loads(json.dumps(pace.as_json()))


@pytest.mark.parametrize("make_agent", AGENTS)
def test_the_next_run_starts_where_the_last_one_ended(make_agent):
    stored = learned_from(make_agent)

    assert Pace(8, stored).window == stored["window"]
    assert Pace(8, stored).as_json() == stored


@pytest.mark.parametrize("make_agent", AGENTS[:5])
def test_a_learned_window_is_as_good_as_the_best_from_the_first_request_on(make_agent):
    events = drive(Pace(8, learned_from(make_agent)), make_agent(), 200)

    assert rate(events) >= 0.9 * best_rate(make_agent, 8)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_learned_window_is_cut_to_a_lower_limit(limit):
    pace = Pace(limit, learned_from(lambda: Agent(0.01, workers=8)))

    events = drive(pace, Agent(0.01, workers=8), 100)

    assert max(event.in_flight for event in events) == limit
    assert pace.why is Why.LIMIT


def test_a_limit_that_was_raised_is_tried():
    pace = Pace(8, learned_from(lambda: Agent(0.01, workers=8), limit=2))

    drive(pace, Agent(0.01, workers=8), 300)

    assert pace.window == 8


def test_a_learned_window_is_halved_after_one_window_of_answers_if_the_agent_has_become_slow():
    pace = Pace(8, learned_from(lambda: Agent(0.01, workers=8)))

    events = drive(pace, Agent(0.1), 40)

    # The first answer of a run does not count: that request went alone.
    assert [event.window for event in events[: 1 + 8]] == [*[8] * 8, 4]


def test_a_learned_window_is_halved_with_the_second_request_that_is_lost():
    pace = Pace(8, learned_from(lambda: Agent(0.01, workers=8)))

    events = drive(pace, Agent(0.8, workers=2, queue=0), 40)

    lost = [event.window for event in events if event.lost]
    assert lost[:2] == [8, 4]
    assert pace.why in (Why.LOST, Why.NO_GAIN)


def test_a_window_that_brought_nothing_is_not_tried_again_in_each_run():
    stored, tries = {}, 0
    for _ in range(20):
        pace = Pace(8, stored)
        events = drive(pace, Agent(0.1), 30)
        tries += any(event.window > 1 for event in events)
        stored = pace.as_json()

    assert 1 <= tries <= 10


@pytest.mark.parametrize(
    ("make_agent", "limit", "why"),
    [
        pytest.param(lambda: Agent(0.1), 8, Why.NO_GAIN, id="serial"),
        pytest.param(lambda: Agent(0.1, workers=8), 8, Why.LIMIT, id="parallel"),
        pytest.param(lambda: Agent(0.1), 1, Why.LIMIT, id="one is allowed"),
    ],
)
def test_it_knows_why_the_window_is_not_larger(make_agent, limit, why):
    pace = Pace(limit)

    drive(pace, make_agent(), 200)

    assert pace.why is why
    assert pace.measured.round_trip == pytest.approx(0.1, rel=0.1)


def test_a_window_that_could_not_be_filled_is_not_judged():
    pace = Pace(8)
    for answer in range(40):
        pace.answered(answer / 10, 0.1, ROWS, 0, is_full=pace.window == 1)

    assert pace.window == 2
    assert pace.proven == pace.as_json()["window"] == 1
    assert pace.why is Why.UNTRIED


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param({"window": 0}, id="no window"),
        pytest.param({"window": True}, id="not a number"),
        pytest.param({"window": "8"}, id="text"),
        pytest.param({"window": 4, "rate": -1, "round_trip": 0.1}, id="negative rate"),
        pytest.param({"window": float("nan"), "rate": float("inf")}, id="no numbers"),
        pytest.param({"window": 4, "hold": [], "patience": {}, "why": ["lost"]}, id="other shapes"),
        pytest.param({"window": 4, "hold": 10**9, "patience": 10**9, "why": "moon"}, id="far too much"),
    ],
)
def test_a_stored_pace_that_makes_no_sense_does_no_harm(stored):
    pace = Pace(8, stored)

    events = drive(pace, Agent(0.01, workers=8), 6000)

    assert pace.window == 8
    assert max(event.in_flight for event in events) <= 8
