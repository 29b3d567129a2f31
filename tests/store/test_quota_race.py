"""Quotas that two processes write in the same moment: what one has counted the other does not wipe out."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from builders import MIN, T0
from django.db import connection, connections, transaction

from contracts.worlds import DbWorld, scheduled
from facho.apps.coordinator.models import QuotaTracker
from facho.engine.model import Outcome, Status
from facho.store import quotas

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_that_ends_while_its_hour_is_opened_is_counted(monkeypatch):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one who writes at a time")
    world = DbWorld()
    power = world.add("Optical power", next_check=T0)
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)
    QuotaTracker.objects.all().delete()
    looked, open_slots = [], quotas.open_slots

    def end():
        world.close([id_], Outcome(Status.SUCCESS), now=T0 + MIN)
        connections.close_all()

    def look(*hours):
        found = open_slots(*hours)
        if not looked:
            looked.append(found)
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(end).result(30)
        return found

    monkeypatch.setattr(quotas, "open_slots", look)
    with transaction.atomic():
        quotas.owe([world.olt_id], T0 + MIN)

    row = QuotaTracker.objects.get()
    # Every five minutes, and the first one has been.
    assert (row.quota_completed, row.quota_pending, row.quota_required) == (1, 11, 12)
