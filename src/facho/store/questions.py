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
        pending = await self._reader.run(lambda: _pending(limit, now))
        return await self._writer.run(lambda: [each for each in pending if _take(each)]) if pending else []

    async def reply(self, question_id: int, reply: Reply, *, now: datetime) -> None:
        await self._writer.run(lambda: _reply(question_id, reply, now))


def _pending(limit: int, now: datetime) -> list[Question]:
    rows = inventory.Question.objects.filter(state=State.PENDING, expires_at__gt=now).order_by("id")
    columns = rows.values_list("id", "olt_id", "kind", "body")[:limit]
    return [Question(id_, olt_id, QuestionKind(kind), body) for id_, olt_id, kind, body in columns]


def _take(question: Question) -> bool:
    return bool(inventory.Question.objects.filter(pk=question.id, state=State.PENDING).update(state=State.RUNNING))


def _reply(question_id: int, reply: Reply, now: datetime) -> None:
    state = State.FAILED if reply.error else State.ANSWERED
    running = inventory.Question.objects.filter(pk=question_id, state=State.RUNNING)
    # An agent may send NUL, which PostgreSQL refuses in text and in JSON.
    running.update(state=state, answer=_clean(reply.answer), error=reply.error.replace("\0", ""), answered_at=now)


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list | tuple) else value
