"""PDUs, writes and leases, counted as they pass through their ports; and nothing else changes by it."""

import asyncio
import inspect
from contextlib import asynccontextmanager

import pytest
from builders import T0, make_node
from metrics_stage import Counts

from facho.engine import oid, ports
from facho.engine.errors import BadAnswer, LeaseLost, NoAnswer, OltBusy, Refused
from facho.engine.model import Collected, Completeness, Lease, Reading, Standing
from facho.engine.snmp import Agent, Answer, Community, ErrorStatus, Tag, Version
from facho.runtime import metered, metered_ledger

AGENT = Agent("127.0.0.1", 161, Version.V2C, Community("public"))
UP_TIME = oid.parse("1.3.6.1.2.1.1.3.0")
LEASE = Lease(7, "noc/1", 1)
ANSWER = Answer(0, 0, [UP_TIME, UP_TIME], [1, 2], bytes([Tag.TIME_TICKS] * 2), bytes_sent=60, bytes_received=90)
HARVEST = Collected(Completeness.COMPLETE, tuple(Reading(f"1.{onu}", 0, 1, onu, {}) for onu in (7, 8, 9)))


class Hands:
    """A clock that only moves when it is moved."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        return self.seconds

    def now(self):
        return T0


@pytest.fixture
def clock():
    return Hands()


@pytest.fixture
def counts(clock):
    return Counts(clock)


@pytest.mark.parametrize(
    ("decorator", "port"),
    [
        (metered_ledger.MeteredLedger, ports.Ledger),
        (metered_ledger.MeteredRunner, ports.NodeRunner),
        (metered.MeteredSnmp, ports.Snmp),
        (metered.MeteredSink, ports.ReadingSink),
        (metered.MeteredLeases, ports.OltLeases),
        (metered.WatchedNodes, ports.NodeSource),
    ],
    ids=lambda each: each.__name__,
)
def test_a_decorator_has_every_method_of_its_port_with_the_same_parameters(decorator, port):
    wanted = {name: each for name, each in vars(port).items() if inspect.isfunction(each) and not name.startswith("_")}

    for name, method in wanted.items():
        mine = inspect.signature(getattr(decorator, name))
        assert list(mine.parameters.values()) == list(inspect.signature(method).parameters.values()), name


class Recorder:
    """Stands in for any port: notes what it is asked, and answers with the same thing."""

    def __init__(self):
        self.asked = []
        self.answer = object()

    def __getattr__(self, name):
        async def method(*args, **more):
            self.asked.append((name, args, more))
            return self.answer

        return method


@pytest.mark.parametrize(
    ("port", "name", "args", "more"),
    [
        ("ledger", "reclaim", ("claim",), {"poller_id": 3, "now": T0}),
        ("ledger", "answered", (7,), {"now": T0}),
        ("ledger", "probed", (7,), {"now": T0}),
        ("ledger", "forgive", ({7},), {"now": T0}),
        ("ledger", "progress", ([7],), {}),
        ("ledger", "start", (7,), {"lease": LEASE, "now": T0, "poller_id": 3}),
        ("sink", "known", (7,), {}),
        ("sink", "identified", ("node", 1, "huawei", {"sysDescr": "x"}), {"lease": LEASE}),
        ("sink", "write", (make_node(), 1, HARVEST), {"lease": LEASE, "now": T0}),
        ("nodes", "standings", (), {}),
        ("nodes", "fingerprints", (), {}),
        ("nodes", "states", ([7],), {}),
        ("nodes", "olt", (7,), {}),
        ("snmp", "close", (), {}),
    ],
)
async def test_what_is_asked_is_passed_on_as_it_is_and_so_is_the_answer(counts, port, name, args, more):
    inner = Recorder()
    decorated = getattr(counts.metering, port)(inner)

    answer = await getattr(decorated, name)(*args, **more)

    assert inner.asked == [(name, args, more)]
    returns_nothing = name in ("probed", "forgive", "write", "identified", "close")
    assert answer is (None if returns_nothing else inner.answer)


class Olt:
    """Answers what a test says, after as many seconds."""

    def __init__(self, clock, end=ANSWER, seconds=0.0):
        self._clock = clock
        self._end = end
        self._seconds = seconds
        self.asked = []

    async def _answer(self, agent, oids, **more):
        self.asked.append((oids, more))
        self._clock.seconds += self._seconds
        if isinstance(self._end, BaseException):
            raise self._end
        return self._end

    get = get_next = get_bulk = _answer


async def test_a_request_goes_out_as_it_was_made(counts, clock):
    olt = Olt(clock)

    await counts.metering.snmp(olt).get_bulk(AGENT, [UP_TIME], non_repeaters=1, max_repetitions=20, timeout=2.0)

    assert olt.asked == [([UP_TIME], {"non_repeaters": 1, "max_repetitions": 20, "timeout": 2.0})]
    assert counts.split("facho_snmp_pdus_total") == {("get_bulk", "answered"): 1}


async def test_an_answer_is_measured(counts, clock):
    snmp = counts.metering.snmp(Olt(clock, seconds=0.02))

    assert await snmp.get(AGENT, [UP_TIME], timeout=2.0) is ANSWER
    assert await snmp.get_next(AGENT, [UP_TIME], timeout=2.0) is ANSWER

    assert counts.split("facho_snmp_pdus_total") == {("get", "answered"): 1, ("get_next", "answered"): 1}
    assert counts.of("facho_snmp_round_trip_seconds_count") == 2
    assert counts.of("facho_snmp_round_trip_seconds_sum") == pytest.approx(0.04)
    assert counts.of("facho_snmp_varbinds_total") == 4
    assert counts.of("facho_snmp_sent_bytes_total") == 120
    assert counts.of("facho_snmp_received_bytes_total") == 180


async def test_an_error_of_the_agent_is_an_answer_of_its_own_kind(counts, clock):
    snmp = counts.metering.snmp(Olt(clock, Answer(ErrorStatus.TOO_BIG, 0, [], [], b"")))

    await snmp.get(AGENT, [UP_TIME], timeout=2.0)

    assert counts.split("facho_snmp_pdus_total") == {("get", "agent_error"): 1}
    assert counts.of("facho_snmp_round_trip_seconds_count") == 1


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (NoAnswer("no answer in 2 s"), "no_answer"),
        (BadAnswer("not BER"), "bad_answer"),
        (Refused("wrong digest"), "refused"),
        (asyncio.CancelledError(), "given_up"),
    ],
    ids=["silence", "rubbish", "turned away", "stopped by us"],
)
async def test_a_request_without_an_answer_has_no_round_trip(counts, clock, error, result):
    snmp = counts.metering.snmp(Olt(clock, error, seconds=2.0))

    with pytest.raises(type(error)):
        await snmp.get(AGENT, [UP_TIME], timeout=2.0)

    assert counts.split("facho_snmp_pdus_total") == {("get", result): 1}
    assert counts.of("facho_snmp_round_trip_seconds_count") == 0


class Database:
    def __init__(self, clock, error=None):
        self._clock = clock
        self._error = error

    async def write(self, *args, **more):
        self._clock.seconds += 0.3
        if self._error:
            raise self._error


async def test_a_harvest_that_is_written_is_measured(counts, clock):
    await counts.metering.sink(Database(clock)).write(make_node(), 1, HARVEST, lease=LEASE, now=T0)

    assert counts.of("facho_writer_seconds_sum") == pytest.approx(0.3)
    assert counts.of("facho_readings_written_total") == 3
    assert counts.split("facho_writer_failures_total") == {}


@pytest.mark.parametrize(
    ("error", "reason"),
    [(LeaseLost("it ran out"), "lease_lost"), (ConnectionError("the database is away"), "error")],
    ids=["the OLT is somebody else's by now", "the database is away"],
)
async def test_a_harvest_that_is_not_written_counts_as_nothing_but_that(counts, clock, error, reason):
    with pytest.raises(type(error)):
        await counts.metering.sink(Database(clock, error)).write(make_node(), 1, HARVEST, lease=LEASE, now=T0)

    assert counts.split("facho_writer_failures_total") == {(reason,): 1}
    assert counts.of("facho_readings_written_total") == 0
    assert counts.of("facho_writer_seconds_count") == 0


class Leases:
    """One OLT, that may be somebody else's, or be lost at any time."""

    def __init__(self):
        self.is_free = True
        self.is_kept = True
        self.given_back = 0

    @asynccontextmanager
    async def hold(self, olt_id, holder):
        if not self.is_free:
            raise OltBusy("OLT 7 is held by noc/2")
        try:
            yield Lease(olt_id, holder, 1)
        finally:
            self.given_back += 1

    def is_valid(self, lease):
        return self.is_kept


