"""Problems as rows: they open once, grow, last while the OLT is unknown, end, and come back."""

from datetime import timedelta

import pytest
from alert_rows import make_olt, set_of
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from facho.apps.coordinator.models import QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.telemetry.models import Onu, OnuEvent, PonPort
from facho.problems.evaluation import ProblemWatch
from facho.problems.models import Problem
from problem_rows import NOW, bring_up, count, evaluate, fill_port, onus_of, take_down

pytestmark = pytest.mark.django_db

SEC, MIN, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
CUT = NOW - 2 * MIN


@pytest.fixture
def central():
    """OLT-CENTRAL-01 with two ports of twelve ONUs, and one on another card."""
    olt = make_olt("OLT-CENTRAL-01")
    for place in ("0/1", "0/2", "1/1"):
        fill_port(olt, place, up=12)
    return olt


def entries(problem=None):
    return list((problem or Problem.objects.get()).entries.values_list("kind", flat=True))


def cut(olt, place="0/1", at=CUT):
    take_down(onus_of(olt, place), at=at)
    count(olt, NOW)


def test_a_cut_fibre_opens_one_problem(central):
    cut(central)

    for seconds in (0, 10, 20):
        evaluate(NOW + seconds * SEC)

    problem = Problem.objects.get()
    assert (problem.kind, problem.cause, problem.confidence, problem.severity) == (
        "port_down", "fibre_cut", "probable", "critical",
    )  # fmt: skip
    assert (problem.olt, problem.slot, problem.port, problem.affected) == (central, 0, 1, 12)
    assert (problem.since, problem.found_at) == (CUT, NOW)
    assert sorted(problem.onus) == sorted(onu.pk for onu in onus_of(central))
    assert entries() == ["found"]


def test_the_evaluation_returns_the_olts_whose_problems_changed(central):
    watch = ProblemWatch()
    cut(central)

    assert evaluate(NOW, watch) == {central.pk}
    assert evaluate(NOW + 10 * SEC, watch) == set()


def test_a_port_without_device_times_names_the_poll_interval(central):
    job = SnmpJob.objects.create(name="State", brand="huawei", kind="table", columns=["state"], interval_seconds=300)
    job.apply_to([central])
    take_down(onus_of(central), at=NOW, is_exact=False)

    evaluate()

    problem = Problem.objects.get()
    assert (problem.cause, problem.confidence) == ("fibre_cut", "possible")
    assert problem.summary == "12 of 12 ONUs down: 12 with loss of signal; within one poll interval of 5 min"


def test_onus_that_were_down_when_they_were_found_are_no_outage(central):
    cut(central)
    OnuEvent.objects.all().delete()

    evaluate()

    assert not Problem.objects.exists()


def vanish(olt, place="0/1", *, at=CUT, misses=1, missing_since=None):
    """Let the OLT list the ONUs of a port no more: they keep what was read last."""
    slot, port = map(int, place.split("/"))
    gone = Onu.objects.filter(olt=olt, slot=slot, port=port)
    gone.update(own_state_at=at, own_read_at=at, misses=misses, missing_since=missing_since)
    count(olt)


@pytest.mark.parametrize(
    ("misses", "missing_since"),
    [pytest.param(1, None, id="one discovery"), pytest.param(2, NOW - MIN, id="missing by now")],
)
def test_onus_that_are_no_longer_listed_are_an_outage(central, misses, missing_since):
    vanish(central, misses=misses, missing_since=missing_since)

    evaluate()

    problem = Problem.objects.get()
    assert (problem.kind, problem.cause, problem.confidence) == ("port_down", "disappeared", "unknown")
    assert (problem.since, problem.affected) == (CUT, 12)
    assert problem.summary == "12 of 12 ONUs down: 12 no longer listed; within one poll interval"


def test_a_part_of_a_port_that_is_no_longer_listed_degrades_it(central):
    job = SnmpJob.objects.create(name="State", brand="huawei", kind="table", columns=["state"], interval_seconds=300)
    job.apply_to([central])
    vanish(central)
    Onu.objects.filter(olt=central, slot=0, port=1, onu__gt=6).update(own_state_at=None, own_read_at=None, misses=0)
    set_of(central, inventory_version=99)

    evaluate()

    problem = Problem.objects.get()
    assert (problem.kind, problem.affected, problem.evidence["up"]) == ("port_degraded", 6, 6)


