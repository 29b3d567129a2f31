"""Texts of the search for ONUs that no run has written."""

from facho.apps.telemetry.models import Onu, OnuSearch
from facho.apps.telemetry.search import TEXT_FIELDS, text_of


def add_text(onu: Onu) -> None:
    text = text_of(*(getattr(onu, name) for name in TEXT_FIELDS))
    OnuSearch.objects.create(onu=onu, olt_id=onu.olt_id, text=text)
