"""Pages that replace the device of an OLT, and that delete an OLT."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from facho.apps.dashboard.olt_setup import CONNECTION, OltSetupForm, tested
from facho.apps.dashboard.views import needs, page, show
from facho.apps.inventory.changes import one_at_a_time
from facho.apps.inventory.forms import resolve_typed_host
from facho.apps.inventory.models import Olt
from facho.apps.inventory.removal import check_name, delete_olt, parts_of
from facho.apps.inventory.scopes import visible_olts
from facho.apps.jobs.models import WorkflowNode
from facho.apps.telemetry.models import Onu
from facho.store.replacement import replace_device

DELETE_PERMISSION = "inventory.delete_olt"


class ReplaceForm(OltSetupForm):
    """Address, credentials and brand of the new device."""

    class Meta(OltSetupForm.Meta):
        fields: tuple[str, ...] = ("host", "brand", *CONNECTION[1:])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.instance.is_being_replaced = True
        self.fields["brand"].help_text = _("Empty: Facho identifies the new device and applies the jobs of its brand.")


@dataclass(frozen=True, slots=True)
class ReplacementPreview:
    """What a replacement keeps, and what it resets."""

    onus: int
    # Without a serial or MAC, so that they cannot be recognised.
    nameless: int
    jobs: int


def preview_of(olt: Olt) -> ReplacementPreview:
    present = Onu.objects.filter(olt=olt, missing_since=None)
    has_no_name = (Q(serial=None) | Q(serial="")) & (Q(mac=None) | Q(mac=""))
    return ReplacementPreview(
        onus=present.count(),
        nameless=present.filter(has_no_name).count(),
        jobs=WorkflowNode.objects.filter(olt=olt, master=None).exclude(job__kind="identify").count(),
    )


@sensitive_post_parameters()
@page("inventory.change_olt", has_form=True)
def replace_olt(request: HttpRequest, olt_id: int) -> HttpResponseBase:
    """Put another device in the place of an OLT, which keeps its ONUs and their history."""
    olt = get_object_or_404(visible_olts(request.user), pk=olt_id)
    before = f"{olt.get_brand_display()}, {olt.written_address}"
    form = ReplaceForm(request.user, request.POST or None, instance=olt)
    if request.method == "POST":
        resolve_typed_host(request.POST.get("host", ""))
        with one_at_a_time():
            is_valid = form.is_valid()
            if is_valid:
                replace_device(olt, [*ReplaceForm.Meta.fields, "port"], timezone.now())
        if is_valid:
            messages.success(request, _("The device of %(olt)s was replaced.") % {"olt": olt})
            if note := olt.dropped_note:
                messages.warning(request, note)
            return redirect("dashboard:olt", olt.pk)
    context = {"active": "olts", "form": form, "olt_id": olt.pk, "olt_name": olt.name, "before": before}
    return show(request, "olt_replace.html", {**context, "preview": preview_of(olt)})


@sensitive_post_parameters()
@require_POST
@needs("inventory.change_olt")
def test_replacement(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Return a part of a page: what the new device answers. Nothing is saved."""
    olt = get_object_or_404(visible_olts(request.user), pk=olt_id)
    return tested(request, ReplaceForm(request.user, request.POST, instance=olt))


class DeletionForm(forms.Form):
    """The name of the OLT, typed by the user."""

    name = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, olt: Olt, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.olt = olt
        self.fields["name"].label = _("Write the name of the OLT to delete it: %(name)s") % {"name": olt.name}

    def clean_name(self) -> str:
        typed: str = self.cleaned_data["name"]
        check_name(self.olt, typed)
        return typed


@page(DELETE_PERMISSION, has_form=True)
def delete_olt_page(request: HttpRequest, olt_id: int) -> HttpResponseBase:
    """Tell what goes with an OLT, and delete it when its name is typed."""
    olt = get_object_or_404(visible_olts(request.user), pk=olt_id)
    if olt.deleting_since is not None:
        return redirect("dashboard:olt", olt.pk)
    form = DeletionForm(olt, request.POST or None)
    if request.method == "POST" and form.is_valid():
        if delete_olt(olt):
            messages.success(request, _("%(olt)s was deleted.") % {"olt": olt.name})
        else:
            said = _("%(olt)s is being deleted. It is not polled any more, and will be gone in some minutes.")
            messages.success(request, said % {"olt": olt.name})
        return redirect("dashboard:olts")
    context = {"active": "olts", "form": form, "olt": olt, "parts": parts_of(olt)}
    context["may_disable"] = olt.enabled and request.user.has_perm(Olt.OPERATE_PERMISSION)
    return show(request, "olt_delete.html", context)
