"""Saved views: the forms of the list pages, and API v1."""

import copy
from typing import Any

import django_filters
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from rest_framework import serializers, viewsets
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.serializers import BaseSerializer

from facho.apps.accounts.permissions import missing
from facho.apps.dashboard.execution_list import EXECUTIONS
from facho.apps.dashboard.list_pages import ListSpec
from facho.apps.dashboard.models import SavedView, kept_query
from facho.apps.dashboard.olt_list import OLTS
from facho.apps.dashboard.onu_list import ONUS
from facho.apps.inventory.serializers import refusals
from facho.apps.rest.filters import LIST_BACKENDS, FilterSet, YesNoFilter
from facho.apps.rest.strict import StrictSerializer, StrictView

LISTS: dict[str, ListSpec] = {spec.name: spec for spec in (ONUS, OLTS, EXECUTIONS)}


def _address(view: SavedView) -> str:
    return f"{reverse(f'dashboard:{view.list}')}?{view.query}&view={view.pk}"


def _save(request: HttpRequest, view: SavedView) -> bool:
    """Save a view from a form; False if it is refused."""
    wants_to_share = "is_shared" in request.POST
    if wants_to_share and not view.is_shared and not request.user.has_perm(SavedView.SHARE_PERMISSION):
        messages.error(request, missing(SavedView.SHARE_PERMISSION))
        return False
    view.name, view.query = request.POST.get("name", "").strip(), kept_query(request.POST.get("query", ""))
    view.is_shared = wants_to_share
    try:
        view.full_clean()
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return False
    view.save()
    return True


@require_POST
@login_required
def create(request: HttpRequest) -> HttpResponse:
    """Save the filters, columns and order of a list page under a name."""
    spec = LISTS.get(request.POST.get("list", ""))
    if spec is None:
        return HttpResponse(status=400)
    owner: Any = request.user
    view = SavedView(owner=owner, list=spec.name)
    if _save(request, view):
        messages.success(request, _("The view “%(view)s” was saved.") % {"view": view})
        return redirect(_address(view))
    return redirect(f"{reverse(f'dashboard:{spec.name}')}?{view.query}")


@require_POST
@login_required
def change(request: HttpRequest, view_id: int) -> HttpResponse:
    """Save, rename, share or delete a view, or make it the default of the user."""
    view = get_object_or_404(SavedView.seen_by(request.user), pk=view_id)
    action = request.POST.get("action")
    if action != "default" and not view.may_be_changed_by(request.user):
        messages.error(request, _("Only its owner can change this view."))
        return redirect(_address(view))
    if action == "delete":
        view.delete()
        messages.success(request, _("The view “%(view)s” was deleted.") % {"view": view})
        return redirect(f"{reverse(f'dashboard:{view.list}')}?view=none")
    is_saved = action == "default" or _save(request, view)
    if is_saved:
        view.set_default(request.user, "is_default" in request.POST)
        messages.success(request, _("The view “%(view)s” was saved.") % {"view": view})
    return redirect(_address(view))


class ViewFilter(FilterSet):
    """Filters of saved views."""

    list = django_filters.ChoiceFilter(choices=SavedView.List.choices, label="the list that it is about")
    is_shared = YesNoFilter(label="whether all users see it")

    class Meta:
        model = SavedView
        fields: tuple[str, ...] = ()


class SavedViewSerializer(StrictSerializer, serializers.ModelSerializer[SavedView]):
    """A saved view of a list page."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    query = serializers.CharField(
        required=False,
        allow_blank=True,
        help_text="Filters, columns and order, as in the address of the page: `state=los&sort=-rx_dbm`.",
    )
    is_default = serializers.BooleanField(
        required=False, help_text="Whether your page of the list begins with it. Any reader can set this."
    )

    class Meta:
        model = SavedView
        fields = ["id", "list", "name", "query", "owner", "is_shared", "is_default"]
        # The model has a better message.
        validators: list[Any] = []

    def validate_is_shared(self, is_shared: bool) -> bool:
        user = self.context["request"].user
        was_shared = self.instance is not None and self.instance.is_shared
        if is_shared and not was_shared and not user.has_perm(SavedView.SHARE_PERMISSION):
            raise PermissionDenied(missing(SavedView.SHARE_PERMISSION))
        return is_shared

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        view = copy.copy(self.instance) if self.instance else SavedView(owner=self.context["request"].user)
        if self.instance is not None and attrs.get("list", view.list) != view.list:
            raise serializers.ValidationError({"list": [_("The list of a view cannot be changed.")]})
        if "query" in attrs:
            attrs["query"] = self._checked_query(attrs["query"], attrs.get("list", view.list))
        for name in {"list", "name", "query", "is_shared"} & attrs.keys():
            setattr(view, name, attrs[name])
        with refusals():
            view.full_clean()
        return attrs

    @staticmethod
    def _checked_query(text: str, list_name: str) -> str:
        query, spec = kept_query(text), LISTS[list_name]
        known = [name for name in spec.parameters if name not in ("page", "view")]
        if unknown := [name for name in QueryDict(query) if name not in known]:
            said = _("Unknown parameter “%(name)s”. Valid parameters: %(known)s.")
            raise serializers.ValidationError({"query": [said % {"name": unknown[0][:100], "known": ", ".join(known)}]})
        return query

    def create(self, validated_data: dict[str, Any]) -> SavedView:
        is_default = validated_data.pop("is_default", False)
        view = SavedView(owner=self.context["request"].user, **validated_data)
        view.save()
        if is_default:
            view.set_default(view.owner, is_default=True)
        return view

    def update(self, view: SavedView, validated_data: dict[str, Any]) -> SavedView:
        is_default = validated_data.pop("is_default", None)
        user = self.context["request"].user
        changed = {name: value for name, value in validated_data.items() if getattr(view, name) != value}
        if changed and not view.may_be_changed_by(user):
            raise PermissionDenied(_("Only its owner can change this view."))
        for name, value in changed.items():
            setattr(view, name, value)
        if changed:
            view.save()
        if is_default is not None:
            view.set_default(user, is_default)
        return view


class SavedViewSet(StrictView, viewsets.ModelViewSet[SavedView]):
    """Saved views of lists: your own, and those that are shared. Sharing needs the permission to share views."""

    queryset = SavedView.objects.all()
    serializer_class = SavedViewSerializer
    permission_classes = (IsAuthenticated,)
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    filter_backends = LIST_BACKENDS
    filterset_class = ViewFilter
    search_fields = ["name"]
    ordering_fields = ["id", "list", "name"]

    def get_queryset(self) -> QuerySet[SavedView]:
        return SavedView.seen_by(self.request.user)

    def perform_create(self, serializer: BaseSerializer[SavedView]) -> None:
        # Read again, for `is_default`.
        serializer.instance = self.get_queryset().get(pk=serializer.save().pk)

    perform_update = perform_create

    def perform_destroy(self, instance: SavedView) -> None:
        if not instance.may_be_changed_by(self.request.user):
            raise PermissionDenied(_("Only its owner can change this view."))
        instance.delete()
