"""What every source of questions promises: each is taken once, in order, and keeps its first reply."""

from datetime import timedelta

import pytest
from builders import MIN, SEC, T0
from worlds import Inline, done

from facho.apps.inventory import models as inventory
from facho.engine.model import Question, QuestionKind, Reply
from facho.store.questions import DbQuestions
from facho.store.runs import DbResults
from in_memory import MemoryQuestions

BODY = {"name": "Power", "kind": "table", "columns": ["rx_dbm"], "oids": []}


class MemoryDesk:
    def __init__(self):
        self.questions = MemoryQuestions()
        self.olt_id = 1
        self._count = 0

    def ask(self, expires_at=T0 + MIN):
        self._count += 1
        question = Question(self._count, self.olt_id, QuestionKind.TRY_JOB, BODY)
        self.questions.ask(question, expires_at=expires_at)
        return question.id

    def reply_of(self, question_id):
        return self.questions.replies.get(question_id)


class DbDesk:
    def __init__(self):
        self.questions = DbQuestions(Inline(), Inline(), DbResults(Inline()))
        self.olt_id = inventory.Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1").pk

    def ask(self, expires_at=T0 + MIN):
        return inventory.Question.objects.create(
            olt_id=self.olt_id, kind="try_job", body=BODY, asked_at=T0, expires_at=expires_at
        ).pk

    def reply_of(self, question_id):
        row = inventory.Question.objects.get(pk=question_id)
        return None if row.answered_at is None else Reply(row.answer, row.error)


@pytest.fixture(
    params=[pytest.param(MemoryDesk, id="memory"), pytest.param(DbDesk, id="database", marks=pytest.mark.django_db)]
)
def desk(request, db):
    return request.param()


def take(desk, limit=8, now=T0):
    return [question.id for question in done(desk.questions.take(limit=limit, now=now))]


def reply(desk, question_id, answer):
    done(desk.questions.reply(question_id, answer, now=T0 + SEC))


def test_a_question_says_what_is_asked_of_whom(desk):
    id_ = desk.ask()

    assert done(desk.questions.take(limit=8, now=T0)) == [Question(id_, desk.olt_id, QuestionKind.TRY_JOB, BODY)]


def test_nothing_is_asked(desk):
    assert take(desk) == []


def test_each_is_taken_once_oldest_first(desk):
    ids = [desk.ask() for _ in range(3)]

    assert [take(desk, limit=2), take(desk), take(desk)] == [ids[:2], ids[2:], []]


@pytest.mark.parametrize(
    ("later", "taken"), [(timedelta(0), True), (59 * SEC, True), (60 * SEC, False)], ids=["new", "late", "expired"]
)
def test_an_expired_one_is_not_taken(desk, later, taken):
    desk.ask()

    assert bool(take(desk, now=T0 + later)) == taken


@pytest.mark.parametrize(
    "said", [Reply({"columns": [{"name": "rx_dbm", "rows": []}]}), Reply(error="no answer")], ids=["answer", "error"]
)
def test_the_first_reply_stays(desk, said):
    id_ = desk.ask()
    take(desk)

    reply(desk, id_, said)
    reply(desk, id_, Reply({"columns": "others"}))

    assert desk.reply_of(id_) == said


def test_one_that_nobody_took_gets_no_reply(desk):
    id_ = desk.ask()

    reply(desk, id_, Reply({"columns": []}))

    assert desk.reply_of(id_) is None
