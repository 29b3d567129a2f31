"""Before and after: which difference each pair of snapshots makes."""

import pytest

from facho.engine.comparison import Kind, Presence, Snapshot, compare, port_of

PRESENT, MISSING, REPLACED, NOT_YET = Presence.PRESENT, Presence.MISSING, Presence.REPLACED, Presence.NOT_FOUND_YET
BEFORE, AFTER = 100, 200


def snapshot(at, *onus):
    """Return a snapshot of ONUs, each with the values that differ from those of a healthy one, read just then."""
    rows = [
        {"presence": PRESENT, "place": f"0/1/{number}", "state": "online", "read": at, "power": -20.0, "power_read": at}
        | onu
        for number, onu in enumerate(onus)
    ]
    names = ("presence", "place", "state", "read", "power", "power_read")
    return Snapshot(*([row[name] for row in rows] for name in names))


def compared(before, after, **more):
    return compare(snapshot(BEFORE, *before), snapshot(AFTER, *after), **more)


def kinds(before, after, **more):
    return [kind for each in compared([before], [after], **more).differences for kind in each.kinds]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {}, [], id="unchanged"),
        pytest.param({}, {"state": "los", "power": None}, ["dark"], id="lost its light"),
        pytest.param({}, {"state": "dying_gasp"}, ["dark"], id="lost its power"),
        pytest.param({"state": "auth_failed"}, {"state": "los"}, ["dark"], id="dark after another trouble"),
        pytest.param({"state": "los"}, {"state": "dying_gasp"}, [], id="still dark, for another cause"),
        pytest.param({"state": "los"}, {}, ["back"], id="back from the dark"),
        pytest.param({"state": "disabled"}, {}, ["back"], id="enabled again"),
        pytest.param({}, {"state": "auth_failed"}, ["state"], id="not authorised any more"),
        pytest.param({"state": "los"}, {"state": "syncing"}, ["state"], id="has light, but no service yet"),
        pytest.param({}, {"power": -20.9}, [], id="a loss below the threshold"),
        pytest.param({}, {"power": -21.0}, ["weaker"], id="a loss of the threshold"),
        pytest.param({}, {"power": -17.0}, ["stronger"], id="a gain"),
        pytest.param({}, {"power": None}, [], id="no power the second time"),
        pytest.param({"power": None}, {}, [], id="no power the first time"),
        pytest.param({}, {"power": -30.0, "power_read": BEFORE}, [], id="the power was not read again"),
        pytest.param({}, {"state": "los", "power": -40.0}, ["dark"], id="the power of a dark ONU says nothing"),
        pytest.param({"state": "los", "power": -40.0}, {}, ["back"], id="nor does that of one that was dark"),
        pytest.param({"state": None}, {}, ["unread"], id="no state before"),
        pytest.param({}, {"state": None}, ["unread"], id="no state after"),
        pytest.param({}, {"state": "unknown"}, ["unread"], id="the OLT does not know the state"),
        pytest.param({}, {"read": BEFORE}, ["unread"], id="the state was not read again"),
        pytest.param({}, {"place": "0/2/5"}, ["moved"], id="moved"),
        pytest.param({}, {"place": "0/2/5", "state": "los"}, ["dark", "moved"], id="moved and dark: the worst first"),
        pytest.param({}, {"place": "0/2/5", "power": -25.0}, ["weaker", "moved"], id="moved and weaker"),
        pytest.param({}, {"presence": MISSING}, ["gone"], id="gone"),
        pytest.param({}, {"presence": REPLACED}, ["replaced"], id="replaced by an ONU that is not known"),
        pytest.param({"presence": NOT_YET, "state": None}, {}, ["new"], id="new"),
        pytest.param({"presence": NOT_YET}, {"state": "los"}, ["new"], id="new and dark"),
        pytest.param({"presence": MISSING}, {}, ["back"], id="found again"),
        pytest.param({"presence": MISSING}, {"state": "los"}, [], id="found again without light: still no service"),
        pytest.param({"presence": MISSING}, {"place": "0/2/5"}, ["moved", "back"], id="found at another place"),
    ],
)
def test_what_happened_to_an_onu(before, after, expected):
    assert kinds(before, after) == expected


