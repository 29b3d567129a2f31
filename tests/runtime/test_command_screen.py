"""What people see: tables that fit, times in words, and a line that is only shown on a terminal."""

import io
import re
from datetime import timedelta

import pytest

from facho.runtime.commands.screen import ProgressBar, plural, span, table


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


def test_wide_characters_take_two_columns():
    lines = table(["name", "state"], [["王小明家", "online"], ["Ana", "offline"]], width=80)

    assert lines == [
        "name      state",
        "王小明家  online",
        "Ana       offline",
    ]


def test_wide_characters_are_cut_where_the_line_ends():
    lines = table(["onu", "name"], [["1/3/7", "王小明家的光猫"]], width=16)

    assert lines[1] == "1/3/7  王小明家…"


def test_a_pipe_gets_every_value_in_full(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    long = "x" * 5000

    assert table(["onu", "name"], [["1/3/7", long]])[1] == f"1/3/7  {long}"


def test_a_name_is_not_markup():
    assert table(["name"], [["[red]"], ["[/]"]], width=80)[1:] == ["[red]", "[/]"]


def test_a_name_cannot_move_the_cursor():
    lines = table(["name"], [["\x1b[2J\nrm -rf"]], width=80)

    assert lines[1] == r"\u001b[2J\nrm -rf"


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


def shown(terminal):
    """Return each state of the line in turn, without colours and movements of the cursor."""
    lines = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n").split("\n")
    return [line.strip() for line in lines if line.strip()]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal()


def test_a_terminal_sees_one_line_that_is_gone_at_the_end(terminal):
    times = iter([0.0, 0.01, 0.2, 0.2])
    progress = ProgressBar(terminal, lambda: next(times))

    progress.show("olts", 12, 48, "rows")
    progress.show("olts", 18, 48, "rows, too soon to be read")
    progress.show("olts", 24, 48, "rows")
    progress.clear()

    assert shown(terminal)[0].endswith("olts, 12 of 48 rows")
    assert shown(terminal)[1].endswith("olts, 24 of 48 rows")
    assert "too soon" not in terminal.getvalue()
    # The line is erased, and the cursor is visible.
    assert terminal.getvalue().endswith("\x1b[2K")
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")


def test_a_bar_is_as_full_as_the_work_is_done(terminal):
    ProgressBar(terminal).show("olts", 24, 48, "rows")

    # The rest of the bar has another colour.
    assert re.findall("━+", terminal.getvalue())[0] == 12 * "━"


def test_work_without_a_known_end_is_a_text(terminal):
    ProgressBar(terminal).show("192.0.2.1: detecting the brand")

    assert shown(terminal)[0].endswith("192.0.2.1: detecting the brand")


def test_the_line_of_another_step_is_shown_at_once(terminal):
    progress = ProgressBar(terminal, lambda: 5.0)

    progress.show("detecting the brand")
    progress.clear()
    progress.show("12 rows")

    assert shown(terminal)[-1].endswith("12 rows")


def test_a_text_of_a_device_is_shown_as_it_is(terminal):
    ProgressBar(terminal).show("[red]OLT[/red] \x1b[2J")

    assert shown(terminal)[0].endswith(r"[red]OLT[/red] \u001b[2J")


def test_an_error_leaves_no_line_and_a_visible_cursor(terminal):
    def work():
        with ProgressBar(terminal) as progress:
            progress.show("olts", 12, 48, "rows")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert terminal.getvalue().endswith("\x1b[2K")
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")


def test_a_file_sees_nothing_of_it():
    file = io.StringIO()
    progress = ProgressBar(file)

    progress.show("olts", 12, 48, "rows")
    progress.clear()

    assert file.getvalue() == ""
