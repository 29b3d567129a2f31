"""The values of an OLT's ONUs at a time: from open runs and closed days, with their age."""

from datetime import timedelta

import pytest
from builders import HOUR, MIN, T0
from django.db import connection
from django.test.utils import CaptureQueriesContext

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.history import NEVER_READ, RAW, moment, nearest_readings, start_of_day, values_at
from facho.apps.telemetry.models import HistoryRun, Onu
from facho.engine.batch import UNREAD
from facho.store.history import append, close

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
D0 = start_of_day(T0)


@pytest.fixture
def olt(db):
    return Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")


@pytest.fixture
def ids(olt):
    rows = [Onu(olt=olt, index=f"1.{n}", onu=n, first_seen_at=T0, own_read_at=T0) for n in range(3)]
    return [onu.pk for onu in Onu.objects.bulk_create(rows)]


def last(olt, ids, at, field="rx_dbm"):
    """Return the cell of each ONU and the time of its reading."""
    found = values_at(olt.pk, ids, [field], at)[field]
    return [
        (cell, None if read_at == NEVER_READ else moment(read_at))
        for cell, read_at in zip(found.cells, found.times, strict=True)
    ]


@pytest.fixture(params=["open", "closed", "closed, with a late run"])
def fill(request, olt, ids):
    """Store runs, of days in different forms."""

    def fill(*runs):
        late = [runs[0]] if "late" in request.param else []
        for at, cells in runs[len(late) :]:
            append(olt.pk, at, ids, {"rx_dbm": cells})
        if request.param != "open":
            for day in sorted({start_of_day(at) for at, _ in runs}):
                close(RAW, olt.pk, day)
        for at, cells in late:
            append(olt.pk, at, ids, {"rx_dbm": cells})
        assert HistoryRun.objects.exists() is (request.param == "open" or bool(late))

    return fill


def test_each_onu_has_its_last_cell_until_the_time(olt, ids, fill):
    one, two, three = D0 + HOUR, D0 + 2 * HOUR, D0 + 3 * HOUR
    fill((one, [-20.0, -21.0, UNREAD]), (two, [-20.5, UNREAD, None]), (three, [-30.0, -30.0, -30.0]))

    assert last(olt, ids, two + MIN) == [(-20.5, two), (-21.0, one), (None, two)]
    assert last(olt, ids, two) == [(-20.5, two), (-21.0, one), (None, two)]
    assert last(olt, ids, two - MIN) == [(-20.0, one), (-21.0, one), (UNREAD, None)]
    assert last(olt, ids, one - MIN) == [(UNREAD, None)] * 3


def test_a_value_may_be_of_the_day_before_but_not_older_than_a_day(olt, ids, fill):
    evening, early = D0 + 23 * HOUR, D0 + 7 * HOUR
    fill((early, [-18.0, -18.0, -18.0]), (evening, [-20.0, UNREAD, UNREAD]), (D0 + DAY + HOUR, [UNREAD, UNREAD, -22.0]))

    assert last(olt, ids, D0 + DAY + 2 * HOUR) == [(-20.0, evening), (-18.0, early), (-22.0, D0 + DAY + HOUR)]
    assert last(olt, ids, early + DAY + MIN) == [(-20.0, evening), (UNREAD, None), (-22.0, D0 + DAY + HOUR)]
    assert last(olt, ids, D0 + 2 * DAY + 2 * HOUR) == [(UNREAD, None)] * 3


def test_the_columns_have_the_order_of_the_ids(olt, ids, fill):
    fill((D0 + HOUR, [-20.0, -21.0, -22.0]), (D0 + 2 * HOUR, [UNREAD] * 3))
    unknown = ids[-1] + 1

    found = last(olt, [ids[2], unknown, ids[0]], D0 + 3 * HOUR)

    assert [cell for cell, _ in found] == [-22.0, UNREAD, -20.0]


def test_a_late_run_does_not_hide_a_later_value_of_its_closed_day(olt, ids):
    append(olt.pk, D0 + 2 * HOUR, ids, {"rx_dbm": [-20.0, -20.0, -20.0]})
    close(RAW, olt.pk, D0)
    append(olt.pk, D0 + HOUR, ids, {"rx_dbm": [-25.0, -25.0, -25.0]})

    assert last(olt, ids, D0 + 3 * HOUR) == [(-20.0, D0 + 2 * HOUR)] * 3


def test_the_cost_does_not_grow_with_the_history(olt, ids):
    for day in range(4):
        for hour in range(24):
            append(olt.pk, D0 + day * DAY + hour * HOUR, ids, {"rx_dbm": [-20.0 - hour] * 3, "state": ["online"] * 3})
        if day < 3:
            close(RAW, olt.pk, D0 + day * DAY)

    with CaptureQueriesContext(connection) as queries:
        found = values_at(olt.pk, ids, ["state", "rx_dbm"], D0 + 2 * DAY + 10 * HOUR)

    assert found["rx_dbm"].cells == [-30.0] * 3
    # Runs of a day, and one chunk of each field.
    assert len(queries) == 3


def test_the_nearest_readings_of_a_time_without_any_are_found(olt, ids):
    runs = [D0 + HOUR, D0 + 2 * HOUR, D0 + 5 * DAY, D0 + 6 * DAY]
    for at in runs:
        append(olt.pk, at, ids, {"state": ["online"] * 3})
    close(RAW, olt.pk, D0)

    assert nearest_readings(olt.pk, D0 + 2 * DAY) == (runs[1], runs[2])
    assert nearest_readings(olt.pk, D0 + 90 * MIN) == (runs[0], runs[1])
    assert nearest_readings(olt.pk, D0) == (None, runs[0])
    assert nearest_readings(olt.pk, D0 + 9 * DAY) == (runs[3], None)
    assert nearest_readings(olt.pk + 1, D0) == (None, None)
