"""Failed logins, and locks against guessing passwords. The counting is done by django-axes.

Three numbers are counted, each until `FACHO_LOGIN_LOCK_MINUTES` after the last failure:

* of a user from an address: stops an attacker without affecting the user elsewhere;
* of an address with any user: stops an attacker who tries one password with many users;
* of a user from all addresses: stops an attacker with many addresses. It does not count for an address from which the
  user has logged in before, or such an attacker could lock the user out.
"""

import ipaddress
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt, AccessLog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max, Q, QuerySet, Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import ngettext

from facho.apps.accounts.external import LoginRefused
from facho.apps.changes.logins import record_attempt
from facho.apps.changes.models import LONGEST_NAME, Change
from facho.apps.changes.record import record
from facho.apps.rest.addresses import Address, client_address, parse_address

# Multiples of FACHO_LOGIN_FAILURES for an address with any user, and for a user from all addresses.
ADDRESS_FACTOR = 10
USER_FACTOR = 20

# An IPv6 client has a whole network of addresses.
IPV6_PREFIX = 64

# Shared by addresses with the same hash.
_TURNS = [threading.Lock() for _number in range(64)]


def counted_address(request: HttpRequest) -> str | None:
    """Return the address under which failures of a client are counted."""
    return _counted(client_address(request))


def _counted(address: Address | None) -> str | None:
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False).network_address)
    return None if address is None else str(address)


def turn_of(request: HttpRequest | None) -> threading.Lock:
    """Return the lock under which a client tries passwords and codes: one after the other.

    A check takes tenths of a second. Of a hundred at once, many would be tried before the first failure is counted.
    """
    return _TURNS[hash(request and counted_address(request)) % len(_TURNS)]


def counted_name(request: HttpRequest | None, credentials: Mapping[str, Any] | None) -> str:
    """Return the user name under which failures are counted, the same for all ways to write it."""
    name = (credentials or {}).get("username") or ""
    plain = "".join(each for each in unicodedata.normalize("NFKC", name).casefold() if each.isprintable())
    return plain.strip()[:255]


@dataclass(frozen=True, slots=True)
class Failures:
    """Failures that count together. Their limit is a multiple of `FACHO_LOGIN_FAILURES`."""

    number: int
    last_at: datetime | None
    factor: int
    # Whom a lock concerns. Empty: any user, any address.
    username: str = ""
    address: str = ""

    @classmethod
    def of(cls, attempts: QuerySet[AccessAttempt], factor: int, username: str = "", address: str = "") -> "Failures":
        found = attempts.aggregate(number=Sum("failures_since_start", default=0), last_at=Max("attempt_time"))
        return cls(factor=factor, username=username, address=address, **found)

    @property
    def are_too_many(self) -> bool:
        return self.number >= settings.AXES_FAILURE_LIMIT * self.factor

    def record_lock(self) -> None:
        """Record that these failures have locked somebody, once: nothing is counted during the lock."""
        known = Change.objects.filter(action=Change.Action.LOCKED_OUT, actor=self.username, address=self.address)
        if known.filter(at__gte=self.last_at).exists():
            return
        note = "" if self.username and self.address else "all addresses" if self.username else "all users"
        record_attempt(Change.Action.LOCKED_OUT, self.username, self.address, note)


