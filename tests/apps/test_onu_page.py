"""The page of an ONU: what its values are or were, its history over a period, and its timeline."""

from datetime import timedelta

import pytest
from cast import T0, make_event, make_onu
from django.test import Client
from django.utils import timezone

from facho.apps.accounts.roles import Role, set_role
from facho.apps.dashboard import history, onu_timeline
from facho.apps.dashboard.history import Period, bits_per_second
from facho.apps.dashboard.onu_timeline import Span
from facho.apps.inventory.models import Olt
from facho.apps.telemetry.history import RAW, mean
from facho.apps.telemetry.models import HistoryChunk, Onu, OnuNote
from facho.engine.batch import UNREAD
from facho.store.history import append, close
from history_rows import add_reading
from problem_rows import make_problem

MIN, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def page(boss):
    client = Client()
    client.force_login(boss)
    return client


def shown(page, onu, query=""):
    return " ".join(page.get(f"/onus/{onu.pk}/{query}").content.decode().split())


# Values at the top


def test_a_dark_onu_shows_its_last_power_and_distance_with_their_age(page, onu):
    at = timezone.now() - 3 * HOUR
    last = {"last_rx_dbm": -21.4, "last_rx_at": at, "last_distance_m": 1234.0, "last_distance_at": at}
    Onu.objects.filter(pk=onu.pk).update(state="los", rx_dbm=None, state_since=at, **last)

    text = shown(page, onu)

    assert '-21.40</span><small> dBm</small></span> <span class="number-note">last read <time' in text
    assert "3 h ago" in text
    assert "1,234<small> m</small>" in text
    assert text.count("before the signal was lost") == 2


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"own_power_at": None}, "never read", id="never read"),
        pytest.param({"own_power_at": T0, "state": "offline"}, "no light", id="dark before its power was known"),
        pytest.param({"own_power_at": T0}, "the OLT has no value", id="read without a value"),
    ],
)
def test_a_value_that_is_not_known_says_why(page, onu, values, said):
    Onu.objects.filter(pk=onu.pk).update(rx_dbm=None, **values)

    assert f'<span class="none">–</span></span> <span class="number-note">{said}</span>' in shown(page, onu)


def test_the_state_shows_its_cause_and_since_when(page, onu):
    make_event(onu, timezone.now() - 2 * HOUR, new="los")
    Onu.objects.filter(pk=onu.pk).update(state="los", down_cause="lofi", state_since=None)

    text = shown(page, onu)

    assert "loss of frame (LOFi)" in text
    assert "2 h ago" in text


def test_read_now_needs_a_permission_and_shows_the_obstacle(page, client, reader, onu):
    Olt.objects.filter(pk=onu.olt_id).update(enabled=False)
    client.force_login(reader)

    assert 'id="read-now"' not in shown(client, onu)
    text = shown(page, onu)
    assert "OLT-CENTRAL-01 is disabled: nothing is read from it." in text
    assert 'aria-describedby="read-status" disabled' in text


def test_only_own_notes_can_be_edited(onu, reader):
    set_role(reader, Role.SUPPORT)
    client = Client()
    client.force_login(reader)
    OnuNote.objects.create(onu=onu, text="<b>No light</b>", author=reader, author_name="reader")
    OnuNote.objects.create(onu=onu, text="Technician sent", author_name="ana")

    text = shown(client, onu)

    assert "&lt;b&gt;No light&lt;/b&gt;" in text
    assert text.index("Technician sent") < text.index("No light")
    assert text.count("data-edit-note") == 1


def test_earlier_places_and_earlier_onus_of_the_place_are_listed(page, onu):
    make_event(onu, field="place", old="0/2/9", new="0/1/7", cause="moved")
    old = make_onu(onu.olt, 7, name="before", index="x", place_taken=True, missing_since=T0)

    text = shown(page, onu)

    assert "0/2/9" in text
    assert f'<a href="/onus/{old.pk}/">before</a>' in text


# Period


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        pytest.param({}, -DAY, None, id="a day"),
        pytest.param({"range": "1y"}, -365 * DAY, None, id="by name"),
        pytest.param({"range": "9999d"}, -DAY, None, id="a range that is not offered"),
        pytest.param({"from": "2025-06-01T08:00:00Z", "to": "2025-06-01T09:00:00Z"}, -2 * HOUR, -HOUR, id="two times"),
        pytest.param({"from": "2025-05-31T10:00:00"}, -DAY, None, id="until now"),
        pytest.param({"from": "2025-06-01T09:00:00Z", "to": "2025-06-01T08:00:00Z"}, -DAY, None, id="backwards"),
        pytest.param({"from": "0001-01-01", "to": "x"}, -DAY, None, id="nonsense"),
        pytest.param({"from": "2025-13-01T10:00:00"}, -DAY, None, id="no date"),
    ],
)
def test_the_period_is_in_the_address(query, since, until):
    period = Period.read(query, T0)

    assert (period.since - T0, period.until - T0) == (since, until or 0 * HOUR)


