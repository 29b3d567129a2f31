"""ONUs after a discovery: moved, replaced, missed or missing, and when too many vanished at once to be believed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.model import KnownOnu, Reading
from facho.engine.presence import Census, Rules, Vanishing, find_moves, take_census

RULES = Rules(misses=2, mass=30)


def known(index, serial=None, *, mac=None, misses=0, missing=False):
    return KnownOnu(index, "online", 0, 1, int(index.split(".")[-1]), serial, mac, misses, missing)


def read(index, serial=None, *, mac=None):
    return Reading(index, 0, 1, int(index.split(".")[-1]), {"serial": serial, "mac": mac})


def census(onus, readings=(), absent=(), *, was_suspect=False, rules=RULES):
    return take_census(onus, readings, absent, was_suspect=was_suspect, rules=rules)


def fleet(size, *, misses=()):
    """A port with so many ONUs, the last of which were missed before as often as `misses` says."""
    onus = [known(f"1.{number}", f"S{number}") for number in range(1, size + 1)]
    return [replace(onu, misses=dict(misses).get(onu.index, 0)) for onu in onus]


def all_but(onus, gone):
    return [read(onu.index, onu.serial) for onu in onus if onu.index not in gone]


def moves(result):
    return {(move.known.index, move.reading.index) for move in result.moved}


@pytest.mark.parametrize(
    ("onus", "readings", "moved", "replaced"),
    [
        pytest.param([known("1.7", "A")], [read("1.7", "A")], set(), (), id="at its place"),
        pytest.param([known("1.7", "A")], [read("2.7", "A")], {("1.7", "2.7")}, (), id="to a free index"),
        pytest.param(
            [known("1.7", "A"), known("2.7", "B")],
            [read("1.7", "B"), read("2.7", "A")],
            {("1.7", "2.7"), ("2.7", "1.7")},
            (),
            id="two have changed places",
        ),
        pytest.param(
            [known("1.1", "A"), known("1.2", "B"), known("1.3", "C")],
            [read("1.2", "A"), read("1.3", "B"), read("1.4", "C")],
            {("1.1", "1.2"), ("1.2", "1.3"), ("1.3", "1.4")},
            (),
            id="a chain: each is where the next one was",
        ),
        pytest.param(
            [known("1.1", "A"), known("1.2", "B"), known("1.3", "C")],
            [read("1.2", "A"), read("1.3", "B"), read("1.1", "C")],
            {("1.1", "1.2"), ("1.2", "1.3"), ("1.3", "1.1")},
            (),
            id="a ring",
        ),
        pytest.param(
            [known("1.7", "A")],
            [read("1.7", "B"), read("2.7", "A")],
            {("1.7", "2.7")},
            (),
            id="a new one is where it was",
        ),
        pytest.param([known("1.7", "A")], [read("1.7", "B")], set(), ("1.7",), id="other hardware at the same place"),
        pytest.param(
            [known("1.7", "A")], [read("1.7"), read("2.7", "A")], set(), (), id="its place says no serial: not sure"
        ),
        pytest.param(
            [known("1.7", "A")], [read("2.7", "A"), read("3.7", "A")], set(), (), id="one serial read twice: not sure"
        ),
        pytest.param(
            [known("1.7", "A")], [read("1.7", "A"), read("2.7", "A")], set(), (), id="one serial here and there"
        ),
        pytest.param(
            [known("1.7", "A"), known("1.8", "A")], [read("2.7", "A")], set(), (), id="one serial known twice: not sure"
        ),
        pytest.param(
            [known("1.7", "A"), known("1.8", "A", missing=True, misses=2)],
            [read("2.7", "A")],
            {("1.7", "2.7")},
            (),
            id="known twice, one long missing: the other one moved",
        ),
        pytest.param([known("1.7")], [read("2.7")], set(), (), id="without a serial nobody is recognised"),
        pytest.param([known("1.7", "")], [read("2.7", "")], set(), (), id="an empty serial is none"),
        pytest.param(
            [known("1.7", "A"), known("2.7", "B")],
            [read("2.7", "A")],
            {("1.7", "2.7")},
            ("2.7",),
            id="onto the place of one that is nowhere",
        ),
        pytest.param(
            [known("1.7", "A"), known("2.7")],
            [read("2.7", "A")],
            {("1.7", "2.7")},
            ("2.7",),
            id="onto the place of one without a serial",
        ),
        pytest.param(
            [known("1.7", "A", missing=True, misses=2)],
            [read("2.7", "A")],
            {("1.7", "2.7")},
            (),
            id="one that was missing turns up elsewhere",
        ),
        pytest.param([known("1.7", mac="m")], [read("2.7", mac="m")], {("1.7", "2.7")}, (), id="by its MAC"),
        pytest.param(
            [known("1.7", mac="m"), known("2.7", mac="n")],
            [read("1.7", mac="n"), read("2.7", mac="m")],
            {("1.7", "2.7"), ("2.7", "1.7")},
            (),
            id="two have changed places, by their MACs",
        ),
        pytest.param(
            [known("1.7", "A", mac="m")], [read("2.7", "B", mac="m")], set(), (), id="one MAC, two serials: two ONUs"
        ),
        pytest.param(
            [known("1.7", "A", mac="m")], [read("2.7", mac="m")], {("1.7", "2.7")}, (), id="its serial was not read"
        ),
        pytest.param(
            [known("1.7", mac="m"), known("2.7", "A")],
            [read("2.7", "A", mac="m")],
            set(),
            (),
            id="who is at home by serial is pushed aside by no MAC",
        ),
        pytest.param(
            [known("1.7", "A", mac="m"), known("1.8", "B", mac="m")],
            [read("2.7", "A", mac="m")],
            {("1.7", "2.7")},
            (),
            id="the serial says which of two with one MAC",
        ),
    ],
)
def test_who_moved_is_recognised_by_serial_or_else_by_mac(onus, readings, moved, replaced):
    result = census(onus, readings)

    assert moves(result) == moved
    assert result.replaced == replaced


@pytest.mark.parametrize(
    ("onu", "reading", "replaced", "unproven"),
    [
        pytest.param(known("1.7", "A"), read("1.7", "B"), ("1.7",), (), id="another serial"),
        pytest.param(known("1.7", "A", misses=1), read("1.7", "B"), ("1.7",), (), id="it had vanished before"),
        pytest.param(
            known("1.7", "A", misses=2, missing=True), read("1.7", "B"), ("1.7",), (), id="it had been missing"
        ),
        pytest.param(known("1.7", mac="m"), read("1.7", mac="n"), ("1.7",), (), id="another MAC, no serials"),
        pytest.param(known("1.7"), read("1.7", "B"), (), (), id="its serial was not known: it is known now"),
        pytest.param(known("1.7", "0" * 12), read("1.7", "B"), (), (), id="its serial was garbage"),
        pytest.param(known("1.7", "A"), read("1.7"), (), ("1.7",), id="no serial: no proof"),
        pytest.param(known("1.7", "A"), read("1.7", ""), (), ("1.7",), id="an empty serial"),
        pytest.param(known("1.7", "A"), read("1.7", "00000000"), (), ("1.7",), id="zeros"),
        pytest.param(known("1.7", "A"), read("1.7", "FFFFFFFFFFFFFFFF"), (), ("1.7",), id="ones"),
        pytest.param(known("1.7", "A"), read("1.7", "HWTC00000000"), (), ("1.7",), id="a vendor and zeros"),
        pytest.param(known("1.7", "A"), read("1.7", "--"), (), ("1.7",), id="dashes"),
        pytest.param(known("1.7", "A"), read("1.7", mac="n"), (), ("1.7",), id="only a MAC, where a serial is known"),
        pytest.param(known("1.7", mac="m"), read("1.7", mac="00:00:00:00:00:00"), (), ("1.7",), id="a MAC of zeros"),
        pytest.param(known("1.7", "A", mac="m"), read("1.7", "B", mac="m"), (), (), id="one MAC: its serial changed"),
    ],
)
def test_another_identity_at_its_place_is_proof_and_a_placeholder_is_none(onu, reading, replaced, unproven):
    result = census([onu, known("1.8", "H")], [reading, read("1.8", "H")])

    assert (result.replaced, result.unproven) == (replaced, unproven)
    assert result.missed == result.gone == ()


def test_a_serial_that_two_places_have_proves_nothing():
    result = census([known("1.7", "A"), known("1.8", "B")], [read("1.7", "X"), read("1.8", "X")])

    assert (result.replaced, result.unproven) == ((), ("1.7", "1.8"))


def test_a_serial_that_two_rows_have_names_neither():
    result = census([known("1.7", "X"), known("1.8", "X")], [read("1.7", "A"), read("1.8", "B")])

    assert (result.replaced, result.unproven) == ((), ())


def test_many_that_are_replaced_at_once_have_not_vanished():
    onus = fleet(10)

    result = census(onus, [read(onu.index, f"N{onu.onu}") for onu in onus])

    assert len(result.replaced) == 10
    assert (result.vanishing, result.missed, result.found) == (Vanishing.NONE, (), ())


def test_replaced_ones_do_not_hide_a_mass_vanishing():
    onus, gone = fleet(10), gone_of(4)
    readings = [*all_but(onus, [*gone, "1.9", "1.10"]), read("1.9", "N9"), read("1.10", "N10")]

    result = census(onus, readings, gone)

    assert (result.vanishing, len(result.missed), result.replaced) == (Vanishing.SUSPECTED, 4, ("1.9", "1.10"))


def test_a_suspicion_is_over_when_others_have_the_places():
    onus = suspects(5)

    result = census(onus, [read(onu.index, f"N{onu.onu}") for onu in onus], was_suspect=True)

    assert (result.vanishing, result.gone, len(result.replaced)) == (Vanishing.OVER, (), 10)


def test_who_moved_is_not_missed():
    result = census(fleet(10), [*all_but(fleet(10), ["1.7"]), read("2.7", "S7")], ["1.7"])

    assert (result.missed, result.gone, moves(result)) == ((), (), {("1.7", "2.7")})


def test_a_whole_olt_that_is_numbered_again_has_lost_nobody():
    onus = fleet(10)

    result = census(onus, [read(f"2.{onu.onu}", onu.serial) for onu in onus], [onu.index for onu in onus])

    assert len(result.moved) == 10
    assert (result.missed, result.vanishing) == ((), Vanishing.NONE)


@pytest.mark.parametrize(
    ("misses", "rules", "gone"),
    [
        pytest.param(0, RULES, (), id="the first time is no more than a miss"),
        pytest.param(1, RULES, ("1.7",), id="the second time in a row it is missing"),
        pytest.param(5, RULES, ("1.7",), id="missed before the setting was lowered"),
        pytest.param(1, Rules(misses=3), (), id="a patient setting waits for the third"),
        pytest.param(2, Rules(misses=3), ("1.7",), id="and not longer"),
        pytest.param(0, Rules(misses=1), ("1.7",), id="an impatient one waits for none"),
    ],
)
def test_an_onu_goes_missing_after_so_many_misses_in_a_row(misses, rules, gone):
    onus = fleet(10, misses=[("1.7", misses)])

    result = census(onus, all_but(onus, ["1.7"]), ["1.7"], rules=rules)

    assert (result.missed, result.gone, result.vanishing) == (("1.7",), gone, Vanishing.NONE)


def test_who_is_not_read_is_not_absent():
    result = census(fleet(10, misses=[("1.7", 1)]))

    assert result == Census(present=10)


def test_who_was_read_after_all_is_not_absent():
    onus = fleet(10)

    assert census(onus, all_but(onus, []), ["1.7"]).missed == ()


def test_one_that_is_found_starts_again():
    onus = fleet(10, misses=[("1.7", 1)])

    result = census(onus, all_but(onus, []))

    assert (result.found, result.back) == (("1.7",), ())


def test_one_that_was_missing_is_back_when_it_is_read():
    onus = [*fleet(9), known("1.10", "S10", misses=2, missing=True)]

    result = census(onus, all_but(onus, []))

    assert (result.found, result.back) == (("1.10",), ("1.10",))


def test_one_that_is_missing_is_not_missed_again():
    onus = [*fleet(9), known("1.10", "S10", misses=2, missing=True)]

    result = census(onus, all_but(onus, ["1.10"]), ["1.10"])

    assert (result.missed, result.gone, result.present) == ((), (), 9)


def gone_of(count):
    return [f"1.{number}" for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("gone", "rules", "expected"),
    [
        pytest.param(3, RULES, Vanishing.NONE, id="30 of a hundred is no more than 30 percent"),
        pytest.param(4, RULES, Vanishing.SUSPECTED, id="more than 30 percent"),
        pytest.param(10, RULES, Vanishing.SUSPECTED, id="all"),
        pytest.param(10, Rules(mass=100), Vanishing.NONE, id="a setting that suspects nothing"),
        pytest.param(1, Rules(mass=5), Vanishing.SUSPECTED, id="a setting that suspects early"),
    ],
)
def test_too_many_at_once_are_suspect(gone, rules, expected):
    onus, gone = fleet(10), gone_of(gone)

    result = census(onus, all_but(onus, gone), gone, rules=rules)

    assert (result.vanishing, len(result.missed), result.present) == (expected, len(gone), 10)
    assert result.is_suspect == (expected is Vanishing.SUSPECTED)


@pytest.mark.parametrize("misses", [0, 1, 9], ids=["seen before", "missed before", "missed often"])
def test_nobody_goes_missing_in_a_run_that_is_suspect(misses):
    onus = fleet(10, misses=[("1.1", misses)])

    result = census(onus, all_but(onus, gone_of(5)), gone_of(5), rules=Rules(misses=1))

    assert (result.vanishing, result.gone) == (Vanishing.SUSPECTED, ())
    assert len(result.missed) == 5


def test_those_that_are_missing_already_do_not_count_for_a_mass_vanishing():
    onus = [known(f"1.{number}", f"S{number}", misses=2, missing=True) for number in range(1, 7)]
    onus += [known(f"1.{number}", f"S{number}") for number in range(7, 11)]
    absent = [onu.index for onu in onus[:6]]

    result = census(onus, all_but(onus, absent), absent)

    assert (result.vanishing, result.present) == (Vanishing.NONE, 4)


def suspects(count, size=10, misses=1):
    return fleet(size, misses=[(index, misses) for index in gone_of(count)])


@pytest.mark.parametrize("limit", [1, 2, 5], ids=["impatient", "usual", "patient"])
def test_gone_again_it_is_confirmed_and_they_go_missing(limit):
    onus, gone = suspects(5), gone_of(5)

    result = census(onus, all_but(onus, gone), gone, was_suspect=True, rules=Rules(misses=limit))

    assert (result.vanishing, result.gone, result.is_suspect) == (Vanishing.CONFIRMED, tuple(gone), False)


def test_found_again_the_suspicion_ends_and_nobody_is_missing():
    onus = suspects(5)

    result = census(onus, all_but(onus, []), was_suspect=True)

    assert (result.vanishing, result.gone, result.is_suspect) == (Vanishing.OVER, (), False)
    assert result.found == tuple(gone_of(5))


def test_a_few_of_them_that_stay_away_go_missing_as_anybody_would():
    onus = suspects(5)

    result = census(onus, all_but(onus, ["1.1", "1.2"]), ["1.1", "1.2"], was_suspect=True)

    assert (result.vanishing, result.gone) == (Vanishing.OVER, ("1.1", "1.2"))


def test_a_run_that_could_not_look_leaves_the_suspicion_as_it_is():
    result = census(suspects(5), was_suspect=True)

    assert (result.vanishing, result.missed, result.gone, result.is_suspect) == (Vanishing.HELD, (), (), True)


def test_a_run_that_could_look_at_most_of_them_ends_it():
    onus = suspects(5)

    result = census(onus, all_but(onus, ["1.1"]), was_suspect=True)

    assert result.vanishing is Vanishing.OVER


def test_others_that_vanish_meanwhile_are_a_suspicion_of_their_own():
    onus = suspects(4)
    others = ["1.5", "1.6", "1.7", "1.8"]

    result = census(onus, all_but(onus, others), others, was_suspect=True, rules=Rules(misses=1))

    assert (result.vanishing, result.gone) == (Vanishing.SUSPECTED, ())


def test_the_first_are_confirmed_even_if_more_vanish_meanwhile():
    onus = suspects(4)
    absent = gone_of(8)

    result = census(onus, all_but(onus, absent), absent, was_suspect=True)

    assert (result.vanishing, result.gone) == (Vanishing.SUSPECTED, tuple(gone_of(4)))


def test_an_olt_without_onus_has_none_to_lose():
    assert census([], [read("1.7", "A")]) == Census()


INDEXES = st.sampled_from([f"{port}.{number}" for port in (1, 2) for number in range(1, 7)])
SERIALS = st.one_of(st.none(), st.sampled_from("ABCDEFGH"))


@st.composite
def runs(draw):
    onus = [
        known(index, draw(SERIALS), mac=draw(SERIALS), misses=draw(st.integers(0, 3)), missing=draw(st.booleans()))
        for index in draw(st.lists(INDEXES, unique=True))
    ]
    readings = [read(index, draw(SERIALS), mac=draw(SERIALS)) for index in draw(st.lists(INDEXES, unique=True))]
    absent = draw(st.lists(st.sampled_from([onu.index for onu in onus]), unique=True)) if onus else []
    rules = Rules(draw(st.integers(1, 4)), draw(st.integers(1, 100)))
    return onus, readings, absent, draw(st.booleans()), rules


def decide(run):
    onus, readings, absent, was_suspect, rules = run
    return take_census(onus, readings, absent, was_suspect=was_suspect, rules=rules)


@given(runs())
def test_no_two_onus_ever_end_up_under_one_index(run):
    onus, _, _, _, _ = run

    result = decide(run)

    target = {move.known.index: move.reading.index for move in result.moved}
    staying = [onu.index for onu in onus if onu.index not in target and onu.index not in result.replaced]
    ends = [*target.values(), *staying]
    assert len(ends) == len(set(ends))
    assert len(target) == len(result.moved)


@given(runs())
def test_each_move_has_one_identity_at_both_ends(run):
    for move in decide(run).moved:
        serial, mac = move.reading.values["serial"], move.reading.values["mac"]
        assert move.known.index != move.reading.index
        assert move.known.serial == serial if move.known.serial and serial else move.known.mac == mac


@given(runs())
def test_only_who_was_said_to_be_absent_is_missed_or_goes_missing(run):
    onus, readings, absent, _, _ = run
    result = decide(run)

    present = {onu.index for onu in onus if not onu.is_missing}
    assert set(result.gone) <= set(result.missed) <= set(absent) & present - {reading.index for reading in readings}
    assert not {*result.missed, *result.replaced} & set(result.found)


@given(runs())
def test_a_suspicion_that_is_new_lets_nobody_go_missing(run):
    *_, was_suspect, _ = run
    result = decide(run)

    if result.vanishing is Vanishing.SUSPECTED and not was_suspect:
        assert result.gone == ()
    if not was_suspect:
        assert result.vanishing in (Vanishing.NONE, Vanishing.SUSPECTED)


@given(runs())
def test_an_onu_is_missing_after_the_configured_misses_or_a_confirmed_suspicion(run):
    onus, *_, rules = run
    result = decide(run)

    by_index = {onu.index: onu for onu in onus}
    often = {index for index in result.missed if by_index[index].misses + 1 >= rules.misses}
    if result.vanishing in (Vanishing.NONE, Vanishing.OVER):
        assert often == set(result.gone)
    elif result.vanishing is Vanishing.HELD:
        assert often >= set(result.gone)


@pytest.mark.parametrize(
    ("absent", "vanishing", "gone"),
    [
        pytest.param(range(13), Vanishing.HELD, 0, id="the others may confirm it"),
        pytest.param(range(19), Vanishing.CONFIRMED, 19, id="these confirm it"),
    ],
)
def test_a_run_that_says_nothing_about_some_suspects_holds_all_of_them_or_confirms(absent, vanishing, gone):
    suspects = [known(f"1.{n}", f"S{n}", misses=1) for n in range(30)]
    there = [known(f"2.{n}", f"T{n}") for n in range(30)]
    readings = [read(onu.index, onu.serial) for onu in there]

    result = take_census(
        [*suspects, *there], readings, {f"1.{n}" for n in absent}, was_suspect=True, rules=Rules(misses=2, mass=30)
    )

    assert (result.vanishing, len(result.gone)) == (vanishing, gone)


def test_a_run_that_is_no_discovery_finds_movers_and_nothing_else():
    onus = [known("1.7", "A", misses=1), known("2.7", "B"), known("1.8", "C", misses=1)]

    result = find_moves(onus, [read("2.7", "A"), read("1.8", "C")])

    assert (moves(result), result.replaced) == ({("1.7", "2.7")}, ("2.7",))
    assert (result.found, result.missed, result.gone, result.vanishing) == ((), (), (), Vanishing.NONE)


@given(runs())
def test_movers_are_the_same_in_every_search(run):
    onus, readings, *_ = run
    found, decided = find_moves(onus, readings), decide(run)

    assert (found.moved, found.replaced) == (decided.moved, decided.replaced)
