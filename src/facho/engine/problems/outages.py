"""Ports, cards and OLTs whose ONUs went down together, and power cuts.

One ONU that is down is a matter of its customer: an outage is several that fell *together*. That is what tells a cut
from customers who switch off in the evening, one after another. A cause is named only if the evidence excludes the
others; see docs/problems.md.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.engine.problems.model import (
    Confidence,
    DownOnu,
    FoundProblem,
    OltState,
    OpenProblem,
    PortState,
    ProbableCause,
    ProblemKind,
    ProblemSeverity,
)

# ONUs of one cut fall within seconds. Device times have steps of a second, and ONUs give up after some retries.
TOGETHER = timedelta(seconds=60)

# A fall before that is not news: branches that were abandoned, found at the first start.
NEWS_FOR = timedelta(days=7)

# With a longer interval, "noticed in the same reading" says little: customers come and go in between.
TELLING_INTERVAL = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Smallest number of ONUs that is an outage: a number, and a share of those that were up."""

    fewest: int
    share: float

    def admits(self, count: int, of: int) -> bool:
        return count >= max(self.fewest, self.share * of)


# On a port of 64 in the evening, ten customers an hour switch off: four within a minute by chance are rare, a
# tenth of the port within a minute hardly ever happens.
PART_OF_PORT = Threshold(4, 0.1)
# Without device times, within one interval of up to ten minutes.
PART_OF_PORT_NOTICED = Threshold(5, 0.25)
# All that were up: two are enough if the OLT reports the second.
WHOLE_PORT = Threshold(2, 0)
WHOLE_PORT_NOTICED = Threshold(4, 0)
WHOLE_PORT_RARELY_READ = Threshold(8, 0)
# All went down one after another within a day: no common cause, but no customer of the port has service.
SLOWLY_FEWEST = 8
SLOWLY_WITHIN = timedelta(hours=24)
# Power lost on several ports of an OLT: of 1,000 ONUs, some three a minute are switched off in the evening.
POWER_ON_OLT = Threshold(10, 0.03)
POWER_ON_OLT_NOTICED = Threshold(20, 0.1)

# Share of the ONUs that were up, from which on the whole port is concerned: a reading may have missed some.
WHOLE = 0.9

# An outage lasts until fewer than these are left: some customers come back later, or never.
FEWEST_LEFT, SHARE_LEFT = 2, 0.25

# Share of ONUs with power lost. Cheap ONUs have no capacitor to report it and show a loss of signal, so half is
# enough for a power cut. A fibre cut lets no ONU report it: with a fifth, it is not called a fibre cut.
GASPS_PROBABLE, GASPS_POSSIBLE = 0.5, 0.2

# ONUs without a capacitor lose the signal some seconds before or after the others report the loss of power.
WITHOUT_CAPACITOR = timedelta(seconds=15)

# Share of ONUs with loss of signal, from which on a cut is probable.
LOS_PROBABLE = 0.8

# Causes that follow from the state of nearly all ONUs. Those that the OLT does not list any more may have been removed
# from its configuration.
OF_STATE = {
    "auth_failed": (ProbableCause.NOT_AUTHORISED, Confidence.PROBABLE),
    "missing": (ProbableCause.DISAPPEARED, Confidence.UNKNOWN),
}
OF_STATE_SHARE = 0.8

# ONUs of a cut that can be called probable: three may be one house.
FEWEST_PROBABLE = 4

# An outage with that many customers is critical.
MANY_CUSTOMERS = 8

# A card: ONUs on all ports in use.
FEWEST_ON_CARD = 5

# Down causes that follow from a command at the OLT, not from a fault.
COMMANDED = frozenset({"deactivated", "admin_down", "shutdown", "reset_by_command", "reset_by_software"})


