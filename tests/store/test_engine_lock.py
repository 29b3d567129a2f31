"""On PostgreSQL the lock of the engine is the server's: it ends with the connection that holds it."""

import pytest
from django.db import connection

from facho.runtime import config
from facho.runtime.config import ConfigError
from facho.runtime.lock import EngineLock

pytestmark = pytest.mark.django_db


@pytest.fixture
def configured(db):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no server")
    return config.load({"DATABASE_URL": "postgresql://facho@127.0.0.1/facho"})


def test_a_second_engine_is_refused(configured):
    with EngineLock(configured), pytest.raises(ConfigError, match="Another Facho engine is running on this database"):
        EngineLock(configured).__enter__()


def test_an_engine_that_ended_gives_the_lock_back(configured):
    for _ in range(2):
        with EngineLock(configured):
            pass


def test_an_engine_whose_connection_died_gives_the_lock_back(configured):
    dead = EngineLock(configured).__enter__()
    with connection.cursor() as cursor:
        pid = dead._connection.connection.info.backend_pid
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    with EngineLock(configured):
        pass
    dead._connection.close()
