"""History in runs and chunks: what was appended is read, before, while and after its day is closed."""

import logging
from datetime import timedelta

import pytest
from builders import HOUR, MIN, SEC, T0
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from retention_rows import Watch

from contracts.worlds import Inline, done
from examples import examples
from facho.apps.inventory.models import Olt
from facho.apps.telemetry import history as reader
from facho.apps.telemetry.history import DAYS, RAW, series, start_of_day, start_of_month
from facho.apps.telemetry.models import HistoryChunk, HistoryDay, HistoryMonth, HistoryRun, Onu
from facho.engine.batch import UNREAD
from facho.engine.chunks import FIELDS
from facho.store import history
from facho.store.history import Closing, append, close, due
from history_rows import add_reading, readings

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
# Midnight of the day of T0.
D0 = start_of_day(T0)


@pytest.fixture(autouse=True)
def _no_damage_was_reported_yet(monkeypatch):
    monkeypatch.setattr(reader, "_reported", set())


@pytest.fixture
def olt(db):
    return Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")


def make_onus(olt, count):
    rows = [Onu(olt=olt, index=f"1.{n}", onu=n, first_seen_at=T0, own_read_at=T0) for n in range(count)]
    return Onu.objects.bulk_create(rows)


@pytest.fixture
def onus(olt):
    return make_onus(olt, 3)


def ids(onus):
    return [onu.pk for onu in onus]


def fill_day(onus, start=D0, runs=4):
    """Append runs of state and power, with cells of every kind."""
    for number in range(runs):
        at = start + number * HOUR
        append(onus[0].olt_id, at, ids(onus), {"state": ["online", "los", UNREAD][: len(onus)]})
        powers = [-20.0 - number / 100, None, UNREAD][: len(onus)]
        append(onus[0].olt_id, at + 7 * SEC, ids(onus), {"rx_dbm": powers, "in_octets": [number * 1000, 5, None]})


def everything(onus):
    return [readings(onu) for onu in onus]


def test_a_run_is_one_statement(olt, onus):
    with CaptureQueriesContext(connection) as queries:
        append(olt.pk, T0, ids(onus), {"rx_dbm": [-21.53, None, UNREAD], "state": ["online", "los", UNREAD]})

    assert len(queries) == 1
    assert everything(onus) == [
        [{"at": T0, "rx_dbm": -21.53, "state": "online"}],
        [{"at": T0, "state": "los"}],
        [],
    ]


def test_a_run_of_no_onu_leaves_nothing(olt):
    append(olt.pk, T0, [], {"rx_dbm": []})

    assert not HistoryRun.objects.exists()


def test_a_closed_day_reads_as_the_runs_did(olt, onus):
    fill_day(onus)
    before = everything(onus)

    close(RAW, olt.pk, D0)

    assert everything(onus) == before
    assert [len(rows) for rows in before] == [8, 8, 4]
    assert not HistoryRun.objects.exists()
    assert set(HistoryChunk.objects.values_list("field", "start")) == {
        (field, D0) for field in ("state", "rx_dbm", "in_octets")
    }


def test_closing_again_changes_nothing(olt, onus):
    fill_day(onus)
    close(RAW, olt.pk, D0)
    rows = list(HistoryChunk.objects.order_by("pk").values_list())

    close(RAW, olt.pk, D0)

    assert list(HistoryChunk.objects.order_by("pk").values_list()) == rows


def test_a_run_that_arrives_late_is_merged_into_its_day(olt, onus):
    fill_day(onus)
    close(RAW, olt.pk, D0)
    late = make_onus_later(olt)
    append(olt.pk, D0 + 30 * MIN, [late.pk, onus[0].pk], {"rx_dbm": [-19.123, -25.5], "state": ["unknown", "los"]})
    before = everything([*onus, late])

    close(RAW, olt.pk, D0)

    assert everything([*onus, late]) == before
    assert {"at": D0 + 30 * MIN, "rx_dbm": -19.123, "state": "unknown"} in before[-1]
    assert HistoryChunk.objects.filter(field="rx_dbm").count() == 1
    assert HistoryDay.objects.count() == 1
    [day] = series(onus[0].pk, ["rx_dbm"], D0, D0 + DAY, DAY)
    assert day["rx_dbm"]["min"] == -25.5


def make_onus_later(olt):
    return Onu.objects.create(olt=olt, index="1.99", onu=99, first_seen_at=T0, own_read_at=T0)


