"""What a scrape says of the process and of the pool, and whether docs and dashboard speak of the same things."""

import json
import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import T0
from metrics_stage import SNAPSHOT, Counts
from prometheus_client import CollectorRegistry, generate_latest

import facho
from facho.adapters.clock import SystemClock
from facho.engine.model import Cause, Standing, Status
from facho.engine.scheduling.pollers import PollerManager
from facho.engine.scheduling.snapshot import snapshot
from facho.runtime.metrics import OLT_METRICS, Meters, PoolCollector, make_registry
from facho.runtime.monitoring import LoopWatch

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "facho.json"
DOCS = [ROOT / "docs" / "metrics.md", ROOT / "docs" / "metrics.es.md"]


class Clock:
    """Says that a snapshot is so many seconds old."""

    def __init__(self, seconds=1.0):
        self._now = T0 + timedelta(seconds=seconds)

    def now(self):
        return self._now


def pool(**more):
    """Return a registry with nothing but the pool in it."""
    registry = CollectorRegistry()
    registry.register(PoolCollector(**{"snapshot": lambda: SNAPSHOT, "clock": Clock()} | more))
    return registry


def names(registry):
    return {sample.name for metric in registry.collect() for sample in metric.samples}


def everything():
    """Return a registry with all that any role has."""
    registry = make_registry("embedded")
    Meters(registry)
    LoopWatch(registry, SystemClock())
    registry.register(PoolCollector(snapshot=lambda: SNAPSHOT, clock=Clock()))
    return registry


def test_the_version_and_the_role_are_told():
    registry = make_registry("worker")

    assert registry.get_sample_value("facho_build_info", {"version": facho.__version__, "role": "worker"}) == 1


def test_two_registries_share_nothing():
    one, other = CollectorRegistry(), CollectorRegistry()
    meters, _ = Meters(one), Meters(other)

    meters.slots_ended(Status.SUCCESS, None, 1)

    assert one.get_sample_value("facho_slots_total", {"status": "SUCCESS", "cause": ""}) == 1
    assert other.get_sample_value("facho_slots_total", {"status": "SUCCESS", "cause": ""}) == 0


def test_the_size_of_a_spool_is_exported_at_each_scrape():
    counts, files = Counts(), [100, 250]
    counts.meters.spool_entries.set_function(lambda: len(files))
    counts.meters.spool_bytes.set_function(lambda: sum(files))

    files.append(50)

    assert (counts.of("facho_spool_entries"), counts.of("facho_spool_bytes")) == (3, 400)


def test_every_usual_end_has_its_series_before_the_first_slot_ends():
    series = [
        tuple(sample.labels.values())
        for metric in everything().collect()
        for sample in metric.samples
        if sample.name == "facho_slots_total"
    ]

    assert {("SUCCESS", ""), ("PARTIAL", ""), ("FAILED", ""), ("FAILED", "unreachable")} <= set(series)
    assert {("SKIPPED", cause.value) for cause in Cause} <= set(series)


class TestPool:
    def test_it_is_told_from_the_last_snapshot(self):
        registry = pool(standings=lambda: {7: Standing(1), 8: Standing(2, T0), 9: Standing(1, T0)})

        assert registry.get_sample_value("facho_pollers", {"state": "busy"}) == 2
        assert registry.get_sample_value("facho_pollers", {"state": "free"}) == 1
        plain = {
            "facho_scheduler_active": 1,
            "facho_scheduler_tick_age_seconds": 1,
            "facho_pool_busy_ratio": 0.625,
            "facho_pool_saturated": 1,
            "facho_queue_size": 7,
            "facho_queue_delayed": 4,
            "facho_workers": 2,
            "facho_olts_enabled": 3,
            "facho_breakers_open": 2,
        }
        assert {name: registry.get_sample_value(name) for name in plain} == plain

    def test_a_snapshot_of_the_engine_itself_can_be_read(self):
        manager = PollerManager(
            pollers=4, runner=None, slots=None, clock=Clock(0), scheduler=SimpleNamespace(next_due=None)
        )

        registry = pool(snapshot=lambda: snapshot(manager, T0))

        assert registry.get_sample_value("facho_pollers", {"state": "free"}) == 4
        assert registry.get_sample_value("facho_workers") == 1

    def test_on_standby_it_is_the_others_to_tell(self):
        assert names(pool(is_active=lambda: False)) == {"facho_scheduler_active"}
        assert pool(is_active=lambda: False).get_sample_value("facho_scheduler_active") == 0

    def test_before_the_first_tick_there_is_nothing_to_tell(self):
        assert names(pool(snapshot=lambda: None)) == {
            "facho_scheduler_active",
            "facho_olts_enabled",
            "facho_breakers_open",
        }

    @pytest.mark.parametrize(("seconds", "is_told"), [(5, True), (6, False)], ids=["recent", "old"])
    def test_an_old_snapshot_is_not_passed_off_as_the_present(self, seconds, is_told):
        registry = pool(clock=Clock(seconds))

        assert ("facho_queue_size" in names(registry)) is is_told
        assert registry.get_sample_value("facho_scheduler_tick_age_seconds") == seconds


