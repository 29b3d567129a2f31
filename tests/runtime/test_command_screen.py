"""What people see: tables that fit, times in words, and a line that is only shown on a terminal."""

import io
from datetime import timedelta

import pytest

from facho.runtime.commands.screen import ProgressLine, bar, plural, span, table


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_columns_are_aligned_and_numbers_stand_on_the_right():
    lines = table(["onu", "rx_dbm", "state"], [["1/3/7", -21.53, "online"], ["1/3/12", -9.0, None]], width=80)

    assert lines == [
        "onu     rx_dbm  state",
        "1/3/7   -21.53  online",
        "1/3/12    -9.0  -",
    ]


def test_the_widest_column_is_cut_so_that_a_line_fits():
    lines = table(["onu", "name"], [["1/3/7", "Óscar Mamani - Calle Unión 320"]], width=24)

    assert lines[1] == "1/3/7  Óscar Mamani - C…"
    assert max(map(len, lines)) == 24


def test_a_name_cannot_move_the_cursor():
    lines = table(["name"], [["\x1b[2J\nrm -rf"]], width=80)

    assert lines[1] == "?[2J?rm -rf"


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        pytest.param(None, "unknown", id="nobody knows"),
        pytest.param(0.012, "12 ms", id="milliseconds"),
        pytest.param(1.24, "1.2 s", id="a second and a bit"),
        pytest.param(40.4, "40 s", id="seconds"),
        pytest.param(59.6, "1 min", id="rounded up to a minute"),
        pytest.param(timedelta(minutes=15), "15 min", id="minutes"),
        pytest.param(timedelta(hours=2, minutes=5, seconds=9), "2 h 5 min", id="two units and no more"),
        pytest.param(timedelta(days=74, minutes=3), "74 d", id="not days and minutes without hours"),
    ],
)
def test_a_time_is_said_in_its_largest_units(time, expected):
    assert span(time) == expected


@pytest.mark.parametrize(("count", "expected"), [(0, "0 ONUs"), (1, "1 ONU"), (2100, "2,100 ONUs")])
def test_things_are_counted_in_words(count, expected):
    assert plural(count, "ONU") == expected


@pytest.mark.parametrize(
    ("done", "total", "filled"),
    [
        pytest.param(0, 8, 0, id="nothing"),
        pytest.param(4, 8, 12, id="half"),
        pytest.param(9, 8, 24, id="more than there was to do"),
    ],
)
def test_a_bar_is_as_full_as_the_work_is_done(done, total, filled):
    drawn = bar(done, total)

    assert drawn.count("#") == filled
    assert drawn.endswith(f"{done}/{total}")


@pytest.mark.parametrize("total", [None, 0])
def test_work_without_a_known_end_has_no_bar(total):
    assert bar(3, total) == ""


def test_a_terminal_sees_one_line_that_is_gone_at_the_end():
    terminal, times = Terminal(), iter([0.0, 0.0, 0.01, 0.2, 0.2])
    line = ProgressLine(terminal, lambda: next(times))

    line.show("12 rows")
    line.show("18 rows, too soon to be read")
    line.show("24 rows")
    line.clear()

    assert terminal.getvalue() == "\r12 rows\x1b[K\r24 rows\x1b[K\r\x1b[K"


def test_the_line_of_another_step_is_shown_at_once():
    terminal = Terminal()
    line = ProgressLine(terminal, lambda: 5.0)

    line.show("detecting the brand")
    line.clear()
    line.show("12 rows")

    assert terminal.getvalue().endswith("\r12 rows\x1b[K")


def test_a_file_sees_nothing_of_it():
    file = io.StringIO()
    line = ProgressLine(file)

    line.show("12 rows")
    line.clear()

    assert file.getvalue() == ""
