"""What holds for a node is the same to a query as to the node itself, whichever table it is reached from."""

import pytest
from cast import make_execution

from facho.apps.jobs import in_effect
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution


@pytest.mark.parametrize("interval", [None, 60, 900], ids=["the job's", "shorter", "longer"])
@pytest.mark.parametrize("enabled", [None, True, False], ids=["same as the job", "on", "off"])
@pytest.mark.parametrize("by_job", [True, False], ids=["the job is on", "the job is off"])
@pytest.mark.parametrize("priority", [None, 0, 95], ids=["as urgent as the job", "least urgent", "most urgent"])
def test_a_query_finds_what_the_node_says(node, interval, enabled, by_job, priority):
    node.job.enabled = by_job
    node.job.save()
    node.own_interval_seconds, node.own_enabled, node.own_priority = interval, enabled, priority
    node.save()
    make_execution(node)

    rules = (in_effect.interval_seconds, in_effect.enabled, in_effect.priority)
    [here] = WorkflowNode.objects.filter(pk=node.pk).values_list(*(rule() for rule in rules))
    [there] = Execution.objects.values_list(*(rule("node__") for rule in rules))

    assert here == there == (node.interval_seconds, node.enabled, node.priority)
    assert here[0] == (interval or 300)