def test_the_period_before_is_as_long_and_has_an_address():
    earlier = Period.read({"range": "7d"}, T0).moved(-1)

    assert earlier.query == "from=2025-05-18T10:00:00Z&to=2025-05-25T10:00:00Z"
    assert Period.read(dict(each.split("=") for each in earlier.query.split("&")), T0) == earlier


# Charts


def test_the_history_comes_as_points_for_charts_over_one_period(page, onu):
    now = timezone.now()
    add_reading(onu, now - 2 * HOUR, state="online", rx_dbm=-21.53, tx_dbm=2.1, temperature_c=40.0, in_octets=0)
    add_reading(onu, now - HOUR, state="online", in_octets=450_000)

    answer = page.get(f"/onus/{onu.pk}/history/").json()

    assert answer["to"] - answer["from"] == 24 * 3600 * 1000
    values = {name: [value for _, value in points] for name, points in answer["series"].items()}
    assert values == {
        "rx_dbm": [-21.53],
        "olt_rx_dbm": [],
        "tx_dbm": [2.1],
        "port_rx_dbm": [-21.53],
        "temperature_c": [40.0],
        "in_octets": [1000.0],
        "out_octets": [],
    }


def test_a_year_of_power_is_its_lowest_value_of_each_day(page, onu):
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for days, power in ((200, -21.0), (200, -27.5), (200, -22.0), (100, -20.0)):
        add_reading(onu, midnight - timedelta(days=days) + timedelta(seconds=-power), state="online", rx_dbm=power)
    close(RAW, onu.olt_id, midnight - timedelta(days=200))
    HistoryChunk.objects.all().delete()

    answer = page.get(f"/onus/{onu.pk}/history/?range=1y").json()

    assert [dbm for _, dbm in answer["series"]["rx_dbm"]] == [-27.5, -20.0]
    assert [round(dbm, 1) for _, dbm in answer["series"]["port_rx_dbm"]] == [-23.5]


def test_a_thinned_history_keeps_the_drop_that_one_looks_for():
    points = [(T0 + n * MIN, -20.0) for n in range(1000)]
    points[700] = (T0 + 700 * MIN, -31.0)

    thinned = history.thin(points, 10 * MIN)

    assert len(thinned) == 100
    assert (T0 + 700 * MIN, -31.0) in thinned


def test_a_short_history_is_kept_as_it_is():
    points = [(T0, -20.0), (T0 + MIN, -21.0)]

    assert history.thin(points, 60 * MIN) == points


@pytest.mark.parametrize(
    ("counts", "rates"),
    [
        pytest.param([(0, 0), (1, 75_000), (2, 75_000)], [(1, 10_000), (2, 0)], id="bits of the octets of a minute"),
        pytest.param([(0, 5_000), (1, 100), (2, 7_600)], [(2, 1_000)], id="a restart has no rate"),
        pytest.param(
            [(0, 2**32 - 15_000), (1, 2**32 - 7_500), (2, 0)], [(1, 1_000), (2, 1_000)], id="a counter of 32 bits wraps"
        ),
        pytest.param(
            [(0, 3 * 10**9), (1, 3 * 10**9 + 7_500), (2, 0)], [(1, 1_000)], id="a restart is no wrap with a huge rate"
        ),
        pytest.param([(0, 2**40), (1, 2**32 - 7_500), (2, 0)], [], id="one of 64 bits restarts"),
        pytest.param([(0, 0), (1, 7_500), (2, 15_000), (9, 22_500)], [(1, 1_000), (2, 1_000)], id="a gap has no rate"),
        pytest.param([(0, 7)], [], id="a single reading"),
        pytest.param([], [], id="none"),
    ],
)
def test_rates_follow_from_counters(counts, rates):
    found = bits_per_second([(T0 + minutes * MIN, octets) for minutes, octets in counts])

    assert found == [(T0 + minutes * MIN, bits) for minutes, bits in rates]


