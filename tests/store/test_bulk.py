"""Statements that every run executes are prepared by the server, and find ids in every database."""

import pytest
from django.db import connection

from facho.store import sql

pytestmark = pytest.mark.django_db


def test_a_statement_that_is_executed_often_is_planned_once():
    if connection.vendor != "postgresql":
        pytest.skip("SQLite keeps statements by itself")
    statement = "UPDATE olts SET failures = %s WHERE id = %s"
    for number in range(5):
        sql.execute(statement, number, 1)

    # As the server knows it: with numbers for the values.
    found = sql.fetch("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", "UPDATE olts SET fail%")
    assert found == [(1,)]


@pytest.mark.parametrize("ids", [[], [2], [1, 3, 5_000_000_000]], ids=["none", "one", "several"])
def test_ids_are_found_among_others(ids):
    condition, values = sql.among(ids)
    numbers = "(SELECT 1 AS id UNION SELECT 2 UNION SELECT 3 UNION SELECT 5000000000) AS numbers"

    found = sql.fetch(f"SELECT id FROM {numbers} WHERE id {condition} ORDER BY id", *values)  # noqa: S608 - no values

    assert [id_ for (id_,) in found] == ids
