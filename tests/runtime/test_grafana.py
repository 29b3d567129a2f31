"""Dashboards of pushed time series: they use only metrics and labels that exist, and each metric is on one of them."""

import json
import re
from pathlib import Path

import pytest

from facho.engine.remote_write import METRICS, PORT_STATES

GRAFANA = Path(__file__).resolve().parents[2] / "deploy" / "grafana"
NAMES = ("network", "olt", "port", "onu")
METRIC = re.compile(r"\b(facho_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
GROUPED = re.compile(r"\bby \(([^)]*)\)")
LEGEND = re.compile(r"\{\{(\w+)\}\}")
VARIABLE = re.compile(r"\$\{?(\w+)")


@pytest.fixture(params=NAMES)
def dashboard(request):
    return json.loads((GRAFANA / f"{request.param}.json").read_text())


def targets(dashboard):
    return [target for panel in dashboard["panels"] for target in panel["targets"]]


def expressions(dashboard):
    queries = [each["query"]["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    return [target["expr"] for target in targets(dashboard)] + queries


def test_it_uses_only_metrics_and_labels_that_are_pushed(dashboard):
    for expression in expressions(dashboard):
        found = METRIC.findall(expression)
        assert found, expression
        for name, matchers in found:
            labels = METRICS[name]
            assert {label for label, _ in MATCHER.findall(matchers)} <= set(labels), expression
            states = [value for label, value in MATCHER.findall(matchers) if label == "state"]
            assert {each for value in states for each in value.split("|")} <= set(PORT_STATES), expression
            for group in GROUPED.findall(expression):
                assert {label.strip() for label in group.split(",")} <= set(labels), expression


def test_legends_use_labels_that_the_result_has(dashboard):
    for target in targets(dashboard):
        groups = GROUPED.findall(target["expr"])
        name, _ = METRIC.search(target["expr"]).groups()
        left = {label.strip() for group in groups for label in group.split(",")} if groups else set(METRICS[name])
        assert set(LEGEND.findall(target["legendFormat"])) <= left, target


def test_label_values_ask_for_a_label_of_the_metric(dashboard):
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            name, label = re.fullmatch(
                r"label_values\((facho_\w+)(?:\{.*\})?, (\w+)\)", variable["query"]["query"]
            ).groups()
            assert label in METRICS[name]


def test_variables_exist_and_are_defined_before_they_are_used(dashboard):
    known = set()
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            assert set(VARIABLE.findall(variable["query"]["query"])) <= known
        known.add(variable["name"])
    for target in targets(dashboard):
        assert set(VARIABLE.findall(target["expr"])) <= known


def test_brackets_are_closed_and_counters_are_asked_for_their_growth(dashboard):
    for expression in expressions(dashboard):
        for pair in ("()", "{}", "[]"):
            assert expression.count(pair[0]) == expression.count(pair[1]), expression
        for name, _ in METRIC.findall(expression):
            if name.endswith("_total"):
                assert re.search(rf"rate\({name}", expression), expression


def test_it_can_be_imported_anywhere_and_panels_do_not_overlap(dashboard):
    panels = dashboard["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert dashboard["id"] is None
    assert all(each["datasource"] == {"type": "prometheus", "uid": "${datasource}"} for each in panels)
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_each_pushed_metric_is_on_a_dashboard_and_each_dashboard_has_its_own_id():
    boards = [json.loads((GRAFANA / f"{name}.json").read_text()) for name in NAMES]
    used = {name for board in boards for expression in expressions(board) for name, _ in METRIC.findall(expression)}

    assert used == set(METRICS)
    assert len({board["uid"] for board in boards}) == len(NAMES)