def test_an_outage_goes_on_when_the_olt_no_longer_lists_its_onus(central):
    cut(central)
    evaluate()
    for number, (misses, missing_since) in enumerate([(1, None), (2, NOW + 2 * HOUR)], 1):
        vanish(central, misses=misses, missing_since=missing_since)
        for minutes in (0, 5):
            evaluate(NOW + number * HOUR + minutes * MIN)

    problem = Problem.objects.get()
    assert (problem.until, problem.cause, problem.affected) == (None, "fibre_cut", 12)
    assert problem.summary.startswith("12 of 12 ONUs down: 12 with loss of signal")


def test_onus_that_are_on_another_olt_now_are_no_outage(central):
    vanish(central, misses=2, missing_since=NOW)
    norte = make_olt("OLT-NORTE-02")
    fill_port(norte, "0/1", up=12)
    for there, here in zip(onus_of(norte), onus_of(central), strict=True):
        Onu.objects.filter(pk=there.pk).update(serial=here.serial)

    evaluate()

    assert not Problem.objects.exists()


def test_onus_that_are_missing_for_a_week_are_an_outage_no_longer(central):
    at = NOW - 7 * 24 * HOUR
    vanish(central, at=at + MIN, misses=2, missing_since=at + HOUR)
    evaluate(NOW)
    assert Problem.objects.get().until is None

    set_of(central, inventory_version=99)
    for minutes in (2 * 60, 2 * 60 + 2):
        evaluate(NOW + minutes * MIN)

    assert Problem.objects.get().until is not None


def test_a_mass_disappearance_that_is_not_confirmed_is_one_problem(central):
    for place in ("0/1", "0/2", "1/1"):
        vanish(central, place)
    set_of(central, suspect_since=NOW, suspect_reason=Olt.Suspect.VANISHING)

    evaluate()

    assert [each.kind for each in Problem.objects.all()] == ["olt_suspect"]


def test_onus_that_the_olt_refuses_are_an_outage(central):
    take_down(onus_of(central), "auth_failed", at=CUT, is_exact=False)

    evaluate()

    problem = Problem.objects.get()
    assert (problem.kind, problem.cause, problem.confidence) == ("port_down", "not_authorised", "probable")
    assert problem.summary == "12 of 12 ONUs down: 12 not authorised; within one poll interval"


def test_onus_that_are_refused_after_a_cut_are_an_outage_too(central):
    cut(central)
    evaluate()
    take_down(onus_of(central), "auth_failed", at=NOW + 5 * MIN, is_exact=False)

    for minutes in (6, 7, 8):
        evaluate(NOW + minutes * MIN)

    problem = Problem.objects.get()
    assert (problem.until, problem.cause, problem.affected) == (None, "not_authorised", 12)


def test_it_ends_a_minute_after_the_onus_are_back(central):
    cut(central)
    evaluate()
    bring_up(onus_of(central), at=NOW + 5 * MIN)

    for seconds in (0, 30, 60):
        evaluate(NOW + 5 * MIN + seconds * SEC)

    problem = Problem.objects.get()
    # It was gone at the first look.
    assert problem.until == NOW + 5 * MIN
    assert entries() == ["found", "ended"]


def test_a_moment_without_it_does_not_end_it(central):
    cut(central)
    evaluate()
    bring_up(onus_of(central), at=NOW + 5 * MIN)
    evaluate(NOW + 5 * MIN)
    take_down(onus_of(central), at=NOW + 5 * MIN + 20 * SEC)
    evaluate(NOW + 5 * MIN + 30 * SEC)

    problem = Problem.objects.get()
    assert (problem.until, problem.absent_since, problem.since) == (None, None, CUT)


def ended(olt):
    """Let a cut be repaired: it ends ten minutes after NOW."""
    cut(olt)
    evaluate()
    bring_up(onus_of(olt), at=NOW + 10 * MIN)
    evaluate(NOW + 10 * MIN)
    evaluate(NOW + 12 * MIN)
    return Problem.objects.get()


def test_what_comes_back_within_minutes_is_the_same_problem(central):
    problem = ended(central)
    assert problem.until == NOW + 10 * MIN
    take_down(onus_of(central), at=NOW + 15 * MIN)

    evaluate(NOW + 15 * MIN)

    problem = Problem.objects.get()
    assert (problem.until, problem.since) == (None, CUT)
    assert entries() == ["found", "ended", "reopened"]


def test_what_comes_back_later_is_another_problem(central):
    ended(central)
    take_down(onus_of(central), at=NOW + 30 * MIN)

    evaluate(NOW + 30 * MIN)

    assert [each.until for each in Problem.objects.order_by("id")] == [NOW + 10 * MIN, None]


