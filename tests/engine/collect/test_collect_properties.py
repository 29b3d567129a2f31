"""For any table and any mixture of faults: a run ends, invents nothing, and COMPLETE means all of it."""

import asyncio

import pytest
from collect_fakes import (
    BEHIND,
    COLUMNS,
    FakeAgent,
    FakeClock,
    Faults,
    at,
    index_of,
    known,
    make_brand,
    make_mib,
    make_node,
    make_olt,
    oid_of,
    run,
    values_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from facho.engine.brand import Manners
from facho.engine.errors import OltUnreachable
from facho.engine.model import Completeness, JobKind
from facho.engine.oid import unpack
from facho.engine.snmp import Version

SECONDS = 600

positions = st.builds(at, st.integers(0, 3), st.integers(0, 15), st.integers(1, 300))
names = st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True)
never_or = st.just(0) | st.integers(2, 6)
limits = st.none() | st.integers(1, 30)


@st.composite
def tables(draw):
    """Draw an OLT: each column has some of the ONUs."""
    onus = draw(st.lists(positions, max_size=12, unique=True))
    mib = make_mib([])
    if draw(st.booleans()):
        # The last table then ends with the MIB.
        del mib[BEHIND]
    for name in COLUMNS:
        has = draw(st.sampled_from([2**12 - 1, 0]) | st.integers(0, 2**12 - 1))
        for place, onu in enumerate(onus):
            if has >> place & 1:
                mib[oid_of(name, onu)] = make_mib([onu], [name])[oid_of(name, onu)]
    return onus, mib


@st.composite
def faults(draw, path):
    """Draw what is wrong with an agent that goes this way: anything from nothing to everything.

    A jump never goes forward: an agent that hides a row cannot be told from one that has no such row.
    """
    places = st.integers(0, len(path) - 1)
    jumps = st.tuples(places, places).map(lambda ends: {max(ends): min(ends)})
    return Faults(
        drop_every=draw(never_or),
        empty_every=draw(never_or),
        garbage_every=draw(never_or),
        dies_after=draw(st.none() | st.integers(0, 40)),
        too_big_above=draw(limits),
        lost_above=draw(limits),
        most_variables=draw(limits),
        gen_err_at=draw(st.just(frozenset()) | st.frozensets(st.sampled_from(path), max_size=2)),
        silent_at=draw(st.just(frozenset()) | st.frozensets(st.sampled_from(path), max_size=1)),
        accuses=draw(st.sampled_from(["right", "none", "first"])),
        jumps=draw(st.just({}) | jumps),
    )


@st.composite
def paths(draw, mib):
    """Draw the agent's own order: sorted, or with a stretch of one column moved or repeated inside it."""
    path = sorted(mib, key=unpack)
    column = COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))].oid
    inside = [place for place, oid in enumerate(path) if oid.startswith(column)]
    if not inside or draw(st.booleans()):
        return path
    start, stop, to = sorted(draw(st.lists(st.sampled_from(inside), min_size=3, max_size=3)))
    stretch = path[start:stop]
    if draw(st.booleans()):
        return path[:to] + stretch + path[to:]
    return path[:start] + path[stop:to] + stretch + path[to:]


def collect_from(agent, node, onus, version, repetitions, window=1):
    brand = make_brand(manners=Manners(max_repetitions=repetitions, rows_per_get=4, retries=2))
    pace = {"window": window, "rate": 100.0, "round_trip": 0.1}
    olt = make_olt(version, max_in_flight=window, learned={"pace": {"cheap": pace, "optical": pace}})
    return asyncio.run(run(agent, node, brand=brand, olt=olt, onus=onus, seconds=SECONDS))


def truth(mib, onus, asked):
    """Return every value that a perfect reading has."""
    return {
        (".".join(map(str, COLUMNS["serial"].space.encode(onu))), name): COLUMNS[name].decode(mib[oid])
        for onu in onus
        for name in asked
        if (oid := oid_of(name, onu)) in mib
    }