def test_onus_are_cut_into_blocks_and_each_reads_its_own(olt):
    onus = make_onus(olt, 300)
    for number in range(3):
        append(olt.pk, D0 + number * HOUR, ids(onus), {"rx_dbm": [-10 - place / 100 for place in range(300)]})

    close(RAW, olt.pk, D0)

    assert HistoryChunk.objects.count() == 3
    for place in (0, 127, 128, 255, 256, 299):
        assert [row["rx_dbm"] for row in readings(onus[place])] == [-10 - place / 100] * 3


def test_a_block_that_a_run_did_not_read_does_not_store_its_time(olt):
    onus = make_onus(olt, 200)
    append(olt.pk, D0, ids(onus), {"rx_dbm": [-20.0] * 200})
    append(olt.pk, D0 + HOUR, ids(onus[:10]), {"rx_dbm": [-21.0] * 10})

    close(RAW, olt.pk, D0)

    assert sorted(HistoryChunk.objects.values_list("last_at", flat=True)) == [D0, D0 + HOUR]


class Killed(DatabaseError):
    """The process is gone."""


def kill_at(number):
    """Let the statement of this number fail, and all after it."""
    seen = 0

    def execute(run, *statement):
        nonlocal seen
        seen += 1
        if seen >= number:
            raise Killed
        return run(*statement)

    return execute


@pytest.mark.django_db(transaction=True)
def test_a_kill_at_any_statement_neither_loses_nor_doubles_a_value(olt, onus):
    fill_day(onus)
    before = everything(onus)
    for number in range(1, 100):
        try:
            with connection.execute_wrapper(kill_at(number)):
                close(RAW, olt.pk, D0)
            break
        except Killed:
            assert everything(onus) == before
            assert (HistoryRun.objects.count(), HistoryChunk.objects.count()) == (8, 0)

    assert number > 6
    assert everything(onus) == before
    assert (HistoryRun.objects.count(), HistoryChunk.objects.count()) == (0, 3)


def test_of_two_that_close_the_same_day_one_gives_way(olt, onus, monkeypatch):
    fill_day(onus)
    before = everything(onus)
    pack = history.pack_chunk

    def pack_while_another_closes(*arguments):
        monkeypatch.setattr(history, "pack_chunk", pack)
        close(RAW, olt.pk, D0)
        return pack(*arguments)

    monkeypatch.setattr(history, "pack_chunk", pack_while_another_closes)
    close(RAW, olt.pk, D0)

    assert everything(onus) == before
    assert (HistoryChunk.objects.count(), HistoryDay.objects.count()) == (3, 1)


cells = st.sampled_from([None, UNREAD]) | st.integers(-3000, 0).map(lambda code: code / 100)
states = st.sampled_from([None, UNREAD, "online", "los", "odd"])
counters = st.sampled_from([None, UNREAD]) | st.integers(0, 2**63 - 1)


@st.composite
def stories(draw):
    """Runs of some of five ONUs, and closings in between."""
    story = []
    for number in range(draw(st.integers(1, 8))):
        chosen = draw(st.lists(st.integers(0, 4), unique=True, min_size=1))
        kinds = {"rx_dbm": cells, "state": states, "in_octets": counters}
        fields = draw(st.sets(st.sampled_from(sorted(kinds)), min_size=1))
        columns = {name: [draw(kinds[name]) for _ in chosen] for name in sorted(fields)}
        # Out of order: some arrive late.
        story.append((draw(st.integers(0, 5)) * 7 * HOUR + number * SEC, chosen, columns, draw(st.booleans())))
    return story


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(15))
@given(stories())
def test_closings_never_change_what_is_read(olt, story):
    with transaction.atomic():
        onus = make_onus(olt, 5)
        expected = [{} for _ in onus]
        for after, chosen, columns, closes in story:
            append(olt.pk, D0 + after, [onus[place].pk for place in chosen], columns)
            for name, column in columns.items():
                for place, cell in zip(chosen, column, strict=True):
                    if cell is not UNREAD:
                        expected[place].setdefault(D0 + after, {})[name] = cell
            if closes:
                done(Closing(thread=Inline(), clock=Watch()).run(D0 + 10 * DAY))
            for onu, rows in zip(onus, expected, strict=True):
                found = series(onu.pk, list(FIELDS), D0 - DAY, D0 + 9 * DAY)
                assert found == [{"at": at, **dict.fromkeys(FIELDS), **rows[at]} for at in sorted(rows)]
        transaction.set_rollback(True)


# --- When.