@pytest.mark.parametrize("is_closed", [False, True], ids=["of an open day", "of a closed day"])
def test_the_mean_of_a_port_leaves_out_reads_of_a_single_onu(central, is_closed):
    onus = [make_onu(central, number) for number in range(1, 5)]
    ids = [onu.pk for onu in onus]
    append(central.pk, T0, ids, {"rx_dbm": [-20.0, -22.0, None, -40.0]})
    append(central.pk, T0 + MIN, ids[:1], {"rx_dbm": [-30.0]})
    append(central.pk, T0 + 2 * MIN, ids, {"rx_dbm": [-21.0, -23.0, UNREAD, -40.0]})
    if is_closed:
        close(RAW, central.pk, T0.replace(hour=0))

    found = mean(central.pk, ids[:3], "rx_dbm", T0, T0 + HOUR)

    assert found == [(T0, -21.0), (T0 + 2 * MIN, -22.0)]


# Timeline


def spans_of(onu, readings=None, until=T0 + HOUR):
    read = [T0 + n * MIN for n in range(61)] if readings is None else readings
    found = onu_timeline.timeline(onu, read, T0, until)
    return [
        ((each.since - T0) // MIN, (each.until - T0) // MIN, each.kind, each.label, each.cause_text) for each in found
    ]


def test_a_timeline_has_the_causes_of_the_events(onu):
    make_event(onu, T0 - DAY, old="los", new="online", cause="")
    make_event(onu, T0 + 10 * MIN, new="los", cause="lofi")
    make_event(onu, T0 + 12 * MIN, field="down_cause", old="", new="lofi", cause="")
    make_event(onu, T0 + 20 * MIN, old="los", new="dying_gasp", cause="dying_gasp")
    make_event(onu, T0 + 30 * MIN, old="dying_gasp", new="online", cause="")

    assert spans_of(onu) == [
        (0, 10, "online", "online", ""),
        (10, 20, "dark", "loss of signal", "loss of frame (LOFi)"),
        (20, 30, "dark", "power lost", ""),
        (30, 60, "online", "online", ""),
    ]


def test_without_events_the_state_is_the_present_one(onu):
    assert spans_of(onu) == [(0, 60, "online", "online", "")]


def test_before_its_first_event_the_state_is_the_one_that_ended(onu):
    make_event(onu, T0 + 10 * MIN, old="online", new="los", cause="")

    assert [each[2] for each in spans_of(onu)] == ["online", "dark"]


def test_an_onu_that_was_not_known_or_read_has_no_state(onu):
    Onu.objects.filter(pk=onu.pk).update(first_seen_at=T0 + 5 * MIN)
    onu.refresh_from_db()
    readings = [T0 + n * MIN for n in (*range(5, 21), *range(40, 61))]

    assert spans_of(onu, readings) == [
        (0, 5, "unread", "not read", ""),
        (5, 20, "online", "online", ""),
        (20, 40, "unread", "not read", ""),
        (40, 60, "online", "online", ""),
    ]


def test_a_slow_rhythm_is_no_gap(onu):
    assert spans_of(onu, [T0, T0 + 20 * MIN, T0 + 40 * MIN, T0 + 60 * MIN]) == [(0, 60, "online", "online", "")]


def test_a_shorter_interval_makes_no_gaps_of_the_readings_before_it(onu):
    hours = [T0 + n * HOUR for n in range(12)]
    seconds = [T0 + 12 * HOUR + n * timedelta(seconds=30) for n in range(121)]

    assert spans_of(onu, hours + seconds, T0 + 13 * HOUR) == [(0, 13 * 60, "online", "online", "")]


@pytest.mark.parametrize("read", [[], [30]], ids=["never", "once"])
def test_a_period_that_was_hardly_read_has_no_state(onu, read):
    assert [each[2] for each in spans_of(onu, [T0 + n * MIN for n in read])] == ["unread"]


@pytest.mark.parametrize(
    ("minutes", "after_gap"),
    [
        pytest.param([0, 1, 2, 3, 9, 10], [9], id="a pause among shorter ones"),
        pytest.param([0, 60, 120, 180, 181, 182, 183, 184], [], id="a shorter interval since then"),
        pytest.param([0, 1, 2, 3, 63, 123, 183], [], id="a longer interval since then"),
        pytest.param([0, 60, 120, 121, 180, 240, 300], [], id="one more reading"),
        pytest.param([0, 1, 2, 3, 4, 50, 100, 101, 102, 103], [50, 100], id="a reading within a gap"),
        pytest.param([0, 60, 120, 163, 165, 180, 240, 300, 301, 302, 303], [], id="more readings at an outage"),
        pytest.param([0, 1, 2, 3, 4, 60, 61, 62, 63, 120, 121, 122], [60, 120], id="two gaps"),
        pytest.param([0, 60], [], id="two readings"),
        pytest.param([], [], id="none"),
    ],
)
def test_a_gap_is_longer_than_the_pauses_beside_it(minutes, after_gap):
    assert [minutes[position] for position in history.gaps([T0 + n * MIN for n in minutes])] == after_gap


def test_rates_before_a_shorter_interval_are_kept():
    minutes = [*range(0, 600, 60), *range(600, 660)]

    found = bits_per_second([(T0 + n * MIN, n * 7_500) for n in minutes])

    assert found == [(T0 + n * MIN, 1_000) for n in minutes[1:]]


def test_a_missing_onu_is_missing_although_nothing_is_read(onu):
    make_event(onu, T0 + 10 * MIN, field="presence", old="present", new="missing", cause="not found")
    make_event(onu, T0 + 40 * MIN, field="presence", old="missing", new="present", cause="found again")
    readings = [T0 + n * MIN for n in (*range(11), *range(40, 61))]

    assert [each[:3] for each in spans_of(onu, readings)] == [
        (0, 10, "online"),
        (10, 40, "missing"),
        (40, 60, "online"),
    ]


def test_neighbours_of_the_same_state_are_one_span():
    spans = [Span(T0, T0 + MIN, "los"), Span(T0 + MIN, T0 + HOUR, "los")]

    assert onu_timeline.with_gaps(spans, [T0, T0 + HOUR], T0, T0 + HOUR) == [Span(T0, T0 + HOUR, "los")]


def test_changes_of_users_are_marks(page, boss, onu):
    page.post(f"/api/v1/olts/{onu.olt_id}/disable/")
    page.post(f"/api/v1/olts/{onu.olt_id}/enable/")
    page.post(f"/api/v1/onus/{onu.pk}/read/?wait=0")

    marks = onu_timeline.marks(onu, boss, timezone.now() - HOUR, timezone.now() + HOUR)

    assert [mark.text for mark in marks] == ["boss: changed OLT OLT-CENTRAL-01"] * 2
    assert {(mark.kind, mark.url) for mark in marks} == {("change", f"/olts/{onu.olt_id}/")}
    assert onu_timeline.marks(onu, boss, timezone.now() - 2 * HOUR, timezone.now() - HOUR) == []


def test_marks_are_shown_with_the_history(page, onu, monkeypatch):
    mark = onu_timeline.Mark("maintenance", timezone.now() - HOUR, "Splitter replaced", until=timezone.now())
    monkeypatch.setattr(onu_timeline, "MARKS", (lambda *_: [mark],))

    [found] = page.get(f"/onus/{onu.pk}/history/").json()["marks"]

    assert (found["kind"], found["text"], found["until"] - found["at"]) == (
        "maintenance",
        "Splitter replaced",
        3_600_000,
    )


# Problems


CONCERNED = [
    pytest.param({"state": "los"}, {"kind": "port_down"}, True, id="down with its port"),
    pytest.param({"state": "online"}, {"kind": "port_down"}, False, id="back before the others"),
    pytest.param({"state": "los"}, {"kind": "port_down", "onus": [0], "peak": 1}, False, id="down for another reason"),
    pytest.param(
        {"state": "los"}, {"kind": "card_down", "port": None, "onus": [0], "peak": 600}, True, id="a long list"
    ),
    pytest.param({}, {"kind": "olt_down", "slot": None, "port": None, "onus": []}, True, id="the OLT"),
    pytest.param({"rx_dbm": -28.0}, {"kind": "low_power", "onus": []}, True, id="one of the weak"),
    pytest.param({"rx_dbm": -20.0}, {"kind": "low_power", "onus": []}, False, id="not one of the weak"),
    pytest.param({}, {"kind": "flapping"}, True, id="flapping"),
    pytest.param({}, {"kind": "flapping", "onus": [0], "peak": 1}, False, id="another ONU flaps"),
    pytest.param({"state": "los"}, {"kind": "port_down", "until": T0}, False, id="past"),
]


@pytest.mark.parametrize(("values", "problem", "expected"), CONCERNED)
def test_an_onu_shows_the_problems_that_concern_it(page, onu, values, problem, expected):
    Onu.objects.filter(pk=onu.pk).update(**values)
    row = make_problem(onu.olt, **{"onus": [onu.pk], "peak": 1, "evidence": {}} | problem)

    assert (f'href="/problems/{row.pk}/"' in shown(page, onu)) is expected