def test_an_outage_that_grows_is_the_same_problem(central):
    take_down(onus_of(central, number=4), at=CUT)
    evaluate()
    assert Problem.objects.get().kind == "port_degraded"
    take_down(onus_of(central, state="online"), at=NOW)

    evaluate(NOW + 10 * SEC)

    problem = Problem.objects.get()
    assert (problem.kind, problem.affected, problem.peak, problem.since) == ("port_down", 12, 12, CUT)
    assert entries() == ["found", "changed", "grew"]


@pytest.mark.parametrize("columns", [{"breaker_opened_at": NOW}, {"enabled": False}], ids=["unreachable", "disabled"])
def test_while_the_olt_is_unknown_it_neither_ends_nor_appears(central, columns):
    cut(central)
    evaluate()
    set_of(central, **columns)
    # Nobody can tell whether they are back.
    take_down(onus_of(central, "0/2"), at=NOW)

    for minutes in (1, 2, 60):
        evaluate(NOW + minutes * MIN)

    [problem] = Problem.objects.filter(kind="port_down")
    assert (problem.until, problem.port) == (None, 1)
    assert problem.unknown_since in (NOW, NOW + MIN)


def test_it_is_known_again_when_the_olt_answers(central):
    cut(central)
    evaluate()
    set_of(central, breaker_opened_at=NOW)
    evaluate(NOW + MIN)
    set_of(central, breaker_opened_at=None)

    evaluate(NOW + 2 * MIN)

    assert Problem.objects.get(kind="port_down").unknown_since is None


def test_a_port_that_was_not_read_for_hours_is_unknown(central):
    cut(central)
    evaluate()

    evaluate(NOW + 4 * HOUR)

    assert (Problem.objects.get().until, Problem.objects.get().unknown_since) == (None, NOW + 4 * HOUR)


def test_ports_of_a_card_become_one_problem(central):
    take_down(onus_of(central), at=CUT)
    evaluate()
    take_down(onus_of(central, "0/2"), at=CUT + 20 * SEC)

    evaluate(NOW + 10 * SEC)

    port, card = Problem.objects.order_by("id")
    assert (card.kind, card.slot, card.port, card.affected) == ("card_down", 0, None, 24)
    assert (port.part_of, port.until) == (card, NOW + 10 * SEC)
    assert [each.said for each in port.entries.all()] == ["found", "turned out to be part of a larger problem"]


def test_the_same_after_a_restart(central):
    """A watch with memory and one without find the same."""
    watch = ProblemWatch()
    cut(central)
    evaluate(NOW, watch)
    bring_up(onus_of(central, number=9), at=NOW + MIN)
    evaluate(NOW + MIN, watch)
    remembered = Problem.objects.values().get()

    assert evaluate(NOW + MIN) == set()
    assert Problem.objects.values().get() == remembered
    assert remembered["affected"] == 3


def test_an_olt_that_does_not_answer_is_a_problem_of_all_its_customers(central):
    set_of(central, breaker_opened_at=NOW, last_error="OLT-CENTRAL-01 did not answer within 5 s")

    evaluate(NOW + 10 * SEC)

    problem = Problem.objects.get()
    assert (problem.kind, problem.severity, problem.since, problem.affected) == ("olt_down", "critical", NOW, 36)


def test_a_disabled_olt_is_not_down(central):
    set_of(central, breaker_opened_at=NOW)
    evaluate()
    set_of(central, enabled=False)

    evaluate(NOW + MIN)
    evaluate(NOW + 2 * MIN)

    assert Problem.objects.get().until == NOW + MIN


def test_power_cut_low_power_and_drops(central):
    Onu.objects.filter(port=2).update(rx_dbm=-28.0)
    for onu in onus_of(central, "0/2", 6):
        OnuEvent.objects.create(onu=onu, olt=central, at=NOW, field="rx_dbm", old="-20.0", new="-28.0", cause="")
    take_down(onus_of(central, "1/1", 6), "dying_gasp", at=CUT)

    evaluate()

    found = {each.kind: (each.slot, each.port, each.affected, each.cause) for each in Problem.objects.all()}
    assert found == {
        "power_cut": (1, 1, 6, "power_cut"),
        "low_power": (0, 2, 12, "feeder"),
        "power_drop": (0, 2, 6, "splitter"),
    }