@dataclass(frozen=True, slots=True)
class Outage:
    """ONUs of one port that went down together and are still down."""

    port: PortState
    onus: tuple[DownOnu, ...]
    # ONUs that were up immediately before.
    were_up: int

    @property
    def first(self) -> datetime:
        return self.onus[0].since

    @property
    def is_exact(self) -> bool:
        return all(onu.is_exact for onu in self.onus)

    @property
    def is_nearly_whole(self) -> bool:
        return len(self.onus) >= WHOLE * self.were_up

    @property
    def is_whole(self) -> bool:
        """Return whether the whole port is concerned. An ONU that works has light from the fibre to the splitter."""
        return self.is_nearly_whole and not self.port.up

    @property
    def has_lost_signal(self) -> bool:
        return _share(self.onus, "los") >= LOS_PROBABLE and not _is_commanded(self.onus)

    @property
    def gasps(self) -> float:
        """Return the share of ONUs that reported the loss of power."""
        return _share(self.onus, "dying_gasp")


def outages(olt: OltState, open_: Mapping[str, OpenProblem], now: datetime) -> list[FoundProblem]:
    """Return the outages of an OLT: the largest thing that failed, not all that failed with it."""
    if not olt.is_known:
        return []
    ports = [port for port in olt.ports if port.is_current(now)]
    found = [outage for port in ports if (outage := _outage(olt, port, open_, now)) is not None]
    problems = []
    cut = _power_cut(olt, ports, open_, now)
    window = None
    if cut is not None:
        problem, window = cut
        problems.append(problem)
        found = [each for each in found if each.gasps < GASPS_POSSIBLE or not _overlaps(each, window)]
    cards = _cards(ports, found)
    covered = {id(each) for card in cards.values() for each in card}
    alone = [each for each in found if id(each) not in covered]
    used = {port.slot for port in ports if port.up or any(port is each.port for each in found)}
    if cards and used == cards.keys():
        problems.append(_of_olt(olt, cards))
    else:
        problems += [_of_card(olt, slot, card) for slot, card in cards.items()]
    for each in alone:
        is_in_cut = window is not None and _overlaps(each, window)
        problems.append(_of_port(olt, each, _beside(each, alone), is_in_power_cut=is_in_cut))
    gone = {each.port.name for each in found}
    if cut is None:
        slow = (_slowly(olt, port, open_, now) for port in ports if port.name not in gone)
        problems += [problem for problem in slow if problem is not None]
    return problems


def outage_key(olt: int, slot: int | None = None, port: int | None = None) -> str:
    return "/".join(["outage", *(str(part) for part in (olt, slot, port) if part is not None)])


def _outage(olt: OltState, port: PortState, open_: Mapping[str, OpenProblem], now: datetime) -> Outage | None:
    """Return the largest group that went down together on a port, with other groups as large as it needs."""
    lasting = open_.get(outage_key(olt.id, port.slot, port.port))
    if len(port.down_onus) < FEWEST_LEFT:
        return None
    down = sorted(port.down_onus, key=_since)
    fresh = [onu for onu in down if _counts(onu, lasting, now)]
    groups = []
    while (group := _largest_group(fresh)) and _is_outage(olt, port, group, down, lasting):
        groups.append(group)
        chosen = {onu.id for onu in group}
        fresh = [onu for onu in fresh if onu.id not in chosen]
    if not groups:
        return None
    first = min(group[0].since for group in groups)
    onus = tuple(sorted((onu for group in groups for onu in group), key=_since))
    return Outage(port, onus, _were_up(port, down, first))


def _since(onu: DownOnu) -> datetime:
    return onu.since


def _counts(onu: DownOnu, lasting: OpenProblem | None, now: datetime) -> bool:
    """Return whether an ONU went down recently, or with an outage that is still open."""
    return now - onu.since <= NEWS_FOR or (lasting is not None and onu.since >= lasting.since)


def _largest_group(onus: Sequence[DownOnu]) -> list[DownOnu]:
    """Return the most ONUs, sorted by time, within `TOGETHER`; of two as large, the later ones."""
    best, start = (0, 0), 0
    for end, onu in enumerate(onus, 1):
        while onu.since - onus[start].since > TOGETHER:
            start += 1
        if end - start >= best[1] - best[0]:
            best = start, end
    return list(onus[best[0] : best[1]])