def test_every_metric_has_a_sentence_and_a_name_by_the_conventions():
    for metric in everything().collect():
        if metric.name.startswith("facho_"):
            assert re.fullmatch(r"[A-Z].{10,}\.", metric.documentation), metric.name
            assert "second" not in metric.documentation.lower() or metric.name.endswith("_seconds"), metric.name
            assert "bytes" not in metric.documentation.lower() or metric.name.endswith("_bytes"), metric.name


def test_no_label_can_grow_with_the_fleet():
    labels = {
        label
        for metric in everything().collect()
        for sample in metric.samples
        if sample.name.startswith("facho_")
        for label in sample.labels
    }

    assert labels == {"status", "cause", "operation", "result", "reason", "lease", "state", "le", "version", "role"}


def test_the_whole_of_it_is_small_enough_to_be_read_every_few_seconds():
    series = sum(len(metric.samples) for metric in everything().collect())

    assert series < 200


def test_the_text_has_no_series_that_only_say_when_others_began():
    assert b"_created" not in generate_latest(everything())


class TestDashboard:
    @pytest.fixture
    def dashboard(self):
        return json.loads(DASHBOARD.read_text())

    def panels(self, dashboard):
        return [panel for panel in dashboard["panels"] if panel["type"] != "row"]

    def expressions(self, dashboard):
        return [target["expr"] for panel in self.panels(dashboard) for target in panel["targets"]]

    def test_it_asks_for_nothing_that_is_not_there(self, dashboard):
        variables = [variable.get("query", "") for variable in dashboard["templating"]["list"]]
        asked = re.findall(r"\b(?:facho|process)_\w+", " ".join([*self.expressions(dashboard), str(variables)]))

        assert set(asked) - names(everything()) == set()

    def test_it_leaves_out_nothing_that_facho_counts(self, dashboard):
        asked = " ".join(self.expressions(dashboard))
        families = {metric.name for metric in everything().collect() if metric.name.startswith("facho_")}

        assert {name for name in families if not re.search(rf"\b{name}(_|\b)", asked)} == {"facho_build"}

    def test_it_can_be_imported_anywhere(self, dashboard):
        sources = [panel["datasource"] for panel in self.panels(dashboard)]
        sources += [target["datasource"] for panel in self.panels(dashboard) for target in panel["targets"]]

        assert dashboard["id"] is None
        assert "datasource" in [variable["name"] for variable in dashboard["templating"]["list"]]
        assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)

    def test_each_panel_has_its_own_id_and_place(self, dashboard):
        places = [panel["gridPos"] for panel in dashboard["panels"]]
        cells = [
            (x, y)
            for place in places
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]

        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
        assert len(set(cells)) == len(cells)
        assert all(place["x"] + place["w"] <= 24 for place in places)

    def test_brackets_are_closed_and_counters_are_asked_for_their_growth(self, dashboard):
        for expression in self.expressions(dashboard):
            for opening, closing in ("()", "[]", "{}"):
                assert expression.count(opening) == expression.count(closing), expression
            counters = re.findall(r"(\w+)\((?:facho\w+_(?:total|bucket|sum|count))\b", expression)
            assert len(counters) == len(re.findall(r"facho\w+_(?:total|bucket|sum|count)\b", expression)), expression
            assert set(counters) <= {"rate", "increase"}, expression


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_the_docs_list_each_metric_and_no_other(path):
    exported = {
        metric.name + {"counter": "_total", "info": "_info"}.get(metric.type, "")
        for metric in everything().collect()
        if metric.name.startswith("facho_")
    }
    exported |= {"facho_olts_without_series", "facho_olt_lost_slots", *(name for name, *_ in OLT_METRICS)}

    listed = re.findall(r"^\| `(facho_\w+)", path.read_text(), re.MULTILINE)

    assert sorted(listed) == sorted(exported)
