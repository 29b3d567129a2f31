"""What holds for a node is the same to a query as to the node itself, whichever table it is reached from."""

import pytest
from cast import make_execution

from facho.apps.jobs import in_effect
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution


@pytest.mark.parametrize("interval", [None, 60, 900], ids=["the job's", "shorter", "longer"])
@pytest.mark.parametrize("enabled", [None, True, False], ids=["as the job", "on", "off"])
@pytest.mark.parametrize("by_job", [True, False], ids=["the job is on", "the job is off"])
def test_a_query_finds_what_the_node_says(node, interval, enabled, by_job):
    node.job.enabled = by_job
    node.job.save()
    node.own_interval_seconds, node.own_enabled = interval, enabled
    node.save()
    make_execution(node)

    columns = (in_effect.interval_seconds(), in_effect.enabled())
    [here] = WorkflowNode.objects.filter(pk=node.pk).values_list(*columns)
    [there] = Execution.objects.values_list(in_effect.interval_seconds("node__"), in_effect.enabled("node__"))

    assert here == there == (node.interval_seconds, node.enabled)
    assert here[0] == (interval or 300)
