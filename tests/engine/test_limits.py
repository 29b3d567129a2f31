"""Limits on the ONUs of one OLT."""

import pytest

from facho.engine.escapes import escape, escape_lines, shortened
from facho.engine.limits import MOST_ONUS, RowLimit, admit


@pytest.mark.parametrize(
    ("stored", "unknown", "replacing", "expected"),
    [
        pytest.param(0, "abc", "", ("abc", ""), id="all fit"),
        pytest.param(2, "abc", "", ("ab", ""), id="the first ones fit"),
        pytest.param(4, "abc", "x", ("", ""), id="no room"),
        pytest.param(9, "abc", "x", ("", ""), id="more stored than the limit, which was reduced"),
        pytest.param(2, "abc", "x", ("a", "x"), id="a replaced ONU before a new one"),
        pytest.param(3, "abc", "xy", ("", "x"), id="not all replaced ones fit"),
    ],
)
def test_new_onus_are_admitted_up_to_the_limit(stored, unknown, replacing, expected):
    assert admit(stored, unknown, replacing, most=4) == tuple(map(frozenset, expected))


def test_the_largest_olts_are_within_the_limit():
    assert len(admit(0, [str(number) for number in range(16_384)], [], MOST_ONUS).unknown) == 16_384


def test_rows_of_all_parts_count_together():
    limit = RowLimit(10)

    limit.add(4)
    assert not limit.is_reached
    limit.add(6)

    assert limit.is_reached
    assert limit.reason == "the limit of 10 rows was reached"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("OLT Ñuñoa", "OLT Ñuñoa", id="plain text"),
        pytest.param("a\x1b[2Jb", r"a\u001b[2Jb", id="escape sequence"),
        pytest.param("a\r\nb\tc", r"a\r\nb\tc", id="line ends and tab"),
        pytest.param("a\x7f\x9bb", r"a\u007f\u009bb", id="delete and C1"),
        pytest.param("a\u202eb\u2028", r"a\u202eb\u2028", id="direction and line separator"),
        pytest.param("a\ud800b", r"a\ud800b", id="half a character"),
    ],
)
def test_control_characters_are_escaped(text, expected):
    assert escape(text) == expected


def test_lines_stay_lines_where_they_are_ours():
    assert escape_lines("a\x1b\nb") == "a\\u001b\nb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("abcd", "abcd"), ("abcde", "abc…"), ("", "")],
    ids=["it fits", "cut and marked", "empty"],
)
def test_a_long_text_is_cut_and_marked(text, expected):
    assert shortened(text, 4) == expected
