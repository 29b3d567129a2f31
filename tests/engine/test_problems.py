"""Stories of networks, each with the problems that a NOC engineer would see in it, and no others.

A story is an OLT with its ports: how many ONUs are up, and which went down when. The engine knows no more than that.
"""

from datetime import UTC, datetime, time, timedelta
from itertools import count

import pytest

from facho.engine.presence import Suspicion
from facho.engine.problems.branches import located
from facho.engine.problems.flapping import flapping
from facho.engine.problems.lasting import with_cause_of_peak
from facho.engine.problems.model import (
    Confidence,
    DownOnu,
    Falls,
    FoundProblem,
    LateNode,
    OltState,
    OpenProblem,
    PortOnu,
    PortState,
    PowerDrop,
    ProbableCause,
    ProblemKind,
    ProblemSeverity,
    ViolatedQuota,
)
from facho.engine.problems.olts import late_jobs, olts_down, suspects, violations
from facho.engine.problems.optics import low_power, power_drops
from facho.engine.problems.outages import outages

NOW = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
MIN, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ids = count(1)


def today(at):
    return datetime.combine(NOW.date(), time.fromisoformat(at), UTC)


def fell(number, state="los", at="07:31:50", within=0, *, noticed=False, cause="", days_ago=0):
    """Return ONUs that went down at a time, spread over so many seconds."""
    first = today(at) - days_ago * DAY
    times = [first + timedelta(seconds=within * each // max(number - 1, 1)) for each in range(number)]
    return [DownOnu(next(ids), state, at, not noticed, cause) for at in times]


def port(place, up, *groups, never_up=0, read=MIN, weak=0):
    """Return a port with ONUs that are up, groups that went down, and others that never were up."""
    slot, number = map(int, place.split("/"))
    down = tuple(onu for group in groups for onu in group)
    total = up + len(down) + never_up
    state_at = None if read is None else NOW - read
    return PortState(slot, number, total, len(down) + never_up, weak, state_at, down)


def olt(*ports, **more):
    return OltState(**{"id": 7, "name": "OLT-CENTRAL-01", "ports": ports, "state_interval": 5 * MIN} | more)


def seen(problems):
    """Return problems as lines: kind, place, cause, confidence and customers."""
    return [
        f"{each.kind} {'/'.join(str(part) for part in (each.slot, each.port) if part is not None)}: "
        f"{each.confidence} {each.cause}, {each.affected}".replace(" :", ":")
        for each in problems
    ]


OTHERS = [port("0/8", 30), port("1/1", 30), port("1/2", 30)]

WITH_A_PROBLEM = [
    pytest.param(
        olt(port("0/1", 0, fell(28, "auth_failed", noticed=True)), *OTHERS),
        ["port_down 0/1: probable not_authorised, 28"],
        id="the OLT refuses all ONUs of a port: a profile, an allow list or RADIUS",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 0, fell(20, "auth_failed", noticed=True)) for n in (1, 2)), port("1/1", 30)),
        [f"port_down 0/{n}: probable not_authorised, 20" for n in (1, 2)],
        id="it refuses all ONUs of a card: not the card, which works",
    ),
    pytest.param(
        olt(port("0/1", 20, fell(10, "auth_failed", noticed=True)), *OTHERS),
        ["port_degraded 0/1: probable not_authorised, 10"],
        id="it refuses a third of a port: those with the same profile",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(16, "missing", noticed=True)), *OTHERS),
        ["port_down 0/1: unknown disappeared, 16"],
        id="an EPON OLT lists no ONU of a port any more: a cut fibre looks like this, and so does a removed port",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(12), fell(3, "missing", at="07:30:00", noticed=True)), *OTHERS),
        ["port_down 0/1: probable fibre_cut, 12"],
        id="the fibre is cut, and three ONUs had been removed before",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 0, fell(8, "missing", noticed=True)) for n in (1, 2, 3)), port("1/1", 30)),
        ["card_down 0: possible card, 24"],
        id="all ONUs of a card are no longer listed: the card was removed or failed",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(28, within=6)), *OTHERS),
        ["port_down 0/1: probable fibre_cut, 28"],
        id="all ONUs of a port lose the signal within seconds: the fibre is cut",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(28, within=6), fell(10, days_ago=30)), *OTHERS),
        ["port_down 0/1: probable fibre_cut, 28"],
        id="the same, beside ONUs that were down for a month: they are not counted",
    ),
    pytest.param(
        olt(port("0/1", 40, fell(8, within=4)), *OTHERS),
        ["port_degraded 0/1: probable splitter, 8"],
        id="eight of 48 lose the signal: a splitter or a branch",
    ),
    pytest.param(
        olt(port("0/1", 40, fell(8, within=4)), port("0/2", 0, fell(20, at="06:00:00")), *OTHERS),
        ["port_degraded 0/1: probable splitter, 8", "port_down 0/2: probable fibre_cut, 20"],
        id="a branch of one port, and the fibre of another an hour before: two problems",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 20, fell(8, within=9)) for n in (1, 2, 3)), *OTHERS),
        [f"port_degraded 0/{n}: possible area, 8" for n in (1, 2, 3)],
        id="parts of three ports in one minute: not three splitters, but a cabinet, or cheap ONUs in a power cut",
    ),
    pytest.param(
        olt(port("0/1", 40, fell(8, within=4)), port("0/2", 0, fell(20)), *OTHERS),
        ["port_degraded 0/1: possible area, 8", "port_down 0/2: possible area, 20"],
        id="part of one port and all of another in one minute: one cause, not two",
    ),
    pytest.param(
        olt(port("0/1", 2, fell(38, within=4)), *OTHERS),
        ["port_degraded 0/1: possible splitter, 38"],
        id="two of 40 still work: the fibre before the first splitter is not cut",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 1, fell(12, within=9)) for n in (1, 2, 3)), port("1/1", 30)),
        [f"port_degraded 0/{n}: possible area, 12" for n in (1, 2, 3)],
        id="a customer of each port of a card works: not the card",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 20, fell(8, "dying_gasp")) for n in (1, 2)), port("0/3", 0, fell(20, within=5)), *OTHERS),
        ["power_cut: probable power_cut, 16", "power_cut 0/3: possible power_cut, 20"],
        id="a port without signal in the seconds of a power cut: ONUs that cannot report it, not a cut fibre",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 9, fell(9, "dying_gasp"), fell(1, at="07:31:10")) for n in (1, 2)), *OTHERS),
        ["power_cut: probable power_cut, 18"],
        id="a power cut, and one customer on each port who had switched off just before",
    ),
    pytest.param(
        olt(port("0/1", 5, fell(16, within=40), fell(7, "dying_gasp", within=30)), *OTHERS),
        ["power_cut 0/1: possible power_cut, 23"],
        id="16 without signal, 7 report a power loss: ONUs without a capacitor in a power cut, not a cut fibre",
    ),
    pytest.param(
        olt(port("0/1", 20, fell(9, "dying_gasp", within=3), fell(2, within=3)), *OTHERS),
        ["power_cut 0/1: probable power_cut, 11"],
        id="many on one port report a power loss",
    ),
    pytest.param(
        olt(
            *(port(f"0/{n}", 20, fell(5, "dying_gasp", within=2), fell(2, within=5)) for n in (1, 2, 3, 4)),
            *OTHERS,
        ),
        ["power_cut: probable power_cut, 28"],
        id="power losses on four ports: one power cut, not four problems",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 20, fell(4, "dying_gasp"), fell(6)) for n in (1, 2, 3)), *OTHERS),
        ["power_cut: possible power_cut, 30"],
        id="a power cut where most ONUs cannot report it",
    ),
    pytest.param(
        olt(
            *(port(f"0/{n}", 20, fell(6, "dying_gasp")) for n in (1, 2)),
            port("0/3", 0, fell(20, at="05:00:00")),
            *OTHERS,
        ),
        ["power_cut: probable power_cut, 12", "port_down 0/3: probable fibre_cut, 20"],
        id="a power cut, and another fibre that was cut hours ago",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 0, fell(12, within=9)) for n in (1, 2, 3)), port("1/1", 30), port("1/2", 30)),
        ["card_down 0: probable card, 36"],
        id="all ports of one card, and the other card works",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 0, fell(12, within=9)) for n in (1, 2)), port("0/3", 0, fell(1)), port("1/1", 30)),
        ["card_down 0: possible card, 24"],
        id="two ports and one with a single customer: perhaps the card",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 0, fell(12, within=9)) for n in (1, 2, 3)), port("0/4", 1), port("1/1", 30)),
        [f"port_down 0/{n}: probable cable_cut, 12" for n in (1, 2, 3)],
        id="all but one port of a card: not the card, but a cable with several fibres",
    ),
    pytest.param(
        olt(*(port(f"{slot}/{n}", 0, fell(12, "offline", within=9)) for slot in (0, 1) for n in (1, 2))),
        ["onus_down: possible olt_restart, 48"],
        id="all ports of all cards of an OLT that answers: it has restarted, or lost its cards",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 0, fell(12, within=9)) for n in (1, 2, 3))),
        ["onus_down: possible olt_restart, 36"],
        id="all ports of an OLT with one card",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(20, "offline", noticed=True)), *OTHERS),
        ["port_down 0/1: unknown not_reported, 20"],
        id="a brand that reports offline only: the port is down, the cause is not known",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(20, noticed=True)), *OTHERS),
        ["port_down 0/1: possible fibre_cut, 20"],
        id="loss of signal without device times: within one poll interval is less than within seconds",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(20, noticed=True)), *OTHERS, state_interval=HOUR),
        ["port_down 0/1: possible fibre_cut, 20"],
        id="20 of 20 within an hour between two readings",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(20, "offline", cause="deactivated")), *OTHERS),
        ["port_down 0/1: probable admin, 20"],
        id="the port was disabled at the OLT",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(3, within=5)), *OTHERS),
        ["port_down 0/1: possible fibre_cut, 3"],
        id="all three customers of a small port",
    ),
    pytest.param(
        olt(port("0/1", 0, *(fell(1, "dying_gasp", at=f"0{n}:10:00") for n in range(7)), fell(9)), *OTHERS),
        ["port_down 0/1: probable fibre_cut, 9"],
        id="the fibre is cut after seven customers had switched off",
    ),
    pytest.param(
        olt(port("0/1", 20, fell(8, within=4), fell(8, at="06:00:00")), *OTHERS),
        ["port_degraded 0/1: probable splitter, 16"],
        id="two branches of one port, at different times",
    ),
]


