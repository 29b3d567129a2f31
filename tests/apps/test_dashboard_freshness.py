"""Why is this power ten minutes old? Each answer a NOC can get."""

from datetime import timedelta

import pytest
from cast import T0, make_execution, make_job, make_onu

from facho.apps.dashboard.freshness import power_freshness, state_freshness
from facho.apps.dashboard.queries import node_rows
from facho.apps.inventory.models import Olt
from facho.apps.jobs.columns import columns_read
from facho.apps.polling import live

MIN = timedelta(minutes=1)
NOW = T0 + 12 * MIN
FRESH_NEWS = {**live.EMPTY, "stale": False}


def answer(onu, news=FRESH_NEWS):
    onu.olt = Olt.objects.get(pk=onu.olt_id)
    fresh = power_freshness(onu, node_rows(onu.olt_id), news, NOW)
    return fresh.level, fresh.sentence


@pytest.fixture
def old(central):
    """ONU 7, whose power was read when its node last ran well, twelve minutes ago."""
    return make_onu(central, 7, own_power_at=T0 + 20 * MIN / 60)


def test_nobody_reads_it(old):
    assert answer(old) == ("bad", "No node of OLT-CENTRAL-01 reads it. Apply a job that reads it.")


def test_its_olt_is_disabled(old, node):
    node.olt.disable()

    assert answer(old) == ("bad", "OLT-CENTRAL-01 is disabled, so nothing is read from it.")


def test_its_node_is_disabled(old, node):
    node.own_enabled = False
    node.save()

    assert answer(old) == ("bad", "Optical power would read it, but is disabled.")


def test_it_is_on_schedule(old, node):
    old.own_power_at = NOW - 5 * MIN

    assert answer(old) == ("ok", "Optical power reads it every 5 min: it is on schedule.")


def test_it_is_being_read(old, node):
    make_execution(node, T0 + 10 * MIN, status="RUNNING", ended_at=None)

    assert answer(old) == ("late", "Optical power is reading it now.")


def test_the_engine_is_silent(old, node):
    assert answer(old, {**FRESH_NEWS, "stale": True}) == (
        "bad",
        "The engine does not report: nothing is read until it is back.",
    )


def test_its_node_waits_in_the_queue(old, node):
    queue = {"size": 1, "delayed": 1, "next": [{"node_id": node.pk, "waiting_for": "olt_busy"}]}

    assert answer(old, {**FRESH_NEWS, "queue": queue}) == (
        "late",
        "Optical power is due and is waiting for its OLT to be free.",
    )


def test_its_node_has_not_run_yet(old, node):
    assert answer(old) == ("late", "Optical power has not run yet.")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        pytest.param(
            {"status": "FAILED", "error": "OLT-CENTRAL-01 did not answer within 5 s"},
            ("bad", "The last run failed. OLT-CENTRAL-01 did not answer within 5 s"),
            id="failed",
        ),
        pytest.param(
            {"status": "SKIPPED", "cause": "olt_busy"},
            ("bad", "The last run was skipped. The OLT was busy"),
            id="skipped",
        ),
        pytest.param({"status": "INTERRUPTED"}, ("bad", "The last run was interrupted."), id="interrupted"),
        pytest.param(
            {"status": "PARTIAL", "error": "port 0/1 fell silent"},
            ("bad", "The last run read only some of the ONUs, and not this one. Port 0/1 fell silent"),
            id="partial, without this one",
        ),
        pytest.param(
            {"status": "SUCCESS"},
            ("late", "The last run succeeded, but the OLT returned no value for this ONU."),
            id="well, without this one",
        ),
    ],
)
def test_its_last_run_brought_nothing(old, node, run, said):
    make_execution(node, T0 + 5 * MIN, **run)

    assert answer(old) == said


def test_its_last_run_read_it_and_none_came_since(old, node):
    make_execution(node, T0)

    assert answer(old) == ("late", "The last run read it; there was no other run since then.")


def test_a_missing_onu_is_found_by_no_discovery(old, node):
    make_execution(node, T0 + 5 * MIN)
    old.missing_since = T0 + 3 * MIN

    assert answer(old) == (
        "bad",
        "The ONU has been missing since Jun 1, 2025, 10:03:00 UTC: discoveries do not find it on its port.",
    )


def test_an_onu_that_was_missed_once_is_told_from_a_missing_one(old, node):
    make_execution(node, T0 + 5 * MIN)
    old.misses = 1

    assert answer(old) == ("late", "The last discovery did not find the ONU on its port. The next one will confirm it.")


def test_its_port_could_not_be_read(old, node):
    failed = {"field": "rx_dbm", "slot": 0, "port": 1, "reason": "no answer in 20.0 s"}
    make_execution(node, T0 + 5 * MIN, status="PARTIAL", error="3 ports failed", coverage={"failed": [failed]})

    assert answer(old) == ("bad", "The last run could not read all of port 0/1. No answer in 20.0 s")


def test_another_port_that_failed_is_not_its_matter(old, node):
    failed = {"field": "rx_dbm", "slot": 0, "port": 2, "reason": "no answer in 20.0 s"}
    make_execution(node, T0 + 5 * MIN, status="PARTIAL", error="port 0/2 was cut", coverage={"failed": [failed]})

    assert answer(old)[1].startswith("The last run read only some of the ONUs, and not this one.")


def test_it_poisons_whatever_it_is_asked_for_with(old, node):
    make_execution(node, T0 + 5 * MIN, status="PARTIAL", failed_onus=["ONU 0/1/7"])

    assert answer(old) == (
        "bad",
        "The OLT gives no usable answer for this ONU. It is read separately so that the others can be read.",
    )


def test_a_failure_of_a_run_that_read_it_explains_nothing(old, node):
    make_execution(node, T0, status="PARTIAL", failed_onus=["ONU 0/1/7"])

    assert answer(old) == ("late", "The last run read it; there was no other run since then.")


def test_a_dark_onu_has_no_power_to_read(old, node):
    make_execution(node, T0 + 5 * MIN)
    old.state = "los"

    assert answer(old) == ("late", "The ONU is down: there is no power to read.")


def test_a_chained_node_has_the_interval_of_its_master(central):
    master = make_job("Names", columns=["name"], interval_seconds=900)
    make_job("Optical power", columns=["rx_dbm"], interval_seconds=60, follows=master)
    master.apply_to([central])
    onu = make_onu(central, 7, own_power_at=NOW - 12 * MIN)

    assert answer(onu) == ("ok", "Optical power reads it every 15 min: it is on schedule.")


def test_the_state_is_read_by_any_job_with_a_state(old, node):
    make_job("State", columns=["state"]).apply_to([old.olt])
    old.own_state_at = NOW

    fresh = state_freshness(old, node_rows(old.olt_id), FRESH_NEWS, NOW)

    assert [row.node.job.name for row in fresh.readers] == ["State"]
    assert fresh.level == "ok"


def test_a_discovery_without_fields_reads_what_its_brand_says(db):
    job = make_job("Discovery", kind="discovery", columns=[])

    assert {"serial", "name"} <= {*columns_read(job.brand, job.kind, job.columns)}


def test_columns_that_are_needed_are_read_too(db):
    job = make_job("State", columns=["state"])

    assert "down_cause" in columns_read(job.brand, job.kind, job.columns)