def _were_up(port: PortState, down: Iterable[DownOnu], at: datetime) -> int:
    return port.up + sum(onu.since >= at for onu in down)


def _is_outage(
    olt: OltState, port: PortState, group: Sequence[DownOnu], down: Iterable[DownOnu], lasting: OpenProblem | None
) -> bool:
    count, were_up = len(group), _were_up(port, down, group[0].since)
    if lasting is not None and group[0].since <= lasting.since + TOGETHER and count >= _left(lasting):
        return True
    is_whole = count >= WHOLE * were_up
    if all(onu.is_exact for onu in group):
        # Two customers of a small port may switch off within a minute.
        is_cut = _share(group, "los") == 1 or count >= WHOLE_PORT_NOTICED.fewest
        return (is_whole and is_cut and WHOLE_PORT.admits(count, were_up)) or PART_OF_PORT.admits(count, were_up)
    if _is_rarely_read(olt):
        return is_whole and WHOLE_PORT_RARELY_READ.admits(count, were_up)
    return (is_whole and WHOLE_PORT_NOTICED.admits(count, were_up)) or PART_OF_PORT_NOTICED.admits(count, were_up)


def _is_rarely_read(olt: OltState) -> bool:
    return olt.state_interval is None or olt.state_interval > TELLING_INTERVAL


def _left(lasting: OpenProblem) -> float:
    """Return the number of ONUs below which an open outage ends."""
    return max(FEWEST_LEFT, SHARE_LEFT * lasting.peak)


def _share(onus: Collection[DownOnu], state: str) -> float:
    return sum(onu.state == state for onu in onus) / len(onus)


# Power cuts

Window = tuple[datetime, datetime]


def _power_cut(
    olt: OltState, ports: Sequence[PortState], open_: Mapping[str, OpenProblem], now: datetime
) -> tuple[FoundProblem, Window] | None:
    """Return a power cut on several ports, and its time."""
    key = f"power/{olt.id}"
    lasting = open_.get(key)
    onus = [(onu, port) for port in ports for onu in port.down_onus if _counts(onu, lasting, now)]
    group = _largest_group(sorted((onu for onu, _port in onus if onu.state == "dying_gasp"), key=_since))
    if not group:
        return None
    is_exact = all(onu.is_exact for onu in group)
    window = group[0].since - WITHOUT_CAPACITOR, group[-1].since + WITHOUT_CAPACITOR
    ids = {onu.id for onu in group}
    touched = {port.name: port for onu, port in onus if onu.id in ids}
    members = sorted(
        (onu for onu, port in onus if port.name in touched and window[0] <= onu.since <= window[1]), key=_since
    )
    threshold = POWER_ON_OLT if is_exact else POWER_ON_OLT_NOTICED
    is_new = threshold.admits(len(group), olt.onus) and len(touched) > 1 and (is_exact or not _is_rarely_read(olt))
    lasts = lasting is not None and len(members) >= _left(lasting)
    if not (is_new or lasts) or _share(members, "dying_gasp") < GASPS_POSSIBLE:
        return None
    is_likely = is_exact and _share(members, "dying_gasp") >= GASPS_PROBABLE
    problem = FoundProblem(
        ProblemKind.POWER_CUT,
        key,
        ProblemSeverity.MAJOR,
        members[0].since,
        ProbableCause.POWER_CUT,
        Confidence.PROBABLE if is_likely else Confidence.POSSIBLE,
        affected=len(members),
        evidence=_evidence(olt, members, ports=sorted(touched)),
        onus=tuple(onu.id for onu in members),
        olt=olt.id,
    )
    return problem, window


def _overlaps(outage: Outage, window: Window) -> bool:
    return window[0] <= outage.onus[-1].since and outage.first <= window[1]


# Cards