@pytest.mark.parametrize(("network", "expected"), WITH_A_PROBLEM)
def test_a_network_with_a_problem(network, expected):
    assert seen(outages(network, {}, NOW)) == expected


def one_after_another(number, state, *, minutes, until="07:55:00"):
    """Return ONUs that went down one after another, so many minutes apart."""
    last = today(until)
    return [DownOnu(next(ids), state, last - each * minutes * MIN) for each in range(number)]


WITHOUT = [
    pytest.param(olt(port("0/1", 30), *OTHERS), id="all are up"),
    pytest.param(
        olt(port("0/1", 24, one_after_another(40, "dying_gasp", minutes=4)), *OTHERS),
        id="customers switch off in the evening, over hours",
    ),
    pytest.param(
        olt(port("0/1", 24, one_after_another(40, "los", minutes=4)), *OTHERS),
        id="the same with cheap ONUs, which show a loss of signal when they are switched off",
    ),
    pytest.param(
        olt(*(port(f"0/{n}", 24, one_after_another(40, "dying_gasp", minutes=n)) for n in (2, 3, 4, 5))),
        id="an evening on the whole OLT",
    ),
    pytest.param(
        olt(port("0/1", 20, fell(2, "dying_gasp"), fell(1)), *OTHERS), id="three customers of a port in one minute"
    ),
    pytest.param(olt(port("0/1", 1, fell(1)), *OTHERS), id="one of two ONUs of a port"),
    pytest.param(olt(port("0/1", 0, fell(1)), *OTHERS), id="the only ONU of a port"),
    pytest.param(olt(port("0/1", 0, fell(2, "dying_gasp", within=50)), *OTHERS), id="both customers switch off"),
    pytest.param(olt(port("0/1", 10, fell(20, days_ago=21)), *OTHERS), id="a branch that was abandoned weeks ago"),
    pytest.param(
        olt(port("0/1", 10, never_up=20), port("0/2", 0, never_up=30), *OTHERS),
        id="the first discovery of an OLT finds ONUs that are down",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(20, at="05:00:00"), read=4 * HOUR), *OTHERS),
        id="states that were not read for hours: the port is unknown",
    ),
    pytest.param(olt(port("0/1", 0, fell(20), read=None)), id="states that were never read"),
    pytest.param(olt(port("0/1", 0, fell(20)), down_since=NOW - MIN), id="an OLT that does not answer is unknown"),
    pytest.param(olt(port("0/1", 0, fell(20)), is_enabled=False), id="an OLT that is disabled is unknown"),
    pytest.param(
        olt(port("0/1", 40, fell(10, "offline", noticed=True)), *OTHERS),
        id="ten of 50 noticed in one reading, without device times: perhaps customers",
    ),
    pytest.param(
        olt(port("0/1", 20, fell(18, noticed=True)), *OTHERS, state_interval=HOUR),
        id="18 of 38 noticed in one reading, because the interval is an hour",
    ),
    pytest.param(
        olt(port("0/1", 0, fell(6, noticed=True)), *OTHERS, state_interval=None),
        id="a small port that is rarely read",
    ),
    pytest.param(
        olt(port("0/1", 0, one_after_another(7, "dying_gasp", minutes=30)), *OTHERS),
        id="seven customers of a village, all asleep",
    ),
]


