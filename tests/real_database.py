"""Connections as in production: several at once, each in its thread, on a database that commits."""

import sqlite3
from contextlib import contextmanager

import pytest
from django.db import connection, connections

from facho.store.database import DbThread


@contextmanager
def threads_on_file(path, monkeypatch):
    """Let threads open a copy of the test database on a file: the one in memory knows no waiting for a lock."""
    with sqlite3.connect(path) as copy:
        connection.ensure_connection()
        connection.connection.backup(copy)
        # As a migrated installation has it. Of several connections that change the mode at once, SQLite refuses some
        # with "database is locked" without waiting.
        copy.execute("PRAGMA journal_mode=WAL")
    copy.close()
    with monkeypatch.context() as patch:
        patch.setitem(connections.settings["default"], "NAME", str(path))
        yield


@pytest.fixture
def make_thread(transactional_db, tmp_path, monkeypatch):
    """Make database threads, and give their connections back at the end."""
    made = []

    def make(name):
        made.append(DbThread(name))
        return made[-1]

    if connection.vendor == "sqlite":
        with threads_on_file(tmp_path / "facho.sqlite3", monkeypatch):
            yield make
            for thread in made:
                thread.close()
    else:
        yield make
        for thread in made:
            thread.close()
