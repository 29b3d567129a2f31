"""Jobs and their nodes: what can be asked, how a chain comes about, and what a node keeps of its own."""

import pytest
from cast import T0, make_job, make_olt
from django.core.exceptions import ValidationError
from django.utils import timezone

from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode

pytestmark = pytest.mark.django_db


def unsaved(**more):
    return SnmpJob(**{"name": "Optical power", "brand": "huawei", "kind": "table", "columns": ["rx_dbm"]} | more)


def refusal_of(row):
    with pytest.raises(ValidationError) as refusal:
        row.full_clean()
    return refusal.value.message_dict


@pytest.fixture
def power(db):
    return make_job("Optical power", priority=55, interval_seconds=300)


@pytest.fixture
def names(power):
    return make_job("Names", columns=["name"], follows=power)


def test_a_job_that_makes_sense_is_accepted(db):
    unsaved().full_clean()
    unsaved(columns=[], kind="discovery").full_clean()


@pytest.mark.parametrize(
    ("more", "field", "sentence"),
    [
        pytest.param({"interval_seconds": 0}, "interval_seconds", "greater than or equal to 10", id="interval 0"),
        pytest.param({"interval_seconds": 9}, "interval_seconds", "greater than or equal to 10", id="interval 9"),
        pytest.param({"interval_seconds": 604801}, "interval_seconds", "604800", id="over a week"),
        pytest.param({"brand": "acme"}, "brand", "acme", id="an unknown maker"),
        pytest.param({"kind": "guess"}, "kind", "guess", id="an unknown type"),
        pytest.param({"columns": ["rx_dbm", "colour"]}, "columns", "has no column colour", id="an unknown column"),
        pytest.param({"columns": "rx_dbm"}, "columns", "list of names", id="columns that are a text"),
        pytest.param({"columns": [7]}, "columns", "list of names", id="columns that are numbers"),
        pytest.param({"columns": {"a": 1}}, "columns", "list of names", id="columns that are an object"),
        pytest.param({"priority": 101}, "priority", "100", id="too urgent"),
        pytest.param({"timeout_seconds": 0}, "timeout_seconds", "1", id="no time at all"),
        pytest.param({"retries": 11}, "retries", "10", id="too many retries"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(db, more, field, sentence):
    refusal = refusal_of(unsaved(**more))

    assert field in refusal
    assert sentence in str(refusal[field])


def test_a_job_cannot_follow_itself(power):
    power.follows = power

    assert "cannot follow itself" in str(refusal_of(power)["follows"])


def test_a_chain_has_one_master(names):
    third = unsaved(name="Software", follows=names)

    assert "Follow Optical power instead" in str(refusal_of(third)["follows"])


def test_a_job_that_others_follow_cannot_follow(power, names):
    power.follows = make_job("Discovery", kind="discovery")

    assert "Other jobs follow this one" in str(refusal_of(power)["follows"])


def test_a_chain_is_of_one_brand(power):
    stranger = unsaved(name="Names", brand="zte_c300", columns=[], follows=power)

    assert "same brand" in str(refusal_of(stranger)["follows"])


def test_the_brand_stays_as_long_as_something_depends_on_it(power, names):
    power.apply_to([make_olt("OLT-CENTRAL-01")])
    power.brand, power.columns = "zte_c300", []
    assert "Remove it from them first" in str(refusal_of(power)["brand"])

    WorkflowNode.objects.all().delete()

    assert "follow this one" in str(refusal_of(power)["brand"])


@pytest.mark.parametrize(
    ("oid", "sentence"),
    [
        pytest.param("", "blank", id="nothing"),
        pytest.param("1.3.six", "numbers with dots", id="letters"),
        pytest.param("1..3", "numbers with dots", id="two dots"),
        pytest.param("1.3.6.1.", "numbers with dots", id="a dot at the end"),
        pytest.param("1.3.-6", "numbers with dots", id="a negative number"),
        pytest.param("1.3.4294967296", "cannot be part", id="a number over 32 bits"),
        pytest.param("7.3.6", "no OID begins with", id="no such root"),
        pytest.param("1", "2 to 128", id="a single number"),
        pytest.param("sysName.0", "numbers with dots", id="a name"),
    ],
)
def test_a_malformed_oid_is_refused_with_the_reason(power, oid, sentence):
    refusal = refusal_of(SnmpJobOid(job=power, name="vlan", oid=oid, decode="integer"))

    assert sentence in str(refusal["oid"])


@pytest.mark.parametrize("oid", ["1.3.6.1.2.1.1.5.0", ".1.3.6.1.4.1.2011", "2.999.1"])
def test_an_oid_is_accepted_as_people_write_it(power, oid):
    SnmpJobOid(job=power, name="vlan", oid=oid, decode="integer").full_clean()


@pytest.mark.parametrize("name", ["Vlan", "7vlan", "vlan-id", "vlan id", "ñ"])
def test_the_name_of_a_raw_oid_can_be_a_key(power, name):
    assert "name" in refusal_of(SnmpJobOid(job=power, name=name, oid="1.3.6", decode="integer"))


def test_a_raw_oid_is_read_in_a_way_that_exists(power):
    assert "decode" in refusal_of(SnmpJobOid(job=power, name="vlan", oid="1.3.6", decode="magic"))


def test_applying_a_job_brings_its_chain(power, names):
    central, norte = make_olt("OLT-CENTRAL-01"), make_olt("OLT-NORTE-02")

    masters = power.apply_to([central, norte])

    assert [(node.olt, node.job, node.master) for node in masters] == [(central, power, None), (norte, power, None)]
    for master in masters:
        (link,) = master.chain.all()
        assert (link.job, link.olt, link.next_run_at) == (names, master.olt, None)


def test_applying_twice_changes_nothing(power, names):
    central = make_olt("OLT-CENTRAL-01")
    power.apply_to([central])
    WorkflowNode.objects.filter(job=power).update(own_interval_seconds=60, next_run_at=T0)
    before = list(WorkflowNode.objects.order_by("pk").values())

    power.apply_to([central])

    assert list(WorkflowNode.objects.order_by("pk").values()) == before


def test_a_job_is_not_applied_to_olts_of_another_brand(power):
    central, norte = make_olt("OLT-CENTRAL-01"), make_olt("OLT-NORTE-02", "zte_c300")

    with pytest.raises(ValidationError, match="OLT-NORTE-02 has another brand"):
        power.apply_to([central, norte])

    assert WorkflowNode.objects.count() == 0


def test_a_chained_job_is_not_applied_alone(names):
    with pytest.raises(ValidationError, match="apply Optical power, and Names is included"):
        names.apply_to([make_olt("OLT-CENTRAL-01")])


def test_a_job_that_joins_a_chain_later_comes_along_everywhere(power):
    (master,) = power.apply_to([make_olt("OLT-CENTRAL-01")])

    names = make_job("Names", columns=["name"], follows=power)

    (link,) = names.nodes.all()
    assert (link.master, link.olt) == (master, master.olt)


def test_a_job_that_becomes_a_link_loses_its_schedule_and_its_other_olts(power):
    central, norte = make_olt("OLT-CENTRAL-01"), make_olt("OLT-NORTE-02")
    names = make_job("Names", columns=["name"])
    names.apply_to([central, norte])
    names.nodes.update(next_run_at=T0)
    (master,) = power.apply_to([central])

    names.follows = power
    names.save()

    (link,) = names.nodes.all()
    assert (link.olt, link.master, link.next_run_at) == (central, master, None)


def test_a_job_that_leaves_its_chain_stays_on_its_olts(power, names):
    power.apply_to([make_olt("OLT-CENTRAL-01")])

    names.follows = None
    names.save()

    assert names.nodes.get().master is None


def test_what_a_node_has_of_its_own_survives_a_change_of_its_job(power):
    (node,) = power.apply_to([make_olt("OLT-CENTRAL-01")])
    node.own_interval_seconds, node.own_priority, node.own_enabled = 60, 0, True
    node.save()

    power.interval_seconds, power.priority, power.enabled = 900, 99, False
    power.save()

    node = WorkflowNode.objects.get()
    assert (node.interval_seconds, node.priority, node.enabled) == (60, 0, True)


def test_a_node_without_settings_of_its_own_follows_its_job(power):
    power.apply_to([make_olt("OLT-CENTRAL-01")])

    power.interval_seconds, power.priority, power.enabled = 900, 99, False
    power.save()

    node = WorkflowNode.objects.get()
    assert (node.interval_seconds, node.priority, node.enabled) == (900, 99, False)


@pytest.mark.parametrize("seconds", [0, 9, 604801])
def test_a_node_has_no_impossible_interval(power, seconds):
    (node,) = power.apply_to([make_olt("OLT-CENTRAL-01")])
    node.own_interval_seconds = seconds

    assert "own_interval_seconds" in refusal_of(node)


def test_a_link_has_no_interval_of_its_own(power, names):
    power.apply_to([make_olt("OLT-CENTRAL-01")])
    link = names.nodes.get()
    link.own_interval_seconds = 60

    assert "Set the interval there" in str(refusal_of(link)["own_interval_seconds"])


def test_a_hundred_requests_to_run_are_one(power):
    (node,) = power.apply_to([make_olt("OLT-CENTRAL-01")])

    asked = [WorkflowNode.objects.get().request_run(T0.replace(microsecond=n)) for n in range(100)]

    assert asked.count(True) == 1
    assert WorkflowNode.objects.get().run_requested_at == T0
    node.refresh_from_db()
    assert node.next_run_at is None


def test_a_request_to_run_is_seen_by_who_made_it(power):
    (node,) = power.apply_to([make_olt("OLT-CENTRAL-01")])

    node.request_run(T0)

    assert node.run_requested_at == T0


def test_a_run_is_never_requested_at_a_whole_second_which_belongs_to_a_slot(power, monkeypatch):
    (node,) = power.apply_to([make_olt("OLT-CENTRAL-01")])
    monkeypatch.setattr(timezone, "now", lambda: T0)

    node.request_run()

    assert node.run_requested_at == T0.replace(microsecond=1)


def test_a_form_opened_long_ago_does_not_move_the_grid(power):
    (node,) = power.apply_to([make_olt("OLT-CENTRAL-01")])
    WorkflowNode.objects.update(next_run_at=T0, last_run_at=T0, run_requested_at=T0)

    node.own_priority = 7
    node.save()

    node.refresh_from_db()
    assert (node.own_priority, node.next_run_at, node.last_run_at, node.run_requested_at) == (7, T0, T0, T0)


@pytest.mark.parametrize(
    ("olt", "job", "sentence"),
    [
        pytest.param(True, True, None, id="nothing stands against it"),
        pytest.param(False, True, "OLT-CENTRAL-01 is disabled", id="the OLT is disabled"),
        pytest.param(True, False, "Optical power @ OLT-CENTRAL-01 is disabled", id="the job is disabled"),
    ],
)
def test_a_node_says_why_it_would_not_run(power, olt, job, sentence):
    (node,) = power.apply_to([make_olt("OLT-CENTRAL-01", enabled=olt)])
    SnmpJob.objects.update(enabled=job)

    reason = WorkflowNode.objects.get(pk=node.pk).why_not_runnable()

    assert (reason is None) if sentence is None else (sentence in str(reason))
