"""What a collection promises, counted by the OLT's own log, in virtual time, on OLTs with the habits of real ones."""

from dataclasses import replace
from itertools import pairwise

import pytest
from virtual_olt import VirtualOlt, in_virtual_time

from facho.engine.brand import Position
from facho.engine.collect import Memory
from facho.engine.errors import OltUnreachable
from facho.engine.model import Completeness, JobKind, KnownOnu
from facho.simulator.faults import Disorder, Faults, Spoiling

# What does not change while a run waits for an agent.
FACTS = ("serial", "name", "line_profile", "service_profile", "model")
STATE = ("serial", "name", "state", "distance_m", "down_cause")


def run(olt, *args, **settings):
    return in_virtual_time(lambda: olt.collect(*args, **settings))


def values(collected):
    return {reading.index: reading.values for reading in collected.readings}


# --- Honest whatever the agent does ------------------------------------------------------------------------------

BAD_AGENTS = [
    pytest.param(Faults(disorder=Disorder.LOOP, disorder_at_row=200), id="leads in a circle"),
    pytest.param(Faults(disorder=Disorder.REPEAT, disorder_at_row=200), id="repeats an OID for ever"),
    pytest.param(Faults(disorder=Disorder.SWAP, disorder_at_row=200), id="goes back once"),
    pytest.param(Faults(gen_err_at=Position(0, 1, 2, 7)), id="answers genErr at ONU 7"),
    pytest.param(Faults(silent_at=Position(0, 1, 2, 7)), id="falls silent at ONU 7"),
    pytest.param(Faults(too_big_above=20), id="answers tooBig"),
    pytest.param(Faults(too_big_above=0), id="answers tooBig to everything"),
    pytest.param(Faults(bulk_rows=3), id="answers three rows at most"),
    pytest.param(Faults(spoiled=0.3, spoiling=Spoiling.EMPTY), id="sends lists without variables"),
    pytest.param(Faults(spoiled=0.3, spoiling=Spoiling.HALF), id="sends half of the variables"),
    pytest.param(Faults(spoiled=0.3, spoiling=Spoiling.NOISE), id="sends noise"),
    pytest.param(Faults(spoiled=0.3, spoiling=Spoiling.CUT), id="sends packets that are cut off"),
    pytest.param(Faults(spoiled=0.3, spoiling=Spoiling.STRAY), id="answers somebody else"),
    pytest.param(Faults(dies_at_row=200), id="dies at a row"),
    pytest.param(Faults(loss=0.3), id="loses every third answer"),
]


@pytest.mark.parametrize("window", [1, 8])
@pytest.mark.parametrize(
    ("kind", "is_known"),
    [
        pytest.param(JobKind.DISCOVERY, False, id="the first discovery"),
        pytest.param(JobKind.DISCOVERY, True, id="a later one"),
        pytest.param(JobKind.GET, True, id="get"),
        pytest.param(JobKind.WALK, True, id="walk"),
    ],
)
@pytest.mark.parametrize("faults", BAD_AGENTS)
def test_complete_is_only_what_is_complete_and_every_run_ends(faults, kind, is_known, window):
    truth = values(run(VirtualOlt(), kind, *FACTS, known=VirtualOlt().known()))
    olt = VirtualOlt(faults=faults)

    known = olt.known() if is_known else ()
    collected = run(olt, kind, *FACTS, known=known, max_in_flight=window, seconds=1800)

    if collected.completeness is Completeness.COMPLETE:
        assert values(collected) == truth
    else:
        assert collected.completeness is Completeness.PARTIAL
        assert collected.errors
    for index, read in values(collected).items():
        assert read.items() <= truth[index].items()
    assert collected.traffic.pdus == olt.log.count()
    assert olt.log.peak_in_flight() <= window