class TestLeases:
    @pytest.fixture
    def inner(self):
        return Leases()

    @pytest.fixture
    def leases(self, counts, inner):
        return counts.metering.leases(inner)

    async def test_one_that_is_held_counts_as_long_as_it_is(self, counts, inner, leases):
        async with leases.hold(7, "noc/1") as lease:
            during = counts.of("facho_leases_held")

        assert (lease, during, counts.of("facho_leases_held")) == (Lease(7, "noc/1", 1), 1, 0)
        assert counts.split("facho_lease_losses_total") == {}
        assert inner.given_back == 1

    async def test_one_that_somebody_else_has_is_counted(self, counts, inner, leases):
        inner.is_free = False

        with pytest.raises(OltBusy):
            async with leases.hold(7, "noc/1"):
                raise AssertionError("it is not ours")

        assert counts.of("facho_lease_refusals_total") == 1
        assert counts.of("facho_leases_held") == 0

    async def test_an_olt_that_is_found_busy_later_is_no_refusal_of_the_lease(self, counts, leases):
        with pytest.raises(OltBusy):
            async with leases.hold(7, "noc/1"):
                raise OltBusy("OLT 7 has another execution running")

        assert counts.of("facho_lease_refusals_total") == 0
        assert counts.of("facho_leases_held") == 0

    async def test_one_that_ends_while_it_is_held_is_lost(self, counts, inner, leases):
        async with leases.hold(7, "noc/1"):
            inner.is_kept = False

        assert counts.split("facho_lease_losses_total") == {("olt",): 1}
        assert inner.given_back == 1

    async def test_one_that_ends_because_a_person_wants_it_is_not_lost(self, counts, inner, leases):
        inner.is_kept = False

        with pytest.raises(asyncio.CancelledError):
            async with leases.hold(7, "noc/1"):
                raise asyncio.CancelledError

        assert counts.split("facho_lease_losses_total") == {}
        assert inner.given_back == 1

    def test_whether_it_is_valid_is_not_ours_to_say(self, inner, leases):
        inner.is_kept = False

        assert not leases.is_valid(LEASE)


async def test_how_olts_stood_last_is_kept_for_the_next_scrape(counts):
    standings = {7: Standing(1), 8: Standing(2, T0)}
    source = Recorder()
    source.answer = standings
    nodes = counts.metering.nodes(source)
    assert nodes.last == {}

    await nodes.standings()

    assert nodes.last is standings
