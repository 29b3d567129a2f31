"""Arithmetic and words of the pages: powers, ages, thinning."""

from datetime import timedelta

import pytest

from facho.apps.dashboard import power
from facho.apps.dashboard.queries import number
from facho.apps.dashboard.templatetags import facho
from facho.apps.inventory import spans

MIN = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("dbm", "level"),
    [
        pytest.param(None, "", id="not read"),
        pytest.param(-7.9, "strong", id="blinded"),
        pytest.param(-8.0, "good", id="just not blinded"),
        pytest.param(-25.0, "good", id="at the edge of good"),
        pytest.param(-25.01, "fair", id="a little low"),
        pytest.param(-27.0, "fair", id="at the edge of weak"),
        pytest.param(-27.01, "weak", id="weak"),
    ],
)
def test_the_level_of_a_received_power(dbm, level):
    assert power.rx_level(dbm) == level


@pytest.mark.parametrize(
    ("dbm", "level"),
    [(None, ""), (0.4, "fair"), (0.5, "good"), (5.0, "good"), (5.1, "fair")],
    ids=["not read", "too low", "lowest good", "highest good", "too high"],
)
def test_the_level_of_a_sent_power(dbm, level):
    assert power.tx_level(dbm) == level


def test_an_olt_hears_a_little_better_than_an_onu():
    assert (power.olt_rx_level(-27.5), power.olt_rx_level(-28.5)) == ("fair", "weak")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param(-3, "0 s", id="a clock that is ahead"),
        pytest.param(59.9, "59 s", id="almost a minute"),
        pytest.param(60, "1 min", id="a minute"),
        pytest.param(3599, "59 min", id="almost an hour"),
        pytest.param(47 * 3600, "47 h", id="almost two days"),
        pytest.param(48 * 3600, "2 d", id="two days"),
    ],
)
def test_an_age_is_said_in_its_largest_unit(seconds, said):
    assert spans.span(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.42, "0.42 s"), (12.34, "12.3 s"), (59.97, "60.0 s"), (125, "2 min 5 s"), (7260, "2 h 1 min")],
    ids=["a moment", "seconds", "almost a minute", "minutes", "hours"],
)
def test_a_duration_is_said_exactly(seconds, said):
    assert spans.exact(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(45, "45 s"), (90, "1 min 30 s"), (300, "5 min"), (21600, "6 h")], ids=str
)
def test_an_interval_is_said_as_people_say_it(seconds, said):
    assert spans.interval(seconds) == said


@pytest.mark.parametrize(
    ("written", "read"),
    [("7", 7), ("", None), (None, None), ("-1", None), ("7.0", None), ("٧", None)],
    ids=["a number", "nothing", "absent", "negative", "a fraction", "another script"],
)
def test_a_number_in_an_address_is_read_or_left_out(written, read):
    assert number(written) == read


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("2026-10-08T17:24:19+00:00", "Oct 8, 2026, 17:24:19", id="a stored time"),
        pytest.param("2026-99-99T17:24:19+00:00", "2026-99-99T17:24:19+00:00", id="a text of the same form"),
        pytest.param("match", "match", id="a text"),
        pytest.param(12345, "12,345", id="a counter"),
        pytest.param(None, "–", id="nothing"),
    ],
)
def test_values_of_a_device(value, shown):
    assert shown in str(facho.plain(value))
