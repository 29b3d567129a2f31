"""The actor of each request, and its id."""

import re
import uuid
from inspect import iscoroutinefunction
from typing import Any

from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware
from rest_framework.settings import api_settings

from facho.apps.changes.actor import Actor, Interface, acting
from facho.apps.rest.addresses import client_address

HEADER = "X-Request-ID"
VALID_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

INTERFACES = (("/admin/", Interface.ADMIN), ("/api/", Interface.API))


@sync_and_async_middleware
def acting_requests(get_response: Any) -> Any:
    """Set the actor during each request. The answer has the id of the request, as the record and the log have it."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> Any:
            with acting(actor := _actor(request)):
                response = await get_response(request)
            response[HEADER] = actor.request_id
            return response

        return answer_async

    def answer(request: HttpRequest) -> Any:
        with acting(actor := _actor(request)):
            response = get_response(request)
        response[HEADER] = actor.request_id
        return response

    return answer


def _actor(request: HttpRequest) -> Actor:
    path = request.path_info
    through = next((interface for start, interface in INTERFACES if path.startswith(start)), Interface.PAGE)
    address, request_id = client_address(request), _request_id(request)
    # For the log: Django logs a refusal after the end of the request.
    request.request_id = request_id  # type: ignore[attr-defined]  # of ours
    return Actor(through, address=str(address or ""), request_id=request_id, request=request)


def _request_id(request: HttpRequest) -> str:
    """Return the id that our proxy gave to the request, or a new one. Other clients could repeat an id."""
    given = request.headers.get(HEADER, "") if api_settings.NUM_PROXIES else ""
    return given if VALID_ID.fullmatch(given) else uuid.uuid4().hex