@pytest.mark.parametrize("network", WITHOUT)
def test_a_network_without_a_problem(network):
    assert seen(outages(network, {}, NOW)) == []


def test_a_port_whose_last_customer_went_down_after_hours_has_no_common_cause():
    network = olt(port("0/1", 0, one_after_another(12, "los", minutes=30)), *OTHERS)

    [problem] = outages(network, {}, NOW)

    assert seen([problem]) == ["port_down 0/1: unknown one_by_one, 12"]
    # Until then the port had service.
    assert (problem.since, problem.severity) == (NOW - 5 * MIN, "minor")


def test_the_evidence_has_the_values_of_the_sentence():
    network = olt(port("0/1", 5, fell(16, within=40), fell(7, "dying_gasp", within=30)), *OTHERS)

    [problem] = outages(network, {}, NOW)

    assert problem.evidence == {
        "down": 23,
        "los": 16,
        "dying_gasp": 7,
        "offline": 0,
        "first": "2026-03-01T07:31:50+00:00",
        "last": "2026-03-01T07:32:30+00:00",
        "exact": True,
        "total": 28,
        "up": 5,
    }


def test_without_device_times_the_evidence_names_the_interval():
    [problem] = outages(olt(port("0/1", 0, fell(20, noticed=True)), *OTHERS), {}, NOW)

    assert (problem.evidence["exact"], problem.evidence["interval"]) == (False, 300)


