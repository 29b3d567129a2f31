"""Users' questions to OLTs: answered once, outside the pollers, under the lease of the OLT."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from facho.engine import oid
from facho.engine.brand import Brand, Decoder
from facho.engine.collect import collect
from facho.engine.collect.sample import take_sample
from facho.engine.errors import FachoError, LeaseLost, OltBusy
from facho.engine.events import gettext_noop
from facho.engine.model import (
    Collected,
    Completeness,
    JobKind,
    KnownOnu,
    Lease,
    Node,
    Olt,
    OnuRead,
    Question,
    QuestionKind,
    RawOid,
    Reply,
)
from facho.engine.observer import Observer
from facho.engine.ports import Clock, EventBus, NodeSource, OltLeases, Questions, Runs, Snmp
from facho.engine.scheduling.leased_snmp import LeasedSnmp, hold
from facho.engine.scheduling.pollers import PollerManager

logger = logging.getLogger(__name__)

# Interval between checks for new questions.
LOOK_EVERY = timedelta(seconds=0.5)

# Maximum wait for a run on the OLT to end, and the interval between checks in seconds. A user at the phone rather
# waits for a long run than asks again; a trial of a job is not urgent.
WAIT_FOR_OLT = {QuestionKind.TRY_JOB: timedelta(seconds=10), QuestionKind.READ_ONU: timedelta(minutes=2)}
TRY_EVERY = 0.5

# Time limit for the requests of one question.
TIME_LIMIT = timedelta(seconds=15)

# Each question holds an OLT and delays its runs.
MOST_AT_ONCE = 8

BUSY = gettext_noop("The OLT is busy with a run. Try again when it has finished.")
FAILED = gettext_noop("Internal error. The details are in the log of Facho.")
STOPPED = gettext_noop("The engine was stopped before it could answer. Try again.")
NO_SUCH_ONU = gettext_noop("The OLT has no such ONU now.")
MOVED = gettext_noop("The ONU is not at its place any more. The next discovery will find where it is.")
NOT_READABLE = gettext_noop("The OLT gives no usable answer for this ONU.")


class Answerer:
    """Answers each question once, one at a time per OLT, and never during a run."""

    def __init__(
        self,
        *,
        name: str,
        questions: Questions,
        nodes: NodeSource,
        runs: Runs,
        leases: OltLeases,
        snmp: Snmp,
        clock: Clock,
        bus: EventBus,
        gate: PollerManager,
        brand: Callable[[str], Brand],
        raw_decoders: Mapping[str, Decoder],
        observer: Observer | None = None,
    ) -> None:
        self._name = name
        self._questions = questions
        self._nodes = nodes
        self._runs = runs
        self._leases = leases
        self._snmp = snmp
        self._clock = clock
        self._bus = bus
        self._gate = gate
        self._brand = brand
        self._raw_decoders = raw_decoders
        self._observer = observer or Observer()
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_recovered = False

    async def run(self) -> None:
        """Answer questions until this is cancelled."""
        while True:
            try:
                await self.step()
            except Exception:
                # The database may be unavailable. The next check tries again.
                logger.exception("questions could not be read, retrying in %.1f s", LOOK_EVERY.total_seconds())
            await self._clock.sleep(LOOK_EVERY.total_seconds())

    async def step(self) -> None:
        """Start to answer the open questions, also those that an earlier engine did not finish."""
        if not self._has_recovered:
            await self._questions.recover()
            self._has_recovered = True
        room = MOST_AT_ONCE - len(self._tasks)
        if room <= 0:
            return
        for question in await self._questions.take(limit=room, now=self._clock.now()):
            task = asyncio.create_task(self._answer(question), name=f"question-{question.id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stop. Questions in progress are answered with an error."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, question: Question) -> None:
        try:
            with self._gate.reserved(question.olt_id):
                await self._ask_when_free(question)
            return
        except FachoError as error:
            reply = Reply(error=str(error))
        except asyncio.CancelledError:
            await self._reply(question, Reply(error=STOPPED))
            raise
        except Exception:
            # A bug must not leave the user waiting.
            logger.exception("question %d could not be answered", question.id)
            reply = Reply(error=FAILED)
        try:
            await self._reply(question, reply)
        except Exception:
            # The question expires.
            logger.exception("the answer to question %d could not be stored", question.id)

    async def _reply(self, question: Question, reply: Reply) -> None:
        await self._questions.reply(question.id, reply, now=self._clock.now())

    async def _ask_when_free(self, question: Question) -> None:
        """Query the OLT when no run is in progress on it. New runs of it wait."""
        until = self._clock.monotonic() + WAIT_FOR_OLT[question.kind].total_seconds()
        waits_for: Node | None = None
        while True:
            run = self._gate.run_on(question.olt_id)
            if (run and run.id) != (waits_for and waits_for.id):
                waits_for = run
                await self._questions.wait(question.id, run)
            if not self._gate.is_busy(question.olt_id):
                self._gate.hold(question.olt_id)
                try:
                    await self._ask(question)
                    return
                except OltBusy:
                    # A worker or another process holds the lease.
                    logger.debug("OLT %d is busy, question %d is waiting", question.olt_id, question.id)
                finally:
                    self._gate.release(question.olt_id)
            if self._clock.monotonic() >= until:
                await self._reply(question, Reply(error=BUSY))
                return
            await self._clock.sleep(TRY_EVERY)

    async def _ask(self, question: Question) -> None:
        """Query the OLT and store the reply under one lease, so that no run starts in between."""
        olt = await self._nodes.olt(question.olt_id)
        async with hold(self._leases, olt, f"{self._name}/question", self._observer) as lease:
            try:
                reply = await (self._try_job if question.kind is QuestionKind.TRY_JOB else self._read_onu)(
                    question, olt, lease
                )
                await self._reply(question, reply)
            except LeaseLost:
                await self._reply(question, Reply(error=BUSY))
                return
        if reply.read is not None:
            self._bus.publish("readings", {"olt_id": olt.id, "node_id": reply.read.node.id, "count": 1})

    async def _try_job(self, question: Question, olt: Olt, lease: Lease) -> Reply:
        sample = await take_sample(
            job_of(question),
            olt,
            self._brand(olt.brand),
            snmp=LeasedSnmp(self._snmp, lease, self._leases.is_valid),
            clock=self._clock,
            deadline=self._clock.now() + TIME_LIMIT,
            known=await self._runs.known(olt.id),
            raw_decoders=self._raw_decoders,
        )
        return Reply(asdict(sample))

    async def _read_onu(self, question: Question, olt: Olt, lease: Lease) -> Reply:
        brand, index = self._brand(olt.brand), question.body["index"]
        onu = next((each for each in await self._runs.known(olt.id) if each.index == index), None)
        if onu is None:
            return Reply(error=MOVED)
        node = read_of(question, olt, brand)
        began = self._clock.monotonic()
        collected = await collect(
            node,
            olt,
            brand,
            snmp=LeasedSnmp(self._snmp, lease, self._leases.is_valid),
            clock=self._clock,
            deadline=self._clock.now() + TIME_LIMIT,
            known=[asked_for(onu)],
            raw_decoders=self._raw_decoders,
        )
        return reply_of(index, node, collected, lease, self._clock.monotonic() - began)


def job_of(question: Question) -> Node:
    """Return the job of a question, as a node without a schedule."""
    body = question.body
    return Node(
        id=0,
        olt_id=question.olt_id,
        name=body["name"],
        kind=JobKind(body["kind"]),
        interval=timedelta(0),
        columns=tuple(body["columns"]),
        oids=_raw_oids(body),
    )


def read_of(question: Question, olt: Olt, brand: Brand) -> Node:
    """Return a GET of all columns of a brand that can be requested for one ONU, and of these OIDs."""
    columns = tuple(name for name, column in brand.columns.items() if column.space.by_index)
    oids = _raw_oids(question.body)
    return Node(0, olt.id, "read", JobKind.GET, timedelta(0), olt.name, columns=columns, oids=oids)


def _raw_oids(body: Mapping[str, Any]) -> tuple[RawOid, ...]:
    return tuple(RawOid(each["name"], oid.parse(each["oid"]), each["decode"], each["scalar"]) for each in body["oids"])


def asked_for(onu: KnownOnu) -> KnownOnu:
    """Return an ONU so that it is requested even if it is missing. Then only its serial proves that it answered."""
    return replace(onu, is_missing=False, misses=max(1, onu.misses)) if onu.is_missing else onu


def reply_of(index: str, node: Node, collected: Collected, lease: Lease, seconds: float) -> Reply:
    """Return the values of one ONU as a reply, or why there are none."""
    readings = [reading for reading in collected.readings if reading.index == index]
    if not readings:
        is_cut = any(each.completeness is Completeness.PARTIAL for each in collected.coverage)
        return Reply(error=NOT_READABLE if is_cut else NO_SUCH_ONU)
    values = readings[0].values
    names = (*node.columns, *(raw.name for raw in node.oids))
    answer = {
        "values": {name: _plain(value) for name, value in values.items()},
        "unanswered": [name for name in names if name not in values],
        "requests": collected.traffic.pdus,
        "seconds": round(seconds, 3),
    }
    # What one small read learns about the agent, such as request sizes, is no measure for whole runs.
    return Reply(answer, read=OnuRead(index, node, replace(collected, learned={}), lease))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def expiry(kind: QuestionKind, asked_at: datetime) -> datetime:
    """Return the expiry of a question: more than the longest time that an answer can take."""
    return asked_at + WAIT_FOR_OLT[kind] + 2 * TIME_LIMIT + timedelta(seconds=10)
