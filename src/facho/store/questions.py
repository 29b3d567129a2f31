"""Users' questions to OLTs, as rows."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from facho.apps.inventory import models as inventory
from facho.engine.errors import LeaseLost
from facho.engine.model import Node, OnuRead, Question, QuestionKind, Reply
from facho.engine.presence import USUAL_RULES, Rules
from facho.store import leases, sql
from facho.store.database import DbThread
from facho.store.inventory import Inventories
from facho.store.presence import PresenceVerdict, tell_census
from facho.store.runs import Results, write_collected

State = inventory.Question.State


class DbQuestions:
    """Takes questions by a conditional update, so that each is answered once.

    Each check is one read of a partial index, which is nearly always empty. Values of an ONU are stored like those of
    a run. Results that wait for the database come first, because they are older.
    """

    def __init__(
        self,
        reader: DbThread,
        writer: DbThread,
        results: Results,
        inventories: Inventories | None = None,
        rules: Rules = USUAL_RULES,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._results = results
        # Shared with the runs of this process.
        self._inventories = inventories or Inventories()
        self._rules = rules

    async def take(self, *, limit: int, now: datetime) -> Sequence[Question]:
        pending = inventory.Question.objects.filter(state=State.PENDING)
        columns = pending.filter(expires_at__gt=now).order_by("id").values_list("id", "olt_id", "kind", "body")[:limit]
        found = await self._reader.run(lambda: list(columns))
        if not found:
            return []
        taken = await self._writer.run(
            lambda: [row for row in found if pending.filter(pk=row[0]).update(state=State.RUNNING)]
        )
        return [Question(id_, olt_id, QuestionKind(kind), body) for id_, olt_id, kind, body in taken]

    async def recover(self) -> None:
        left = inventory.Question.objects.filter(state=State.RUNNING)
        await self._writer.run(lambda: left.update(state=State.PENDING, waits_for={}))

    async def wait(self, question_id: int, run: Node | None) -> None:
        waits_for = {} if run is None else {"job": run.name, "seconds": run.expected}
        running = inventory.Question.objects.filter(pk=question_id, state=State.RUNNING)
        await self._writer.run(lambda: running.update(waits_for=waits_for))

    async def reply(self, question_id: int, reply: Reply, *, now: datetime) -> None:
        read = reply.read
        if read is None:
            await self._writer.run(lambda: _store_reply(question_id, reply, now))
            return
        await self._results.flush()
        try:
            verdict = await self._writer.run(
                lambda: _store_read(question_id, reply, read, self._inventories, self._rules, now)
            )
        except BaseException:
            self._inventories.drop(read.node.olt_id)
            raise
        if verdict is not None:
            tell_census(read.node, verdict)


def _store_reply(question_id: int, reply: Reply, now: datetime) -> bool:
    """Store a reply to a question that has none yet; False if it has."""
    running = inventory.Question.objects.filter(pk=question_id, state=State.RUNNING)
    state = State.FAILED if reply.error else State.ANSWERED
    # An agent may send NUL, which PostgreSQL refuses in text and in JSON.
    answer, error = _clean(reply.answer), reply.error.replace("\0", "")
    return bool(running.update(state=state, answer=answer, error=error, waits_for={}, answered_at=now))


@transaction.atomic(savepoint=False)
def _store_read(
    question_id: int, reply: Reply, read: OnuRead, inventories: Inventories, rules: Rules, now: datetime
) -> PresenceVerdict | None:
    """Store a reply and the values of its ONU. The locked lease keeps other holders out until the commit."""
    if not leases.keep(read.lease):
        raise LeaseLost("another process polls the OLT now; the values were not stored")
    if not _store_reply(question_id, reply, now):
        return None
    olt_id = read.node.olt_id
    ((version,),) = sql.fetch("SELECT inventory_version FROM olts WHERE id = %s", olt_id)
    known = inventories.get(olt_id, version)
    verdict = write_collected(known, read.node, read.collected, rules, now, is_single=True)
    # Its place may belong to another ONU by now.
    (onu_id,) = known.ids_of([read.index])
    inventory.Question.objects.filter(pk=question_id).update(answer={**_clean(reply.answer), "onu": onu_id})
    return verdict


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list | tuple) else value
