"""Shared parts of the admin pages."""

import re
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.forms import DateTimeField
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import RangeDateTimeFilter, RelatedDropdownFilter
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm

from facho.apps.changes.admin import RecordedAdmin
from facho.apps.inventory import labels
from facho.apps.inventory.changes import save_changes
from facho.apps.inventory.formats import moment
from facho.apps.inventory.scopes import restrict, restrict_related, visible_ids
from facho.apps.rest.admin_search import LimitedSearchAdmin
from facho.apps.rest.filters import search_problem


def exactly(at: datetime | None) -> str | None:
    """Return a time to the second, or None."""
    return moment(at) if at else None


def moment_column(field: str, description: Any) -> Any:
    """Return a column of an admin page: a time to the second, or a dash."""

    @display(description=description, ordering=field, empty_value="-")
    def column(_admin: Any, row: Any) -> str | None:
        return exactly(getattr(row, field))

    return column


def never(*_args: Any, **_kwargs: Any) -> bool:
    """Refuse a permission of an admin page to everyone."""
    return False


def tab(title: Any, *fields: Any) -> tuple[Any, dict[str, Any]]:
    """Return the fieldset of a tab."""
    return title, {"classes": ["tab"], "fields": fields}


def dialog(title: Any, description: Any, submit: Any, form: type[BaseDialogForm] = BaseDialogForm) -> dict[str, Any]:
    """Return the dialog of an action, which asks before it acts."""
    return {"title": title, "description": description, "form_class": form, "form_submit_text": submit}


class ScopedAdmin(RecordedAdmin, LimitedSearchAdmin):
    """A table that obeys the scope of the user: rows, choices of forms and filters."""

    # Lookup from a row to its OLT, "pk" for OLTs themselves. Empty for tables without OLTs.
    olt_path = ""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return restrict(rows, request.user, self.olt_path) if self.olt_path else rows

    def get_field_queryset(self, db: Any, db_field: Any, request: HttpRequest) -> Any:
        rows = super().get_field_queryset(db, db_field, request)
        if visible_ids(request.user) is None:
            return rows
        choices = db_field.remote_field.model._default_manager.all() if rows is None else rows
        return restrict_related(choices, request.user)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Return the values in the address of a new row, without those that are no ids of other rows."""
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        for field in (*self.model._meta.fields, *self.model._meta.many_to_many):
            given = initial.get(field.name)
            ids = given if isinstance(given, list) else [given]
            if field.is_relation and given and not all(re.fullmatch(r"[0-9]{1,18}", str(each)) for each in ids):
                del initial[field.name]
        return initial

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        # A class of this request only.
        form = super().get_form(request, *args, **kwargs)
        form.user = request.user
        return form


class SharedAdmin(ModelAdmin):
    """A table that all users share: users with a scope only read it."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return visible_ids(request.user) is None and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return visible_ids(request.user) is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return visible_ids(request.user) is None and super().has_delete_permission(request, obj)


class FleetAdmin(SharedAdmin):
    """A table about the whole installation: hidden from users with a scope."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return visible_ids(request.user) is None and super().has_view_permission(request, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return visible_ids(request.user) is None and super().has_module_permission(request)


class ScopedDropdownFilter(RelatedDropdownFilter):
    """Filter by an OLT, site or tag: only those that the user sees."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        rows = restrict_related(field.related_model._default_manager.order_by("name"), request.user)
        return list(rows.values_list("pk", "name"))


class PeoplesAdmin(ScopedAdmin):
    """A table that users edit, with columns that the engine writes."""

    warn_unsaved_form = True
    list_filter_submit = True

    def save_model(self, request: HttpRequest, obj: Model, form: Any, change: bool) -> None:
        if change:
            save_changes(obj, form.changed_data)
        else:
            super().save_model(request, obj, form, change)
        if note := getattr(obj, "dropped_note", ""):
            messages.warning(request, note)


class JobSearch(LimitedSearchAdmin):
    """A list that also finds jobs by the names that it shows, which are translated."""

    # Lookup of the name of the job.
    job_name = ""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        names = [] if search_problem(search_term) else labels.jobs_labelled(search_term)
        return (found | queryset.filter(**{f"{self.job_name}__in": names}) if names else found), may_repeat


class EnginesAdmin(ScopedAdmin):
    """A table of the engine, read-only for users."""

    list_filter_submit = True
    # Counting millions of rows by each filter is too slow.
    show_facets = ShowFacets.NEVER
    actions = None

    has_add_permission = has_change_permission = has_delete_permission = never


class PeriodFilter(RangeDateTimeFilter):
    """Time span in the user's zone and format. A day without a time is its start."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        bounds = {"gte": self._moment("from"), "lte": self._moment("to")}
        return queryset.filter(**{f"{self.parameter_name}__{bound}": at for bound, at in bounds.items() if at})

    def _moment(self, end: str) -> datetime | None:
        day = self.used_parameters.get(f"{self.parameter_name}_{end}_0") or ""
        time = self.used_parameters.get(f"{self.parameter_name}_{end}_1") or "00:00"
        try:
            return DateTimeField().clean(f"{day} {time}") if day else None
        except ValidationError:
            # An invalid value from the URL or an unfinished input: show the unfiltered list.
            return None


class EnginesInline(TabularInline):
    """Rows of the engine below their parent row."""

    extra = 0
    max_num = 0
    can_delete = False
    tab = True

    has_add_permission = has_change_permission = never


# Rows that a confirmation names.
MOST_NAMED = 50


class EnablingMixin:
    """Actions that enable and disable rows one by one, so that each is recorded. Disabling asks first."""

    model: Any

    def has_operate_permission(self, request: HttpRequest, _object_id: Any = None) -> bool:
        """Check the permission to operate the model, or to change it if there is no such permission."""
        change = f"{self.model._meta.app_label}.change_{self.model._meta.model_name}"
        return request.user.has_perm(getattr(self.model, "OPERATE_PERMISSION", change))

    @action(description=_("Enable"), icon="play_arrow", permissions=["operate"])
    def enable_chosen(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self._set_enabled(request, rows, True)

    @action(description=_("Disable"), icon="pause", permissions=["operate"])
    def disable_chosen(self, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
        if "confirmed" in request.POST:
            self._set_enabled(request, rows, False)
            return None
        admin: Any = self
        context = {
            **admin.admin_site.each_context(request),
            "title": gettext("Disable"),
            "opts": self.model._meta,
            "named": rows[:MOST_NAMED],
            "more": max(0, rows.count() - MOST_NAMED),
            "chosen": request.POST.getlist("_selected_action"),
            "select_across": request.POST.get("select_across", "0"),
        }
        return TemplateResponse(request, "inventory/disable_chosen.html", context)

    def _set_enabled(self, request: HttpRequest, rows: QuerySet[Any], enabled: bool) -> None:
        chosen = list(rows)
        for row in chosen:
            row.enabled = enabled
            save_changes(row, ["enabled"])
        sentence = _("Enabled: %(names)s.") if enabled else _("Disabled: %(names)s.")
        messages.success(request, sentence % {"names": ", ".join(map(str, chosen))})