@pytest.mark.parametrize(
    ("now", "closed"),
    [
        pytest.param(D0 + DAY - SEC, [], id="the day is not over"),
        pytest.param(D0 + DAY + 59 * MIN, [], id="late results may still arrive"),
        pytest.param(D0 + DAY + 60 * MIN, [D0], id="an hour later"),
        pytest.param(D0 + 9 * DAY, [D0, D0 + 2 * DAY], id="after a week without Facho"),
    ],
)
def test_days_that_are_over_are_due_the_earliest_first(olt, onus, now, closed):
    for at in (D0 + 2 * DAY, D0, D0 + HOUR):
        add_reading(onus[0], at, rx_dbm=-20.0)

    assert [(level, start) for level, _, start in due(now)] == [(RAW, start) for start in closed]


def test_the_chore_closes_each_olt_and_leaves_the_thread_to_others_in_between(olt, onus):
    other = Olt.objects.create(name="OLT-NORTE-02", brand="huawei", host="127.0.0.2", community="public")
    fill_day(onus)
    add_reading(make_onus(other, 1)[0], D0, rx_dbm=-20.0)
    clock = Watch(step=0.5)

    done(Closing(thread=Inline(), clock=clock).run(D0 + 2 * DAY))

    assert not HistoryRun.objects.exists()
    assert set(HistoryChunk.objects.values_list("olt", flat=True)) == {olt.pk, other.pk}
    assert clock.slept == [1.5, 1.5]


def test_an_olt_that_cannot_be_closed_keeps_no_other_open(olt, onus, monkeypatch, caplog):
    other = Olt.objects.create(name="OLT-NORTE-02", brand="huawei", host="127.0.0.2", community="public")
    fill_day(onus)
    add_reading(make_onus(other, 1)[0], D0, rx_dbm=-20.0)
    genuine = history.close

    def close_or_fail(level, olt_id, start):
        if olt_id == olt.pk:
            raise DatabaseError("the disk is full")
        genuine(level, olt_id, start)

    monkeypatch.setattr(history, "close", close_or_fail)
    done(Closing(thread=Inline(), clock=Watch()).run(D0 + 2 * DAY))

    assert set(HistoryChunk.objects.values_list("olt", flat=True)) == {other.pk}
    assert f"OLT {olt.pk}: closing the history" in caplog.text


# --- Daily values.


def test_a_day_keeps_extremes_and_the_growth_of_counters(olt, onus):
    onu = onus[0]
    for number, (power, octets) in enumerate([(-20.0, 1000), (-22.5, 4000), (None, None), (-21.0, 500)]):
        add_reading(onu, D0 + number * HOUR, rx_dbm=power, in_octets=octets, state="online")
    add_reading(onu, D0 + DAY, in_octets=700, state="los")
    for day in (D0, D0 + DAY):
        close(RAW, olt.pk, day)

    rows = series(onu.pk, ["state", "rx_dbm", "in_octets"], D0, D0 + 2 * DAY, DAY)

    assert rows == [
        {
            "at": D0,
            "state": "online",
            "rx_dbm": {"min": -22.5, "mean": -21.167, "max": -20.0},
            # 3000, and 500 since the counter started again.
            "in_octets": {"sum": 3500},
        },
        # From the last value of the day before.
        {"at": D0 + DAY, "state": "los", "rx_dbm": None, "in_octets": {"sum": 200}},
    ]


def test_daily_values_are_the_same_before_and_after_a_day_is_closed(olt, onus):
    fill_day(onus)
    fill_day(onus, D0 + DAY)
    before = [series(onu.pk, list(FIELDS), D0, D0 + 2 * DAY, DAY) for onu in onus]

    for day in (D0, D0 + DAY):
        close(RAW, olt.pk, day)
        assert [series(onu.pk, list(FIELDS), D0, D0 + 2 * DAY, DAY) for onu in onus] == before


def test_daily_values_outlive_the_readings_and_become_months(olt, onus):
    month = start_of_month(T0)
    for number in range(40):
        add_reading(onus[0], month + number * DAY, rx_dbm=-20.0 - number / 10)
    done(Closing(thread=Inline(), clock=Watch()).run(month + 100 * DAY))
    HistoryChunk.objects.all().delete()
    before = series(onus[0].pk, ["rx_dbm"], month, month + 60 * DAY, DAY)

    done(Closing(thread=Inline(), clock=Watch()).run(month + 100 * DAY))

    assert [row["rx_dbm"]["min"] for row in before] == [-20.0 - number / 10 for number in range(40)]
    assert series(onus[0].pk, ["rx_dbm"], month, month + 60 * DAY, DAY) == before
    assert not HistoryDay.objects.exists()
    assert HistoryMonth.objects.filter(field="rx_dbm:mean").count() == 2


