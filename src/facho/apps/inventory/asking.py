"""Waiting of a request for the answer to a question."""

from functools import wraps
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from rest_framework import status
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from facho.adapters.clock import SystemClock
from facho.apps.inventory.models import Question
from facho.apps.inventory.serializers import QuestionSerializer
from facho.engine.ports import Clock

# Seconds that a request waits for the answer of an OLT, and between checks.
WAIT_SECONDS = 20.0
LOOK_EVERY = 0.2
CLOCK: Clock = SystemClock()


def answering(ask: Any) -> Any:
    """Return a view that sends the request of `ask`, which returns a question with 202, and waits for the answer.

    Waiting in a sync view would block all other requests. The parameter `wait` of the request shortens the wait.
    """

    @wraps(ask)
    async def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        asked: Any = await sync_to_async(ask)(request, *args, **kwargs)
        if asked.status_code != status.HTTP_202_ACCEPTED:
            return cast(HttpResponseBase, asked)
        until = CLOCK.monotonic() + float(request.GET.get("wait") or WAIT_SECONDS)
        while CLOCK.monotonic() < until:
            await CLOCK.sleep(LOOK_EVERY)
            answer = await sync_to_async(_answer)(request, asked.data["id"])
            if answer is not None:
                return HttpResponse(answer, content_type="application/json")
        return cast(HttpResponseBase, asked)

    return view


def _answer(request: HttpRequest, question_id: int) -> bytes | None:
    """Return a question with its answer as JSON, or None while there is no answer."""
    question = Question.objects.select_related("olt").get(pk=question_id)
    if question.is_open:
        return None
    context = {"request": Request(request)}
    return JSONRenderer().render(QuestionSerializer(question, context=context).data)
