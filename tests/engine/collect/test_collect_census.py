"""For any OLT and any mixture of faults: nobody is invented, nobody who is there is called absent, run after run."""

import asyncio
import json

import pytest
from collect_fakes import (
    FakeAgent,
    FakeClock,
    index_of,
    known,
    make_brand,
    make_node,
    make_olt,
    oid_of,
    run,
    values_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_collect_properties import SECONDS, faults, paths, positions, read, tables, truth

from examples import examples
from facho.engine.brand import Manners
from facho.engine.errors import OltUnreachable
from facho.engine.model import Completeness, JobKind
from facho.engine.snmp import Version

FIELDS = ("serial", "state", "name")


@st.composite
def olts(draw):
    """Draw an OLT, an inventory that has some of its ONUs and some that are gone, and how it may be asked."""
    onus, mib = draw(tables())
    gone = draw(st.lists(positions, max_size=4, unique=True))
    there = draw(st.lists(st.sampled_from(onus), unique=True)) if onus else []
    inventory = list(dict.fromkeys([*there, *gone]))
    version = draw(st.sampled_from([Version.V2C, Version.V1]))
    return onus, mib, inventory, make_olt(version, max_in_flight=draw(st.sampled_from([1, 4])))


def read_twice(data, olt_drawn, kind, columns):
    """Return two runs in a row, the second with what the first has learned; or none, if nobody answered."""
    _, mib, inventory, olt = olt_drawn
    brand = make_brand(manners=Manners(max_repetitions=data.draw(st.integers(1, 25)), rows_per_get=4, retries=2))
    path = data.draw(paths(mib))
    runs = []
    for _ in range(2):
        agent = FakeAgent(FakeClock(), mib, data.draw(faults(path)), path=path)
        learned = json.loads(json.dumps(runs[-1].learned)) if runs else {}
        asked = make_olt(olt.agent.version, max_in_flight=olt.max_in_flight, learned=learned)
        try:
            collected = run(
                agent, make_node(kind, *columns), brand=brand, olt=asked, onus=known(inventory), seconds=SECONDS
            )
            runs.append(asyncio.run(collected))
        except OltUnreachable:
            return []
    return runs


@pytest.mark.slow
@given(data=st.data(), olt=olts())
@settings(max_examples=examples(50), deadline=None)
def test_a_discovery_invents_nobody_and_calls_nobody_absent_who_is_there(data, olt):
    onus, mib, _, _ = olt

    runs = read_twice(data, olt, JobKind.DISCOVERY, FIELDS)

    there = {index_of(onu) for onu in onus}
    listed = {index_of(onu) for onu in onus if oid_of("serial", onu) in mib}
    for collected in runs:
        assert set(values_of(collected)) <= there
        assert not set(collected.absent) & listed
        if collected.completeness is Completeness.COMPLETE:
            assert set(values_of(collected)) >= listed


@pytest.mark.slow
@given(data=st.data(), olt=olts(), kind=st.sampled_from([JobKind.TABLE, JobKind.WALK, JobKind.GET]))
@settings(max_examples=examples(50), deadline=None)
def test_what_was_learned_makes_no_run_invent_or_lose_anything(data, olt, kind):
    onus, mib, inventory, _ = olt

    runs = read_twice(data, olt, kind, FIELDS)

    everything = truth(mib, onus, FIELDS)
    asked = {index_of(onu) for onu in inventory}
    for collected in runs:
        assert read(collected).items() <= everything.items()
        assert set(values_of(collected)) <= {index_of(onu) for onu in onus} | (asked if kind is JobKind.GET else set())
        if collected.completeness is not Completeness.PARTIAL:
            wanted = {key: value for key, value in everything.items() if kind is not JobKind.GET or key[0] in asked}
            assert read(collected) == wanted
