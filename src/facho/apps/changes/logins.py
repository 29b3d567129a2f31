"""Logins in the record, from the signals of Django."""

from dataclasses import replace
from typing import Any

from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.utils import timezone

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


@receiver(user_login_failed)
def record_failure(credentials: dict[str, Any], request: Any = None, **_signal: Any) -> None:
    name = _printable(credentials.get("username"))
    if not (getattr(request, "axes_locked_out", False) and _is_lock_recorded(name)):
        _record_attempt(Change.Action.LOGIN_FAILED, name)


@receiver(user_locked_out)
def record_lockout(username: str | None, **_signal: Any) -> None:
    """Record a lock once. It is reported again at each attempt: an attacker could fill the record."""
    name = _printable(username)
    if not _is_lock_recorded(name):
        _record_attempt(Change.Action.LOCKED_OUT, name)


def _printable(name: Any) -> str:
    """Return a tried name, which may be no user's name."""
    return "".join(each for each in str(name or "") if each.isprintable())[:LONGEST_NAME]


def _is_lock_recorded(name: str) -> bool:
    actor = current()
    since = timezone.now() - settings.AXES_COOLOFF_TIME
    locks = Change.objects.filter(actor=name, action=Change.Action.LOCKED_OUT, at__gt=since)
    return actor is not None and locks.filter(address=actor.address).exists()


def _record_attempt(action: str, name: str) -> None:
    """Record an attempt under the name that was tried. A request may have a user too."""
    if (actor := current()) is not None:
        write(replace(actor, name=name, request=None, logged_in=None), action, [(None, {})])
