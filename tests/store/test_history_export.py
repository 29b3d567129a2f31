"""Values of whole OLTs for files: the same as the series of each ONU, while a day is open and after it was closed."""

import zoneinfo
from datetime import timedelta

import pytest
from builders import HOUR, MIN, T0
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from facho.apps.inventory.models import Olt
from facho.apps.telemetry.history import DAYS, RAW, moment, series, start_of_day
from facho.apps.telemetry.history_export import Part, known_span, period_starts
from facho.apps.telemetry.models import HistoryChunk, HistoryRun, Onu
from facho.engine.batch import UNREAD
from facho.engine.chunks import FIELDS
from facho.store.history import append, close, due

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
D0 = start_of_day(T0)
NAMES = ["state", "rx_dbm", "in_octets"]


@pytest.fixture
def olt(db):
    return Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")


def make_onus(olt, count, first=0):
    rows = [Onu(olt=olt, index=f"1.{n}", onu=n, first_seen_at=T0, own_read_at=T0) for n in range(first, first + count)]
    return [onu.pk for onu in Onu.objects.bulk_create(rows)]


def part(olt, since=D0, until=D0 + DAY, names=NAMES):
    return Part(RAW, olt.pk, since, until, {name: place for place, name in enumerate(names)})


def lines(found, names=NAMES):
    """Return the readings of each ONU in the form of `series`."""
    return {
        onu_id: [
            {
                "at": moment(at),
                **{name: None if cell is UNREAD else cell for name, cell in zip(names, line, strict=True)},
            }
            for at, line in sorted(by_time.items())
        ]
        for onu_id, by_time in found.onus.items()
    }


def expected(onu_ids, since=D0, until=D0 + DAY, names=NAMES):
    return {onu_id: [each for each in series(onu_id, names, since, until) if each["at"] < until] for onu_id in onu_ids}


CELLS = {
    "state": st.sampled_from(["online", "los", None, UNREAD]),
    "rx_dbm": st.sampled_from([-20.5, -31.25, None, UNREAD]),
    "in_octets": st.sampled_from([0, 2**40, None, UNREAD]),
}


@given(data=st.data())
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_lines_of_a_file_are_the_series_of_its_onus(olt, data):
    HistoryRun.objects.all().delete()
    HistoryChunk.objects.all().delete()
    Onu.objects.all().delete()
    onu_ids = make_onus(olt, 4)

    def run():
        chosen = data.draw(st.permutations(onu_ids))[: data.draw(st.integers(1, 4))]
        fields = data.draw(st.sets(st.sampled_from(NAMES), min_size=1))
        at = D0 + data.draw(st.integers(0, 30)) * HOUR
        append(olt.pk, at, chosen, {name: [data.draw(CELLS[name]) for _ in chosen] for name in sorted(fields)})

    for _ in range(data.draw(st.integers(1, 6))):
        run()
    if data.draw(st.booleans(), label="closed"):
        close(RAW, olt.pk, D0)
    # Runs that arrive after their day was closed.
    for _ in range(data.draw(st.integers(0, 2))):
        run()
    since, until = D0 + data.draw(st.integers(0, 12)) * HOUR, D0 + data.draw(st.integers(13, 24)) * HOUR

    found = part(olt, since, until).of(onu_ids)

    assert lines(found) == expected(onu_ids, since, until)


def test_some_onus_and_some_fields_are_read(olt):
    onu_ids = make_onus(olt, 300)
    for number in range(3):
        append(olt.pk, D0 + number * HOUR, onu_ids, {"rx_dbm": [-20.0] * 300, "state": ["online"] * 300})
    open_ = part(olt, names=["rx_dbm"]).of(onu_ids[120:140])
    close(RAW, olt.pk, D0)
    closed = part(olt, names=["rx_dbm"]).of(onu_ids[120:140])

    assert lines(open_, ["rx_dbm"]) == lines(closed, ["rx_dbm"]) == expected(onu_ids[120:140], names=["rx_dbm"])
    assert {len(each) for each in lines(closed, ["rx_dbm"]).values()} == {3}