class LoginHandler(AxesDatabaseHandler):
    """Counts failed logins in the database, which all processes share."""

    def get_failures(self, request: Any, credentials: Mapping[str, Any] | None = None) -> int:
        """Return the number that axes compares with the limit."""
        return max(each.number // each.factor for each in self.counted(request, credentials))

    def counted(self, request: Any, credentials: Mapping[str, Any] | None) -> Iterator[Failures]:
        name, address = counted_name(request, credentials), request.axes_ip_address
        recent, shown = AccessAttempt.objects.filter(attempt_time__gt=get_cool_off_threshold(request)), address or ""
        yield Failures.of(recent.filter(username=name, ip_address=address), 1, name, shown)
        yield Failures.of(recent.filter(ip_address=address), ADDRESS_FACTOR, address=shown)
        if not AccessLog.objects.filter(username=name, ip_address=address).exists():
            yield Failures.of(recent.filter(username=name), USER_FACTOR, name)

    def is_allowed(self, request: Any, credentials: Mapping[str, Any] | None = None) -> bool:
        """Return whether a login is tried. At an OIDC provider nobody can guess a password of Facho."""
        return "nonce" in (credentials or {}) or bool(super().is_allowed(request, credentials))

    def user_login_failed(self, sender: Any, credentials: Any, request: Any = None, **kwargs: Any) -> None:
        """Count and record a failure. During a lock, nothing is counted, and only the lock is recorded.

        There is one row for a user and an address, whatever browser the client claims to be.
        """
        tried = "".join(each for each in str(credentials.get("username") or "") if each.isprintable())
        if sender is LoginRefused:
            # The password was right, but Facho refuses the person, who could repeat that without end.
            if not _was_recorded(tried):
                record_attempt(Change.Action.LOGIN_FAILED, tried)
            return
        if not request.axes_locked_out:
            record_attempt(Change.Action.LOGIN_FAILED, tried)
        request.axes_user_agent = ""
        super().user_login_failed(sender, credentials, request, **kwargs)
        if request.axes_locked_out:
            for each in self.counted(request, credentials):
                if each.are_too_many:
                    each.record_lock()

    def user_logged_in(self, sender: Any, request: Any, user: Any, **kwargs: Any) -> None:
        """Forget the failures of this user from this address, and remember the address."""
        super().user_logged_in(sender, request, user, **kwargs)
        name = counted_name(request, {"username": user.get_username()})
        known = AccessLog.objects.filter(username=name, ip_address=request.axes_ip_address)
        if not known.update(attempt_time=timezone.now()):
            AccessLog.objects.create(username=name, ip_address=request.axes_ip_address)


def _was_recorded(name: str) -> bool:
    """Return whether a refusal of a person was recorded within the time of a lock."""
    since = timezone.now() - settings.AXES_COOLOFF_TIME
    return Change.objects.filter(action=Change.Action.LOGIN_FAILED, actor=name[:LONGEST_NAME], at__gt=since).exists()


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock of a user or an address."""

    seconds: int

    @property
    def sentence(self) -> str:
        minutes = -(-self.seconds // 60)
        return ngettext(
            "Too many failed logins. Try again in %(minutes)d minute, or ask an admin to unlock you.",
            "Too many failed logins. Try again in %(minutes)d minutes, or ask an admin to unlock you.",
            minutes,
        ) % {"minutes": minutes}

    @property
    def error(self) -> ValidationError:
        return ValidationError(self.sentence, code="locked", params={"seconds": self.seconds})


def lock_of(request: HttpRequest, username: str) -> Lock | None:
    """Return the lock of a user at the address of this request."""
    AxesProxyHandler.update_request(request)
    handler: Any = AxesProxyHandler.get_implementation()
    ends = [
        each.last_at + settings.AXES_COOLOFF_TIME
        for each in handler.counted(request, {"username": username})
        if each.are_too_many
    ]
    if not ends:
        return None
    remaining = (max(ends) - timezone.now()).total_seconds()
    return Lock(round(min(max(remaining, 1), settings.AXES_COOLOFF_TIME.total_seconds())))


def lock_end(failed: AccessAttempt) -> datetime | None:
    """Return the end of the lock of a user at an address, or None if they are not locked there."""
    ends_at: datetime = failed.attempt_time + settings.AXES_COOLOFF_TIME
    is_locked = failed.failures_since_start >= settings.AXES_FAILURE_LIMIT and ends_at >= timezone.now()
    return ends_at if is_locked else None


def locked_names() -> set[str]:
    """Return the names that are locked at an address, or at all addresses without an earlier login."""
    recent = AccessAttempt.objects.filter(attempt_time__gt=timezone.now() - settings.AXES_COOLOFF_TIME)
    by_name: dict[str, int] = {}
    locked = set()
    for name, failures in recent.values_list("username", "failures_since_start"):
        by_name[name] = by_name.get(name, 0) + failures
        if failures >= settings.AXES_FAILURE_LIMIT or by_name[name] >= settings.AXES_FAILURE_LIMIT * USER_FACTOR:
            locked.add(name)
    return locked


def unlock(target: str) -> int:
    """Forget the failures of a user or of an address, and return their number."""
    found = Q(username=counted_name(None, {"username": target}))
    if address := _counted(parse_address(target)):
        found |= Q(ip_address=address)
    return forget(AccessAttempt.objects.filter(found))


def unlock_all() -> int:
    return forget(AccessAttempt.objects.all())


@transaction.atomic
def forget(attempts: QuerySet[Any]) -> int:
    """Delete failed logins, so that their locks end, and return their number."""
    number = Failures.of(attempts, 1).number
    for failed in attempts:
        # The name that was tried may be no user's name.
        user = User.objects.filter(username=failed.username).first()
        fields = {"username": [failed.username, None], "address": [failed.ip_address, None]}
        record(Change.Action.UNLOCKED, user, fields)
    attempts.delete()
    return number
