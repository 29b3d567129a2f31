"""Detection of the device at an address, from its system group and the tables that it answers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from facho.engine.brand import Brand
from facho.engine.collect.flow import Timer
from facho.engine.errors import BadAnswer, FachoError, NoAnswer, OltUnreachable, SnmpError
from facho.engine.model import Traffic
from facho.engine.oid import Oid, parse
from facho.engine.oid import text as oid_text
from facho.engine.ports import Clock, Snmp
from facho.engine.snmp import Agent, Answer, Missing, Value, Version

SYS_DESCR = parse("1.3.6.1.2.1.1.1.0")
SYS_OBJECT_ID = parse("1.3.6.1.2.1.1.2.0")
SYS_UP_TIME = parse("1.3.6.1.2.1.1.3.0")
SYS_NAME = parse("1.3.6.1.2.1.1.5.0")
SYSTEM = (SYS_DESCR, SYS_OBJECT_ID, SYS_UP_TIME, SYS_NAME)

# Seconds. A slow unknown agent answers a scalar in this time, and packets may get lost.
TIMEOUT = 3.0
TRIES = 3
# Minimum, for any measured round trip.
SHORTEST = 1.0

NO_TIME = "the time limit was reached"

Candidates = Callable[[Oid, str], Sequence[Brand]]
Send = Callable[[float], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Identity:
    """Self-description of an agent and the detected brand. Unknown parts are empty or None.

    `remark` is a message for the operator: the reason for no brand and the next step, or how certain the brand is. It
    is empty if there is no doubt.
    """

    brand: Brand | None
    sys_descr: str = ""
    sys_object_id: str = ""
    sys_name: str = ""
    uptime: timedelta | None = None
    remark: str = ""
    traffic: Traffic = field(default_factory=Traffic)


class Asker:
    """Sends one request at a time to one agent, with retries and counters.

    After the deadline every request raises `NoAnswer` at once, so the caller ends with the results so far.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        snmp: Snmp,
        clock: Clock,
        deadline: datetime,
        timeout: float = TIMEOUT,
        tries: int = TRIES,
    ) -> None:
        self.agent = agent
        self.timeout = timeout
        # Round trip of the last answer, in seconds.
        self.round_trip = 0.0
        self._snmp = snmp
        self._clock = clock
        self._tries = tries
        # By maximum time-out, because cheap and expensive requests have different round trips.
        self._timers: dict[float, Timer] = {}
        self._ends = clock.monotonic() + (deadline - clock.now()).total_seconds()
        self._round_trips: list[float] = []
        self._pdus = self._retransmissions = self._varbinds = 0
        self._bytes_sent = self._bytes_received = 0

    @property
    def answers(self) -> int:
        return len(self._round_trips)

    @property
    def has_time(self) -> bool:
        return self._clock.monotonic() < self._ends

    async def get(self, oids: Sequence[Oid]) -> Answer:
        return await self._ask(lambda wait: self._snmp.get(self.agent, oids, timeout=wait), self.timeout)

    async def get_next(self, oids: Sequence[Oid], *, timeout: float | None = None) -> Answer:
        return await self._ask(
            lambda wait: self._snmp.get_next(self.agent, oids, timeout=wait),
            self.timeout if timeout is None else timeout,
        )

    async def get_bulk(self, oids: Sequence[Oid], repetitions: int, *, timeout: float | None = None) -> Answer:
        """Return up to this many rows after each OID. SNMPv1 has no GETBULK: one row."""
        if self.agent.version is Version.V1:
            return await self.get_next(oids, timeout=timeout)
        return await self._ask(
            # Some agents hang when asked for 0 repetitions.
            lambda wait: self._snmp.get_bulk(self.agent, oids, max_repetitions=max(1, repetitions), timeout=wait),
            self.timeout if timeout is None else timeout,
        )

    def traffic(self) -> Traffic:
        """Return the traffic so far."""
        trips = sorted(self._round_trips)
        return Traffic(
            pdus=self._pdus,
            retransmissions=self._retransmissions,
            varbinds=self._varbinds,
            bytes_sent=self._bytes_sent,
            bytes_received=self._bytes_received,
            rtt_p50=trips[len(trips) // 2] if trips else None,
            peak_in_flight=min(self._pdus, 1),
        )

    async def _ask(self, send: Send, timeout: float) -> Answer:
        failure: SnmpError = NoAnswer(NO_TIME)
        timer = self._timers.setdefault(timeout, Timer(SHORTEST, timeout))
        for attempt in range(self._tries):
            left = self._ends - self._clock.monotonic()
            if left <= 0:
                break
            self._pdus += 1
            self._retransmissions += attempt > 0
            sent = self._clock.monotonic()
            try:
                answer = await send(min(timer.timeout, left))
            except (NoAnswer, BadAnswer) as error:
                timer.expired()
                failure = error
                continue
            self.round_trip = self._clock.monotonic() - sent
            timer.measured(self.round_trip)
            self._round_trips.append(self.round_trip)
            self._varbinds += len(answer)
            # Lost requests had the same size; only an answer tells it.
            self._bytes_sent += answer.bytes_sent * (attempt + 1)
            self._bytes_received += answer.bytes_received
            return answer
        raise failure


async def identify(
    agent: Agent,
    *,
    snmp: Snmp,
    clock: Clock,
    deadline: datetime,
    candidates: Candidates,
    brands: Iterable[Brand] = (),
) -> Identity:
    """Detect the device at this address.

    `candidates` returns the brands that match a sysObjectID and a sysDescr, best first. If none matches, the tables
    of all `brands` are tried. Raises `OltUnreachable` without an answer and `Refused` if access is denied.
    """
    asker = Asker(agent, snmp=snmp, clock=clock, deadline=deadline)
    try:
        said = await _system(asker)
        if not asker.answers:
            pdus = asker.traffic().pdus
            raise OltUnreachable(
                f"{agent.host} port {agent.port} gave no usable answer to {pdus} request{'' if pdus == 1 else 's'}. "
                "Check the address, the community and the OLT's SNMP access list."
            )
        brand, remark = await _choose(asker, said, candidates, brands)
    except FachoError as error:
        error.traffic = asker.traffic()
        raise
    ticks = said.get(SYS_UP_TIME)
    return Identity(
        brand,
        sys_descr=_text(said.get(SYS_DESCR)),
        sys_object_id=_oid_text(said.get(SYS_OBJECT_ID)),
        sys_name=_text(said.get(SYS_NAME)),
        # TimeTicks are hundredths of a second.
        uptime=timedelta(seconds=ticks / 100) if isinstance(ticks, int) else None,
        remark=remark,
        traffic=asker.traffic(),
    )


async def _system(asker: Asker) -> Mapping[Oid, Value]:
    """Return the system group. If the agent fails on one of its values, each is requested alone."""
    try:
        answer = await asker.get(SYSTEM)
    except NoAnswer:
        return {}
    except BadAnswer:
        answer = None
    if answer is not None and not answer.error_status and answer.oids:
        return _there(answer)
    said: dict[Oid, Value] = {}
    for oid in SYSTEM:
        try:
            said |= _there(await asker.get([oid]))
        except (NoAnswer, BadAnswer):
            continue
    return said


def _there(answer: Answer) -> dict[Oid, Value]:
    if answer.error_status:
        return {}
    return {oid: value for oid, value in answer if oid in SYSTEM and not isinstance(value, Missing)}


async def _choose(
    asker: Asker, said: Mapping[Oid, Value], candidates: Candidates, brands: Iterable[Brand]
) -> tuple[Brand | None, str]:
    """Return the brand and a remark about how it was found."""
    descr, object_id = _text(said.get(SYS_DESCR)), said.get(SYS_OBJECT_ID)
    fitting = candidates(Oid(object_id) if isinstance(object_id, bytes) else Oid(b""), descr)
    for brand in fitting:
        if await has_rows(asker, brand):
            return brand, ""
    if len(fitting) > 1:
        *most, last = [brand.label for brand in fitting]
        return None, (
            f"The brand could be {', '.join(most)} or {last}. Facho cannot tell until the OLT has ONUs. "
            "Set the brand manually or try again later."
        )
    if fitting:
        return fitting[0], (
            f"It reports that it is a {fitting[0].label}, but its ONU tables are empty: "
            "it has no ONUs yet, or its SNMP view hides them."
        )
    for brand in brands:
        if brand.probe is not None and await has_rows(asker, brand):
            return brand, f"It does not report its model, but it answers the tables of {brand.label}."
    names = [f"{descr!r}"] if descr else []
    if known_id := _oid_text(object_id):
        names.append(f"sysObjectID {known_id}")
    seen = f"It reports {', '.join(names)}" if names else "It reports no model"
    why = "no known brand matches" if asker.has_time else "the time limit was reached before all brands were tried"
    return None, f"{seen}; {why}. Set the brand manually, or add a profile for it."


async def has_rows(asker: Asker, brand: Brand) -> bool:
    """Return whether the agent answers the table that identifies this brand; an unusable answer counts as no."""
    probe = brand.probe or brand.columns[brand.discovery[0]].oid
    try:
        answer = await asker.get_next([probe])
    except (NoAnswer, BadAnswer):
        return False
    return not answer.error_status and any(
        oid.startswith(probe) and not isinstance(value, Missing) for oid, value in answer
    )


def _text(value: Value) -> str:
    """Return a text of the agent on one line; such texts contain line ends and NULs."""
    return " ".join(value.replace(b"\0", b"").decode("utf-8", "replace").split()) if isinstance(value, bytes) else ""


def _oid_text(value: Value) -> str:
    if not isinstance(value, bytes) or not value:
        return ""
    try:
        return oid_text(Oid(value))
    except ValueError:
        # Truncated, or not an OID.
        return ""
