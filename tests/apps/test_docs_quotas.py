"""The operator's page on quotas says what the code does."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from cast import T0

from facho.engine.model import Cause, JobKind, Node, Outcome, Status
from facho.engine.quota.quota import severity, verdict
from facho.engine.scheduling.breaker import OPENS_AFTER
from facho.engine.scheduling.retry import retry_at

PAGE = (Path(__file__).parents[2] / "docs" / "quotas-and-breakers.md").read_text(encoding="utf-8")


def rows(first_cell):
    """Return the cells of each row of the table whose head begins with this cell."""
    table = re.search(rf"^\| {first_cell} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M)
    assert table
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def numbers(cell):
    """Return the numbers that a cell names: "0 to 2", "8, 9", "10 or 11"."""
    named = [int(number) for number in re.findall(r"\d+", cell)]
    return list(range(named[0], named[-1] + 1)) if " to " in cell else named


@pytest.mark.parametrize(("column", "required"), [(2, 12), (3, 4)])
def test_the_table_of_severities_is_right(column, required):
    told = {number: row[0].upper() for row in rows("Severity") for number in numbers(row[column])}

    assert told == {n: severity(n, required) for n in range(required + 1) if severity(n, required)}


def test_the_table_of_statuses_is_right():
    told = {number: row[0].upper().replace(" ", "_") for row in rows("Status") for number in numbers(row[2])}

    assert told == {n: verdict(n, 12) for n in range(13)}


def test_the_worked_retries_are_what_the_engine_does():
    node = Node(id=7, olt_id=3, name="Optical power", kind=JobKind.TABLE, interval=timedelta(minutes=5))
    silent = Outcome(Status.FAILED, Cause.UNREACHABLE)
    starts, attempt = [], T0
    while attempt is not None:
        starts.append(attempt)
        gave_up = attempt + timedelta(seconds=5)
        attempt = retry_at(node, silent, len(starts), T0 + node.interval, gave_up)

    told = re.findall(r"(\d\d:\d\d:\d\d)  attempt", PAGE)

    assert told == [f"{at:%H:%M:%S}" for at in starts]


def test_the_breaker_opens_when_the_page_says():
    assert f"After {OPENS_AFTER} consecutive attempts without an answer" in PAGE
