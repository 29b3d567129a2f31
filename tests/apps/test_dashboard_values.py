"""Arithmetic and words of the pages: powers, ages, thinning, filters."""

from datetime import timedelta

import pytest
from cast import BOSS, make_onu

from facho.apps.dashboard import power
from facho.apps.dashboard.queries import OnuListFilter, number
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
    ("query", "found"),
    [
        pytest.param({}, [1, 7, 2], id="all, by place"),
        pytest.param({"sort": "rx"}, [7, 1, 2], id="weakest first, those without power last"),
        pytest.param({"state": "dark"}, [2], id="dark"),
        pytest.param({"state": "weak"}, [7], id="weak"),
        pytest.param({"state": "online"}, [1, 7], id="exactly online"),
        pytest.param({"q": "hwtc00000007"}, [7], id="by serial, in small letters"),
        pytest.param({"q": "client-2"}, [2], id="by name"),
        pytest.param({"q": "0/1/7"}, [7], id="by place"),
        pytest.param({"port": "0/1"}, [1, 7], id="by port"),
        pytest.param({"olt": "0"}, [], id="of an OLT that is not there"),
        pytest.param({"olt": "x", "state": "?", "port": "a/b", "sort": "id; --"}, [1, 7, 2], id="nonsense"),
        pytest.param({"port": "99999999999999999999/1"}, [], id="a port that no database holds"),
        pytest.param({"olt": "9" * 40}, [1, 7, 2], id="an id that no database holds"),
    ],
)
def test_the_onu_list_can_be_searched(central, query, found):
    make_onu(central, 1)
    make_onu(central, 2, port=2, state="los", rx_dbm=None)
    make_onu(central, 7, rx_dbm=-28.0)

    onus = OnuListFilter.read(query).onus(BOSS)

    assert [onu.onu for onu in onus] == found


@pytest.mark.parametrize(
    ("written", "read"),
    [("7", 7), ("", None), (None, None), ("-1", None), ("7.0", None), ("٧", None)],
    ids=["a number", "nothing", "absent", "negative", "a fraction", "another script"],
)
def test_a_number_in_an_address_is_read_or_left_out(written, read):
    assert number(written) == read
