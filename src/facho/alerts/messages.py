"""Messages of deliveries, in the language of their channel, with a link to the page."""

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
        if delivery.alert is not None:
            return _of_alert(delivery, delivery.alert, public_url)
        return Message(
            news=News.TEST,
            delivery_id=str(delivery.pk),
            subject=gettext("[test] Facho can send to %(channel)s") % {"channel": delivery.channel_name},
            text=gettext("This is a test message. There is no problem."),
            url=public_url,
        )


def _of_alert(delivery: Delivery, alert: Alert, public_url: str) -> Message:
    news = News(delivery.news)
    # A message from the outbox describes the state at its creation, not the current one.
    recovered_at = alert.recovered_at if news is News.RECOVERED else None
    mark, lines = str(alert.get_severity_display()), []
    if news is News.RECOVERED:
        mark = gettext("resolved")
    else:
        lines = text.lines(alert.kind, alert.params)
        if news is News.REPEATED:
            mark = gettext("still %(severity)s") % {"severity": mark}
    lines.append(gettext("Since %(time)s.") % {"time": moment_and_zone(alert.opened_at)})
    if recovered_at is not None:
        lines.append(gettext("Until %(time)s.") % {"time": moment_and_zone(recovered_at)})
    if alert.count > 1:
        lines.append(gettext("It started and ended %(times)d times.") % {"times": alert.count})
    lines.append(gettext("Rule: %(rule)s.") % {"rule": alert.rule_name})
    page = reverse("dashboard:overview") if alert.olt_id is None else reverse("dashboard:olt", args=[alert.olt_id])
    return Message(
        news=news,
        delivery_id=str(delivery.pk),
        subject=f"[{mark}] {text.subject(alert.kind, alert.params, is_over=news is News.RECOVERED)}",
        text="\n".join(lines),
        severity=AlertSeverity(alert.severity),
        rule=alert.rule_name,
        alert_id=alert.pk,
        olt=alert.olt.name if alert.olt else None,
        opened_at=alert.opened_at,
        recovered_at=recovered_at,
        details={"kind": alert.kind, "slot": alert.slot, "port": alert.port, **alert.params},
        url=public_url.rstrip("/") + page if public_url else "",
    )