@pytest.mark.parametrize("window", [1, 8])
@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.GET, JobKind.WALK])
def test_whatever_bytes_arrive_a_run_ends_and_says_how(kind, window):
    """SNMPv2c has no checksum of its own: a value may be wrong, but a run neither hangs nor fails for it."""
    ends = set()
    for seed in range(12):
        olt = VirtualOlt(128)
        olt.spoil(seed, share=0.3)
        try:
            collected = run(olt, kind, *FACTS, "rx_dbm", known=olt.known(), max_in_flight=window, seconds=600)
        except OltUnreachable:
            ends.add("unreachable")
        else:
            ends.add(collected.completeness)
            assert collected.traffic.pdus == olt.log.count()

    assert ends <= {*Completeness, "unreachable"}
    assert olt.log.count() < 2000


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.GET, JobKind.WALK])
@pytest.mark.parametrize("faults", BAD_AGENTS)
def test_the_memory_of_a_good_run_does_not_make_a_bad_agent_look_good(faults, kind):
    olt, memory = VirtualOlt(256), Memory(max_unsettled=0)
    good = run(olt, kind, *FACTS, known=olt.known(), memory=memory)
    olt.agent.faults = faults
    before = olt.log.count()

    try:
        collected = run(
            olt, kind, *FACTS, known=olt.known(), memory=memory, max_in_flight=8, seconds=1800, learned=good.learned
        )
    except OltUnreachable:
        # Its first answers were lost or somebody else's.
        assert faults.spoiled
        return

    assert good.completeness is Completeness.COMPLETE
    if collected.completeness is Completeness.COMPLETE:
        assert values(collected) == values(good)
        assert collected.absent == good.absent
    assert collected.traffic.pdus == olt.log.count() - before
    assert olt.log.peak_in_flight() <= 8


def test_a_run_from_memory_costs_the_olt_no_more_than_the_one_before():
    olt, memory = VirtualOlt(256, Faults(latency=0.05, loss=0.02)), Memory(max_unsettled=0)
    first = run(olt, JobKind.DISCOVERY, *FACTS, known=olt.known(), memory=memory, max_in_flight=3)
    before = olt.log.count()

    second = run(
        olt,
        JobKind.DISCOVERY,
        *FACTS,
        known=olt.known(),
        memory=memory,
        max_in_flight=3,
        max_pdus_per_second=20,
        learned=first.learned,
    )

    assert second.traffic.answers_unchanged == second.traffic.pdus - second.traffic.retransmissions
    assert values(second) == values(first)
    pdus = list(olt.log.pdus())[before:]
    assert len(pdus) - second.traffic.retransmissions <= before
    assert olt.log.peak_in_flight() <= 3
    assert min(later.arrived - earlier.arrived for earlier, later in pairwise(pdus)) >= 1 / 20 - 1e-6


def test_a_poisoned_onu_does_not_hide_who_left_its_port():
    olt = VirtualOlt(512, Faults(gen_err_at=Position(0, 1, 2, 7)))
    index = next(onu.index for onu in olt.known() if (onu.slot, onu.port, onu.onu) == (1, 2, 7))
    gone = KnownOnu(index.removesuffix(".7") + ".250", "online", 1, 2, 250)

    collected = run(olt, JobKind.DISCOVERY, *FACTS, known=[*olt.known(), gone])

    assert collected.completeness is Completeness.PARTIAL
    assert collected.absent == (gone.index,)


# --- Loss is not failure -----------------------------------------------------------------------------------------


def test_loss_costs_its_own_repetition_and_nothing_else():
    walks, more, sent = 0, 0, 0
    for seed in range(40):
        olt = VirtualOlt(2000, Faults(loss=0.01), seed=seed)
        # Ten rows a request at most, so that it takes about a thousand.
        olt.agent.faults = replace(olt.agent.faults, bulk_rows=10)
        collected = run(olt, JobKind.WALK, *STATE)
        walks += collected.completeness is Completeness.COMPLETE
        more += collected.traffic.retransmissions
        sent += olt.log.count()

    assert walks == 40
    assert sent > 20_000
    assert more <= 0.03 * (sent - more)


def test_answers_that_are_cut_short_by_chance_do_not_make_requests_small():
    well, cut = VirtualOlt(2000), VirtualOlt(2000, Faults(spoiled=0.05, spoiling=Spoiling.HALF))

    usual = run(well, JobKind.DISCOVERY, *FACTS)
    collected = run(cut, JobKind.DISCOVERY, *FACTS)

    assert values(collected) == values(usual)
    assert cut.log.count() <= 1.2 * well.log.count()


