"""Users' questions to OLTs, as rows."""

from collections.abc import Sequence
from datetime import datetime

from facho.apps.inventory import models as inventory
from facho.engine.model import Question, QuestionKind, Reply
from facho.store.database import DbThread

State = inventory.Question.State


class DbQuestions:
    """Takes questions by a conditional update, so that each is answered once.

    Each check is one read of a partial index, which is nearly always empty.
    """

    def __init__(self, reader: DbThread, writer: DbThread) -> None:
        self._reader = reader
        self._writer = writer

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

    async def reply(self, question_id: int, reply: Reply, *, now: datetime) -> None:
        running = inventory.Question.objects.filter(pk=question_id, state=State.RUNNING)
        state = State.FAILED if reply.error else State.ANSWERED
        # An agent may send NUL, which PostgreSQL refuses in text and in JSON.
        answer, error = _clean(reply.answer), reply.error.replace("\0", "")
        await self._writer.run(lambda: running.update(state=state, answer=answer, error=error, answered_at=now))


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list | tuple) else value
