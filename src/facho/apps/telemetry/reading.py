"""Requests to read one ONU now: refused if the answer is known in advance, and limited per ONU and OLT."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import APIException

from facho.apps.inventory.models import Olt, Question
from facho.apps.inventory.spans import span
from facho.apps.jobs.models import SnmpJobOid
from facho.apps.telemetry.models import Onu
from facho.engine.model import QuestionKind

# An ONU is not asked again within this time: its answer would be the same.
READ_AGAIN_AFTER = timedelta(seconds=10)

# Each read holds the OLT for a second or two. More of them would delay its runs.
MOST_READS_PER_MINUTE = 10
MINUTE = timedelta(minutes=1)


class ReadRefused(APIException):
    """The OLT cannot be asked."""

    status_code = status.HTTP_409_CONFLICT


class ReadTooSoon(APIException):
    """It was asked a moment ago."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS

    def __init__(self, detail: str, wait: timedelta) -> None:
        super().__init__(detail)
        # Becomes the header Retry-After.
        self.wait = max(1, round(wait.total_seconds()))


def ask(onu: Onu, by: Any) -> Question:
    """Store the request for the engine. Raises `ReadRefused` and `ReadTooSoon`."""
    if refusal := refusal_of(onu):
        raise ReadRefused(refusal)
    _check_pace(onu)
    jobs = SnmpJobOid.objects.filter(
        job__nodes__olt=onu.olt_id, scalar=False, job__enabled=True, job__brand=onu.olt.brand
    )
    oids = {each.name: {"oid": each.oid, "decode": each.decode} for each in jobs}
    body = {
        "onu": onu.pk,
        "index": onu.index,
        "oids": [{"name": name, "scalar": False, **each} for name, each in oids.items()],
    }
    return Question.ask(onu.olt, QuestionKind.READ_ONU, body, by, about=onu)


def refusal_of(onu: Onu) -> str:
    """Return why an ONU cannot be read now, in the user's language; empty if it can be."""
    olt: Olt = onu.olt
    if not olt.enabled:
        return _("%(olt)s is disabled: nothing is read from it.") % {"olt": olt}
    if not olt.brand:
        return _("The brand of %(olt)s is not known yet, so it cannot be asked.") % {"olt": olt}
    if olt.breaker_opened_at is not None:
        since = span((timezone.now() - olt.breaker_opened_at).total_seconds())
        said = _("%(olt)s does not answer: its breaker has been open for %(span)s.")
        return said % {"olt": olt, "span": since}
    if onu.is_unplaced:
        return _("The OLT was replaced, and this ONU was not found on the new one yet.")
    if onu.place_taken:
        return _("The place of this ONU belongs to another ONU now, so it cannot be asked.")
    return ""


def _check_pace(onu: Onu) -> None:
    now = timezone.now()
    asked = Question.objects.filter(olt=onu.olt_id, kind=QuestionKind.READ_ONU, asked_at__gt=now - MINUTE)
    recent = list(asked.order_by("asked_at"))
    for each in recent:
        if each.body.get("onu") != onu.pk:
            continue
        if each.is_open:
            raise ReadTooSoon(_("This ONU is being read already."), READ_AGAIN_AFTER)
        age = now - each.asked_at
        if age < READ_AGAIN_AFTER:
            said = _("This ONU was read %(span)s ago. Wait a moment.") % {"span": span(age.total_seconds())}
            raise ReadTooSoon(said, READ_AGAIN_AFTER - age)
    if len(recent) >= MOST_READS_PER_MINUTE:
        said = _("%(n)d ONUs of %(olt)s were read in the last minute. Wait a moment, so that its runs are not delayed.")
        raise ReadTooSoon(said % {"n": len(recent), "olt": onu.olt}, recent[0].asked_at + MINUTE - now)
