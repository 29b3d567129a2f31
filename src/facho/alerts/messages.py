"""Messages of deliveries, in the language of their channel, with a link to the page."""

from typing import Any

from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext

from facho.alerts import text
from facho.alerts.models import Alert, Delivery
from facho.alerts.rules import AlertSeverity, Message, News
from facho.apps.inventory.formats import moment_and_zone


def message(delivery: Delivery, language: str, public_url: str = "") -> Message:
    """Return the message for a channel in this language. `public_url` is the URL of Facho, if set."""
    with translation.override(language):
        if delivery.alert is None:
            return _test(delivery, public_url)
        return _of_alert(delivery, delivery.alert, public_url)


def _of_alert(delivery: Delivery, alert: Alert, public_url: str) -> Message:
    news = News(delivery.news)
    # A message from the outbox describes the state at its creation, not the current one.
    recovered_at = alert.recovered_at if news is News.RECOVERED else None
    subject = text.subject(alert.kind, alert.params, is_over=news is News.RECOVERED)
    return Message(
        news=news,
        delivery_id=str(delivery.pk),
        subject=f"[{_mark(news, alert)}] {subject}",
        text="\n".join(_lines(alert, news)),
        severity=AlertSeverity(alert.severity),
        rule=alert.rule_name,
        alert_id=alert.pk,
        olt=alert.olt.name if alert.olt else None,
        opened_at=alert.opened_at,
        recovered_at=recovered_at,
        details={"kind": alert.kind, "slot": alert.slot, "port": alert.port, **alert.params},
        url=_address(alert, public_url),
    )


def _test(delivery: Delivery, public_url: str) -> Message:
    return Message(
        news=News.TEST,
        delivery_id=str(delivery.pk),
        subject=gettext("[test] Facho can send to %(channel)s") % {"channel": delivery.channel_name},
        text=gettext("This is a test message. There is no problem."),
        url=public_url,
    )


def _mark(news: News, alert: Alert) -> Any:
    if news is News.RECOVERED:
        return gettext("resolved")
    severity = alert.get_severity_display()
    return gettext("still %(severity)s") % {"severity": severity} if news is News.REPEATED else severity


def _lines(alert: Alert, news: News) -> list[str]:
    said = [] if news is News.RECOVERED else text.lines(alert.kind, alert.params)
    said.append(gettext("Since %(time)s.") % {"time": _moment(alert.opened_at)})
    if news is News.RECOVERED and alert.recovered_at is not None:
        said.append(gettext("Until %(time)s.") % {"time": _moment(alert.recovered_at)})
    if alert.count > 1:
        said.append(gettext("It started and ended %(times)d times.") % {"times": alert.count})
    return [*said, gettext("Rule: %(rule)s.") % {"rule": alert.rule_name}]


def _moment(at: Any) -> str:
    return moment_and_zone(at)


def _address(alert: Alert, public_url: str) -> str:
    if not public_url:
        return ""
    page = reverse("dashboard:overview") if alert.olt_id is None else reverse("dashboard:olt", args=[alert.olt_id])
    return public_url.rstrip("/") + page
