"""Messages of deliveries, in the language and time zone of their channel, with links to the pages."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext

from facho.alerts import text
from facho.alerts.models import Alert, Channel, Delivery
from facho.alerts.rules import AlertSeverity, Message, News
from facho.apps.inventory.formats import decimal, moment_and_zone

# Namespace of the keys of messages.
KEYS = UUID("6f5b1b1e-0d0c-4d5e-9a55-0a8f6c1f6d2b")

# Alerts listed in the text of a message. Programs get all of them.
MOST_LISTED = 20


def message(deliveries: Sequence[Delivery], channel: Channel, public_url: str = "") -> Message:
    """Return the message of deliveries that are sent together. `public_url` is the URL of Facho, if set."""
    first, zone, public_url = deliveries[0], ZoneInfo(channel.zone), public_url.rstrip("/")
    alerts = [each.alert for each in deliveries if each.alert is not None]
    key = str(uuid5(KEYS, f"{first.pk} {first.created_at.isoformat()}"))
    if alerts:
        message = compose(News(first.news), str(first.pk), alerts, channel.language, zone, public_url)
        return replace(message, key=key)
    with translation.override(channel.language):
        return Message(
            news=News.TEST,
            delivery_id=str(first.pk),
            subject=gettext("[test] Facho can send to %(channel)s") % {"channel": channel.name},
            text=gettext("This is a test message. There is no problem."),
            url=public_url,
            key=key,
        )


def compose(
    news: News, delivery_id: str, alerts: Sequence[Alert], language: str, zone: tzinfo, public_url: str
) -> Message:
    """Return the message about some alerts, in a language and a time zone."""
    with translation.override(language), timezone.override(zone):
        if news is News.SUMMARY:
            return _summary(delivery_id, alerts, public_url)
        return _of_alerts(news, delivery_id, alerts, public_url)


def _of_alerts(news: News, delivery_id: str, alerts: Sequence[Alert], public_url: str) -> Message:
    first, is_over = alerts[0], news is News.RECOVERED
    mark = str(first.get_severity_display())
    if is_over:
        mark = gettext("resolved")
    elif news is News.CLOSED:
        mark = gettext("closed, state unknown")
    elif news is News.REPEATED:
        mark = gettext("still %(severity)s") % {"severity": mark}
    elif news is News.ESCALATED:
        mark = gettext("%(severity)s, not acknowledged") % {"severity": mark}
    if len(alerts) == 1:
        subject, lines = text.subject(first.kind, first.params, is_over=is_over), _details(first, news)
    else:
        subject = text.digest_subject(first.kind, [each.params for each in alerts], is_over=is_over)
        lines = _list(alerts, news, public_url)
    lines.append(gettext("Rule: %(rule)s.") % {"rule": first.rule_name})
    parts = [_part(each, news, public_url) for each in alerts]
    return Message(
        news=news,
        delivery_id=delivery_id,
        subject=f"[{mark}] {subject}",
        text="\n".join(lines),
        severity=AlertSeverity(first.severity),
        rule=first.rule_name,
        alert_id=first.pk,
        olt=parts[0]["olt"],
        opened_at=first.opened_at,
        recovered_at=first.recovered_at if is_over else None,
        details=parts[0]["details"],
        alerts=parts,
        url=_common_url(alerts, public_url),
    )


def _summary(delivery_id: str, alerts: Sequence[Alert], public_url: str) -> Message:
    """Return the message about a maintenance that is over: what is open, and what was closed at its start and is not.

    An alert of it has no end if it was still open.
    """
    first, window = alerts[0], alerts[0].window
    # Two rules may watch for the same.
    found = {(alert.kind, alert.key): alert for alert in alerts}.values()
    still_open = [alert for alert in found if not alert.is_unknown]
    gone = [alert for alert in found if alert.is_unknown]
    lines = _list(still_open, News.RAISED, public_url) if still_open else []
    if gone:
        lines.append(gettext("No longer found:"))
        lines += _list(gone, News.RAISED, public_url)[:-1]
    target = window.maintenance.target if window else ""
    is_over = gettext("maintenance over")
    severities = [AlertSeverity(alert.severity) for alert in still_open or alerts]
    order = list(AlertSeverity)
    return Message(
        news=News.SUMMARY,
        delivery_id=delivery_id,
        subject=f"[{is_over}] {text.summary_subject(target, len(still_open))}",
        text="\n".join(lines),
        severity=max(severities, key=order.index),
        rule=first.rule_name,
        alert_id=first.pk,
        olt=first.olt.name if first.olt else None,
        alerts=[_part(each, News.SUMMARY, public_url) for each in alerts],
        url=_common_url(alerts, public_url),
    )


def _details(alert: Alert, news: News) -> list[str]:
    """Return the lines of a message about one alert."""
    is_over = news is News.RECOVERED
    lines = [] if is_over else text.lines(alert.kind, alert.params)
    lines.append(gettext("Since %(time)s.") % {"time": moment_and_zone(alert.opened_at)})
    # A message from the outbox describes the state at its creation, not the current one.
    if is_over and alert.recovered_at is not None:
        lines.append(gettext("Until %(time)s.") % {"time": moment_and_zone(alert.recovered_at)})
    if alert.count > 1:
        lines.append(gettext("It started and ended %(times)d times.") % {"times": alert.count})
    if alert.is_unstable and not is_over:
        lines.append(gettext("It is unstable: it will be resolved after 30 minutes without the problem."))
    return lines


def _list(alerts: Sequence[Alert], news: News, public_url: str) -> list[str]:
    """Return the lines of a message about several alerts: each with its place and its page."""
    is_over = news is News.RECOVERED
    lines = []
    for alert in sorted(alerts, key=lambda each: text.badness(each.kind, each.params))[:MOST_LISTED]:
        said = text.subject(alert.kind, alert.params, is_over=is_over)
        if alert.params.get("worst") and not is_over:
            worst = decimal(text.badness(alert.kind, alert.params), 1)
            said = gettext("%(subject)s, worst %(rx_dbm)s dBm") % {"subject": said, "rx_dbm": worst}
        lines.append(f"{said}  {url_of(alert, public_url)}" if public_url else said)
    if more := len(alerts) - len(lines):
        lines.append(gettext("and %(count)d more") % {"count": more})
    # Why they were closed; mostly it is the same.
    lines += dict.fromkeys(said for alert in alerts if news is News.CLOSED and (said := text.closing(alert.params)))
    since = min(alert.opened_at for alert in alerts)
    return [*lines, gettext("Since %(time)s.") % {"time": moment_and_zone(since)}]


def _part(alert: Alert, news: News, public_url: str) -> dict[str, Any]:
    """Return one alert for programs."""
    is_over = news is News.RECOVERED
    return {
        "alert_id": alert.pk,
        "olt": alert.olt.name if alert.olt else None,
        "subject": text.subject(alert.kind, alert.params, is_over=is_over),
        "opened_at": alert.opened_at,
        "recovered_at": alert.recovered_at if is_over else None,
        "details": {"kind": alert.kind, "slot": alert.slot, "port": alert.port, **alert.params},
        "url": url_of(alert, public_url),
    }


def url_of(alert: Alert, public_url: str) -> str:
    """Return the page that shows the cause of an alert; empty if the URL of Facho is not set."""
    if not public_url:
        return ""
    if alert.olt_id is None:
        return public_url + reverse("dashboard:overview")
    if alert.slot is None or alert.port is None:
        return public_url + reverse("dashboard:olt", args=[alert.olt_id])
    return public_url + reverse("dashboard:port", args=[alert.olt_id, alert.slot, alert.port])


def _common_url(alerts: Sequence[Alert], public_url: str) -> str:
    """Return the page of all these alerts: that of the port, of the OLT, or the list of problems."""
    if len({url_of(alert, public_url) for alert in alerts}) == 1:
        return url_of(alerts[0], public_url)
    olts = {alert.olt_id for alert in alerts}
    if not public_url or olts == {None}:
        return public_url and public_url + reverse("dashboard:overview")
    if len(olts) == 1:
        return public_url + reverse("dashboard:olt", args=[olts.pop()])
    return public_url + reverse("dashboard:problems")
