"""Channels and rules in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm

from facho.alerts import admin_alerts as admin_alerts  # registers alerts and deliveries
from facho.alerts.admin_alerts import SEVERITY_COLOURS
from facho.alerts.forms import SECRETS, ChannelForm, RuleForm
from facho.alerts.kinds import OF_OLTS, PARAMS
from facho.alerts.models import Channel, Rule
from facho.alerts.scopes import is_used_beyond, restrict_rules, shared_refusal
from facho.apps.inventory.admin_tools import EnablingMixin, PeoplesAdmin, dialog, tab
from facho.apps.inventory.models import Olt

# Settings of each kind of channel.
SETTINGS = {
    "webhook": ["url", "signing_secret"],
    "email": ["smtp_host", "smtp_port", "smtp_security", "smtp_user", "smtp_password", "mail_from", "mail_to"],
    "telegram": ["bot_token", "chat_id", "telegram_url"],
    "slack": ["slack_url"],
    "apprise": ["apprise_url"],
}


@admin.register(Channel)
class ChannelAdmin(EnablingMixin, PeoplesAdmin):
    """Channels, each with a test button."""

    form = ChannelForm
    list_display = ["name", "kind", "url_origin", "language", "rule_names", "enabled"]
    list_filter = [("kind", ChoicesDropdownFilter), ("enabled", BooleanRadioFilter)]
    search_fields = ["name"]
    actions = ["enable_chosen", "disable_chosen"]
    actions_detail = ["send_test"]
    readonly_fields = ["url_origin"]
    who = (None, {"fields": [("name", "kind"), ("language", "enabled"), "zone"]})
    on_call_tab = tab(_("On-call times"), "on_call_days", ("on_call_from", "on_call_to"))
    conditional_fields = {name: f"kind == '{kind}'" for kind, names in SETTINGS.items() for name in names}

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_shared = isinstance(obj, Channel) and is_used_beyond(request.user, obj)
        return not is_shared and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_shared = isinstance(obj, Channel) and is_used_beyond(request.user, obj)
        return not is_shared and super().has_delete_permission(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], Any, set[str], list[Any]]:
        if shared := [shared_refusal(channel) for channel in objs if is_used_beyond(request.user, channel)]:
            return [], {}, set(), shared
        objects: tuple[list[Any], Any, set[str], list[Any]] = super().get_deleted_objects(objs, request)
        return objects

    def _set_enabled(self, request: HttpRequest, rows: QuerySet[Any], enabled: bool) -> None:
        shared = [channel for channel in rows if is_used_beyond(request.user, channel)]
        for channel in shared:
            messages.error(request, shared_refusal(channel))
        super()._set_enabled(request, rows.exclude(pk__in=[channel.pk for channel in shared]), enabled)

    def get_fieldsets(self, request: HttpRequest, obj: Channel | None = None) -> Any:
        may_change = obj is None or self.has_change_permission(request, obj)
        names = [name for some in SETTINGS.values() for name in some if may_change or name not in SECRETS]
        if not may_change:
            names.insert(0, "url_origin")
        return [self.who, (_("Settings"), {"fields": names}), self.on_call_tab]

    @display(description=_("address"), empty_value="-")
    def url_origin(self, channel: Channel) -> str | None:
        return channel.url_origin or None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Channel]:
        channels: QuerySet[Channel] = super().get_queryset(request)
        return channels.prefetch_related(Prefetch("rules", restrict_rules(Rule.objects.all(), request.user)))

    @display(description=_("rules"), empty_value="-")
    def rule_names(self, channel: Channel) -> str:
        return ", ".join(rule.name for rule in channel.rules.all())

    @action(
        description=_("Send test"),
        icon="send",
        permissions=["change"],
        dialog=dialog(_("Send test"), _("Sends a test message with the saved settings."), _("Send")),
    )
    def send_test(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        channel = get_object_or_404(Channel, pk=object_id)
        if not self.has_change_permission(request, channel):
            raise PermissionDenied
        delivery = channel.ask_for_test()
        messages.info(request, gettext("The test message is being sent. The result appears here within seconds."))
        page = reverse("admin:alerts_delivery_change", args=[delivery.pk])
        return HttpResponse(headers={"HX-Redirect": page})


@admin.register(Rule)
class RuleAdmin(EnablingMixin, PeoplesAdmin):
    """Rules: condition, channels and frequency of messages."""

    form = RuleForm
    list_display = ["name", "kind", "severity_badge", "told_to", "enabled"]
    list_filter = [
        ("kind", ChoicesDropdownFilter),
        ("severity", ChoicesDropdownFilter),
        ("enabled", BooleanRadioFilter),
    ]
    search_fields = ["name"]
    actions = ["enable_chosen", "disable_chosen"]
    readonly_fields = ["settings_list"]
    conditional_fields = {
        **{name: f"kind == '{kind}'" for kind, params in PARAMS.items() for name in params},
        "olts": " || ".join(sorted(f"kind == '{kind}'" for kind in OF_OLTS)),
    }
    messages_tab = tab(
        _("Messages"),
        "tells_recovery",
        "recover_after_seconds",
        "repeat_minutes",
        ("escalate_minutes", "escalation_channels"),
        ("flap_times", "most_per_hour"),
        ("quiet_from", "quiet_to"),
        ("quiet_zone", "quiet_mode"),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Rule | None = None) -> Any:
        may_change = obj is None or self.has_change_permission(request, obj)
        settings = [name for params in PARAMS.values() for name in params] if may_change else ["settings_list"]
        what = (None, {"fields": [("name", "kind"), ("severity", "enabled"), *settings, "olts", "channels"]})
        return [what, self.messages_tab]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Rule]:
        rules = restrict_rules(super().get_queryset(request), request.user)
        names = Prefetch("channels", Channel.objects.only("name"))
        return rules.prefetch_related(names, Prefetch("olts", Olt.objects.only("name")))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            # Its settings are several form fields.
            form.changed_data.append("params")
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        form.instance.settle_olts()
        if not form.instance.channels.filter(enabled=True).exists():
            messages.warning(
                request, gettext("%(rule)s has no enabled channel: no messages are sent.") % {"rule": form.instance}
            )
        if form.instance.escalate_minutes and not form.instance.escalation_channels.filter(enabled=True).exists():
            said = gettext("%(rule)s has no enabled channel to escalate to: its alerts are not escalated.")
            messages.warning(request, said % {"rule": form.instance})

    def render_change_form(self, request: HttpRequest, context: Any, **kwargs: Any) -> HttpResponse:
        rule = kwargs.get("obj")
        if request.method == "GET" and rule is not None and rule.has_lost_its_olts:
            messages.warning(
                request,
                gettext("The OLTs of %(rule)s were deleted. Choose other OLTs, or none to watch all of them.")
                % {"rule": rule},
            )
        response: HttpResponse = super().render_change_form(request, context, **kwargs)
        return response

    @display(description=_("severity"), label=SEVERITY_COLOURS, ordering="severity")
    def severity_badge(self, rule: Rule) -> tuple[str, str]:
        return rule.severity, rule.get_severity_display()

    @display(description=_("sent to"))
    def told_to(self, rule: Rule) -> str:
        return ", ".join(channel.name for channel in rule.channels.all()) or gettext("no channel")

    @display(description=_("settings"), empty_value="-")
    def settings_list(self, rule: Rule) -> str:
        return ", ".join(f"{name}: {rule.setting(name)}" for name in PARAMS.get(rule.kind, {}))