def listed(everything, asked, inventory):
    """Return what a table is about: dear columns are read only of ONUs that its cheap columns have, or that are known.

    Without either they are walked.
    """
    dear = {name for name in asked if COLUMNS[name].optical}
    if dear == set(asked) and not inventory:
        return everything
    there = inventory if dear == set(asked) else {index for index, name in everything if name not in dear}
    return {(index, name): value for (index, name), value in everything.items() if index in there}


def read(collected):
    return {
        (index, name): value
        for index, values in values_of(collected).items()
        for name, value in values.items()
        if value is not None
    }


@pytest.mark.slow
@given(data=st.data(), table=tables(), asked=names, repetitions=st.integers(1, 25))
@settings(max_examples=examples(60), deadline=None)
def test_a_walk_ends_invents_nothing_and_complete_means_complete(data, table, asked, repetitions):
    onus, mib = table
    kind = data.draw(st.sampled_from([JobKind.TABLE, JobKind.WALK]))
    version = data.draw(st.sampled_from([Version.V2C, Version.V1]))
    path = data.draw(paths(mib))
    window = data.draw(st.sampled_from([1, 4]))
    inventory = data.draw(st.just([]) | st.lists(st.sampled_from(onus), unique=True)) if onus else []
    agent = FakeAgent(FakeClock(), mib, data.draw(faults(path)), path=path)

    try:
        collected = collect_from(agent, make_node(kind, *asked), known(inventory), version, repetitions, window)
    except OltUnreachable:
        assert agent.clock.elapsed > 0
        return

    everything = truth(mib, onus, asked)
    assert read(collected).items() <= everything.items()
    assert collected.traffic.pdus == len(agent.log)
    assert agent.clock.elapsed <= SECONDS + 20
    if collected.completeness is Completeness.PARTIAL:
        assert collected.errors
        return
    if kind is JobKind.TABLE:
        everything = listed(everything, asked, {index_of(onu) for onu in inventory})
    assert read(collected).items() >= everything.items()
    assert (collected.completeness is Completeness.COMPLETE) >= bool(everything)


@pytest.mark.slow
@given(data=st.data(), table=tables(), asked=names)
@settings(max_examples=examples(50), deadline=None)
def test_a_get_ends_invents_nothing_and_complete_means_complete(data, table, asked):
    onus, mib = table
    version = data.draw(st.sampled_from([Version.V2C, Version.V1]))
    window = data.draw(st.sampled_from([1, 4]))
    agent = FakeAgent(FakeClock(), mib, data.draw(faults(sorted(mib))))

    try:
        collected = collect_from(agent, make_node(JobKind.GET, *asked), known(onus), version, 10, window)
    except OltUnreachable:
        assert agent.clock.elapsed > 0
        return

    everything = truth(mib, onus, asked)
    assert read(collected).items() <= everything.items()
    assert collected.traffic.pdus == len(agent.log)
    if collected.completeness is Completeness.PARTIAL:
        assert collected.errors
    else:
        assert read(collected) == everything
        assert all(set(values) == set(asked) for values in values_of(collected).values())


@pytest.mark.slow
@given(data=st.data(), table=tables(), asked=names)
@settings(max_examples=examples(40), deadline=None)
def test_none_is_said_only_of_values_that_the_device_does_not_have(data, table, asked):
    onus, mib = table
    kind = data.draw(st.sampled_from([JobKind.TABLE, JobKind.GET]))
    agent = FakeAgent(FakeClock(), mib, data.draw(faults(sorted(mib))))

    try:
        collected = collect_from(agent, make_node(kind, *asked), known(onus), Version.V2C, 10)
    except OltUnreachable:
        return

    nones = {
        (index, name)
        for index, values in values_of(collected).items()
        for name, value in values.items()
        if value is None
    }
    assert not nones & truth(mib, onus, asked).keys()