def _cards(ports: Sequence[PortState], found: Sequence[Outage]) -> dict[int, list[Outage]]:
    """Return the outages of each card all of whose ports in use failed within a minute, and not by a power cut."""
    cards = {}
    for slot in sorted({each.port.slot for each in found}):
        outages_ = [each for each in found if each.port.slot == slot and each.is_whole]
        if len(outages_) < 2 or any(_is_no_card(each) for each in outages_):
            continue
        start = min(each.first for each in outages_)
        end = max(each.first for each in outages_)
        # A port with one customer makes no outage, but it tells whether the card works.
        others = [port for port in ports if port.slot == slot and not any(port is each.port for each in outages_)]
        works = any(port.up or any(onu.since > end + TOGETHER for onu in port.down_onus) for port in others)
        if not works and end - start <= TOGETHER and sum(len(each.onus) for each in outages_) >= FEWEST_ON_CARD:
            cards[slot] = outages_
    return cards


def _is_no_card(outage: Outage) -> bool:
    """Return whether its ONUs report something that a failed card does not explain."""
    is_refused = _share(outage.onus, "auth_failed") >= OF_STATE_SHARE
    return outage.gasps >= GASPS_POSSIBLE or is_refused or _is_commanded(outage.onus)


def _of_card(olt: OltState, slot: int, card: Sequence[Outage]) -> FoundProblem:
    onus = _onus(card)
    # Two ports may share a cable.
    is_likely = len(card) > 2 and all(each.is_exact for each in card)
    return FoundProblem(
        ProblemKind.CARD_DOWN,
        outage_key(olt.id, slot),
        ProblemSeverity.CRITICAL,
        onus[0].since,
        ProbableCause.CARD,
        Confidence.PROBABLE if is_likely else Confidence.POSSIBLE,
        affected=len(onus),
        evidence=_evidence(olt, onus, ports=[each.port.name for each in card]),
        onus=tuple(onu.id for onu in onus),
        olt=olt.id,
        slot=slot,
    )


def _of_olt(olt: OltState, cards: Mapping[int, Sequence[Outage]]) -> FoundProblem:
    found = [each for card in cards.values() for each in card]
    onus = _onus(found)
    return FoundProblem(
        ProblemKind.ONUS_DOWN,
        outage_key(olt.id),
        ProblemSeverity.CRITICAL,
        onus[0].since,
        ProbableCause.OLT_RESTART,
        Confidence.POSSIBLE,
        affected=len(onus),
        evidence=_evidence(olt, onus, ports=[each.port.name for each in found]),
        onus=tuple(onu.id for onu in onus),
        olt=olt.id,
    )


def _onus(found: Iterable[Outage]) -> list[DownOnu]:
    return sorted((onu for each in found for onu in each.onus), key=_since)


# Ports


def _beside(outage: Outage, others: Iterable[Outage]) -> list[Outage]:
    """Return the outages of other ports of the OLT that lost the signal within the same minute."""
    if not outage.has_lost_signal:
        return []
    return [
        each
        for each in others
        if each is not outage and each.has_lost_signal and abs(each.first - outage.first) <= TOGETHER
    ]


def _of_port(olt: OltState, outage: Outage, beside: Sequence[Outage], *, is_in_power_cut: bool) -> FoundProblem:
    cause, confidence = _cause(outage, beside, is_in_power_cut=is_in_power_cut)
    kind = ProblemKind.PORT_DEGRADED if outage.port.up else ProblemKind.PORT_DOWN
    if cause is ProbableCause.POWER_CUT:
        kind = ProblemKind.POWER_CUT
    severity = ProblemSeverity.MAJOR
    if kind is ProblemKind.PORT_DOWN and len(outage.onus) >= MANY_CUSTOMERS:
        severity = ProblemSeverity.CRITICAL
    if cause is ProbableCause.ADMIN or len(outage.onus) < FEWEST_PROBABLE:
        severity = ProblemSeverity.MINOR
    port = outage.port
    return FoundProblem(
        kind,
        outage_key(olt.id, port.slot, port.port),
        severity,
        outage.first,
        cause,
        confidence,
        affected=len(outage.onus),
        evidence=_evidence(
            olt, outage.onus, total=port.total, up=port.up, beside=sorted(each.port.name for each in beside)
        ),
        onus=tuple(onu.id for onu in outage.onus),
        olt=olt.id,
        slot=port.slot,
        port=port.port,
    )


