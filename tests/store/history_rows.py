"""Readings in the database, the partitions that they are in, and others who use them."""

import threading

from django.db import connection, connections, transaction

from facho.apps.telemetry.models import OnuHistory


def read(onu, *times):
    """Keep readings, with all that a commit would check."""
    rows = [OnuHistory.objects.create(onu=onu, at=at) for at in times]
    connection.check_constraints()
    return rows


def table_of(row):
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM onu_history WHERE id = %s", [row.pk])
        (table,) = cursor.fetchone()
    return table


class Elsewhere:
    """Another connection, that uses the history in a transaction until it is told to stop."""

    def __init__(self, statement):
        self._statement = statement
        self._at_it, self._enough = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._use)

    def __enter__(self):
        self._thread.start()
        assert self._at_it.wait(30)

    def __exit__(self, *error):
        self._enough.set()
        self._thread.join(30)

    def _use(self):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(self._statement)
                self._at_it.set()
                self._enough.wait(60)
        finally:
            connections.close_all()
