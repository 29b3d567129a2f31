"""OLTs in the admin."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.admin import StackedInline
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter, RadioFilter
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm

from facho.apps.accounts.admin import ApiTokenAdmin, FachoGroupAdmin, FachoUserAdmin, FailedLoginAdmin
from facho.apps.accounts.models import ApiToken, FailedLogin
from facho.apps.inventory.admin_tools import (
    EnablingMixin,
    FleetAdmin,
    PeoplesAdmin,
    ScopedDropdownFilter,
    SharedAdmin,
    dialog,
    exactly,
    moment_column,
    tab,
)
from facho.apps.inventory.changes import one_at_a_time
from facho.apps.inventory.forms import OltForm, ScopeFormSet, resolve_typed_host
from facho.apps.inventory.models import Olt, Scope, Site, Tag
from facho.apps.inventory.queries import with_olt_counts, with_onu_counts
from facho.apps.inventory.remarks import nodes_with_blanks, remarks_on
from facho.apps.inventory.scopes import restrict_labels, visible_ids
from facho.apps.inventory.search import matching_olts
from facho.apps.inventory.spans import ago

STATE_COLOURS = {
    "reachable": "success",
    "slow": "warning",
    "unreachable": "danger",
    "unknown": "info",
    "disabled": "default",
}
STATE_NAMES = {**dict(Olt.Reachability.choices), "disabled": _("disabled")}


class BreakerFilter(RadioFilter):
    """OLTs by their breaker."""

    title = _("breaker")
    parameter_name = "breaker"
    all_option = ["", _("All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("open", pgettext_lazy("breaker", "Open")), ("closed", pgettext_lazy("breaker", "Closed"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Olt]) -> QuerySet[Olt]:
        if self.value() not in ("open", "closed"):
            return queryset
        return queryset.filter(breaker_opened_at__isnull=self.value() == "closed")


def _close_breakers(request: HttpRequest, olts: Sequence[Olt]) -> None:
    closed = [olt.name for olt in olts if olt.close_breaker(by=request.user)]
    if closed:
        messages.success(request, gettext("Polling resumed: %(names)s.") % {"names": ", ".join(closed)})
    else:
        messages.warning(request, gettext("No breaker was open."))


@admin.register(Olt)
class OltAdmin(EnablingMixin, PeoplesAdmin):
    """Settings of an OLT, beside its observed state."""

    form = OltForm

    list_display = [
        "name",
        "state_badge",
        "breaker_badge",
        "brand",
        "host",
        "site",
        "location",
        "onus",
        "data_age",
        "last_answer",
    ]
    list_filter = [
        ("brand", ChoicesDropdownFilter),
        ("reachability", ChoicesDropdownFilter),
        ("enabled", BooleanRadioFilter),
        BreakerFilter,
        ("site", ScopedDropdownFilter),
        ("tags", ScopedDropdownFilter),
    ]
    list_select_related = ["site"]
    autocomplete_fields = ["site", "tags"]
    olt_path = "pk"
    search_fields = ["name"]
    matching = staticmethod(matching_olts)
    ordering = ["name"]
    actions = ["enable_chosen", "disable_chosen", "close_breakers"]
    actions_detail = ["close_breaker"]
    # By name, because the coordinator app depends on this one.
    change_form_before_template = "coordinator/olt_day.html"

    class Media:
        css = {"all": ["coordinator/parts.css", "coordinator/admin.css"]}

    observed = [
        "state_name",
        "breaker_story",
        "suspicion",
        "device",
        "device_remark",
        "remarks",
        "learned_window",
        "last_answer_at",
        "last_error",
        "extra",
        "created_at",
        "updated_at",
    ]
    readonly_fields = observed
    secretless_snmp = tab(_("SNMP"), "version", "v3_user", ("v3_auth", "v3_priv"))
    fieldsets = [
        (None, {"fields": [("name", "brand"), ("host", "port"), "location", ("site", "tags"), "enabled"]}),
        tab(_("SNMP"), "version", "community", "v3_user", ("v3_auth", "v3_auth_key"), ("v3_priv", "v3_priv_key")),
        tab(_("Limits"), "max_in_flight", "max_pdus_per_second"),
        tab(_("Observed"), *observed),
    ]
    conditional_fields = {
        "community": "version != '3'",
        **dict.fromkeys(["v3_user", "v3_auth", "v3_auth_key", "v3_priv", "v3_priv_key"], "version == '3'"),
    }
    last_answer = moment_column("last_answer_at", _("last answer"))

    def get_fieldsets(self, request: HttpRequest, obj: Olt | None = None) -> Any:
        if obj is None or self.has_change_permission(request, obj):
            return self.fieldsets
        who, _snmp, *rest = self.fieldsets
        return [who, self.secretless_snmp, *rest]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Olt]:
        return with_onu_counts(super().get_queryset(request))

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        olt = super().get_object(request, *args, **kwargs)
        if olt is not None:
            olt.readers_olts = visible_ids(request.user)
        return olt

    @display(description=_("state"), label=STATE_COLOURS, ordering="reachability")
    def state_badge(self, olt: Olt) -> tuple[str, Any]:
        return olt.state, STATE_NAMES[olt.state]

    @display(description=_("state"))
    def state_name(self, olt: Olt) -> Any:
        return STATE_NAMES[olt.state]

    @display(description=_("breaker"), label={"open": "danger", "answers": "warning"}, ordering="breaker_opened_at")
    def breaker_badge(self, olt: Olt) -> tuple[str, Any] | None:
        if olt.breaker_opened_at is None:
            return None
        if olt.breaker_answered_at is not None:
            return "answers", _("answers, breaker open")
        return "open", pgettext_lazy("breaker", "open")

    @display(description=_("breaker"))
    def breaker_story(self, olt: Olt) -> str:
        if olt.breaker_opened_at is None:
            sentence = gettext("Closed. Attempts in a row without an answer: %(n)d.")
        else:
            sentence = ngettext(
                "Open since %(since)s after %(n)d attempt without an answer; last probe: %(probe)s.",
                "Open since %(since)s after %(n)d attempts without an answer; last probe: %(probe)s.",
                olt.failures,
            )
        probe = exactly(olt.breaker_probed_at) or "-"
        return sentence % {"since": exactly(olt.breaker_opened_at), "n": olt.failures, "probe": probe}

    @action(description=_("Close breaker"), icon="electrical_services", permissions=["operate"])
    def close_breakers(self, request: HttpRequest, rows: QuerySet[Olt]) -> None:
        _close_breakers(request, list(rows))

    @action(
        description=_("Close breaker"),
        icon="electrical_services",
        permissions=["operate"],
        url_path="close-breaker",
        dialog=dialog(
            _("Close the breaker"),
            _("It is polled again from its next slots on. If it stays silent, the breaker opens again."),
            _("Close breaker"),
        ),
    )
    def close_breaker(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        _close_breakers(request, [get_object_or_404(self.get_queryset(request), pk=object_id)])
        return HttpResponse(headers={"HX-Redirect": reverse("admin:inventory_olt_change", args=[object_id])})

    @display(description=_("ONUs online"), ordering="onus_online")
    def onus(self, olt: Any) -> str:
        online = f"{olt.onus_online} / {olt.onus_total}"
        if not olt.onus_missing:
            return online
        return gettext("%(online)s, %(missing)d missing") % {"online": online, "missing": olt.onus_missing}

    @display(description=_("ONUs in doubt"), empty_value="-")
    def suspicion(self, olt: Olt) -> str | None:
        if olt.suspect_since is None:
            return None
        if olt.suspect_reason == Olt.Suspect.TOO_MANY:
            sentence = gettext("The OLT reports too many ONUs since %(time)s; new ones are not stored.")
        else:
            sentence = gettext(
                "Too many ONUs disappeared at once at %(time)s; waiting for the next discovery to confirm it."
            )
        return sentence % {"time": exactly(olt.suspect_since)}

    @display(description=_("same device"), empty_value="-")
    def device_remark(self, olt: Olt) -> str | None:
        return olt.device_note or None

    @display(description=_("remarks"), empty_value="-")
    def remarks(self, olt: Olt) -> str | None:
        return " ".join(remarks_on(nodes_with_blanks().filter(olt=olt))) or None

    @display(description=_("learned window"), empty_value="-")
    def learned_window(self, olt: Olt) -> str | None:
        return " ".join(olt.learned_pace) or None

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method != "POST":
            return super().changeform_view(request, *args, **kwargs)
        resolve_typed_host(request.POST.get("host", ""))
        with one_at_a_time():
            return super().changeform_view(request, *args, **kwargs)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        olt = kwargs.get("obj")
        if request.method == "GET" and olt is not None:
            # Their fields are in a tab that is closed at first.
            for note in filter(None, [olt.barred_note, olt.device_note, self.remarks(olt)]):
                messages.warning(request, note)
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not obj.brand:
            messages.info(request, gettext("%(olt)s is being identified.") % {"olt": obj})
        elif obj.brand_note:
            messages.warning(request, obj.brand_note)

    @display(description=_("last read"), ordering="last_read_at", empty_value="-")
    def data_age(self, olt: Any) -> Any:
        return olt.last_read_at and ago(olt.last_read_at)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Lead to the page that tells what goes with the OLT and asks for its name."""
        olt = self.get_object(request, object_id)
        if olt is None:
            raise Http404
        if not self.has_delete_permission(request, olt):
            raise PermissionDenied
        return redirect("dashboard:delete-olt", olt.pk)

    def get_actions(self, request: HttpRequest) -> Any:
        # An OLT is deleted alone, by its name.
        return {name: each for name, each in super().get_actions(request).items() if name != "delete_selected"}

    def _set_enabled(self, request: HttpRequest, rows: QuerySet[Any], enabled: bool) -> None:
        super()._set_enabled(request, rows.filter(deleting_since=None), enabled)