def test_a_day_that_is_closed_during_the_export_is_not_missed(olt, monkeypatch):
    onu_ids = make_onus(olt, 2)
    for number in range(3):
        append(olt.pk, D0 + number * HOUR, onu_ids, {"rx_dbm": [-20.0, -21.0]})
    whole = part(olt, names=["rx_dbm"])
    expected_lines = expected(onu_ids, names=["rx_dbm"])
    add_chunks = Part._add_chunks

    def closed_meanwhile(self, *arguments):
        close(RAW, olt.pk, D0)
        add_chunks(self, *arguments)

    monkeypatch.setattr(Part, "_add_chunks", closed_meanwhile)

    assert lines(whole.of(onu_ids), ["rx_dbm"]) == expected_lines


def test_damaged_rows_are_left_out_and_counted(olt):
    onu_ids = make_onus(olt, 1)
    append(olt.pk, D0, onu_ids, {"rx_dbm": [-20.0]})
    append(olt.pk, D0 + HOUR, onu_ids, {"rx_dbm": [-21.0]})
    HistoryRun.objects.filter(at=D0).update(data=b"damaged!!!")

    found = part(olt, names=["rx_dbm"]).of(onu_ids)

    assert found.damaged == 1
    assert [line for by_time in found.onus.values() for line in by_time.values()] == [[-21.0]]


# Zones east and west of Greenwich: a day of the history is one of UTC.
@pytest.fixture(params=["UTC", "America/Lima", "Asia/Tokyo"])
def zone(request):
    with timezone.override(zoneinfo.ZoneInfo(request.param)):
        yield request.param


@pytest.mark.parametrize("at", [D0, D0 + 2 * HOUR, D0 + 23 * HOUR])
def test_days_with_values_are_those_of_utc(olt, zone, at):
    onu_ids = make_onus(olt, 1)
    append(olt.pk, at, onu_ids, {"rx_dbm": [-20.0]})
    open_ = period_starts(RAW, olt.pk, D0 - 10 * DAY, D0 + 10 * DAY)
    close(RAW, olt.pk, D0)

    assert open_ == period_starts(RAW, olt.pk, D0 - 10 * DAY, D0 + 10 * DAY) == [D0]
    assert period_starts(RAW, olt.pk, D0 + DAY, D0 + 10 * DAY) == period_starts(RAW, olt.pk, D0 - DAY, D0) == []
    assert period_starts(DAYS, olt.pk, D0 - 10 * DAY, D0 + 10 * DAY) == [DAYS.start(D0)]


@pytest.mark.parametrize("at", [D0, D0 + 2 * HOUR, D0 + 23 * HOUR])
def test_days_to_close_are_those_of_utc(olt, zone, at):
    append(olt.pk, at, make_onus(olt, 1), {"rx_dbm": [-20.0]})

    assert list(due(D0 + 2 * DAY)) == [(RAW, olt.pk, D0)]


def test_the_span_of_the_history_is_known(olt):
    assert known_span(RAW) is None

    onu_ids = make_onus(olt, 1)
    append(olt.pk, D0 + HOUR, onu_ids, {"rx_dbm": [-20.0]})
    close(RAW, olt.pk, D0)
    append(olt.pk, D0 + DAY + 5 * MIN, onu_ids, {"rx_dbm": [-20.0]})

    assert known_span(RAW) == (D0, D0 + DAY + 5 * MIN)


def test_all_fields_have_a_place(olt):
    onu_ids = make_onus(olt, 1)
    append(olt.pk, D0, onu_ids, {"temperature_c": [41.0], "out_octets": [7]})

    [line] = part(olt, names=list(FIELDS)).of(onu_ids).onus[onu_ids[0]].values()

    assert dict(zip(FIELDS, line, strict=True)) == dict.fromkeys(FIELDS, UNREAD) | {
        "temperature_c": 41.0,
        "out_octets": 7,
    }