def _cause(outage: Outage, beside: Collection[Outage], *, is_in_power_cut: bool) -> tuple[ProbableCause, Confidence]:
    """Return the cause of an outage of one port: the first that the evidence supports."""
    onus = outage.onus
    if _is_commanded(onus):
        return ProbableCause.ADMIN, Confidence.PROBABLE
    for state, cause in OF_STATE.items():
        if _share(onus, state) >= OF_STATE_SHARE:
            return cause
    if outage.gasps >= GASPS_POSSIBLE:
        is_likely = outage.is_exact and outage.gasps >= GASPS_PROBABLE
        return ProbableCause.POWER_CUT, Confidence.PROBABLE if is_likely else Confidence.POSSIBLE
    lost = _share(onus, "los")
    if lost < 0.5:
        return ProbableCause.NOT_REPORTED, Confidence.UNKNOWN
    if is_in_power_cut:
        # ONUs that cannot report it.
        return ProbableCause.POWER_CUT, Confidence.POSSIBLE
    is_likely = outage.is_exact and lost >= LOS_PROBABLE and not outage.gasps and len(onus) >= FEWEST_PROBABLE
    confidence = Confidence.PROBABLE if is_likely else Confidence.POSSIBLE
    if beside and not all(each.is_whole for each in (outage, *beside)):
        # A splitter belongs to one port, and a power cut looks the same if no ONU can report it.
        return ProbableCause.AREA, Confidence.POSSIBLE
    if outage.is_whole:
        return (ProbableCause.CABLE_CUT if beside else ProbableCause.FIBRE_CUT), confidence
    # Nearly all: a reading in between may have missed the last ones.
    return ProbableCause.SPLITTER, Confidence.POSSIBLE if outage.is_nearly_whole else confidence


def _is_commanded(onus: Collection[DownOnu]) -> bool:
    """Return whether most ONUs went down by a command, as when a port is disabled or a card is reset."""
    return sum(onu.state == "offline" and onu.down_cause in COMMANDED for onu in onus) * 2 > len(onus)


def _slowly(olt: OltState, port: PortState, open_: Mapping[str, OpenProblem], now: datetime) -> FoundProblem | None:
    """Return a port all of whose ONUs went down, but not together."""
    if port.up:
        return None
    key = outage_key(olt.id, port.slot, port.port)
    lasting = open_.get(key)
    start = (now if lasting is None else lasting.since) - SLOWLY_WITHIN
    onus = sorted((onu for onu in port.down_onus if onu.since >= start), key=_since)
    if len(onus) < (SLOWLY_FEWEST if lasting is None else FEWEST_LEFT):
        return None
    return FoundProblem(
        ProblemKind.PORT_DOWN,
        key,
        ProblemSeverity.MINOR,
        # Until the last one, some customers had service.
        onus[-1].since,
        ProbableCause.ONE_BY_ONE,
        Confidence.UNKNOWN,
        affected=len(onus),
        evidence=_evidence(olt, onus, total=port.total, up=0),
        onus=tuple(onu.id for onu in onus),
        olt=olt.id,
        slot=port.slot,
        port=port.port,
    )


def _evidence(olt: OltState, onus: Sequence[DownOnu], **more: object) -> dict[str, object]:
    """Return the values of the sentence: numbers by state, first and last time, and how exact the times are."""
    counts = {state: sum(onu.state == state for onu in onus) for state in ("los", "dying_gasp", "offline")}
    counts |= {state: number for state in OF_STATE if (number := sum(onu.state == state for onu in onus))}
    is_exact = all(onu.is_exact for onu in onus)
    interval = olt.state_interval
    return {
        "down": len(onus),
        **counts,
        "first": onus[0].since.isoformat(),
        "last": onus[-1].since.isoformat(),
        "exact": is_exact,
        **({} if is_exact or interval is None else {"interval": interval.total_seconds()}),
        **dict(_filled(more)),
    }


def _filled(values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    return ((name, value) for name, value in values.items() if value not in ([], None))
