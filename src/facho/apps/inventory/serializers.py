"""OLTs in the API, and shared parts of all serializers."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS
from django.core.exceptions import ValidationError as ModelError
from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied

from facho.apps.accounts.permissions import missing
from facho.apps.inventory import bulk, paces
from facho.apps.inventory.changes import save_changes
from facho.apps.inventory.filters import OltFilter
from facho.apps.inventory.models import MOST_SECRET_BYTES, Olt, Question, Site, Tag
from facho.apps.inventory.queries import SHARES_DEVICE
from facho.apps.inventory.remarks import HELP as REMARKS
from facho.apps.inventory.remarks import remarks_on
from facho.apps.inventory.scopes import check_place, restrict_labels, visible_ids, visible_olts
from facho.apps.rest.strict import StrictSerializer
from facho.brands import BRANDS

Row = TypeVar("Row", bound=Model)


@contextmanager
def refusals() -> Iterator[None]:
    """Convert model validation errors to a 400, by field."""
    try:
        yield
    except ModelError as error:
        detail = serializers.as_serializer_error(error)
        if NON_FIELD_ERRORS in detail:
            detail["non_field_errors"] = detail.pop(NON_FIELD_ERRORS)
        raise serializers.ValidationError(detail) from error


class CheckedSerializer(StrictSerializer, serializers.ModelSerializer[Row]):
    """Validates a row by its model, so that API and admin return the same errors."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        model: type[Any] = self.Meta.model
        row = copy.copy(self.instance) if isinstance(self.instance, model) else model()
        columns = {field.name for field in model._meta.concrete_fields}
        for name in columns & attrs.keys():
            setattr(row, name, attrs[name])
        if isinstance(row, Olt):
            row.readers_olts = visible_ids(self.context["request"].user)
        with refusals():
            # The fields have already checked uniqueness.
            row.full_clean(validate_unique=False)
        return attrs

    def update(self, instance: Row, validated_data: dict[str, Any]) -> Row:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        save_changes(instance, validated_data)
        return instance


class BrandField(serializers.CharField):
    """The id of a brand. `GET /api/v1/brands/` lists them, and so does the error for an unknown one."""

    default_error_messages = {"unknown": _("Unknown brand “{brand}”. Known brands: {known}.")}

    def to_internal_value(self, data: Any) -> str:
        brand = super().to_internal_value(data)
        if brand and brand not in BRANDS:
            self.fail("unknown", brand=brand, known=", ".join(sorted(BRANDS)))
        return brand


class SecretInput(serializers.CharField):
    """A secret that can be written and is never returned. If omitted, the stored one is kept."""

    def __init__(self, *, max_length: int = MOST_SECRET_BYTES, **kwargs: Any) -> None:
        super().__init__(
            max_length=max_length,
            write_only=True,
            required=False,
            allow_blank=True,
            trim_whitespace=False,
            style={"input_type": "password"},
            **kwargs,
        )


class BreakerSerializer(serializers.Serializer[Olt]):
    """The breaker of an OLT. While it is open the OLT is not polled, only probed."""

    is_open = serializers.SerializerMethodField()
    since = serializers.DateTimeField(source="breaker_opened_at", allow_null=True)
    failures = serializers.IntegerField(help_text="Attempts in a row without an answer.")
    probed_at = serializers.DateTimeField(
        source="breaker_probed_at", allow_null=True, help_text="Time of the last probe."
    )
    answered_at = serializers.DateTimeField(
        source="breaker_answered_at",
        allow_null=True,
        help_text="Time of the probe that was answered. The breaker must be closed manually.",
    )

    def get_is_open(self, olt: Olt) -> bool:
        return olt.breaker_opened_at is not None


