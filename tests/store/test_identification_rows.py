"""From a blank brand to an OLT at work: what is left in the tables when its make was found out, or was not."""

import logging

import pytest
from builders import MIN, T0

from contracts.worlds import OLD, PRESENT, Inline, InSavepoint, done, scheduled
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.jobs.templates import propose
from facho.apps.polling.models import Execution
from facho.brands import BRANDS
from facho.engine.errors import LeaseLost
from facho.engine.model import Identification, JobKind, Lease, Outcome, RunResult, Status
from facho.store.nodes import DbNodeSource
from facho.store.runs import DbResults, DbRuns, repair
from facho.store.slots import DbSlots

pytestmark = pytest.mark.django_db

SEEN = {"sysDescr": "Huawei Integrated Access Software", "sysName": "central"}
TEMPLATES = {template.name for template in BRANDS["huawei"].templates}


class Desk:
    """OLT-CENTRAL-01 without a brand, and a running execution that asks what it is."""

    def __init__(self):
        self.slots = DbSlots(InSavepoint())
        self.runs = DbRuns(InSavepoint(), InSavepoint(), DbResults(InSavepoint()))
        Olt.objects.create(name="OLT-CENTRAL-01", host="127.0.0.1", community="public")
        WorkflowNode.objects.update(next_run_at=T0)
        (self.node,) = done(DbNodeSource(Inline()).states([self.olt.pk]))[self.olt.pk].nodes
        claim = done(self.slots.claim(scheduled(self.node), poller_id=3, now=T0, waits={}))
        (self.execution_id,) = claim.execution_ids
        done(self.runs.start(self.execution_id, lease=self.lease(), now=T0))

    def lease(self, token=PRESENT):
        return Lease(self.olt.pk, "test/3", token)

    def found(self, brand, token=PRESENT):
        outcome = Outcome(Status.SUCCESS if brand else Status.FAILED)
        found = Identification(brand, SEEN)
        result = RunResult((self.execution_id,), outcome, self.lease(token), T0, self.node, identification=found)
        done(self.runs.finish(result))

    @property
    def olt(self):
        return Olt.objects.get()

    @property
    def jobs(self):
        return set(WorkflowNode.objects.values_list("job__name", flat=True))


@pytest.fixture
def desk(db):
    return Desk()


def test_an_olt_without_a_brand_is_asked_what_it_is(desk):
    assert (desk.node.kind, desk.node.interval, desk.node.name) == (JobKind.IDENTIFY, 60 * MIN, "Identification")
    assert desk.jobs == {"Identification"}


def test_a_brand_that_was_found_brings_its_jobs_and_ends_the_question(desk):
    before = desk.olt.revision

    desk.found("huawei")

    assert (desk.olt.brand, desk.olt.extra) == ("huawei", SEEN)
    assert desk.jobs == TEMPLATES
    assert desk.olt.revision > before
    assert "discovery" in {node.job.kind for node in WorkflowNode.objects.all() if node.enabled}


def test_an_execution_ends_although_its_node_goes_with_the_answer(desk):
    desk.found("huawei")

    row = Execution.objects.get()
    assert (row.status, row.node_id, row.node_name) == ("SUCCESS", None, "Identification")


def test_without_a_brand_the_question_stays_open_and_what_was_seen_is_kept(desk):
    desk.found("")

    assert (desk.olt.brand, desk.olt.extra, desk.jobs) == ("", SEEN, {"Identification"})


def test_a_person_who_chose_meanwhile_was_right(desk):
    olt = desk.olt
    olt.brand = "zte_c300"
    olt.save()

    desk.found("huawei")

    assert (desk.olt.brand, desk.jobs) == ("zte_c300", set())


def test_jobs_that_are_there_are_applied_as_they_are(desk):
    propose("huawei")
    SnmpJob.objects.filter(name="Discovery").update(interval_seconds=1234)

    desk.found("huawei")

    assert desk.jobs == TEMPLATES
    assert SnmpJob.objects.get(name="Discovery").interval_seconds == 1234


def test_a_job_that_a_person_deleted_does_not_come_back(desk):
    propose("huawei")
    SnmpJob.objects.filter(brand="huawei").exclude(name="Discovery").delete()
    SnmpJob.objects.create(name="Mine", brand="huawei", kind="table", columns=["rx_dbm"])

    desk.found("huawei")

    assert desk.jobs == {"Discovery"}


def test_a_holder_of_an_older_lease_names_nobody(desk):
    with pytest.raises(LeaseLost):
        desk.found("huawei", token=OLD)

    assert (desk.olt.brand, desk.olt.extra, desk.jobs) == ("", {}, {"Identification"})


def test_what_was_found_is_an_event(desk, caplog):
    caplog.set_level(logging.INFO)

    desk.found("huawei")

    ((event, olt_id, said),) = [
        (record.event.name, record.olt_id, record.getMessage()) for record in caplog.records if hasattr(record, "event")
    ]
    assert (event, olt_id) == ("OLT_IDENTIFIED", desk.olt.pk)
    assert said.startswith(f"OLT-CENTRAL-01 was identified as {BRANDS['huawei'].label}; jobs applied: ")
    assert "Discovery" in said


def test_a_start_adds_the_identification_that_an_earlier_version_left_out(caplog):
    """Olt and node were saved in two transactions once, and a process killed in between left the OLT alone."""
    Olt.objects.bulk_create([Olt(name="OLT-SUR-03", host="127.0.0.3"), Olt(name="OLT-B", host="::1", enabled=False)])
    before = Olt.objects.get(name="OLT-SUR-03").revision

    repair(T0)

    asked = dict(WorkflowNode.objects.values_list("olt__name", "run_requested_at"))
    assert asked.keys() == {"OLT-SUR-03", "OLT-B"}
    assert (asked["OLT-SUR-03"] is not None, asked["OLT-B"]) == (True, None)
    assert Olt.objects.get(name="OLT-SUR-03").revision > before
    assert "repaired the identification of OLT-B, OLT-SUR-03" in caplog.text


def test_a_start_ends_the_identification_of_an_olt_that_has_a_brand(desk):
    Olt.objects.update(brand="huawei")

    repair(T0)

    assert desk.jobs == set()


def test_a_start_leaves_everything_else_alone(desk, caplog):
    WorkflowNode.objects.update(run_requested_at=None)
    before = desk.olt.revision

    repair(T0)

    assert (desk.jobs, desk.olt.revision, caplog.text) == ({"Identification"}, before, "")
    assert WorkflowNode.objects.get().run_requested_at is None
