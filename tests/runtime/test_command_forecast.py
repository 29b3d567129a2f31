"""`facho forecast`, as a person types it."""

import json
from datetime import UTC, datetime

import pytest
from builders import MIN, SEC, T0, make_node

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.engine.forecast.fleet import Fleet, asked
from facho.engine.quota.durations import Prediction, learn
from facho.runtime import forecasting
from facho.runtime.cli import main
from facho.runtime.forecasting import made_up, parse_job, usual_jobs, with_dead, with_jobs


@pytest.fixture
def facho(capsys):
    """Run `facho forecast`; return its status, what it printed and what it remarked."""

    def run(*options):
        with pytest.raises(SystemExit) as ended:
            main(["forecast", *options])
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def result(facho):
    def run(*options):
        status, out, err = facho("--json", *options)
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def installation(db):
    """OLT-CENTRAL-01 and OLT-NORTE-02 with State on both; half a minute on one, four on the other."""
    job = SnmpJob.objects.create(name="State", brand="huawei", kind="table", columns=["state"], interval_seconds=300)
    for name, seconds in (("OLT-CENTRAL-01", 30.0), ("OLT-NORTE-02", 240.0)):
        olt = Olt.objects.create(name=name, brand="huawei", host="127.0.0.1", community="public")
        [node] = job.apply_to([olt])
        WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=T0, durations=learn({}, seconds, T0))


def test_a_made_up_fleet_gets_the_usual_jobs_and_the_pool_it_needs(result):
    told = result("--olts", "20", "--hours", "1")

    assert (told["olts"], told["nodes"], told["hours"]) == (20, 100, 1)
    assert {job["task"] for job in told["jobs"]} >= {"Discovery", "State", "Traffic", "Optical power"}
    assert told["pollers"] == told["pool"]["pollers"]
    assert told["compliance"] == 100.0


def test_jobs_can_be_given_instead(result):
    told = result("--olts", "4", "--hours", "1", "--pollers", "4", "--job", "State:5min:20:60")

    assert [(job["task"], job["required"]) for job in told["jobs"]] == [("State", 48)]


def test_a_share_of_the_fleet_can_be_dead(result):
    told = result("--olts", "10", "--hours", "1", "--dead", "30", "--job", "State:300:5")

    assert told["dead"] == 3
    assert told["violations"] == {"CRITICAL": 3}


def test_people_get_tables(facho):
    status, out, err = facho("--olts", "10", "--hours", "1", "--dead", "10", "--pollers", "3")

    assert status == 0
    assert out.startswith("10 OLTs, 1 not answering, 50 nodes, 3 pollers, 1 h\n")
    for words in ("quota  ", "violations", "on time", "lateness", "pollers busy", "worst OLTs", "OLT-0010", "poller"):
        assert words in out
    assert "forecast in" in err


def test_without_olts_it_takes_those_of_the_database_and_what_was_learned_of_them(installation, result, monkeypatch):
    monkeypatch.setenv("FACHO_POLLERS", "7")

    told = result("--hours", "2")

    assert (told["olts"], told["pollers"], told["compliance"]) == (2, 7, 100.0)
    # 12 times 30 s and 12 times 240 s, of seven pollers.
    assert told["busy"] == pytest.approx(100 * 3240 / 3600 / 7, rel=0.05)


def test_an_open_breaker_is_dead_to_a_forecast(installation, result):
    Olt.objects.filter(name="OLT-NORTE-02").update(breaker_opened_at=T0)

    told = result("--hours", "1")

    assert (told["dead"], told["lost"]) == (1, {"breaker_open": 12})


def test_what_was_learned_of_failures_is_part_of_it_and_is_said(installation, result, facho):
    node = WorkflowNode.objects.select_related("olt").get(olt__name="OLT-NORTE-02")
    now = datetime.now(UTC)
    for number in range(12):
        slot = now - (13 - number) * 5 * MIN
        execution = Execution.objects.create(olt=node.olt, node=node, node_name="State", slot=slot, status="FAILED")
        ExecutionAttempt.objects.create(
            execution=execution,
            number=1,
            status="FAILED",
            error_class="OltUnreachable",
            started_at=slot,
            ended_at=slot + 15 * SEC,
        )

    told = result("--hours", "1")
    _, out, _ = facho("--hours", "1")

    assert told["failures"] == [{"olt": "OLT-NORTE-02", "runs": 12, "answered": 0, "failed": 0}]
    assert (told["dead"], told["compliance"]) == (1, 50.0)
    assert "OLT-NORTE-02 answered 0 of 12 runs\nRuns fail in this forecast at the rate of the last 24 hours.\n" in out