class LearnedPaceSerializer(serializers.Serializer[Any]):
    """Number of requests in flight that suits an OLT, and the measured result."""

    requests = serializers.ChoiceField(choices=["cheap", "optical"], help_text="Which requests.")
    window = serializers.IntegerField(help_text="Requests in flight at the start of the next run.")
    limit = serializers.IntegerField(help_text="The window never exceeds it.")
    values_per_second = serializers.FloatField()
    round_trip = serializers.FloatField(help_text="Seconds, mean.")
    reason = serializers.ChoiceField(choices=paces.REASONS, help_text="Why the window is not larger.")
    explanation = serializers.CharField(help_text="The reason, as a sentence.")


class OltNameSerializer(serializers.Serializer[Olt]):
    """Another OLT."""

    id = serializers.IntegerField()
    name = serializers.CharField()


class LabelField(serializers.SlugRelatedField[Any]):
    """A site or tag by name, in upper or lower case. Users with a scope see only theirs."""

    default_error_messages = {
        "does_not_exist": _("“{value}” does not exist, or is outside your scope. Create it first."),
        "invalid": _("Write a name."),
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(slug_field="name", **kwargs)

    def get_queryset(self) -> Any:
        labels: Any = super().get_queryset()
        return restrict_labels(labels, self.context["request"].user)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid")
        found = self.get_queryset().filter(name__iexact=data).first()
        if found is None:
            self.fail("does_not_exist", value=data)
        return found


class SiteSerializer(CheckedSerializer[Site]):
    """A site. Names are unique, in upper or lower case."""

    olts_total = serializers.IntegerField(read_only=True, help_text="Number of OLTs at the site that you see.")

    class Meta:
        model = Site
        fields = ["id", "name", "description", "latitude", "longitude", "olts_total"]
        # The model has a better message.
        validators: list[Any] = []


class TagSerializer(CheckedSerializer[Tag]):
    """A tag of OLTs, stored in lower case."""

    olts_total = serializers.IntegerField(read_only=True, help_text="Number of OLTs with the tag that you see.")

    class Meta:
        model = Tag
        fields = ["id", "name", "olts_total"]

    def to_internal_value(self, data: Any) -> Any:
        # Before its validators, which compare with stored names.
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            data = {**data, "name": data["name"].lower()}
        return super().to_internal_value(data)


class OltSerializer(CheckedSerializer[Olt]):
    """An OLT. Fields up to `max_pdus_per_second` are settings; the others are observed."""

    brand = BrandField(
        required=False,
        allow_blank=True,
        help_text="If omitted or empty, Facho identifies the OLT and applies the default jobs of its brand.",
    )
    brand_label = serializers.CharField(source="get_brand_display", read_only=True)
    brand_note = serializers.CharField(read_only=True, help_text="Warning about an experimental brand, or empty.")
    site = LabelField(
        queryset=Site.objects.all(), required=False, allow_null=True, help_text="Name of a site, or null."
    )
    tags = LabelField(queryset=Tag.objects.all(), many=True, required=False, help_text="Names of tags.")
    community = SecretInput()
    v3_auth_key = SecretInput()
    v3_priv_key = SecretInput()
    has_community = serializers.BooleanField(source="community", read_only=True)
    has_v3_auth_key = serializers.BooleanField(source="v3_auth_key", read_only=True)
    has_v3_priv_key = serializers.BooleanField(source="v3_priv_key", read_only=True)
    state = serializers.ChoiceField(
        choices=[*Olt.Reachability.choices, ("disabled", _("disabled"))],
        read_only=True,
        help_text="`disabled` if the OLT is disabled, otherwise the reachability.",
    )
    breaker = BreakerSerializer(source="*", read_only=True)
    onus_total = serializers.IntegerField(read_only=True)
    onus_online = serializers.IntegerField(read_only=True)
    onus_missing = serializers.IntegerField(read_only=True, help_text="Part of the total that discoveries do not find.")
    last_read_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="Time of the last reading of any ONU."
    )
    remarks = serializers.SerializerMethodField(help_text=REMARKS)
    learned_pace = serializers.SerializerMethodField(help_text=paces.HELP)
    shares_device_with = serializers.SerializerMethodField(
        help_text="Other OLTs with the same address and port. Only one of them is polled at a time; delete or "
        "correct them."
    )

    class Meta:
        model = Olt
        fields = [
            "id",
            "name",
            "brand",
            "brand_label",
            "brand_note",
            "host",
            "port",
            "location",
            "site",
            "tags",
            "enabled",
            "version",
            "community",
            "v3_user",
            "v3_auth",
            "v3_auth_key",
            "v3_priv",
            "v3_priv_key",
            "max_in_flight",
            "max_pdus_per_second",
            "has_community",
            "has_v3_auth_key",
            "has_v3_priv_key",
            "state",
            "reachability",
            "last_answer_at",
            "last_error",
            "extra",
            "suspect_since",
            "suspect_reason",
            "breaker",
            "onus_total",
            "onus_online",
            "onus_missing",
            "last_read_at",
            "remarks",
            "learned_pace",
            "device",
            "shares_device_with",
            "deleting_since",
            "created_at",
            "updated_at",
        ]
        read_only_fields = [
            "deleting_since",
            "reachability",
            "last_answer_at",
            "last_error",
            "extra",
            "suspect_since",
            "suspect_reason",
            "device",
        ]
        extra_kwargs = {
            "device": {
                "help_text": "IP address and port used for polling; host name and port while the name is not resolved."
            },
            "deleting_since": {"help_text": "Time since when the engine deletes this OLT; null for all others."},
            "suspect_since": {
                "help_text": "Time since when the ONUs that the OLT reports are in doubt. The next discovery decides."
            },
            "suspect_reason": {
                "help_text": "`missing`: too many ONUs are missing at once. `too_many`: the OLT reports more ONUs "
                "than the limit, and new ones are not stored."
            },
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        olt = self.instance if isinstance(self.instance, Olt) else None
        with refusals():
            check_place(
                self.context["request"].user,
                attrs.get("site", olt and olt.site),
                attrs.get("tags", olt.tags.all() if olt else []),
            )
        return super().validate(attrs)

    @transaction.atomic
    def update(self, instance: Olt, validated_data: dict[str, Any]) -> Olt:
        tags = validated_data.pop("tags", None)
        olt = super().update(instance, validated_data)
        if tags is not None:
            olt.tags.set(tags)
        return olt

    @extend_schema_field(LearnedPaceSerializer(many=True))
    def get_learned_pace(self, olt: Olt) -> list[dict[str, Any]]:
        return paces.learned_pace(olt)

    @extend_schema_field(OltNameSerializer(many=True))
    def get_shares_device_with(self, olt: Any) -> list[dict[str, Any]]:
        if not olt.shares_device:
            return []
        seen = visible_ids(self.context["request"].user)
        others = [
            each
            for each in self._sharing
            if each["device"] == olt.device and each["id"] != olt.pk and (seen is None or each["id"] in seen)
        ]
        return [{"id": each["id"], "name": each["name"]} for each in others]

    @cached_property
    def _sharing(self) -> list[Any]:
        """Read all OLTs that share a device, once per page. Few installations have any."""
        return list(Olt.objects.filter(SHARES_DEVICE).order_by("name").values("id", "name", "device"))

    def get_remarks(self, olt: Olt) -> list[str]:
        nodes: Any = olt
        return remarks_on(nodes.nodes_with_blanks)


class ColumnSerializer(serializers.Serializer[Any]):
    """A column that a job of this brand can read."""

    field = serializers.CharField()
    optical = serializers.BooleanField(help_text="Read live from each ONU: expensive for the OLT.")
    floor_seconds = serializers.IntegerField(
        allow_null=True, help_text="Reading it more often overloads the OLT: such a job gets a warning."
    )


class BrandSerializer(serializers.Serializer[Any]):
    """A brand, and the columns of its OLTs."""

    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field here, not the label of this one
    experimental = serializers.BooleanField(help_text="Not tested on real devices: verify the values.")
    columns = ColumnSerializer(many=True)
    discovery = serializers.ListField(
        child=serializers.CharField(), help_text="Columns that a discovery reads if its job names none."
    )


class DecoderSerializer(serializers.Serializer[Any]):
    """A decoder for the value of a raw OID."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field here, not the label of this one


class SampleRowSerializer(serializers.Serializer[Any]):
    """One value: raw and decoded."""

    onu = serializers.CharField(help_text="Empty for a value of the OLT itself, or of a row that is not an ONU.")
    index = serializers.CharField(help_text="The OID suffix.")
    type = serializers.CharField(help_text="The SNMP type, such as INTEGER.")
    raw = serializers.CharField(help_text="Text if printable, otherwise hexadecimal.")
    value = serializers.JSONField(help_text="The decoded value; null if it means no value.")


class SampleColumnSerializer(serializers.Serializer[Any]):
    """The first rows of a column or OID."""

    name = serializers.CharField()
    oid = serializers.CharField()
    decode = serializers.CharField(help_text="How a raw OID is read. Empty for a column of the brand.")
    rows = SampleRowSerializer(many=True)
    remark = serializers.SerializerMethodField(help_text="Description of the problem, or empty.")

    def get_remark(self, column: dict[str, Any]) -> str:
        return gettext(column["remark"]) if column["remark"] else ""


class SampleSerializer(serializers.Serializer[Any]):
    """What a job would read."""

    columns = SampleColumnSerializer(many=True)
    problems = serializers.ListField(child=serializers.CharField())
    requests = serializers.IntegerField()
    seconds = serializers.FloatField()


class OnuReadSerializer(serializers.Serializer[Any]):
    """Values of one ONU that were read now. They are stored like those of a run."""

    onu = serializers.IntegerField(help_text="The ONU that answered: another one, if it is at this place now.")
    values = serializers.DictField(
        child=serializers.JSONField(allow_null=True), help_text="By field. Null: the OLT has no value."
    )
    unanswered = serializers.ListField(
        child=serializers.CharField(),
        help_text="Fields for which the OLT gave no usable answer. They keep their values.",
    )
    requests = serializers.IntegerField()
    seconds = serializers.FloatField()


ANSWERS: dict[str, type[serializers.Serializer[Any]]] = {
    Question.Kind.TRY_JOB: SampleSerializer,
    Question.Kind.READ_ONU: OnuReadSerializer,
}


class QuestionSerializer(serializers.ModelSerializer[Question]):
    """A request to an OLT, and its answer."""

    olt_name = serializers.CharField(source="olt.name", read_only=True)
    state = serializers.ChoiceField(source="current_state", choices=Question.State.choices, read_only=True)
    answer = serializers.SerializerMethodField(help_text="Null until the answer is available.")
    error = serializers.CharField(source="reason", read_only=True, help_text="Why there is no answer, or empty.")
    progress = serializers.CharField(
        read_only=True, help_text="What the request is waiting for, such as the end of a run. Empty if it is answered."
    )
    url = serializers.HyperlinkedIdentityField(
        view_name="api-question-detail", help_text="Address to poll for the answer."
    )

    class Meta:
        model = Question
        fields = ["id", "url", "kind", "olt", "olt_name", "state", "progress", "answer", "error"]
        fields += ["asked_at", "answered_at", "expires_at"]
        read_only_fields = fields

    @extend_schema_field(
        PolymorphicProxySerializer(
            component_name="Answer",
            serializers=list(ANSWERS.values()),
            resource_type_field_name=None,
            allow_null=True,
        )
    )
    def get_answer(self, question: Question) -> Any:
        return ANSWERS[question.kind](question.answer).data if question.state == Question.State.ANSWERED else None


class ChosenOltsSerializer(StrictSerializer):
    """Many OLTs: by id, or by a filter."""

    ids: serializers.ListField = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=2**63 - 1),
        required=False,
        max_length=bulk.MOST_OLTS,
        help_text="Ids of OLTs. Either this or `filter`.",
    )
    filter: serializers.DictField = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text='Parameters of the list of OLTs, such as `{"site": "Lima"}`. `{}`: all OLTs that you see.',
    )

    def chosen(self, body: dict[str, Any]) -> list[Olt]:
        """Return the OLTs of a body. Unknown ids are left out: see `unknown_ids`."""
        if ("ids" in body) == ("filter" in body):
            raise serializers.ValidationError({"ids": [_("Give either ids or filter.")]})
        request = self.context["request"]
        olts = visible_olts(request.user).select_related("site")
        if "ids" in body:
            return list(olts.filter(pk__in=body["ids"]))
        known = list(OltFilter.base_filters)
        if unknown := sorted(body["filter"].keys() - set(known)):
            said = _("Unknown parameter. Valid parameters: %(known)s.") % {"known": ", ".join(known)}
            raise serializers.ValidationError({"filter": {name: [said] for name in unknown}})
        chosen = OltFilter(body["filter"], olts, request=request)
        if not chosen.is_valid():
            raise serializers.ValidationError({"filter": chosen.errors})
        found = list(chosen.qs[: bulk.MOST_OLTS + 1])
        if len(found) > bulk.MOST_OLTS:
            said = _("More than %(most)d OLTs match. Filter more.") % {"most": bulk.MOST_OLTS}
            raise serializers.ValidationError({"filter": [said]})
        return found

    def unknown_ids(self) -> list[int]:
        """Return the ids of the body that are no OLTs which the user sees."""
        body = self.validated_data
        return sorted(set(body.get("ids", ())) - {olt.pk for olt in body["olts"]})


class BulkSerializer(ChosenOltsSerializer):
    """An action on many OLTs."""

    action = serializers.ChoiceField(choices=bulk.CHOICES)
    tag = serializers.CharField(required=False, help_text="Name of a tag, for add_tag and remove_tag.")
    site = serializers.CharField(required=False, allow_null=True, help_text="Name of a site, or null, for set_site.")

    NEEDS = {bulk.Action.ADD_TAG: "tag", bulk.Action.REMOVE_TAG: "tag", bulk.Action.SET_SITE: "site"}

    def validate(self, body: dict[str, Any]) -> dict[str, Any]:
        action, user = bulk.Action(body["action"]), self.context["request"].user
        if not user.has_perm(bulk.PERMISSIONS[action]):
            raise PermissionDenied(missing(bulk.PERMISSIONS[action]))
        needed = self.NEEDS.get(action)
        if needed is not None and needed not in body:
            raise serializers.ValidationError({needed: [_("This action needs it.")]})
        if stray := {"tag", "site"} & body.keys() - {needed}:
            raise serializers.ValidationError({name: [_("This action does not need it.")] for name in stray})
        try:
            label = bulk.label_of(action, body.get(needed or "") or "", user)
        except ModelError as error:
            raise serializers.ValidationError({str(needed): error.messages}) from error
        return {**body, "label": label, "olts": self.chosen(body)}

    def run(self) -> list[bulk.Outcome]:
        """Run the action. An unknown id is refused."""
        body, user = self.validated_data, self.context["request"].user
        outcomes = bulk.run(bulk.Action(body["action"]), body["olts"], body["label"], user)
        said = gettext("There is no such OLT.")
        return [*outcomes, *(bulk.Outcome(pk, "", bulk.Result.REFUSED, said) for pk in self.unknown_ids())]


class BulkOutcomeSerializer(serializers.Serializer[Any]):
    """The result for one OLT."""

    id = serializers.IntegerField()
    name = serializers.CharField(help_text="Empty if there is no such OLT.")
    result = serializers.ChoiceField(choices=[each.value for each in bulk.Result])
    detail = serializers.CharField(help_text="Why it was refused; otherwise empty.")


class BulkResultSerializer(serializers.Serializer[Any]):
    """The results of an action on many OLTs."""

    action = serializers.ChoiceField(choices=bulk.CHOICES)
    detail = serializers.CharField(help_text="The result, as a sentence.")
    results = BulkOutcomeSerializer(many=True)
