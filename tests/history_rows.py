"""Readings in the database, as tests write and read them: whatever form they are stored in."""

from datetime import UTC, datetime

from django.db import transaction

from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import HistoryRun
from facho.engine.batch import UNREAD
from facho.engine.chunks import FIELDS, RunColumns, decode
from facho.store import history

EVER = datetime(1980, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


def add_reading(onu, at, **values):
    """Store what a run read of one ONU."""
    with transaction.atomic():
        history.append(onu.olt_id, at, [onu.pk], {name: [value] for name, value in values.items()} or {"state": [None]})


def readings(onu):
    """Return every reading of an ONU, the earliest first, without the fields that have no value."""
    rows = series(onu.pk, list(FIELDS), *EVER)
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def stored():
    """Return the ONU and the time of each reading in the runs of days that are open, as often as it is stored."""
    found = []
    for at, data in HistoryRun.objects.order_by("at", "pk").values_list("at", "data"):
        run = RunColumns(bytes(data))
        columns = [decode(FIELDS[name], run.column(name)) for name in run.forms]
        cells = zip(*columns, strict=True)
        found += [(onu, at) for onu, row in zip(run.onu_ids, cells, strict=True) if any(x is not UNREAD for x in row)]
    return found