def test_a_breaker_that_waits_for_a_person_is_told_to_the_forecast(installation, monkeypatch):
    monkeypatch.setenv("FACHO_AUTO_RECOVER", "false")
    monkeypatch.setenv("FACHO_BREAKER_AFTER", "7")
    wishes = []
    monkeypatch.setattr(forecasting, "forecast", lambda wish, progress: wishes.append(wish) or {})

    with pytest.raises(SystemExit):
        main(["forecast", "--json"])

    assert [(wish.opens_after, wish.auto_recover) for wish in wishes] == [(7, False)]


def test_what_if_there_was_one_more_job(installation, result):
    told = result("--hours", "3", "--job", "Optical power:30min:5min:90")

    assert {job["task"] for job in told["jobs"]} == {"State", "Optical power"}
    assert told["lost"]["olt_busy"] > 0
    assert [olt["olt"] for olt in told["worst_olts"]] == ["OLT-NORTE-02"]


def test_an_empty_installation_says_what_to_try(db, facho):
    status, _, err = facho()

    assert status == 2
    assert err == ("facho: There is nothing to poll: no job is enabled on an enabled OLT. Try --olts 100.\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        pytest.param(["--olts", "0"], "--olts must be between 1 and 100000, not 0", id="no OLTs"),
        pytest.param(["--hours", "0"], "--hours must be between", id="no time"),
        pytest.param(["--dead", "150"], "--dead must be a percentage, not 150", id="more than all of them"),
        pytest.param(["--olts", "1", "--job", "State"], "'State' is not a job: write NAME:", id="half a job"),
        pytest.param(["--olts", "1", "--job", "State:often:3"], "'often' is not a duration", id="no interval"),
        pytest.param(["--olts", "1", "--job", "State:5:3"], "at least 10 seconds", id="too often"),
        pytest.param(
            ["--olts", "1", "--job", "A:60:3", "--job", "A:90:3"], "two jobs have the same name", id="one name twice"
        ),
    ],
)
def test_what_cannot_be_forecast_is_told_in_a_sentence(facho, options, sentence):
    status, out, err = facho(*options)

    assert (status, out) == (2, "")
    assert sentence in err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("State:300:12", ("State", 300, 12, 40), id="seconds"),
        pytest.param("Optical power:30min:2min:20", ("Optical power", 1800, 120, 20), id="minutes and a priority"),
        pytest.param("Inventory:6h:90s", ("Inventory", 21600, 90, 40), id="hours"),
    ],
)
def test_a_job_is_written_as_people_say_it(text, expected):
    job = parse_job(text)

    assert (job.name, job.interval.total_seconds(), job.prediction.mean, job.priority) == expected
    assert job.prediction.p95 > job.prediction.mean


def test_a_made_up_fleet_is_spread_over_the_interval_and_some_are_slower():
    fleet = made_up(200, usual_jobs(), T0, dead=20)

    states = [node for node in fleet.nodes if node.name == "State"]
    minutes = [int((node.next_check - T0) / MIN) for node in states]
    means = {fleet.durations(node, T0).mean for node in states}
    assert all(30 <= minutes.count(minute) <= 50 for minute in range(5))
    assert len(means) == 200
    assert fleet.dead == frozenset(range(181, 201))
    traffic = next(node for node in fleet.nodes if node.name == "Traffic")
    assert fleet.nodes[traffic.master_id - 1].name == "State"


def test_those_that_are_dead_already_count_among_the_dead():
    nodes = tuple(make_node(id, olt_id=id) for id in range(1, 11))
    fleet = Fleet(nodes, lambda node, at: Prediction(1, 1), dead=frozenset({2}), broken=frozenset({2}))

    assert with_dead(fleet, 30).dead == {2, 9, 10}
    assert with_dead(fleet, 0).dead == {2}


def test_pollers_are_needed_for_olts_that_may_come_back():
    nodes = tuple(make_node(id, olt_id=id) for id in (1, 2, 3))
    fleet = Fleet(nodes, lambda node, at: Prediction(1, 1), dead=frozenset({1, 3}), broken=frozenset({2, 3}))

    assert [node.id for node in asked(fleet)] == [1, 2]


def test_a_job_more_keeps_what_is_known_of_the_others():
    fleet = Fleet((make_node(5, olt_id=3),), lambda node, at: Prediction(7, 9))

    more = with_jobs(fleet, [parse_job("Names:1h:3")], T0)

    assert [(node.id, node.olt_id, node.olt_name, more.durations(node, T0).mean) for node in more.nodes] == [
        (5, 3, "OLT-03", 7),
        (6, 3, "OLT-03", 3),
    ]
