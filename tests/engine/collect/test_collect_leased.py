"""A lease that is over in the middle of a run: not one request more, and what was read is kept."""

from dataclasses import replace

import pytest
from collect_fakes import FakeAgent, known, make_mib, make_node, make_olt, one_port, run

from facho.engine.errors import LeaseLost, OltUnreachable
from facho.engine.model import Completeness, JobKind, Lease
from facho.engine.scheduling.leased_snmp import LeasedSnmp

ONUS = one_port(60)


class Watched(LeasedSnmp):
    """An agent under a lease that is over after so many requests."""

    def __init__(self, agent: FakeAgent, requests: int) -> None:
        lease = Lease(1, "noc/1", 1, make_olt().agent.device)
        super().__init__(agent, lease, lambda lease: len(agent.log) < requests)
        self.clock = agent.clock


async def test_what_was_read_until_then_is_kept_and_says_what_is_missing(clock):
    agent = FakeAgent(clock, make_mib(ONUS, ["serial", "state"]))

    collected = await run(Watched(agent, requests=2), make_node(JobKind.DISCOVERY))

    assert collected.completeness is Completeness.PARTIAL
    assert 0 < len(collected.readings) < len(ONUS)
    assert "lease" in " ".join(collected.errors)
    assert collected.traffic.pdus == len(agent.log) == 2
    assert collected.absent == ()


@pytest.mark.parametrize(
    "kind", [kind for kind in JobKind if kind is not JobKind.IDENTIFY], ids=lambda kind: kind.value
)
async def test_nothing_is_asked_once_it_is_over_and_the_olt_is_not_to_blame(clock, kind):
    agent = FakeAgent(clock, make_mib(ONUS, ["serial", "state"]))

    with pytest.raises(LeaseLost):
        await run(Watched(agent, requests=0), make_node(kind, "serial", "state"), onus=known(ONUS))

    assert agent.log == []


@pytest.mark.parametrize(
    ("host", "error"),
    [
        pytest.param("10.0.0.8", LeaseLost, id="another device than the one that is held"),
        pytest.param("olt-7.example.net", OltUnreachable, id="a name without an address"),
    ],
)
async def test_nothing_is_sent_but_to_the_device_that_is_held(clock, host, error):
    agent = FakeAgent(clock, make_mib(ONUS, ["serial", "state"]))
    elsewhere = replace(make_olt().agent, host=host)

    with pytest.raises(error):
        await run(Watched(agent, requests=99), make_node(JobKind.DISCOVERY), olt=make_olt(agent=elsewhere))

    assert agent.log == []