def test_fibres_of_one_cable_name_each_other():
    network = olt(*(port(f"0/{n}", 0, fell(12, within=9)) for n in (1, 2)), port("0/3", 9))

    assert [each.evidence["beside"] for each in outages(network, {}, NOW)] == [["0/2"], ["0/1"]]


SEVERITIES = [
    pytest.param(port("0/1", 0, fell(28)), "critical", id="a port with many customers"),
    pytest.param(port("0/1", 0, fell(5)), "major", id="a port with five customers"),
    pytest.param(port("0/1", 0, fell(2)), "minor", id="a port with two customers"),
    pytest.param(port("0/1", 60, fell(8)), "major", id="a branch"),
    pytest.param(port("0/1", 0, fell(20, "offline", cause="admin_down")), "minor", id="a disabled port"),
]


@pytest.mark.parametrize(("broken", "severity"), SEVERITIES)
def test_severity(broken, severity):
    assert [each.severity for each in outages(olt(broken, *OTHERS), {}, NOW)] == [severity]


# Open problems


def open_(key, *, peak, since="07:31:50"):
    return {key: OpenProblem(key, today(since), peak)}


def found_at_peak(kind, cause, *, peak):
    judged = ProblemKind(kind), ProbableCause(cause), Confidence.PROBABLE
    return {"outage/7/0/1": OpenProblem("outage/7/0/1", today("07:31:50"), peak, *judged)}


