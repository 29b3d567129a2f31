"""Forms of jobs and nodes."""

import json
from collections.abc import Collection
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.forms import BaseDialogForm, PaginationInlineFormSet
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminNullBooleanSelectWidget,
    UnfoldAdminSelect2MultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldBooleanWidget,
)

from facho.apps.inventory import labels
from facho.apps.inventory.changes import save_changes
from facho.apps.inventory.models import Olt, brand_choices
from facho.apps.inventory.scopes import visible_ids, visible_olts
from facho.apps.jobs.columns import reads_nothing, reads_nothing_refusal
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.brands import BRANDS
from facho.engine.model import JobKind, default_priority

# Maximum number of brands to list for a column.
MOST_LABELS = 3


def column_choices(brand_id: str) -> list[tuple[str, str]]:
    """Return the columns of a brand, or of all brands with the brand names."""
    if brand_id in BRANDS:
        return [(name, labels.column(name)) for name in BRANDS[brand_id].columns]
    choices = []
    for name in dict.fromkeys(name for brand in BRANDS.values() for name in brand.columns):
        brands = [brand.label for brand in BRANDS.values() if name in brand.columns]
        shown, rest = ", ".join(brands[:MOST_LABELS]), len(brands) - MOST_LABELS
        if rest > 0:
            shown = gettext("%(brands)s and %(n)d more") % {"brands": shown, "n": rest}
        choices.append((name, f"{labels.column(name)} ({shown})"))
    return choices


class OltsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic only in the stubs
    """OLTs by name, and by brand if there are several."""

    shows_brand = True

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} ({obj.get_brand_display()})" if self.shows_brand else str(obj.name)


class OperatedJobForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A job for users who may operate it and not change it."""

    class Meta:
        model = SnmpJob
        fields = SnmpJob.OPERATED_FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "interval_seconds" in self.fields:
            self.fields["interval_seconds"].help_text = " ".join(self.instance.warnings)


class JobForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A job, its columns by name, and its OLTs.

    An OLT that another user added since the page was opened would look like one to remove, so removing needs a
    separate checkbox.
    """

    # The user who edits it: see `ScopedAdmin`.
    user: Any = None

    columns = forms.MultipleChoiceField(
        label=_("Columns"),
        required=False,
        widget=UnfoldAdminSelect2MultipleWidget,
        help_text=_("A discovery without columns reads the default columns of the brand."),
    )
    olts = OltsField(
        label=_("OLTs"),
        queryset=Olt.objects.none(),
        required=False,
        widget=UnfoldAdminSelect2MultipleWidget,
        help_text=_("Jobs that follow this one are included."),
    )
    confirm_removal = forms.BooleanField(
        label=_("Remove the job from the deselected OLTs"),
        required=False,
        widget=UnfoldBooleanWidget,
        help_text=_("Their nodes and their own settings are deleted. Readings and executions are kept."),
    )

    class Meta:
        model = SnmpJob
        exclude: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        is_new = self.instance._state.adding
        olts = visible_olts(self.user) if is_new else visible_olts(self.user).filter(brand=self.instance.brand)
        # Without secrets: only names are shown.
        self.fields["olts"].queryset = olts.only("name", "brand").order_by("name")  # type: ignore[attr-defined]  # it is our OltsField
        self.fields["olts"].shows_brand = is_new  # type: ignore[attr-defined]  # as above
        self.fields["columns"].choices = column_choices(self.instance.brand)  # type: ignore[attr-defined]  # it has choices
        if "kind" in self.fields and self.instance.kind != SnmpJob.Kind.IDENTIFY:
            # There is one identification job, created automatically.
            kind: Any = self.fields["kind"]
            kind.choices = [choice for choice in kind.choices if choice[0] != SnmpJob.Kind.IDENTIFY]
        if "priority" in self.fields:
            # For priority.js: default value of each kind.
            defaults = {kind.value: default_priority(kind) for kind in JobKind}
            self.fields["priority"].widget.attrs["data-defaults"] = json.dumps(defaults)
        if "interval_seconds" in self.fields:
            self.fields["interval_seconds"].help_text = " ".join(self.instance.warnings)
        if "follows" in self.fields:
            follows: Any = self.fields["follows"]
            follows.queryset = SnmpJob.objects.filter(follows__isnull=True)
            if (ids := visible_ids(self.user)) is not None:
                beyond = WorkflowNode.objects.exclude(olt__in=ids).order_by()
                follows.queryset = follows.queryset.exclude(pk__in=beyond.values("job"))
            if not is_new:
                follows.queryset = follows.queryset.filter(brand=self.instance.brand).exclude(pk=self.instance.pk)
            # Two brands may have jobs of the same name.
            follows.label_from_instance = lambda master: f"{master} ({master.get_brand_display()})"
        self._applied = set() if is_new else set(self.instance.olt_ids())
        self.initial["olts"] = self._applied
        if not is_new and self.instance.follows_id is not None:
            self.fields["olts"].disabled = True
            self.fields["olts"].help_text = _("This job follows another one and is applied to the same OLTs.")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        olts = cleaned.get("olts")
        if olts is None or self.fields["olts"].disabled:
            return cleaned
        if olts and cleaned.get("follows") and self.instance._state.adding:
            self.add_error(
                "olts", _("A job that follows another one is applied to the same OLTs. Do not choose OLTs here.")
            )
        brand = cleaned.get("brand", self.instance.brand)
        strangers = [olt.name for olt in olts if olt.brand != brand]
        if strangers:
            self.add_error("olts", gettext("Of another brand: %(olts)s.") % {"olts": ", ".join(strangers)})
        removed = Olt.objects.filter(pk__in=self._applied.difference(olt.pk for olt in olts))
        if removed and not cleaned.get("confirm_removal"):
            names = ", ".join(olt.name for olt in removed)
            self.add_error(
                "confirm_removal",
                gettext("This removes the job from %(olts)s. Tick the box to confirm.") % {"olts": names},
            )
        return cleaned

    def apply(self) -> None:
        """Create and delete nodes to match the chosen OLTs. Called after the job and its OIDs are saved."""
        job: SnmpJob = self.instance
        if job.follows_id is not None or self.fields["olts"].disabled:
            return
        chosen: Collection[Olt] = self.cleaned_data["olts"]
        job.nodes.exclude(olt__in=chosen).delete()
        job.apply_to(chosen)


class OidFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # generic only in the stubs
    """Raw OIDs of a job. Only here they are known, so a job that reads nothing is refused here."""

    def clean(self) -> None:
        super().clean()
        kept = [
            form for form in self.forms if form not in self.deleted_forms and (form.instance.pk or form.has_changed())
        ]
        if reads_nothing(self.instance.kind, self.instance.columns, kept):
            raise ValidationError(reads_nothing_refusal())


class OwnEnabledSelect(UnfoldAdminNullBooleanSelectWidget):
    """Yes, no, or as the job."""

    def __init__(self) -> None:
        super().__init__()
        self.choices = [("unknown", _("same as the job")), ("true", _("yes")), ("false", _("no"))]


class NodeForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """Own settings of a node. Empty means as the job."""

    class Meta:
        model = WorkflowNode
        fields = ["own_interval_seconds", "own_priority", "own_enabled"]
        widgets = {"own_enabled": OwnEnabledSelect}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            # In a table, a screen reader gets no other name.
            field.widget.attrs["aria-label"] = field.label
        # A read-only user gets a form without fields, and the formset creates an empty form as a template.
        if self.fields and self.instance.job_id is not None:
            job, interval = self.instance.job, self.fields["own_interval_seconds"]
            if "own_priority" in self.fields:
                self.fields["own_priority"].widget.attrs["placeholder"] = job.priority
            interval.help_text = " ".join(self.instance.warnings) or interval.help_text
            if self.instance.master_id is None:
                interval.widget.attrs["placeholder"] = job.interval_seconds
            else:
                interval.disabled = True


class NodeFormSet(PaginationInlineFormSet):
    """Nodes of one OLT. A chained node is only deleted with its master."""

    def clean(self) -> None:
        super().clean()
        deleted = {form.instance.pk: form.instance for form in self.deleted_forms}
        for node in deleted.values():
            if node.master_id is not None and node.master_id not in deleted:
                raise ValidationError(
                    gettext("%(node)s runs after another node. Delete that node, or disable this one.") % {"node": node}
                )

    def save_existing(self, form: Any, obj: WorkflowNode, commit: bool = True) -> WorkflowNode:
        if commit:
            save_changes(obj, form.changed_data)
        return obj


class ProposeJobsForm(BaseDialogForm):
    """Brand whose usual jobs are created."""

    brand = forms.ChoiceField(label=_("Brand"), choices=brand_choices, widget=UnfoldAdminSelectWidget)


class ApplyJobsForm(BaseDialogForm):
    """Jobs to apply to an OLT: those of its brand that it does not have yet."""

    jobs = forms.ModelMultipleChoiceField(
        label=_("Jobs"), queryset=SnmpJob.objects.none(), widget=UnfoldAdminCheckboxSelectMultipleWidget
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        olt = visible_olts(self.request.user).filter(pk=self.object_id).first()
        jobs = SnmpJob.objects.filter(brand=olt.brand if olt else "", follows__isnull=True)
        missing = jobs.exclude(nodes__olt=olt)
        self.fields["jobs"].queryset = missing
        if not missing.exists():
            self.fields["jobs"].help_text = _("There are none: all jobs of this brand are already applied.")
