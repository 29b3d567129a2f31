"""Stories of the demo: failures as a function of time."""

from dataclasses import replace

import pytest

from facho.simulator.fleet import build, demo_fleet
from facho.simulator.life import Cycle, Down, Incident, observe
from facho.simulator.stories import FIRST, LENGTH, PERIOD, SPLITTER_LOSS, Kind, Stories

BEGAN = 1_800_000_000.0
PLANTS = {spec.name: build(spec).plant for spec in demo_fleet(2, 300)}
ONU = next(onu for plant in PLANTS.values() for onu in plant.onus if onu.enabled)

# Down from 1000 to 1100, or up since 100.
HEALTHY, DOWN = Cycle(10_000, 100, -1000), Cycle(10_000, 1000, -1000)


@pytest.mark.parametrize(
    ("cycle", "now", "expected"),
    [
        pytest.param(HEALTHY, 4999, (True, 1100, 1000, Down.DYING_GASP), id="before"),
        pytest.param(HEALTHY, 5000, (False, 1100, 5000, Down.LOS), id="from its start on"),
        pytest.param(HEALTHY, 5199, (False, 1100, 5000, Down.LOS), id="until its end"),
        pytest.param(HEALTHY, 5200, (True, 5200, 5000, Down.LOS), id="after its end"),
        pytest.param(HEALTHY, 11_050, (False, 5200, 11_000, Down.DYING_GASP), id="the next outage of its own"),
        pytest.param(DOWN, 1600, (False, -8000, 1000, Down.DYING_GASP), id="one that was down stays so"),
    ],
)
def test_an_incident_adds_an_outage(cycle, now, expected):
    start = 5000.0 if cycle is HEALTHY else 1500.0
    onu = replace(ONU, cycle=cycle, cause=Down.DYING_GASP, incidents=(Incident(start, start + 200, Down.LOS),))

    seen = observe(onu, now)

    assert (seen.up, seen.last_up, seen.last_down, seen.cause) == expected


def test_an_incident_without_a_cause_takes_power():
    onu = replace(ONU, cycle=HEALTHY, incidents=(Incident(5000, 5200, loss_db=6),))
    healthy = replace(onu, incidents=())

    lost = [observe(healthy, at).optics.rx_dbm - observe(onu, at).optics.rx_dbm for at in (4999, 5000, 5199, 5200)]

    assert lost == pytest.approx([0, 6, 6, 0])


def test_after_a_restart_the_story_goes_on():
    now = BEGAN + FIRST + 7.5 * PERIOD
    name, plant = next(iter(PLANTS.items()))
    followed, restarted = Stories(PLANTS, BEGAN), Stories(PLANTS, BEGAN)
    for number in range(8):
        followed.advance(BEGAN + FIRST + number * PERIOD)

    restarted.advance(now)

    assert restarted.applied(name, plant) == followed.applied(name, plant)
    assert restarted.next_at(now) == followed.next_at(now) == BEGAN + FIRST + 8 * PERIOD
    assert followed.advance(now) == set()


@pytest.mark.parametrize("number", range(12))
def test_a_story_is_a_failure_that_ends(number):
    stories = Stories(PLANTS, BEGAN)
    story = stories.story(number)
    start = BEGAN + FIRST + number * PERIOD
    before = _seen(story.olt, PLANTS[story.olt], start - 1)

    stories.advance(start)
    plant = stories.applied(story.olt, PLANTS[story.olt])
    during, after = _seen(story.olt, plant, start + 10), _seen(story.olt, plant, start + LENGTH + 10)

    fallen = [place for place in before if before[place].up and not during[place].up]
    weaker = [
        place
        for place, seen in during.items()
        if seen.up and before[place].up and seen.optics.rx_dbm < before[place].optics.rx_dbm - SPLITTER_LOSS + 1
    ]
    causes = {during[place].cause for place in fallen if place in story.incidents}
    ports = {(place.slot, place.port) for place in story.incidents}
    if story.kind is Kind.SPLITTER:
        assert len(weaker) >= 4
        assert len(ports) == 1
    else:
        assert len(fallen) >= 8
        assert causes == {Down.LOS if story.kind is Kind.FIBRE_CUT else Down.DYING_GASP}
        assert (len(ports) > 1) is (story.kind is Kind.POWER_CUT)
    assert sum(seen.up for seen in after.values()) >= sum(seen.up for seen in before.values()) - 2


def _seen(name, plant, now):
    return {onu.position: observe(onu, now) for onu in plant.onus}
