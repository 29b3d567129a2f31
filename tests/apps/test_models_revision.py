"""Whatever a person changes raises the revision of the OLTs concerned, and no other: so the engine hears of it."""

import pytest
from cast import make_job, make_olt

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode

pytestmark = pytest.mark.django_db


class Fleet:
    """OLT-CENTRAL-01 with a master and its chain, OLT-NORTE-02 with nothing but one job."""

    def __init__(self):
        self.central, self.norte = make_olt("OLT-CENTRAL-01"), make_olt("OLT-NORTE-02")
        self.power = make_job("Optical power")
        self.names = make_job("Names", columns=["name"], follows=self.power)
        self.software = make_job("Software", columns=["software"])
        self.oid = SnmpJobOid.objects.create(job=self.power, name="vlan", oid="1.3.6.1", decode="integer")
        (self.node,) = self.power.apply_to([self.central])
        self.software.apply_to([self.norte])

    def revisions(self):
        return {olt.name: olt.revision for olt in Olt.objects.all()}


def rename_olt(fleet):
    fleet.central.location = "Centro"
    fleet.central.save()


def change_job(fleet):
    fleet.power.interval_seconds = 900
    fleet.power.save()


def change_link(fleet):
    fleet.names.columns = ["serial"]
    fleet.names.save()


def change_oid(fleet):
    fleet.oid.oid = "1.3.6.2"
    fleet.oid.save()


def override(fleet):
    fleet.node.own_priority = 7
    fleet.node.save()


def leave_chain(fleet):
    fleet.names.follows = None
    fleet.names.save()


def new_link(fleet):
    make_job("Serials", columns=["serial"], follows=fleet.power)


CHANGES = {
    "a column of the OLT": rename_olt,
    "disabling it": lambda fleet: fleet.central.disable(),
    "its job": change_job,
    "a job of its chain": change_link,
    "a raw OID": change_oid,
    "a new raw OID": lambda fleet: SnmpJobOid.objects.create(
        job=fleet.power, name="cpu", oid="1.3.6.3", decode="integer"
    ),
    "deleting a raw OID": lambda fleet: fleet.oid.delete(),
    "deleting raw OIDs by query": lambda fleet: SnmpJobOid.objects.filter(job=fleet.power).delete(),
    "a setting of its node": override,
    "a request to run": lambda fleet: fleet.node.request_run(),
    "deleting its node": lambda fleet: fleet.node.delete(),
    "deleting nodes by query": lambda fleet: WorkflowNode.objects.filter(olt=fleet.central).delete(),
    "deleting nodes by relation": lambda fleet: fleet.central.nodes.all().delete(),
    "deleting its job and detaching the followers": lambda fleet: SnmpJob.remove([fleet.power], "detach"),
    "deleting its job with the followers": lambda fleet: SnmpJob.remove([fleet.power], "delete"),
    "deleting jobs by query": lambda fleet: SnmpJob.objects.filter(name__in=["Optical power", "Names"]).delete(),
    "deleting a job of its chain": lambda fleet: fleet.names.delete(),
    "a job that leaves its chain": leave_chain,
    "a job that joins its chain": new_link,
    "another job": lambda fleet: make_job("Discovery", kind="discovery").apply_to([fleet.central]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_reaches_the_olt_it_concerns(db, change):
    fleet = Fleet()
    before = fleet.revisions()

    change(fleet)

    after = fleet.revisions()
    assert after["OLT-CENTRAL-01"] > before["OLT-CENTRAL-01"]
    assert after["OLT-NORTE-02"] == before["OLT-NORTE-02"]


def test_a_job_that_moves_to_another_chain_reaches_both_olts(db):
    fleet = Fleet()
    before = fleet.revisions()

    fleet.names.follows = fleet.software
    fleet.names.save()

    after = fleet.revisions()
    assert all(after[name] > before[name] for name in before)
    assert [node.olt.name for node in fleet.names.nodes.all()] == ["OLT-NORTE-02"]


def test_a_request_that_was_made_already_reaches_nobody(db):
    fleet = Fleet()
    fleet.node.request_run()
    before = fleet.revisions()

    fleet.node.request_run()

    assert fleet.revisions() == before
