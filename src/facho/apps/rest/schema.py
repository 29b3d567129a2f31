"""Description of the API: refusals, which every operation has in the same form, and empty choices."""

from contextlib import suppress
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from drf_spectacular.openapi import AutoSchema
from rest_framework.serializers import ChoiceField

SENTENCE = {
    "type": "object",
    "properties": {"detail": {"type": "string", "description": "What is wrong, as a sentence."}},
    "required": ["detail"],
}
INVALID = {
    "type": "object",
    "description": "Sentences by field or parameter; `detail` is about the request as a whole.",
    "additionalProperties": {},
}
REFUSALS = {
    "400": ("The request is invalid.", "Invalid"),
    "401": ("The request has no valid token or session.", "Refusal"),
    "403": ("The user or the token may not do this.", "Refusal"),
    "404": ("There is no such row or page.", "Refusal"),
    "406": ("The client accepts no JSON.", "Refusal"),
    "415": ("The body has another type than JSON or a form.", "Refusal"),
    "429": ("Too many attempts. The header Retry-After has the seconds to wait.", "Refusal"),
}
BODIES = ("post", "put", "patch", "delete")


def describe_refusals(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Add the refusals that any operation can return, and which parameters may be empty."""
    result["components"].setdefault("schemas", {}).update({"Refusal": SENTENCE, "Invalid": INVALID})
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query" and _may_be_empty(parameter):
                    parameter["allowEmptyValue"] = True
            statuses = {"400", "401", "403", "406"}
            if "{" in path or any(each["name"] == "page" for each in operation.get("parameters", ())):
                statuses.add("404")
            if method in BODIES:
                statuses.add("415")
            if path.endswith("/auth/token/"):
                statuses.add("429")
            for status in sorted(statuses - operation["responses"].keys()):
                description, schema = REFUSALS[status]
                content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
                operation["responses"][status] = {"description": description, "content": content}
    return result


def _may_be_empty(parameter: dict[str, Any]) -> bool:
    """Return whether an empty query parameter is the same as one that is left out."""
    # Without `explode`, several values are one text.
    is_one = parameter["schema"].get("type") != "array" or parameter.get("explode") is False
    return is_one and parameter["name"] != "page_size" and not parameter.get("required")


class EmptyChoices(AutoSchema):
    """Describes that a read-only choice may be empty, if its column may be."""

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        if isinstance(field, ChoiceField) and field.read_only and not field.allow_blank:
            model = getattr(getattr(field.parent, "Meta", None), "model", None)
            with suppress(FieldDoesNotExist):
                field.allow_blank = bool(model and model._meta.get_field(field.source).blank)
        described: Any = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]  # in the library
        return described
