"""The benchmark can be run. What it measures is no matter of a test."""

import shutil
import subprocess
import sys
from pathlib import Path

import cases
import collectors
import olts
import page
import pytest
import report
import stored

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow
PAGES = ("performance.md", "performance.es.md")
SQLITE = stored.Stored(
    mode="stored-sqlite",
    olts=100,
    onus=1024,
    interval=30,
    cpu_per_value=2e-6,
    server_cpu_per_value=1e-6,
    walk_cpu_per_value=6e-6,
    values_per_second=27_307,
    most_values_per_second=300_000,
    load=0.3,
    full_speed_load=0.5,
    other_load=0.1,
    late_p99=0.25,
    megabytes=150,
    history_per_reading=5.5,
    history_per_value=0.7,
    database_per_value=1.25,
    windows=3,
    versions={"SQLite": "3.40.1"},
)
FACHO = cases.Row("collect", "facho, warm", 0.02, 1.5e-6, 230, 5)
WALK = cases.Row("collect", collectors.WALK, 0.06, 6e-6, 328, 5)


def test_every_case_can_be_named(tmp_path):
    assert [case.name for case in cases.cases(tmp_path, [])] == list(cases.NAMES)


def test_an_unknown_case_is_refused_with_the_known_ones():
    command = [sys.executable, ROOT / "tests" / "bench" / "compare", "--only", "everything"]

    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 2
    assert "stored-sqlite" in done.stderr


@pytest.mark.skipif(not (shutil.which("gcc") or shutil.which("cc")), reason="there is no C compiler")
def test_facho_reads_the_c_simulator(tmp_path):
    with olts.Simulator(olts.build(tmp_path), olts.Shape(ports=2, onus_per_port=3)) as simulator:
        costs = collectors.Facho("facho", runs=2).collect(simulator.first, 6)
        requests = simulator.requests()

    assert [cost.values for cost in costs.values()] == [48, 48]
    assert requests == sum(cost.requests for cost in costs.values())


def test_an_installation_is_filled_and_counted(tmp_path):
    with stored.Helper({"FACHO_DATA_DIR": str(tmp_path / "data")}) as helper:
        helper.ask("make", olts=[{"name": "OLT-1", "host": "127.0.0.1", "port": 1161}], columns=["rx_dbm"], jobs=2)
        helper.ask("schedule", jobs=1, interval=10)
        counted = helper.ask("count", start=0, end=1, columns=["rx_dbm"])
        sizes = helper.ask("sizes")

        assert helper.ask("polled_since", start=0) == 0
    assert (counted["values"], counted["late_p99"]) == (0, None)
    assert any(stored.HISTORY in name for name in sizes)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_gets_every_table(tmp_path, name):
    for each in PAGES:
        shutil.copy(ROOT / "docs" / each, tmp_path)

    page.write(tmp_path, [FACHO, WALK], [SQLITE])

    text = (tmp_path / name).read_text()
    for figure in ("3.40.1", "| 0.25 |", "| 0.50 |", "| 300,000 |", "| 5.5 |", "| 1.25 |", "| 328 |"):
        assert figure in text


def test_a_ratio_is_that_to_snmpbulkwalk_with_the_servers_included():
    found = {each.subject: (each.figure, each.is_met) for each in report.verdicts([FACHO, WALK], [SQLITE])}

    assert found["collect"] == (pytest.approx(0.25), True)
    assert found["stored-sqlite"] == (pytest.approx(0.5), True)


def test_without_snmpbulkwalk_no_target_counts_as_met():
    assert report.verdicts([FACHO], [])[0].is_met is None