SHRINKING = [
    pytest.param(
        port("0/1", 20, fell(8)), ("port_down", "fibre_cut"), "port_degraded 0/1: probable fibre_cut, 8",
        id="a cut fibre that is spliced: the last ones are no splitter",
    ),
    pytest.param(
        port("0/1", 12, fell(16)), ("power_cut", "power_cut"), "power_cut 0/1: probable power_cut, 16",
        id="after a power cut: those that cannot report it are no cut fibre",
    ),
    pytest.param(
        port("0/1", 0, fell(30)), ("port_degraded", "splitter"), "port_down 0/1: probable fibre_cut, 30",
        id="a branch that grows to the port is judged again",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("now", "before", "expected"), SHRINKING)
def test_a_problem_that_shrinks_keeps_its_cause(now, before, expected):
    known = found_at_peak(*before, peak=28)
    found = outages(olt(now, *OTHERS), known, NOW)

    assert seen(with_cause_of_peak(each, known) for each in found) == [expected]


LASTING = [
    pytest.param(port("0/1", 20, fell(8)), 8, id="a quarter is left"),
    pytest.param(port("0/1", 26, fell(2)), 0, id="two of 28 are left: customers who come back later"),
    pytest.param(port("0/1", 28), 0, id="all came back"),
    pytest.param(
        port("0/1", 20, fell(1), fell(3, at="06:00:00")), 0, id="others that went down before do not keep it open"
    ),
    pytest.param(port("0/1", 20, fell(8), fell(9, days_ago=30)), 8, id="nor do ONUs of an abandoned branch join it"),
]


@pytest.mark.parametrize(("now", "affected"), LASTING)
def test_an_outage_lasts_until_few_are_left(now, affected):
    found = outages(olt(now, *OTHERS), open_("outage/7/0/1", peak=28), NOW)

    assert sum(each.affected for each in found) == affected


def test_an_outage_lasts_for_weeks_if_it_is_not_repaired():
    key = "outage/7/0/1"
    since = datetime(2026, 2, 1, 7, 31, 50, tzinfo=UTC)
    network = olt(port("0/1", 0, fell(28, days_ago=28)), *OTHERS)

    assert seen(outages(network, {key: OpenProblem(key, since, 28)}, NOW)) == ["port_down 0/1: probable fibre_cut, 28"]


def test_a_branch_that_grows_to_the_port_is_the_same_problem():
    before = outages(olt(port("0/1", 20, fell(8, at="07:00:00")), *OTHERS), {}, NOW)
    after = outages(olt(port("0/1", 0, fell(8, at="07:00:00"), fell(20)), *OTHERS), {}, NOW)

    assert [each.key for each in before] == [each.key for each in after]
    assert seen(after) == ["port_down 0/1: probable fibre_cut, 28"]


# Power


def drops(place, *steps, at=NOW - HOUR, before=-20.0, now=None):
    slot, number = map(int, place.split("/"))
    return tuple(
        PowerDrop(next(ids), slot, number, at, before, before + step, before + step if now is None else now)
        for step in steps
    )


OPTICAL = [
    pytest.param(
        olt(port("0/1", 40), drops=drops("0/1", -6.1, -5.8, -6.0, -6.4)),
        ["power_drop 0/1: probable splitter, 4"],
        id="four ONUs by the same step: a splitter or a branch",
    ),
    pytest.param(
        olt(port("0/1", 10), drops=drops("0/1", *[-4.0] * 9)),
        ["power_drop 0/1: probable feeder, 9"],
        id="nearly all of a port: before the first splitter",
    ),
    pytest.param(
        olt(port("0/1", 40), drops=drops("0/1", -3.1, -9.0, -6.0, before=-15.0)),
        [],
        id="three by different steps: three houses",
    ),
    pytest.param(
        olt(port("0/1", 40), drops=drops("0/1", -3.2, -3.4, -3.1, -9.0, -9.2, -9.4, -9.1, before=-15.0)),
        ["power_drop 0/1: probable splitter, 4"],
        id="four by one step, three by another: the larger group",
    ),
    pytest.param(
        olt(port("0/1", 40), drops=drops("0/1", -8.0)), ["power_drop 0/1: probable drop_cable, 1"], id="one ONU, weak"
    ),
    pytest.param(olt(port("0/1", 40), drops=drops("0/1", -3.5)), [], id="one ONU with margin left"),
    pytest.param(olt(port("0/1", 40), drops=drops("0/1", *[-6.0] * 4, now=-20.2)), [], id="the power has recovered"),
    pytest.param(olt(port("0/1", 40), drops=drops("0/1", *[-6.0] * 4, at=NOW - 25 * HOUR)), [], id="a day ago"),
]


@pytest.mark.parametrize(("network", "expected"), OPTICAL)
def test_sudden_drops_of_power(network, expected):
    assert seen(power_drops(network, NOW)) == expected


WEAK = [
    pytest.param(port("0/1", 20, weak=5), False, ["low_power 0/1: possible splitter, 5"], id="a quarter"),
    pytest.param(port("0/1", 20, weak=18), False, ["low_power 0/1: possible feeder, 18"], id="nearly all"),
    pytest.param(port("0/1", 40, weak=5), False, [], id="an eighth"),
    pytest.param(port("0/1", 2, weak=2), False, [], id="two ONUs"),
    pytest.param(port("0/1", 20, weak=3), True, ["low_power 0/1: possible splitter, 3"], id="around the limit, open"),
    pytest.param(port("0/1", 20, weak=1), True, [], id="better, open"),
]


@pytest.mark.parametrize(("weak", "is_open", "expected"), WEAK)
def test_ports_with_low_power(weak, is_open, expected):
    known = open_("low_power/7/0/1", peak=5) if is_open else {}

    assert seen(low_power(olt(weak), known, NOW)) == expected


# Where on a port


def branch(kind="port_degraded", cause="splitter", onus=(1, 2, 3)):
    return FoundProblem(
        ProblemKind(kind), "key", ProblemSeverity.MAJOR, NOW, ProbableCause(cause), Confidence.PROBABLE,
        affected=3, onus=onus, olt=7, slot=0, port=1,
    )  # fmt: skip


def at(*distances, first=1, power=-20.0):
    return [PortOnu(number, distance, power) for number, distance in enumerate(distances, first)]


PLACES = [
    pytest.param(
        [*at(4300, 4210, 4890), *at(800, 6100, None, 3000, first=4)],
        {"near": 4210, "far": 4890, "others_near": 800, "others_far": 6100},
        id="a branch among others",
    ),
    pytest.param(
        [*at(4300, 4210, 4890), *at(800, 3100, 2000, first=4)],
        {"near": 4210, "far": 4890, "others_near": 800, "others_far": 3100, "is_beyond": True},
        id="all beyond a point",
    ),
    pytest.param(
        [*at(4300, None, 4890), *at(800, 3100, 2000, first=4)],
        {"near": 4300, "far": 4890, "others_near": 800, "others_far": 3100},
        id="one distance is unknown, perhaps a near one",
    ),
    pytest.param(
        [*at(4300, 4210, 4890), *at(800, first=4)],
        {"near": 4210, "far": 4890, "others_near": 800, "others_far": 800},
        id="a single other ONU says little",
    ),
    pytest.param(at(4300, 0, 4890), {"near": 4300, "far": 4890}, id="the whole port, and 0 is no distance"),
    pytest.param(at(None, 0, None), {}, id="an OLT that reports no distances"),
]


@pytest.mark.parametrize(("onus", "expected"), PLACES)
def test_distances_tell_where_a_branch_failed(onus, expected):
    found = located(branch(), onus, weak=-27.0)

    assert (found.evidence, found.cause) == (expected, "splitter")


OF_WHICH_POWER_IS_KNOWN = [
    pytest.param(branch("power_drop"), [*at(1, 2, 3), *at(4, 5, first=4)], "splitter", id="others have power"),
    pytest.param(
        branch("power_drop"), [*at(1, 2, 3), *at(4, 5, first=4, power=None)], "feeder", id="that of others is unknown"
    ),
    pytest.param(branch(), [*at(1, 2, 3), *at(4, first=4, power=None)], "splitter", id="ONUs that are down"),
    pytest.param(
        branch("low_power", onus=()), [*at(1, 2, power=-29.0), *at(3, first=3, power=None)], "feeder", id="low power"
    ),
]


@pytest.mark.parametrize(("problem", "onus", "cause"), OF_WHICH_POWER_IS_KNOWN)
def test_onus_without_a_known_power_do_not_show_that_the_fibre_is_good(problem, onus, cause):
    assert located(problem, onus, weak=-27.0).cause == cause


# Flapping


def falls(place, times, minutes=10, onus=1):
    slot, number = map(int, place.split("/"))
    at = tuple(NOW - each * minutes * MIN for each in range(times))
    return tuple(Falls(1000 + each, slot, number, at) for each in range(onus))


FLAPS = [
    pytest.param(falls("0/1", 4), ["flapping 0/1: possible drop_cable, 1"], id="four falls in half an hour"),
    pytest.param(falls("0/1", 3), [], id="three: a customer restarts a router"),
    pytest.param(falls("0/1", 8, minutes=60), [], id="once an hour"),
    pytest.param(falls("0/1", 5, onus=6), ["flapping 0/1: possible splitter, 6"], id="six ONUs of one port"),
    pytest.param(falls("0/1", 5, onus=18), ["flapping 0/1: possible feeder, 18"], id="nearly all of one port"),
]


@pytest.mark.parametrize(("times", "expected"), FLAPS)
def test_flapping(times, expected):
    assert seen(flapping(olt(port("0/1", 20), falls=times), {}, NOW)) == expected


def test_flapping_lasts_until_the_onu_is_quiet():
    known = open_("flapping/onu/1000", peak=1)

    assert len(flapping(olt(falls=falls("0/1", 2)), known, NOW)) == 1
    assert flapping(olt(falls=falls("0/1", 1)), known, NOW) == []


# OLTs and jobs


def test_olts_of_one_site_that_stop_together_have_a_common_cause():
    network = [
        olt(port("0/1", 20), id=1, site="Lima", down_since=NOW - 6 * MIN, error="No answer in 5 s."),
        olt(id=2, site="Lima", down_since=NOW - 2 * MIN),
        olt(id=3, site="Lima", down_since=NOW - DAY),
        olt(id=4, down_since=NOW),
        olt(id=5, site="Lima", down_since=NOW, is_enabled=False),
    ]

    found = olts_down(network)

    assert [(each.olt, each.cause, each.affected) for each in found] == [
        (1, "site", 20),
        (2, "site", 0),
        (3, "olt_or_uplink", 0),
        (4, "olt_or_uplink", 0),
    ]
    assert found[0].evidence == {"error": "No answer in 5 s.", "site": "Lima", "others": 1}


def test_an_olt_in_doubt_is_a_problem_and_its_ports_are_not():
    doubtful = olt(port("0/1", 20), suspect_since=NOW - MIN, suspect_reason=Suspicion.VANISHING)

    assert seen(suspects([doubtful])) == ["olt_suspect: probable mass_disappearance, 0"]
    assert outages(doubtful, {}, NOW) == []


def late(number, minutes, interval=5 * MIN):
    return [LateNode(each, 7, "State", NOW - minutes * MIN, interval) for each in range(number)]


LATE = [
    pytest.param(late(1, 3), {}, ["job_late: unknown unknown, 0"], id="half an interval"),
    pytest.param(late(1, 2), {}, [], id="less"),
    pytest.param(late(1, 1, interval=MIN), {}, [], id="a short job, at most a minute"),
    pytest.param(late(1, 3), {"down_since": NOW}, [], id="on an OLT that does not answer"),
    pytest.param(late(11, 9), {}, ["job_late: possible pool_busy, 0"], id="many"),
]


@pytest.mark.parametrize(("nodes", "state", "expected"), LATE)
def test_late_jobs(nodes, state, expected):
    assert seen(late_jobs(nodes, {7: olt(**state)}, NOW)) == expected


def test_a_violated_quota_of_an_olt_that_does_not_answer_is_part_of_that_problem():
    quota = ViolatedQuota(7, "State", NOW - HOUR, True, {"completed": 2, "required": 12})

    [problem] = violations([quota], {7: olt()})
    assert (problem.severity, problem.evidence) == ("major", {"task": "State", "completed": 2, "required": 12})
    assert violations([quota], {7: olt(down_since=NOW)}) == []