class LabelAdmin(SharedAdmin, PeoplesAdmin):
    """Sites or tags. Users with a scope only read those that they see."""

    search_fields = ["name"]
    ordering = ["name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        user = request.user
        return with_olt_counts(restrict_labels(super().get_queryset(request), user), user)

    @display(description=_("OLTs"), ordering="olts_total")
    def olt_count(self, label: Any) -> int:
        return int(label.olts_total)


@admin.register(Site)
class SiteAdmin(LabelAdmin):
    """Sites. A site with OLTs cannot be deleted."""

    list_display = ["name", "description", "latitude", "longitude", "olt_count"]
    fields = ["name", "description", ("latitude", "longitude")]
    search_fields = ["name", "description"]


@admin.register(Tag)
class TagAdmin(LabelAdmin):
    """Tags of OLTs."""

    list_display = ["name", "olt_count"]


class ScopeInline(StackedInline):
    """OLTs that a user sees. Only superusers set their own."""

    model = Scope
    formset = ScopeFormSet
    autocomplete_fields = ["sites", "tags"]
    verbose_name_plural = _("Scope")
    max_num = 1
    hide_title = True
    can_delete = False

    def get_extra(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> int:
        return int(self.has_add_permission(request, obj))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_set_scope(request.user, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_set_scope(request.user, obj)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


def may_set_scope(user: Any, other: Any) -> bool:
    """Return whether a user may set the scope of another one."""
    return bool(user.is_superuser or (user.has_perm("auth.change_user") and other != user))


for _model in (User, Group, ApiToken, FailedLogin):
    admin.site.unregister(_model)


@admin.register(User)
class ScopedUserAdmin(FleetAdmin, FachoUserAdmin):
    """Users with their scopes. A user with a scope manages no users, because new ones would see all OLTs."""

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> Any:
        # A new user has only a name and a role; the next page has the rest.
        return [*super().get_inlines(request, obj), *([ScopeInline] if obj else [])]


@admin.register(Group)
class FleetGroupAdmin(FleetAdmin, FachoGroupAdmin):  # type: ignore[misc]  # of the stubs
    """Groups. They give rights to users with and without a scope."""


@admin.register(ApiToken)
class FleetTokenAdmin(FleetAdmin, ApiTokenAdmin):
    """Tokens of all users."""


@admin.register(FailedLogin)
class FleetLoginAdmin(FleetAdmin, FailedLoginAdmin):
    """Failed logins of all users."""
