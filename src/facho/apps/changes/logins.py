"""Logins in the record: from the signals of Django, and failures from the handler that counts them."""

from dataclasses import replace
from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver

from facho.apps.changes.actor import current
from facho.apps.changes.models import LONGEST_NAME, Change
from facho.apps.changes.record import record, write


@receiver(user_logged_in)
def record_login(user: Any, **_signal: Any) -> None:
    if (actor := current()) is not None:
        actor.logged_in = user
        record(Change.Action.LOGIN, user)


@receiver(user_logged_out)
def record_logout(user: Any, **_signal: Any) -> None:
    if user is not None and (actor := current()) is not None:
        # The request has no user any more.
        actor.logged_in = user
        record(Change.Action.LOGOUT, user)


def record_attempt(action: str, name: str, address: str | None = None, note: str = "") -> None:
    """Record an attempt under the name that was tried. A request may have a user too.

    `address` is that of a lock; the one of the request if it is omitted.
    """
    if (actor := current()) is not None:
        where = actor.address if address is None else address
        tried = replace(actor, name=name[:LONGEST_NAME], address=where, note=note, request=None, logged_in=None)
        write(tried, action, [(None, {})])
