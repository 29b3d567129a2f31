"""Pages of alerts: the rules with their open alerts, and one rule with a preview and a trial on the past."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, F, Max, Prefetch, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from facho.alerts.kinds import PARAMS, Param, clean_params
from facho.alerts.models import Alert, Channel, Rule
from facho.alerts.past import Trial, try_rule
from facho.alerts.preview import preview
from facho.alerts.scopes import restrict_rules
from facho.apps.dashboard.views import needs, page, show
from facho.apps.inventory.models import Olt
from facho.apps.inventory.queries import OLT_HEAVY
from facho.apps.inventory.scopes import restrict
from facho.apps.polling import live

MOST_ALERTS = 100
ALERTS_OF_RULE = 20

DAYS = [(7, gettext_lazy("7 days")), (30, gettext_lazy("30 days")), (90, gettext_lazy("90 days"))]

# Height of the chart of a trial.
CHART_HEIGHT = 60


def _rules(request: HttpRequest) -> Any:
    names = [Prefetch("channels", Channel.objects.only("name")), Prefetch("olts", Olt.objects.only("name"))]
    return restrict_rules(Rule.objects.all(), request.user).prefetch_related(*names)


def _alerts(user: Any) -> Any:
    """Return the alerts that a user sees: open ones first, then the newest."""
    if not user.has_perm("alerts.view_alert"):
        return Alert.objects.none()
    rows = restrict(Alert.objects.all(), user, "olt").select_related("olt", "acknowledged_by")
    return rows.defer(*OLT_HEAVY).order_by(F("recovered_at").desc(nulls_first=True), "-opened_at", "-id")


@page("alerts.view_rule")
def alerts(request: HttpRequest) -> HttpResponse:
    """Show the rules, and the alerts: open ones first."""
    rules = _rules(request).annotate(
        open_alerts=Count("alerts", Q(alerts__recovered_at__isnull=True)), last_at=Max("alerts__opened_at")
    )
    context = {
        "active": "alerts",
        "rules": rules.order_by("name"),
        "alerts": _alerts(request.user)[:MOST_ALERTS],
        "most": MOST_ALERTS,
        "may_acknowledge": request.user.has_perm("alerts.change_alert"),
    }
    return show(request, "alerts.html", context)


@require_POST
@needs("alerts.change_alert")
def acknowledge(request: HttpRequest, alert_id: int) -> HttpResponse:
    get_object_or_404(restrict(Alert.objects.all(), request.user, "olt"), pk=alert_id).acknowledge(by=request.user)
    return redirect("dashboard:alerts")


@page("alerts.view_rule")
def rule(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Show one rule: its message with real data, and what it would have done in the past."""
    found, now = get_object_or_404(_rules(request), pk=rule_id), timezone.now()
    shown = preview(found, now, live.snapshot(now), settings.FACHO_PUBLIC_URL)
    form = TrialForm(found, request.GET if "days" in request.GET else None)
    trial = try_rule(found, form.cleaned_data["days"], now) if form.is_valid() else None
    context = {
        "active": "alerts",
        "rule": found,
        "preview": shown,
        "form": form,
        "trial": trial,
        "verdict": trial and _verdict(trial),
        "bars": trial and _bars(trial),
        "alerts": _alerts(request.user).filter(rule=found.pk)[:ALERTS_OF_RULE],
        "may_acknowledge": request.user.has_perm("alerts.change_alert"),
        "may_test": request.user.has_perm("alerts.change_channel"),
    }
    return show(request, "alert_rule.html", context)


@require_POST
@needs("alerts.change_channel")
def test(request: HttpRequest, rule_id: int) -> HttpResponse:
    found = get_object_or_404(_rules(request), pk=rule_id)
    if names := [delivery.channel_name for delivery in found.ask_for_test()]:
        messages.success(request, _("A test message is being sent to: %(channels)s.") % {"channels": ", ".join(names)})
    else:
        messages.warning(request, _("%(rule)s has no enabled channel.") % {"rule": found})
    return redirect("dashboard:alert-rule", found.pk)


class TrialForm(forms.Form):
    """A period of the past, and the settings of a rule to try on it."""

    days = forms.TypedChoiceField(label=gettext_lazy("Period"), choices=DAYS, coerce=int, initial=30)

    def __init__(self, rule: Rule, *args: Any) -> None:
        super().__init__(*args)
        self.rule = rule
        for name, param in PARAMS.get(rule.kind, {}).items():
            if not param.several:
                self.fields[name] = _field(param, rule.setting(name))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        given = {name: value for name, value in cleaned.items() if name != "days" and value not in (None, "")}
        try:
            self.rule.params = clean_params(self.rule.kind, self.rule.params | given)
        except ValidationError as error:
            for message in error.messages:
                name, _colon, sentence = message.partition(": ")
                self.add_error(name if name in self.fields else None, sentence or message)
        return cleaned


def _field(param: Param, value: Any) -> forms.Field:
    if param.choices:
        return forms.ChoiceField(label=param.label, choices=param.choices, required=False, initial=value)
    kind = forms.IntegerField if param.is_whole else forms.FloatField
    return kind(label=param.label, required=False, initial=value)


def _verdict(trial: Trial) -> str:
    times = ngettext(
        "It would have fired %(n)d time in the last %(days)d days.",
        "It would have fired %(n)d times in the last %(days)d days.",
        trial.alerts,
    )
    return times % {"n": trial.alerts, "days": trial.days}


def _bars(trial: Trial) -> list[dict[str, Any]]:
    """Return the days of a trial as bars."""
    most = max((alerts for _day, alerts in trial.by_day), default=0) or 1
    heights = [round(alerts / most * CHART_HEIGHT) for _day, alerts in trial.by_day]
    return [
        {"day": day, "alerts": alerts, "x": number * 10, "y": CHART_HEIGHT - height, "height": height}
        for number, ((day, alerts), height) in enumerate(zip(trial.by_day, heights, strict=True))
    ]
