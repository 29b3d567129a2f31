"""Age of an ONU's value: the node that reads it, its last run, and obstacles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from facho.apps.coordinator.obstacles import waiting_for
from facho.apps.dashboard.history import POWERS
from facho.apps.dashboard.queries import NodeRow
from facho.apps.inventory.formats import moment_and_zone
from facho.apps.inventory.spans import interval
from facho.apps.jobs.columns import columns_read
from facho.apps.polling.coverage import failure_at
from facho.apps.polling.errors import first_line
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu
from facho.engine.model import Status

# Time beyond the interval that is not a delay: a run needs a moment to reach the ONU.
GRACE = timedelta(seconds=60)

# Level and sentence.
Verdict = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Freshness:
    """Explanation of one value: sentence, level (ok, late, bad), and the nodes that read it."""

    read_at: datetime | None
    level: str
    sentence: str
    readers: Sequence[NodeRow]


def power_freshness(onu: Onu, rows: Sequence[NodeRow], news: Mapping[str, Any], now: datetime) -> Freshness:
    """Explain the age of an ONU's power."""
    dark = _("The ONU is down: there is no power to read.") if onu.state in Onu.DARK else ""
    return _freshness(onu, onu.power_at, set(POWERS), rows, news, now, no_value=dark)


def state_freshness(onu: Onu, rows: Sequence[NodeRow], news: Mapping[str, Any], now: datetime) -> Freshness:
    """Explain the age of an ONU's state."""
    return _freshness(onu, onu.state_at, {"state"}, rows, news, now, no_value="")


def _freshness(
    onu: Onu,
    read_at: datetime | None,
    fields: set[str],
    rows: Sequence[NodeRow],
    news: Mapping[str, Any],
    now: datetime,
    *,
    no_value: str,
) -> Freshness:
    readers = [
        row for row in rows if fields & {*columns_read(row.node.job.brand, row.node.job.kind, row.node.job.columns)}
    ]
    # The most frequent first; disabled ones last.
    readers.sort(key=lambda row: (not row.runs, row.scheduled.interval_seconds))
    verdict = (
        _not_readable(onu, readers)
        # A value may be young enough although its last run failed: the next one will fail too.
        or _has_failed(onu, fields, readers[0], read_at)
        or _upcoming_run(readers[0], read_at, news, now)
        or _last_run(readers[0], read_at, no_value)
    )
    return Freshness(read_at, *verdict, readers)


def _not_readable(onu: Onu, readers: Sequence[NodeRow]) -> Verdict | None:
    """Explain if no run reads it, or if the ONU is missing or part of an unconfirmed mass disappearance."""
    if not readers:
        return "bad", _("No node of %(olt)s reads it. Apply a job that reads it.") % {"olt": onu.olt}
    if not onu.olt.enabled:
        return "bad", _("%(olt)s is disabled, so nothing is read from it.") % {"olt": onu.olt}
    if not readers[0].runs:
        return "bad", _("%(node)s would read it, but is disabled.") % {"node": readers[0].node.job}
    if onu.missing_since is not None:
        sentence = _("The ONU has been missing since %(time)s: discoveries do not find it on its port.")
        return "bad", sentence % {"time": moment_and_zone(onu.missing_since)}
    if onu.misses:
        return "late", _("The last discovery did not find the ONU on its port. The next one will confirm it.")
    return None


def _upcoming_run(reader: NodeRow, read_at: datetime | None, news: Mapping[str, Any], now: datetime) -> Verdict | None:
    """Explain if its run is not due, is running, or is due but has not started."""
    job, every = reader.node.job, reader.scheduled.interval_seconds
    if read_at is not None and now - read_at <= timedelta(seconds=every) + GRACE:
        sentence = _("%(node)s reads it every %(interval)s: it is on schedule.")
        return "ok", sentence % {"node": job, "interval": interval(every)}
    if reader.now is not None and reader.now.status == Status.RUNNING:
        return "late", _("%(node)s is reading it now.") % {"node": job}
    if news["stale"]:
        return "bad", _("The engine does not report: nothing is read until it is back.")
    waiting = next((each for each in news["queue"]["next"] if each["node_id"] == reader.scheduled.pk), None)
    if waiting is None:
        return None
    what = waiting_for().get(waiting["waiting_for"], waiting["waiting_for"])
    return "late", _("%(node)s is due and is waiting for %(what)s.") % {"node": job, "what": what}


def _has_failed(onu: Onu, fields: set[str], reader: NodeRow, read_at: datetime | None) -> Verdict | None:
    """Explain if the last run reported an error of this ONU or its port."""
    last = reader.last
    if last is None or _was_read_by(last, read_at):
        return None
    if onu.called in last.failed_onus:
        return "bad", _(
            "The OLT gives no usable answer for this ONU. It is read separately so that the others can be read."
        )
    reason = failure_at(last.coverage, fields, onu.slot, onu.port)
    if reason is None:
        return None
    sentence = _("The last run could not read all of port %(port)s.") % {"port": f"{onu.slot}/{onu.port}"}
    return "bad", _said(sentence, reason)


def _was_read_by(last: Execution, read_at: datetime | None) -> bool:
    return bool(read_at and last.started_at and read_at >= last.started_at)


def _last_run(reader: NodeRow, read_at: datetime | None, no_value: str) -> Verdict:
    """Explain from the result of the last run."""
    last = reader.last
    if last is None:
        return "late", _("%(node)s has not run yet.") % {"node": reader.node.job}
    if last.status not in (Status.SUCCESS, Status.PARTIAL):
        return "bad", _unlucky(last)
    if _was_read_by(last, read_at):
        return "late", _("The last run read it; there was no other run since then.")
    if no_value:
        return "late", no_value
    if last.status == Status.PARTIAL:
        return "bad", _unlucky(last)
    return "late", _("The last run succeeded, but the OLT returned no value for this ONU.")


def _unlucky(last: Execution) -> str:
    """Return the error of a run that did not succeed."""
    said = {
        Status.PARTIAL: _("The last run read only some of the ONUs, and not this one."),
        Status.FAILED: _("The last run failed."),
        Status.SKIPPED: _("The last run was skipped."),
        Status.INTERRUPTED: _("The last run was interrupted."),
    }
    sentence = said[Status(last.status)]
    because = first_line(last.error) or (str(last.get_cause_display()) if last.cause else "")
    return _said(sentence, because)


def _said(sentence: str, because: str) -> str:
    return f"{sentence} {because[:1].upper()}{because[1:]}" if because else sentence