# --- Partial is not empty ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True], ids=["first discovery", "with an inventory"])
def test_an_agent_that_dies_at_row_1200_of_4000_leaves_1200_rows_and_nobody_offline(known):
    olt = VirtualOlt(4000, Faults(dies_at_row=1200))

    collected = run(olt, JobKind.DISCOVERY, "serial", "state", known=olt.known() if known else ())

    assert collected.completeness is Completeness.PARTIAL
    assert len(collected.readings) == 1200
    assert collected.absent == ()
    assert "no answer" in collected.errors[0]


# --- One poisoned ONU --------------------------------------------------------------------------------------------


def poisoned(olt):
    return replace(olt.device.plant.onus[2007].position)


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
@pytest.mark.parametrize(
    ("kind", "later"),
    [
        pytest.param(JobKind.GET, 1, id="known rows"),
        # A walk has to break off before the row and to go on behind it.
        pytest.param(JobKind.DISCOVERY, 2, id="discovery"),
    ],
)
def test_a_poisoned_onu_among_4000_costs_little_once_and_next_to_nothing_later(kind, later, fault):
    well = VirtualOlt(4000)
    settled = run(well, kind, *STATE, known=well.known())
    well.log.clear()
    usual = run(well, kind, *STATE, known=well.known(), learned=settled.learned).traffic.pdus
    sick = VirtualOlt(4000, Faults(**{fault: poisoned(well)}))

    first = run(sick, kind, *STATE, known=sick.known(), learned=settled.learned)
    second = run(sick, kind, *STATE, known=sick.known(), learned=first.learned)

    assert first.traffic.pdus - usual <= 30
    assert second.traffic.pdus - usual <= later
    for collected in (first, second):
        assert collected.completeness is Completeness.PARTIAL
        assert len(collected.readings) >= 3999
        assert len(collected.failed_onus) == 1
        assert collected.absent == ()


def first_of_its_port(onus):
    return next(later for earlier, later in pairwise(onus) if earlier.port != later.port)


def behind_a_hole(onus):
    pairs = ((a, b) for a, b in pairwise(onus) if (a.slot, a.port) == (b.slot, b.port))
    return next(later for earlier, later in pairs if later.onu - earlier.onu > 2)


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
@pytest.mark.parametrize("columns", [("serial",), FACTS], ids=["one column", "several"])
@pytest.mark.parametrize(
    "pick",
    [
        pytest.param(lambda onus: onus[0], id="the very first"),
        pytest.param(first_of_its_port, id="the first of a later port"),
        pytest.param(behind_a_hole, id="after a hole in the numbers"),
    ],
)
def test_a_poisoned_onu_that_nobody_knew_costs_the_first_discovery_that_onu_and_no_other(pick, columns, fault):
    well = VirtualOlt()
    seven = pick([onu.position for onu in well.device.plant.onus])
    olt = VirtualOlt(faults=Faults(**{fault: seven}))

    collected = run(olt, JobKind.DISCOVERY, *columns)

    assert collected.completeness is Completeness.PARTIAL
    assert len(collected.readings) == 511
    assert f"ONU {seven.slot}/{seven.port}/{seven.onu}" in collected.failed_onus


def test_a_poisoned_onu_that_is_well_again_is_read_again():
    olt = VirtualOlt(512, Faults(gen_err_at=Position(0, 1, 2, 7)))
    first = run(olt, JobKind.GET, *STATE, known=olt.known())
    olt.agent.faults = Faults()

    second = run(olt, JobKind.GET, *STATE, known=olt.known(), learned=first.learned)
    third = run(olt, JobKind.GET, *STATE, known=olt.known(), learned=second.learned)

    assert second.completeness is third.completeness is Completeness.COMPLETE
    assert second.learned["poisoned"] == []
    # What it cost to find out that all of them are well: one value first, and then the others.
    assert second.traffic.pdus - third.traffic.pdus == 2
