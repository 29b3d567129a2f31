"""What a run covered and how it asked: in full on the page of one execution, and nowhere in long lists."""

import pytest
from cast import make_execution
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from facho.apps.polling import coverage

COVERED = {
    "columns": {
        "state": {"complete": 15, "partial": 0, "empty": 1, "rows": 480},
        "rx_dbm": {"complete": 14, "partial": 2, "empty": 0, "rows": 440},
    },
    "failed": [
        {"field": "rx_dbm", "slot": 0, "port": 1, "reason": "no answer in 20.0 s"},
        {"field": "tx_dbm", "slot": 0, "port": 1, "reason": "no answer in 20.0 s"},
        {"field": "name", "slot": None, "port": None, "reason": "cut"},
    ],
    "more": 7,
}
NUMBERS = {"rtt_p50": 0.1, "rtt_p95": 0.2, "rtt_p99": 0.75, "peak_in_flight": 3, "pdus": 9, "sizes": {"optics": 24}}


@pytest.fixture
def run(node):
    return make_execution(node, status="PARTIAL", coverage=COVERED, failed_onus=["ONU 0/1/7"], **NUMBERS)


def test_columns_and_failures_are_lines():
    assert coverage.column_lines(COVERED) == [
        "state: 480 rows; read completely on 16 of 16 ports",
        "received power (dBm): 440 rows; read completely on 14 of 16 ports",
    ]
    assert coverage.failure_lines(COVERED) == [
        "port 0/1 (received power (dBm), sent power (dBm)): no answer in 20.0 s",
        "whole table (name): cut",
        "and 7 more",
    ]


def test_a_run_that_covered_nothing_has_no_lines():
    assert (coverage.column_lines({}), coverage.failure_lines({})) == ([], [])


@pytest.mark.parametrize(
    ("fields", "place", "reason"),
    [
        pytest.param({"rx_dbm"}, (0, 1), "no answer in 20.0 s", id="this column on this port"),
        pytest.param({"rx_dbm"}, (0, 2), None, id="another port"),
        pytest.param({"state"}, (0, 1), None, id="another column"),
        pytest.param({"name"}, (0, 9), "cut", id="the table as a whole"),
    ],
)
def test_a_port_is_found_among_the_failures(fields, place, reason):
    assert coverage.failure_at(COVERED, fields, *place) == reason


def test_one_execution_tells_all_of_it(api, run):
    shown = api.get(f"/api/v1/executions/{run.pk}/").json()

    assert (shown["coverage"], shown["failed_onus"]) == (COVERED, ["ONU 0/1/7"])
    assert {name: shown[name] for name in NUMBERS} == NUMBERS


def test_the_links_of_a_chain_tell_it_too(api, run, chained):
    make_execution(chained, master_execution=run, coverage=COVERED)

    [link] = api.get(f"/api/v1/executions/{run.pk}/").json()["links"]

    assert link["coverage"] == COVERED


def test_a_list_neither_shows_nor_reads_the_long_parts(api, run):
    with CaptureQueriesContext(connection) as queries:
        [shown] = api.get("/api/v1/executions/").json()["results"]

    assert shown["peak_in_flight"] == 3
    assert "coverage" not in shown
    assert not [query for query in queries if '"coverage"' in query["sql"]]


def test_the_admin_shows_it_line_by_line(admin_page, run):
    page = admin_page.get(reverse("admin:polling_execution_change", args=[run.pk])).content.decode()

    covered = "440 rows; read completely on 14 of 16 ports"
    for said in ("0.75", "optics: 24", covered, "port 0/1 (received power (dBm), sent power (dBm))", "ONU 0/1/7"):
        assert said in page


def test_the_dashboard_shows_it_under_the_run(admin_page, run):
    page = admin_page.get("/executions/").content.decode()

    for said in ("0.75 s", "up to 3 in flight", "optics: 24", "440 rows", "whole table (name): cut", "ONU 0/1/7"):
        assert said in page


def test_what_a_device_wrote_is_text_and_no_page(admin_page, node):
    evil = "<script>alert(7)</script>"
    failed = [{"field": "rx_dbm", "slot": 0, "port": 1, "reason": evil}]
    run = make_execution(node, status="PARTIAL", coverage={"columns": {}, "failed": failed}, failed_onus=[evil])

    for path in ("/executions/", reverse("admin:polling_execution_change", args=[run.pk])):
        assert evil not in admin_page.get(path).content.decode()


def test_the_admin_shows_each_sentence_of_an_error_on_its_own_line(admin_client, node):
    run = make_execution(node, status="PARTIAL", error="serial of ONU 0/1/7: genErr\nstate: <cut> short")

    page = admin_client.get(reverse("admin:polling_execution_change", args=[run.pk])).content.decode()

    assert "serial of ONU 0/1/7: genErr<br>state: &lt;cut&gt; short" in page