def test_an_onu_that_goes_down_again_and_again(central):
    [onu] = onus_of(central, number=1)
    for each in range(4):
        take_down([onu], at=NOW - (60 - 10 * each) * MIN)
        bring_up([onu], at=NOW - (55 - 10 * each) * MIN)
    count(central)

    evaluate()

    problem = Problem.objects.get()
    assert (problem.kind, problem.onu, problem.place) == ("flapping", onu, "0/1/1")
    assert problem.summary == "down 4 times within 2 h"


def test_a_violated_quota_and_a_late_job(central):
    job = SnmpJob.objects.create(name="State", brand="huawei", kind="table", columns=["state"], interval_seconds=300)
    [node] = job.apply_to([central])
    WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=NOW - 5 * MIN)
    QuotaViolation.objects.create(
        olt=central, node=node, task_type="State", period_start=NOW - HOUR, period_end=NOW, severity="HIGH",
        report={"completed": 2, "required": 12, "causes": {"olt_busy": 10}},
    )  # fmt: skip

    evaluate(NOW, is_stale=True)
    assert [each.kind for each in Problem.objects.all()] == ["quota_violated"]
    evaluate(NOW + 10 * SEC)
    # The scheduler stops to report: late jobs are no longer known to be late, nor to be in time.
    WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=NOW + HOUR)
    evaluate(NOW + 2 * MIN, is_stale=True)
    evaluate(NOW + 4 * MIN, is_stale=True)

    said = {each.kind: (each.summary, each.until) for each in Problem.objects.all()}
    assert said == {
        "quota_violated": ("State completed 2 of 12 runs in an hour", None),
        "job_late": ("State is due and does not start", None),
    }


def test_an_olt_in_doubt(central):
    set_of(central, suspect_since=NOW, suspect_reason=Olt.Suspect.VANISHING)

    evaluate()

    assert [(each.kind, each.cause) for each in Problem.objects.all()] == [("olt_suspect", "mass_disappearance")]


def test_a_quiet_network_costs_a_few_queries(central, django_assert_max_num_queries):
    watch = ProblemWatch()
    for number in range(5):
        fill_port(make_olt(f"OLT-{number}"), up=3)
    evaluate(NOW, watch)

    with django_assert_max_num_queries(4):
        evaluate(NOW + 10 * SEC, watch)


def test_the_queries_do_not_grow_with_the_network(central):
    def queries():
        with CaptureQueriesContext(
            connection,
        ) as caught:
            evaluate(NOW)
        return len(caught)

    before = queries()
    for number in range(5):
        fill_port(make_olt(f"OLT-{number}"), up=3)

    assert queries() == before


def test_a_port_row_without_counters_is_no_problem(central):
    PonPort.objects.update(total=0, online=0, state_at=None)
    count_ = Onu.objects.count()

    evaluate(timezone.now())

    assert (count_, Problem.objects.count()) == (36, 0)


def test_a_cut_fibre_that_is_spliced_stays_a_cut_fibre(central):
    cut(central)
    evaluate()
    bring_up(onus_of(central)[:8], at=NOW + MIN)

    evaluate(NOW + MIN)

    problem = Problem.objects.get()
    assert (problem.kind, problem.cause, problem.affected, problem.peak) == ("port_degraded", "fibre_cut", 4, 12)
    assert entries(problem) == ["found"]


def test_a_branch_has_the_last_distances_of_its_onus(central):
    # Down, an ONU has no distance, or 0.
    Onu.objects.filter(olt=central, port=1, onu__gt=8).update(distance_m=0, last_distance_m=4200 + 10 * F("onu"))
    Onu.objects.filter(olt=central, port=1, onu__lte=8).update(distance_m=3000, last_distance_m=9000)
    take_down(onus_of(central)[8:], at=CUT)
    count(central, NOW)

    evaluate()

    problem = Problem.objects.get()
    assert problem.cause == "splitter"
    assert problem.evidence_lines[-3:] == [
        "Distance of these ONUs: 4,290 to 4,320 m.",
        "Distance of the other ONUs of the port: 3,000 to 3,000 m.",
        "All of them are beyond the others: look between 3,000 m and 4,290 m.",
    ]


def test_onus_that_were_moved_have_not_lost_power(central):
    for onu in onus_of(central)[:6]:
        OnuEvent.objects.create(onu=onu, olt=central, at=NOW - MIN, field="rx_dbm", old="-20.0", new="-24.5")
    Onu.objects.filter(olt=central).update(rx_dbm=-24.5)
    count(central, NOW)
    evaluate()
    assert Problem.objects.get().kind == "power_drop"
    Problem.objects.all().delete()

    Onu.objects.filter(olt=central).update(moved_at=NOW - HOUR)

    evaluate()
    assert not Problem.objects.exists()
