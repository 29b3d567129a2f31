"""A run that a person asked for is for now: nothing that is switched off is asked for, or remembers that it was."""

import pytest
from cast import T0, make_olt

from facho.apps.jobs.models import SnmpJob, WorkflowNode


@pytest.fixture
def wished(node):
    """Optical power on OLT-CENTRAL-01, asked for and not begun."""
    node.request_run(T0)
    return node


def wish(node):
    return WorkflowNode.objects.get(pk=node.pk).run_requested_at


def disable_olt(node):
    node.olt.disable()


def disable_olt_with_all_it_has(node):
    node.olt.enabled = False
    node.olt.save()


def disable_node(node):
    node.own_enabled = False
    node.save()


def disable_job(node):
    node.job.enabled = False
    node.job.save()


def leave_it_to_a_job_that_is_off(node):
    SnmpJob.objects.filter(pk=node.job_id).update(enabled=False)
    node = WorkflowNode.objects.get(pk=node.pk)
    node.own_enabled = None
    node.save(update_fields=["own_enabled"])


WAYS = [disable_olt, disable_olt_with_all_it_has, disable_node, disable_job, leave_it_to_a_job_that_is_off]


@pytest.mark.parametrize("switch_off", WAYS, ids=lambda way: way.__name__.replace("_", " "))
def test_what_is_switched_off_forgets_what_was_asked_for(wished, switch_off):
    switch_off(wished)

    assert wish(wished) is None


@pytest.mark.parametrize("switch_off", WAYS, ids=lambda way: way.__name__.replace("_", " "))
def test_nothing_is_asked_of_what_is_switched_off(node, switch_off):
    switch_off(node)

    assert node.request_run(T0) is False
    assert wish(node) is None


def test_a_node_that_is_on_although_its_job_is_off_keeps_its_wish(wished):
    wished.own_enabled = True
    wished.save()

    disable_job(wished)

    assert wish(wished) == T0


def test_the_wishes_of_others_stay(wished, power):
    other = make_olt("OLT-VECINA-04")
    power.apply_to([other])

    other.disable()

    assert wish(wished) == T0


def test_a_change_that_switches_nothing_off_keeps_the_wish(wished):
    wished.own_priority = 50
    wished.save()
    wished.olt.location = "Norte"
    wished.olt.save()
    wished.job.priority = 50
    wished.job.save()

    assert wish(wished) == T0


@pytest.mark.parametrize("way", [disable_olt, disable_node], ids=["the OLT", "the node"])
def test_the_api_refuses_to_run_what_is_switched_off_in_a_sentence(api, node, way):
    way(node)

    answer = api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")

    assert answer.status_code == 409
    assert answer.json()["detail"].endswith("is disabled. Enable it first.")
    assert wish(node) is None


def test_an_olt_without_a_brand_is_not_asked_what_it_is_while_it_is_disabled(db):
    olt = make_olt("OLT-NUEVA-05", "", enabled=False)

    assert wish(olt.nodes.get()) is None
