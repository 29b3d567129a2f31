"""Filters of API tokens."""

from facho.apps.accounts.models import ApiToken
from facho.apps.rest.filters import FilterSet, IdFilter, YesNoFilter


class ApiTokenFilter(FilterSet):
    user = IdFilter(field_name="user_id", label="id of the user")
    is_revoked = YesNoFilter(
        field_name="revoked_at", lookup_expr="isnull", exclude=True, label="whether the token was revoked"
    )

    class Meta:
        model = ApiToken
        fields = ["is_read_only", "origin"]
