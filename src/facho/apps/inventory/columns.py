"""Columns of OLTs in files. Secrets are never written."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from facho.apps.inventory.models import Olt
from facho.apps.rest.export import Column, column, columns_of, label_of


def _state(olt: Olt) -> Any:
    return olt.get_reachability_display() if olt.enabled else _("disabled")


OLT_COLUMNS = (
    column("id", "id"),
    *columns_of(Olt, "name"),
    column("brand", label_of(Olt, "brand"), said=lambda olt: olt.get_brand_display()),
    *columns_of(Olt, "host", "port", "location"),
    Column("site", label_of(Olt, "site"), lambda olt: olt.site.name if olt.site else None),
    Column("tags", label_of(Olt, "tags"), lambda olt: [tag.name for tag in olt.tags.all()]),
    *columns_of(Olt, "enabled"),
    column("state", _("state"), said=_state),
    *columns_of(Olt, "reachability", "last_answer_at", "last_error", "breaker_opened_at", "suspect_since"),
    column("onus_total", _("ONUs")),
    column("onus_online", _("ONUs online")),
    column("onus_missing", _("ONUs missing")),
    column("last_read_at", _("last read")),
    *columns_of(Olt, "created_at", "updated_at"),
)
