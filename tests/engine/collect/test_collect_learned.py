"""What is known of an agent from run to run: stored as JSON, and never believed blindly."""

import json

import pytest
from collect_fakes import at, oid_of

from facho.engine.collect.flow import MAX_ROWS
from facho.engine.collect.learned import MAX_POISONED, Learned
from facho.engine.oid import parse, text

SEVEN = oid_of("name", at(0, 1, 7))


def stored(learned):
    """Return what the next run gets: through JSON, as a database keeps it."""
    return json.loads(json.dumps(learned.as_json()))


def test_sizes_begin_where_the_maker_says_and_then_where_the_last_run_ended():
    first = Learned({})
    size = first.size("walk 1.3.6", 10)
    for _ in range(4):
        size.succeeded()
    untried = stored(first)
    size.succeeded()

    second = Learned(stored(first))

    assert first.size("walk 1.3.6", 10) is size
    assert second.size("walk 1.3.6", 10).rows == size.rows == 20
    # Twice as much had been decided upon, and not been answered yet.
    assert untried["sizes"] == {"walk 1.3.6": 10}
    assert second.size("walk 1.3.7", 10).rows == 10


def test_a_run_that_did_not_use_a_table_does_not_forget_its_size():
    learned = Learned({"sizes": {"walk 1.3.6": 25}})

    learned.size("get 1.3.6", 8)

    assert stored(learned)["sizes"] == {"walk 1.3.6": 25, "get 1.3.6": 8}
    assert learned.sizes == {"get 1.3.6": 8}


def test_poisoned_values_and_disorder_are_remembered():
    first = Learned({})
    first.poison(SEVEN)
    first.note_disorder("walk 1.3.6")

    second = Learned(stored(first))

    assert list(second.poisoned) == [SEVEN]
    assert not second.is_ordered("walk 1.3.6")
    assert second.is_ordered("walk 1.3.7")


def test_a_value_that_could_be_read_is_not_poisoned_any_more():
    learned = Learned({"poisoned": [text(SEVEN), "1.3.6.1.99"]})

    learned.cure(SEVEN)
    learned.cure(oid_of("name", at(0, 1, 8)))

    assert stored(learned)["poisoned"] == ["1.3.6.1.99"]


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"sizes": None, "poisoned": None, "unordered": None}, id="nulls"),
        pytest.param({"sizes": [1, 2], "poisoned": {"a": 1}, "unordered": "walk 1.3.6"}, id="other shapes"),
        pytest.param({"sizes": {"walk 1.3.6": "ten"}, "poisoned": [7, None, "no OID", "1"]}, id="other types"),
        pytest.param({"sizes": {"walk 1.3.6": 1.5}, "unordered": [["walk 1.3.6"]]}, id="numbers that are no sizes"),
        pytest.param({"from": "another version", "sizes": {}}, id="words of another version"),
        pytest.param({"pace": [8]}, id="a list for windows"),
        pytest.param({"pace": {"cheap": 8, "optical": None}}, id="numbers for windows"),
    ],
)
def test_whatever_is_not_understood_is_forgotten(garbage):
    learned = Learned(garbage)

    assert learned.size("walk 1.3.6", 10).rows == 10
    assert list(learned.poisoned) == []
    assert learned.is_ordered("walk 1.3.6")
    assert learned.pace("cheap", 8).window == 1
    assert stored(learned) == {"sizes": {"walk 1.3.6": 10}, "poisoned": [], "unordered": [], "pace": {}}


@pytest.mark.parametrize("rows", [0, -5, 10**9])
def test_a_stored_size_is_kept_within_bounds(rows):
    size = Learned({"sizes": {"walk 1.3.6": rows}}).size("walk 1.3.6", 10)

    assert 1 <= size.rows <= MAX_ROWS


def test_more_poisoned_values_than_an_olt_can_have_are_not_kept():
    learned = Learned({})

    for number in range(MAX_POISONED + 50):
        learned.poison(parse(f"1.3.6.1.{number}"))

    assert len(stored(learned)["poisoned"]) == MAX_POISONED
