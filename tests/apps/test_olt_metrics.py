"""Series per OLT in /metrics: off unless asked for, limited in number, and computed from the executions."""

from datetime import UTC, datetime, timedelta

import pytest
from cast import make_execution, make_job, make_olt
from prometheus_client import CollectorRegistry, generate_latest

from facho.runtime.config import ConfigError, load
from facho.runtime.metrics import OltCollector

NOW = datetime(2025, 6, 1, 10, 0, tzinfo=UTC)
MIN = timedelta(minutes=1)


class Clock:
    """Says what it is told."""

    def __init__(self, now=NOW):
        self.time = now

    def now(self):
        return self.time


def registry(limit, *, clock=None, is_active=lambda: True):
    """Return a registry with the figures of OLTs as they are at 10:00."""
    made = CollectorRegistry()
    collector = OltCollector(limit=limit, clock=clock or Clock(), is_active=is_active)
    collector.refresh(NOW)
    made.register(collector)
    return made


def samples(made, name):
    return {
        tuple(sample.labels.values()): sample.value
        for metric in made.collect()
        for sample in metric.samples
        if sample.name == name
    }


@pytest.fixture
def olts(node):
    """Two OLTs: two runs and three lost slots on the first, one failed run on the second."""
    other = make_olt("OLT-NORTE-02", host="127.0.0.2")
    [elsewhere] = make_job("Elsewhere").apply_to([other])
    times = {"started_at": NOW - 30 * MIN, "ended_at": NOW - 29 * MIN}
    make_execution(node, NOW - 30 * MIN, **times, pdus=10, rtt_p50=0.01, rtt_p95=0.05, retransmissions=4)
    make_execution(node, NOW - 61 * MIN, status="FAILED")
    skipped = {"status": "SKIPPED", "cause": "olt_busy", "slots": 3, "started_at": None, "ended_at": None}
    make_execution(node, NOW - 20 * MIN, **skipped)
    make_execution(elsewhere, NOW - 10 * MIN, status="FAILED")
    return node.olt, other


def test_without_the_setting_there_are_no_series(olts):
    assert load({}).metrics_per_olt == 0
    assert b"facho_olt" not in generate_latest(registry(0))


def test_the_last_hour_of_each_olt_is_shown(olts):
    made = registry(10)

    assert samples(made, "facho_olt_success_ratio") == {("OLT-CENTRAL-01",): 1.0, ("OLT-NORTE-02",): 0.0}
    assert samples(made, "facho_olt_duration_mean_seconds") == {("OLT-CENTRAL-01",): 60.0}
    assert samples(made, "facho_olt_duration_p95_seconds") == {("OLT-CENTRAL-01",): 60.0}
    assert samples(made, "facho_olt_round_trip_p50_seconds") == {("OLT-CENTRAL-01",): 0.01}
    assert samples(made, "facho_olt_round_trip_p95_seconds") == {("OLT-CENTRAL-01",): 0.05}
    assert samples(made, "facho_olt_retransmissions") == {("OLT-CENTRAL-01",): 4, ("OLT-NORTE-02",): 0}
    assert samples(made, "facho_olt_lost_slots") == {("OLT-CENTRAL-01", "olt_busy"): 3}
    assert samples(made, "facho_olts_without_series") == {(): 0}


def test_olts_beyond_the_limit_are_counted_and_left_out(olts):
    made = registry(1)

    assert samples(made, "facho_olt_success_ratio") == {("OLT-CENTRAL-01",): 1.0}
    assert samples(made, "facho_olts_without_series") == {(): 1}


def test_an_olt_that_is_disabled_takes_no_place(olts):
    olts[0].disable()

    assert samples(registry(1), "facho_olt_success_ratio") == {("OLT-NORTE-02",): 0.0}


def test_only_the_active_scheduler_shows_them(olts):
    assert list(registry(10, is_active=lambda: False).collect()) == []


@pytest.mark.parametrize(("minutes", "is_shown"), [(3, True), (4, False)])
def test_old_figures_are_not_shown_as_the_present(olts, minutes, is_shown):
    made = registry(10, clock=Clock(NOW + minutes * MIN))

    assert bool(list(made.collect())) is is_shown


@pytest.mark.parametrize("value", ["-1", "2001", "all"])
def test_a_limit_that_is_not_possible_stops_the_start(value):
    with pytest.raises(ConfigError, match="FACHO_METRICS_PER_OLT"):
        load({"FACHO_METRICS_PER_OLT": value})
