"""How busy the pool was: asked for by time, answered in points that a chart can carry."""

from datetime import timedelta

import pytest
from cast import T0
from django.utils import timezone

from facho.apps.polling.models import PollerStats
from facho.apps.polling.pool_history import MAX_POINTS, points, step_for

PATH = "/api/v1/pollers/stats/history/"
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def make_minute(at, **values):
    usual = {"total_pollers": 10, "free_pollers": 6, "busy_pollers": 4, "busy_percentage": 40.0}
    usual |= {"queue_size": 0, "delayed": 0}
    totals = {"is_saturated": False, "total_tasks_completed": 1, "total_tasks_delayed": 0}
    return PollerStats.objects.create(timestamp=at, **usual | totals | values)


def ask(api, since=T0, until=T0 + DAY):
    return api.get(PATH, {"since": since.isoformat(), "until": until.isoformat()})


def test_a_point_has_the_mean_and_the_worst_of_its_minutes(reader_api):
    make_minute(T0 + MINUTE, busy_percentage=20.0, queue_size=1, delayed=1)
    make_minute(T0 + 2 * MINUTE, busy_percentage=90.0, total_pollers=5, free_pollers=1, queue_size=7, is_saturated=True)

    answer = ask(reader_api).json()

    assert answer["step"] == 180
    assert answer["points"] == [
        {
            "at": "2025-06-01T10:00:00Z",
            "minutes": 2,
            "total_pollers": 5,
            "free_pollers": 1,
            "busy_percentage": 55.0,
            "busiest": 90.0,
            "queue_size": 7,
            "delayed": 1,
            "is_saturated": True,
        }
    ]


def test_minutes_of_which_nothing_is_known_are_left_out(reader_api):
    make_minute(T0)
    make_minute(T0 + 5 * MINUTE)

    answer = ask(reader_api, until=T0 + 10 * MINUTE).json()

    assert [point["at"] for point in answer["points"]] == ["2025-06-01T10:00:00Z", "2025-06-01T10:05:00Z"]


def test_only_what_lies_in_the_time_is_shown(reader_api):
    for at in (T0 - MINUTE, T0, T0 + DAY):
        make_minute(at)

    answer = ask(reader_api).json()

    assert [point["minutes"] for point in answer["points"]] == [1]
    assert (answer["since"], answer["until"]) == ("2025-06-01T10:00:00Z", "2025-06-02T10:00:00Z")


def test_unless_asked_otherwise_it_is_the_last_day(reader_api):
    now = timezone.now()
    for ago in (2 * MINUTE, DAY - 2 * MINUTE, DAY + 2 * MINUTE):
        make_minute(now - ago)

    answer = reader_api.get(PATH).json()

    assert len(answer["points"]) == 2


@pytest.mark.parametrize(
    ("span", "step"),
    [
        pytest.param(5 * MINUTE, MINUTE, id="never less than the minute of a row"),
        pytest.param(MAX_POINTS * MINUTE, MINUTE, id="just as many as can be shown"),
        pytest.param((MAX_POINTS + 1) * MINUTE, 2 * MINUTE, id="one more than can be shown"),
        pytest.param(DAY, 3 * MINUTE, id="a day"),
        pytest.param(31 * DAY, 93 * MINUTE, id="a month"),
    ],
)
def test_a_step_is_as_long_as_it_must_be(span, step):
    assert step_for(span) == step


def test_a_month_of_minutes_is_few_points_and_none_is_lost():
    span = 31 * DAY
    rows = [(T0 + number * MINUTE, 10, 6, 40.0, 0, 0, False) for number in range(span // MINUTE)]

    made = points(rows, T0, step_for(span))

    assert len(made) == MAX_POINTS
    assert sum(point["minutes"] for point in made) == len(rows)


@pytest.mark.parametrize(
    ("query", "field", "sentence"),
    [
        pytest.param({"since": "yesterday"}, "since", "Datetime has wrong format", id="no time"),
        pytest.param({"until": "2025-13-01T00:00:00Z"}, "until", "Datetime has wrong format", id="no month"),
        pytest.param(
            {"until": "0001-01-01T00:00:00Z"}, "since", "This must be before the end.", id="the beginning of all time"
        ),
        pytest.param(
            {"since": "2025-06-02T00:00:00Z", "until": "2025-06-01T00:00:00Z"},
            "since",
            "This must be before the end.",
            id="the end before the beginning",
        ),
        pytest.param(
            {"since": "2025-06-01T00:00:00Z", "until": "2025-07-03T00:00:00Z"},
            "since",
            "The maximum period is 31 days.",
            id="more than a month",
        ),
    ],
)
def test_a_time_that_makes_no_sense_is_refused_with_a_sentence(reader_api, query, field, sentence):
    answer = reader_api.get(PATH, query)

    assert answer.status_code == 400
    assert sentence in str(answer.json()[field])


def test_a_stranger_sees_nothing(client, db):
    assert client.get(PATH).status_code == 401


def test_the_number_of_queries_does_not_grow_with_the_minutes(api, django_assert_num_queries):
    for number in range(50):
        make_minute(T0 + number * MINUTE)

    with django_assert_num_queries(1):
        ask(api)
