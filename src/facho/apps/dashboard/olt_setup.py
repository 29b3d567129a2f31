"""Pages that add an OLT and change its settings, and the test of its connection."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from facho import brands
from facho.adapters.clock import SystemClock
from facho.adapters.snmp.client import SnmpByVersion
from facho.apps.dashboard.views import needs, page, show
from facho.apps.inventory.changes import one_at_a_time, save_changes
from facho.apps.inventory.forms import OltForm, SecretFormField, resolve_typed_host
from facho.apps.inventory.models import DEFAULT_PORT, Olt, Site, Tag
from facho.apps.inventory.scopes import restrict_labels, visible_olts
from facho.brands import BRANDS
from facho.engine.brand import Brand, JobTemplate
from facho.engine.detect.cost import Allowed, Measured, measure
from facho.engine.detect.detect import Identity, identify
from facho.engine.errors import FachoError
from facho.engine.snmp import Agent

logger = logging.getLogger(__name__)

# A browser and a proxy wait longer than this.
TEST_SECONDS = 25

CONNECTION = (
    "host", "version", "community", "v3_user", "v3_auth", "v3_auth_key", "v3_priv", "v3_priv_key",
)  # fmt: skip
FIELDS: tuple[str, ...] = ("name", "host", "brand", *CONNECTION[1:], "site", "tags", "location", "enabled")


class OltSetupForm(OltForm):
    """Settings of an OLT. The port is written after the address; without one it is 161."""

    class Meta(OltForm.Meta):
        fields: tuple[str, ...] = FIELDS

    def __init__(self, user: Any, *args: Any, **kwargs: Any) -> None:
        self.user = user
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        for field in fields.values():
            if isinstance(field, SecretFormField):
                field.widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})
                if self.instance._state.adding:
                    field.help_text = ""
        fields["host"].help_text = _("IP address or host name, with the port if it is not 161: 10.0.0.7:1161.")
        if "tags" in fields:
            fields["tags"].help_text = _("Hold Ctrl or ⌘ to choose several.")
        for name, labels in (("site", Site.objects.all()), ("tags", Tag.objects.all())):
            if name in fields:
                fields[name].queryset = restrict_labels(labels, user)
                if not fields[name].queryset.exists():
                    del fields[name]
        if self.instance.pk:
            self.initial["host"] = self.instance.written_address

    def clean_host(self) -> str:
        host = super().clean_host()
        self.port_in_host = self.port_in_host or DEFAULT_PORT
        return host

    @property
    def connection_errors(self) -> list[tuple[Any, Any]]:
        """Return the labels and errors of the fields that a test needs."""
        return [(self.fields[name].label, self.errors[name]) for name in CONNECTION if name in self.errors]

    def store(self) -> Olt:
        """Save a new OLT, or the columns of an old one that the user changed."""
        is_new = self.instance._state.adding
        olt: Olt = self.save(commit=False)
        if is_new:
            olt.save()
        else:
            save_changes(olt, [*self.changed_data, *(["port"] if "host" in self.changed_data else [])])
        self.save_m2m()
        return olt


@sensitive_post_parameters()
@page("inventory.add_olt", has_form=True)
def new_olt(request: HttpRequest) -> HttpResponseBase:
    return _setup(request, Olt())


@sensitive_post_parameters()
@page("inventory.change_olt", has_form=True)
def olt_settings(request: HttpRequest, olt_id: int) -> HttpResponseBase:
    return _setup(request, get_object_or_404(visible_olts(request.user), pk=olt_id))


def _setup(request: HttpRequest, olt: Olt) -> HttpResponseBase:
    is_new, name = olt.pk is None, olt.name
    form = OltSetupForm(request.user, request.POST or None, instance=olt)
    if request.method == "POST":
        resolve_typed_host(request.POST.get("host", ""))
        with one_at_a_time():
            saved = form.store() if form.is_valid() else None
        if saved:
            said = _("%(olt)s was added.") if is_new else _("The settings of %(olt)s were saved.")
            messages.success(request, said % {"olt": saved})
            if note := saved.dropped_note:
                messages.warning(request, note)
            return redirect("dashboard:olt", saved.pk)
    return show(request, "olt_setup.html", {"active": "olts", "form": form, "olt_id": olt.pk, "olt_name": name})


@sensitive_post_parameters()
@require_POST
@needs("inventory.add_olt")
def test_new_olt(request: HttpRequest) -> HttpResponse:
    return tested(request, OltSetupForm(request.user, request.POST, instance=Olt()))


@sensitive_post_parameters()
@require_POST
@needs("inventory.change_olt")
def test_olt(request: HttpRequest, olt_id: int) -> HttpResponse:
    olt = get_object_or_404(visible_olts(request.user), pk=olt_id)
    return tested(request, OltSetupForm(request.user, request.POST, instance=olt))


def tested(request: HttpRequest, form: OltSetupForm) -> HttpResponse:
    """Return a part of a page: what the OLT of a form answers. Nothing is saved."""
    olt = form.instance
    # An OLT that is polled gets no more than the few requests that identify it.
    polled = olt.device if olt.pk and olt.enabled else None
    resolve_typed_host(request.POST.get("host", ""))
    form.is_valid()
    context: dict[str, Any] = {"errors": form.connection_errors}
    if not form.connection_errors:
        olt.locate()
        logger.info("%s tests the connection to %s", request.user, olt.device)
        try:
            context["test"] = asyncio.run(_ask(olt.agent(), BRANDS.get(olt.brand), measured=olt.device != polled))
        except FachoError as error:
            context["failure"] = str(error)
    return render(request, "dashboard/_connection.html", context)


@dataclass(frozen=True, slots=True)
class ConnectionTest:
    """Answers of an OLT, and what its tables cost."""

    identity: Identity
    brand: Brand | None
    measured: Measured | None

    @property
    def round_trip_ms(self) -> float | None:
        traffic = self.measured.traffic if self.measured else self.identity.traffic
        return traffic.rtt_p50 and traffic.rtt_p50 * 1000

    @property
    def jobs(self) -> list["ProposedJob"]:
        if self.brand is None or self.measured is None:
            return []
        costs = {each.name: each for each in self.measured.allowed}
        return [ProposedJob(each, costs.get(each.name)) for each in self.brand.templates]


@dataclass(frozen=True, slots=True)
class ProposedJob:
    """A job that is applied to a new OLT, and the shortest interval that this OLT allows."""

    template: JobTemplate
    cost: Allowed | None

    @property
    def every(self) -> int:
        return round(self.template.interval.total_seconds())

    @property
    def shortest(self) -> int | None:
        """Return the shortest interval in seconds; None if it is unknown, or not even daily runs are possible."""
        interval = self.cost and self.cost.interval
        return round(interval.total_seconds()) if interval else None

    @property
    def is_too_often(self) -> bool:
        return self.cost is not None and (self.shortest is None or self.shortest > self.every)


async def _ask(agent: Agent, named: Brand | None, *, measured: bool) -> ConnectionTest:
    clock, snmp = SystemClock(), SnmpByVersion()
    deadline = clock.now() + timedelta(seconds=TEST_SECONDS)
    try:
        identity = await identify(
            agent,
            snmp=snmp,
            clock=clock,
            deadline=deadline,
            candidates=brands.candidates,
            brands=tuple(BRANDS.values()),
        )
        brand = named or identity.brand
        if brand is None or not measured:
            return ConnectionTest(identity, brand, None)
        costs = await measure(agent, brand, snmp=snmp, clock=clock, deadline=deadline)
        return ConnectionTest(identity, brand, costs)
    finally:
        await snmp.close()
