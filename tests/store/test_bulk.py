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
