"""How much one request asks for: it grows while answers succeed, shrinks when they do not, and never reaches zero."""

import pytest

from facho.engine.collect.flow import MAX_COLUMNS, MAX_ROWS, MAX_VARIABLES, SIZE_PATIENCE, Size


def sizes(size):
    return size.rows, size.columns


def succeed(size, times=SIZE_PATIENCE):
    for _ in range(times):
        size.succeeded()


def serve(size, *, fits, requests):
    """Let an agent answer that can take so many rows, and return what it was asked for."""
    asked = []
    for _ in range(requests):
        rows = size.rows_for(1)
        asked.append(rows)
        if rows <= fits:
            size.succeeded()
        else:
            size.shrink(rows, 1)
    return asked


def test_a_size_halves_its_rows_first_and_never_reaches_zero():
    size = Size(10, 5)
    seen = []

    while size.shrink(size.rows, size.columns):
        seen.append(sizes(size))

    assert seen == [(5, 5), (2, 5), (1, 5), (1, 2), (1, 1)]


@pytest.mark.parametrize(
    ("begun", "failed", "fitting", "left"),
    [
        pytest.param((64, 4), (10, 4), 0, (5, 4), id="from what was asked, not from what was allowed"),
        pytest.param((10, 4), (10, 4), 7, (7, 4), id="what came of an answer that was cut is what fits"),
        pytest.param((2, 4), (10, 4), 0, (2, 4), id="not upward: others have halved it already"),
        pytest.param((1, 12), (1, 3), 0, (1, 1), id="columns from what was asked too"),
        pytest.param((1, 2), (1, 8), 0, (1, 2), id="columns not upward either"),
    ],
)
def test_a_size_shrinks_from_what_failed(begun, failed, fitting, left):
    size = Size(*begun)

    assert size.shrink(*failed, fitting=fitting)

    assert sizes(size) == left


def test_a_size_says_when_there_is_nothing_left_to_halve():
    assert not Size(1, 1).shrink(1, 1)


def test_a_size_grows_beyond_where_the_maker_would_begin():
    size = Size(10, 2)

    succeed(size)

    assert size.rows > 10


def test_a_size_waits_for_a_few_successes_before_it_grows():
    size = Size(10, 1)

    succeed(size, SIZE_PATIENCE - 1)

    assert size.rows == 10


def test_a_size_does_not_grow_where_answers_take_long_already():
    size = Size(10, 1)

    for _ in range(10 * SIZE_PATIENCE):
        size.succeeded(may_grow=False)

    assert size.rows == 10


def test_a_size_grows_as_soon_as_there_is_room_for_it():
    size = Size(10, 1)
    for _ in range(SIZE_PATIENCE):
        size.succeeded(may_grow=False)

    size.succeeded()

    assert size.rows > 10


def test_columns_come_back_before_rows_do():
    size = Size(4, 3)
    while size.shrink(size.rows, size.columns):
        pass
    seen = []

    for _ in range(3):
        succeed(size)
        seen.append(sizes(size))

    assert seen[:2] == [(1, 2), (1, 3)]
    assert seen[2][0] > 1


@pytest.mark.parametrize(
    ("size", "columns", "rows"),
    [
        pytest.param(Size(0, 1), 1, 1, id="a maker who says 0 means 1"),
        pytest.param(Size(-3, 1), 1, 1, id="a stored number below 1 means 1"),
        pytest.param(Size(10**6, 1), 1, MAX_ROWS, id="never more rows than fill a datagram"),
        pytest.param(Size(64, 16), 16, MAX_VARIABLES // 16, id="never more variables than fill a datagram"),
        pytest.param(Size(64, 1), 10 * MAX_VARIABLES, 1, id="a row is asked for whole, however wide"),
    ],
)
def test_a_request_has_a_sensible_number_of_rows(size, columns, rows):
    assert size.rows_for(columns) == rows


def test_a_request_has_a_sensible_number_of_columns():
    assert Size(10, 40).columns == MAX_COLUMNS
    assert Size(10, 0).columns == 1


def test_a_size_never_grows_beyond_its_limits():
    size = Size(10, 4)

    succeed(size, 500)

    assert sizes(size) == (MAX_ROWS, 4)


@pytest.mark.parametrize("fits", [1, 3, 7, 10, 13, 33, 50, 63])
def test_a_size_comes_near_to_what_an_agent_can_take_and_is_seldom_refused(fits):
    asked = serve(Size(10, 1), fits=fits, requests=300)

    answered = [rows for rows in asked[100:] if rows <= fits]
    assert sum(answered) / len(answered) >= 0.7 * fits
    assert len(answered) >= 0.9 * len(asked[100:])


def test_a_size_that_an_agent_cannot_take_is_tried_less_and_less_often():
    asked = serve(Size(16, 1), fits=16, requests=1000)

    refused = [place for place, rows in enumerate(asked) if rows > 16]
    assert refused[0] == SIZE_PATIENCE
    assert len(refused) <= 20
    assert refused[-1] - refused[-2] > refused[1] - refused[0]


def test_a_size_that_was_refused_is_tried_again_some_day():
    size = Size(32, 1)
    serve(size, fits=8, requests=200)

    asked = serve(size, fits=64, requests=2000)

    assert max(asked) > 16


def test_a_failure_that_took_timeouts_to_notice_is_risked_less_often():
    cheap, dear = Size(4, 1), Size(4, 1)
    waits = {}
    for size, costly in ((cheap, False), (dear, True)):
        succeed(size)
        size.shrink(size.rows, 1, costly=costly)
        small = size.rows
        waits[costly] = 0
        while size.rows == small:
            size.succeeded()
            waits[costly] += 1

    assert waits[False] > SIZE_PATIENCE
    assert waits[True] >= 4 * waits[False]
