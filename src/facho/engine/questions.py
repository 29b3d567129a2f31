"""Users' questions to OLTs: answered once, outside the pollers, under the lease of the OLT."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from facho.engine import oid
from facho.engine.brand import Brand, Decoder
from facho.engine.collect.sample import take_sample
from facho.engine.errors import FachoError, LeaseLost, OltBusy
from facho.engine.events import gettext_noop
from facho.engine.model import JobKind, KnownOnu, Node, Question, RawOid, Reply
from facho.engine.observer import Observer
from facho.engine.ports import Clock, NodeSource, OltLeases, Questions, Snmp
from facho.engine.scheduling.leased_snmp import LeasedSnmp, hold
from facho.engine.scheduling.pollers import PollerManager

logger = logging.getLogger(__name__)

# Interval between checks for new questions.
LOOK_EVERY = timedelta(seconds=0.5)

# Maximum wait for a run on the OLT to end, and the interval between checks in seconds.
WAIT_FOR_OLT = timedelta(seconds=10)
TRY_EVERY = 0.5

# Time limit for the requests of one question.
TIME_LIMIT = timedelta(seconds=15)

# Each question holds an OLT and delays its runs.
MOST_AT_ONCE = 8

BUSY = gettext_noop("The OLT is busy with a run. Try again when it has finished.")
FAILED = gettext_noop("Internal error. The details are in the log of Facho.")
STOPPED = gettext_noop("The engine was stopped before it could answer. Try again.")


class Answerer:
    """Answers each question once, one at a time per OLT, and never during a run."""

    def __init__(
        self,
        *,
        name: str,
        questions: Questions,
        nodes: NodeSource,
        known: Callable[[int], Awaitable[Sequence[KnownOnu]]],
        leases: OltLeases,
        snmp: Snmp,
        clock: Clock,
        gate: PollerManager,
        brand: Callable[[str], Brand],
        raw_decoders: Mapping[str, Decoder],
        observer: Observer | None = None,
    ) -> None:
        self._name = name
        self._questions = questions
        self._nodes = nodes
        self._known = known
        self._leases = leases
        self._snmp = snmp
        self._clock = clock
        self._gate = gate
        self._brand = brand
        self._raw_decoders = raw_decoders
        self._observer = observer or Observer()
        self._tasks: set[asyncio.Task[None]] = set()

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
        """Start to answer the open questions."""
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
            reply = await self._ask_when_free(question)
        except FachoError as error:
            reply = Reply(error=str(error))
        except asyncio.CancelledError:
            await self._questions.reply(question.id, Reply(error=STOPPED), now=self._clock.now())
            raise
        except Exception:
            # A bug must not leave the user waiting.
            logger.exception("question %d could not be answered", question.id)
            reply = Reply(error=FAILED)
        try:
            await self._questions.reply(question.id, reply, now=self._clock.now())
        except Exception:
            # The question expires.
            logger.exception("the answer to question %d could not be stored", question.id)

    async def _ask_when_free(self, question: Question) -> Reply:
        """Query the OLT when no run is in progress on it. New runs of it wait."""
        until = self._clock.monotonic() + WAIT_FOR_OLT.total_seconds()
        while True:
            if not self._gate.is_busy(question.olt_id):
                self._gate.hold(question.olt_id)
                try:
                    return await self._ask(question)
                except OltBusy:
                    # A worker or another process holds the lease.
                    logger.debug("OLT %d is busy, question %d is waiting", question.olt_id, question.id)
                finally:
                    self._gate.release(question.olt_id)
            if self._clock.monotonic() >= until:
                return Reply(error=BUSY)
            await self._clock.sleep(TRY_EVERY)

    async def _ask(self, question: Question) -> Reply:
        olt = await self._nodes.olt(question.olt_id)
        known = await self._known(question.olt_id)
        async with hold(self._leases, olt, f"{self._name}/question", self._observer) as lease:
            try:
                sample = await take_sample(
                    job_of(question),
                    olt,
                    self._brand(olt.brand),
                    snmp=LeasedSnmp(self._snmp, lease, self._leases.is_valid),
                    clock=self._clock,
                    deadline=self._clock.now() + TIME_LIMIT,
                    known=known,
                    raw_decoders=self._raw_decoders,
                )
            except LeaseLost:
                return Reply(error=BUSY)
        return Reply(asdict(sample))


def job_of(question: Question) -> Node:
    """Return the job of a question, as a node without a schedule."""
    body = question.body
    raw = [RawOid(each["name"], oid.parse(each["oid"]), each["decode"], each["scalar"]) for each in body["oids"]]
    return Node(
        id=0,
        olt_id=question.olt_id,
        name=body["name"],
        kind=JobKind(body["kind"]),
        interval=timedelta(0),
        columns=tuple(body["columns"]),
        oids=tuple(raw),
    )


def expiry(asked_at: datetime) -> datetime:
    """Return the expiry of a question: twice the longest time that an answer can take."""
    return asked_at + 2 * (WAIT_FOR_OLT + TIME_LIMIT)