def test_a_month_is_closed_a_week_after_its_end(olt, onus):
    month = start_of_month(T0)
    end = start_of_month(month + 40 * DAY)
    add_reading(onus[0], month, rx_dbm=-20.0)
    close(RAW, olt.pk, month)

    assert list(due(end + 6 * DAY)) == []
    assert list(due(end + 7 * DAY)) == [(DAYS, olt.pk, month)]


def test_a_float_without_a_decimal_form_has_extremes_too(olt, onus):
    for number in range(3):
        add_reading(onus[0], D0 + number * HOUR, rx_dbm=-number / 3)
    close(RAW, olt.pk, D0)

    [day] = series(onus[0].pk, ["rx_dbm"], D0, D0 + DAY, DAY)

    assert day["rx_dbm"] == {"min": -2 / 3, "mean": -0.333, "max": 0.0}


# --- Steps.


def test_buckets_have_the_extremes_of_their_readings(olt, onus):
    for number in range(6):
        add_reading(onus[0], D0 + number * 20 * MIN, rx_dbm=-20.0 - number, in_octets=number * 100)
    close(RAW, olt.pk, D0)

    rows = series(onus[0].pk, ["rx_dbm", "in_octets"], D0 + 30 * MIN, D0 + 2 * HOUR, HOUR)

    # The bucket in which the time begins is whole.
    assert rows == [
        {"at": D0, "rx_dbm": {"min": -22.0, "mean": -21.0, "max": -20.0}, "in_octets": {"sum": 200}},
        {"at": D0 + HOUR, "rx_dbm": {"min": -25.0, "mean": -24.0, "max": -23.0}, "in_octets": {"sum": 300}},
    ]


# --- Damage.


def damage(model):
    row = model.objects.first()
    row.data = bytes(row.data)[:-1] + bytes([bytes(row.data)[-1] ^ 1])
    row.save()
    return row


def test_a_damaged_chunk_is_left_out_and_reported_once(olt, onus, caplog):
    add_reading(onus[0], D0, rx_dbm=-20.0, tx_dbm=2.0)
    close(RAW, olt.pk, D0)
    chunk = damage(HistoryChunk)

    with caplog.at_level(logging.ERROR):
        rows = [readings(onus[0]) for _ in range(3)]

    left = {"rx_dbm": -20.0, "tx_dbm": 2.0}
    del left[chunk.field]
    assert rows == [[{"at": D0, **left}]] * 3
    assert [record.getMessage() for record in caplog.records] == [
        f"row {chunk.pk} of onu_history_chunks is damaged and was skipped: the checksum does not match"
    ]


def test_a_damaged_run_stays_in_its_table_and_keeps_no_other_run_open(olt, onus):
    add_reading(onus[0], D0, rx_dbm=-20.0)
    add_reading(onus[0], D0 + HOUR, rx_dbm=-21.0)
    run = damage(HistoryRun)

    close(RAW, olt.pk, D0)
    close(RAW, olt.pk, D0)

    assert [row["rx_dbm"] for row in readings(onus[0])] == [-21.0]
    assert list(HistoryRun.objects.values_list("pk", flat=True)) == [run.pk]


def test_a_damaged_chunk_is_not_replaced_by_a_late_closing(olt, onus):
    add_reading(onus[0], D0, rx_dbm=-20.0)
    close(RAW, olt.pk, D0)
    chunk = damage(HistoryChunk)
    add_reading(onus[0], D0 + HOUR, rx_dbm=-21.0)

    close(RAW, olt.pk, D0)

    assert [row["rx_dbm"] for row in readings(onus[0])] == [-21.0]
    assert HistoryChunk.objects.filter(pk=chunk.pk).exists()


# --- Costs.


def test_a_month_of_one_onu_is_read_by_three_queries(olt, onus, django_assert_num_queries):
    for number in range(30):
        add_reading(onus[0], D0 + number * DAY, rx_dbm=-20.0)
    done(Closing(thread=Inline(), clock=Watch()).run(D0 + 29 * DAY))

    with django_assert_num_queries(3):
        rows = series(onus[0].pk, ["rx_dbm"], D0, D0 + 30 * DAY)

    assert len(rows) == 30