@pytest.mark.parametrize("presence", [MISSING, NOT_YET, REPLACED])
def test_an_onu_that_was_absent_at_both_times_is_not_counted(presence):
    found = compared([{"presence": presence}], [{"presence": presence}])

    assert (found.overall.total, found.differences) == (0, [])


@pytest.mark.parametrize(("threshold", "expected"), [(0.5, ["weaker"]), (3.0, [])])
def test_the_threshold_of_a_step_is_adjustable(threshold, expected):
    assert kinds({}, {"power": -21.5}, step=threshold) == expected


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param({}, ["replaced"], id="the new device works"),
        pytest.param({"state": "los"}, ["dark", "replaced"], id="the new device is dark"),
        pytest.param({"power": -25.0}, ["weaker", "replaced"], id="the new device has less light"),
    ],
)
def test_a_replaced_onu_and_its_successor_are_one_customer(new, expected):
    old, place = {"place": "0/1/7"}, {"place": "0/1/7"}

    found = compared([old, {"presence": NOT_YET, **place}], [{"presence": REPLACED, **old}, {**new, **place}])

    [difference] = found.differences
    assert (difference.before, difference.after, difference.onu) == (0, 1, 1)
    assert list(difference.kinds) == expected
    assert found.overall.total == 1


def test_an_onu_that_moved_to_the_place_of_another_stays_its_own_customer():
    found = compared(
        [{"place": "0/1/7"}, {"place": "0/1/8"}], [{"place": "0/1/7", "presence": REPLACED}, {"place": "0/1/7"}]
    )

    assert [(each.onu, each.kinds) for each in found.differences] == [(0, (Kind.REPLACED,)), (1, (Kind.MOVED,))]


def test_two_onus_that_swap_places_have_moved():
    found = compared([{"place": "0/1/1"}, {"place": "0/1/2"}], [{"place": "0/1/2"}, {"place": "0/1/1"}])

    assert [each.kinds for each in found.differences] == [(Kind.MOVED,), (Kind.MOVED,)]


def test_the_worst_comes_first():
    before = [{}, {}, {"state": "los"}, {}, {"presence": NOT_YET}, {}]
    after = [{"power": -22.0}, {"power": -25.0}, {}, {"state": "los"}, {}, {"presence": MISSING}]

    assert [each.onu for each in compared(before, after).differences] == [3, 5, 1, 0, 2, 4]


def test_numbers_are_given_in_all_and_by_port_with_the_worst_port_first():
    quiet = [{"place": "0/1/1"}, {"place": "0/1/2"}]
    troubled = [{"place": f"0/10/{number}"} for number in range(3)]
    after = [{"power": -20.2}, {"power": -20.4}, {"state": "los"}, {"power": -24.0}, {"power": -23.0}]

    found = compared([*quiet, *troubled], [a | b for a, b in zip([*quiet, *troubled], after, strict=True)])

    assert (found.overall.total, found.overall.unchanged) == (5, 2)
    assert found.overall.kinds == {Kind.DARK: 1, Kind.WEAKER: 2}
    assert list(found.ports) == ["0/10", "0/1"]
    assert (found.ports["0/10"].worse, found.ports["0/10"].median_step) == (3, -3.5)
    assert (found.ports["0/1"].unchanged, found.ports["0/1"].median_step) == (2, -0.3)


@pytest.mark.parametrize(("port", "expected"), [("0/1", 2), ("0/2", 1), ("0/11", 0)])
def test_a_port_has_the_onus_that_are_or_were_there(port, expected):
    found = compared([{"place": "0/1/1"}, {"place": "0/1/2"}], [{"place": "0/1/1"}, {"place": "0/2/2"}], port=port)

    assert found.overall.total == expected


@pytest.mark.parametrize(
    ("place", "expected"), [("1/9/23", "1/9"), ("0/1/0", "0/1"), ("4194304000.7", ""), ("", ""), ("?/3", "")]
)
def test_the_port_of_a_place(place, expected):
    assert port_of(place) == expected
