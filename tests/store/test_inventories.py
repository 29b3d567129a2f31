"""Inventories that are kept between runs: nothing is read back, and what another process wrote is noticed."""

import pytest
from builders import MIN, T0
from django.db import DataError, connection, transaction
from django.test.utils import CaptureQueriesContext
from worlds import InSavepoint, RunDesk, done

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu
from facho.engine.batch import Batch
from facho.engine.errors import LeaseLost
from facho.engine.model import Reading
from facho.store import runs
from facho.store.inventory import Inventories
from facho.store.runs import DbResults, DbRuns

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(db):
    return RunDesk()


def onu(number, **values):
    return Reading(f"1.{number}", 0, 1, number, {"serial": f"S{number}", "state": "online", **values})


def batch(*readings):
    return Batch.of(readings)


def queries_of_onus(work):
    """Return the statements that read or write ONUs."""
    with CaptureQueriesContext(connection) as queries:
        work()
    return [each["sql"] for each in queries if 'FROM "onu_data"' in each["sql"] or 'UPDATE "onu_data"' in each["sql"]]


def elsewhere(desk):
    """Return the runs of another process on the same database."""
    inventories = Inventories()
    return DbRuns(InSavepoint(), InSavepoint(), DbResults(InSavepoint(), inventories=inventories), inventories)


def test_a_run_that_changes_nothing_neither_reads_nor_writes_an_onu(desk):
    fleet = [onu(number, rx_dbm=-20.0) for number in range(1, 9)]
    desk.write(*fleet)
    desk.write(*fleet, now=T0 + 5 * MIN)
    desk.known()

    result = desk.result(*fleet, now=T0 + 10 * MIN)

    assert queries_of_onus(lambda: (desk.known(), desk.deliver(result))) == []
    assert set(Onu.objects.with_freshness().values_list("read_at", flat=True)) == {T0 + 10 * MIN}


def test_what_another_process_wrote_is_read_again(desk):
    desk.write(onu(1, rx_dbm=-20.0))
    other = elsewhere(desk)
    done(other.finish(desk.result(onu(1, rx_dbm=-25.0), onu(2, rx_dbm=-21.0), now=T0 + 5 * MIN)))
    desk.start()

    assert [each.index for each in desk.known()] == ["1.1", "1.2"]
    desk.write(onu(1, rx_dbm=-20.0), onu(2, rx_dbm=-21.0), now=T0 + 10 * MIN)

    assert dict(Onu.objects.values_list("onu", "rx_dbm")) == {1: -20.0, 2: -21.0}


def test_a_result_that_could_not_be_stored_leaves_no_trace_in_memory(desk, monkeypatch):
    desk.write(onu(1, rx_dbm=-20.0))

    def fail(*_):
        raise DataError("value out of range")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "merge_scalars", fail)
        with pytest.raises(DataError):
            desk.deliver(desk.result(onu(1, rx_dbm=-25.0), scalars={"uptime": 1}))
    desk.write(onu(1, rx_dbm=-25.0), now=T0 + 5 * MIN)

    assert Onu.objects.get().rx_dbm == -25.0


def test_a_result_that_failed_halfway_is_complete_when_it_is_tried_again(desk, monkeypatch):
    """As in a group commit, which repeats each result in its own transaction after a failure."""
    desk.write(onu(1, rx_dbm=-20.0))
    inventories = Inventories()
    result = desk.result(onu(1, rx_dbm=-25.0), scalars={"uptime": 1})

    def fail(*_):
        raise DataError("value out of range")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "merge_scalars", fail)
        with pytest.raises(DataError), transaction.atomic():
            runs.store(result, inventories)
    runs.store(result, inventories)

    assert Onu.objects.get().rx_dbm == -25.0


def test_the_known_onus_are_the_same_list_until_one_of_them_changes(desk):
    desk.write(onu(1, rx_dbm=-20.0))
    first = desk.known()
    desk.write(onu(1, rx_dbm=-25.0))
    after_power = desk.known()
    desk.write(onu(1, state="los"))

    assert after_power is first
    assert [each.state for each in desk.known()] == ["los"]


def test_a_result_without_the_lease_raises_no_version(desk):
    before = Olt.objects.get().inventory_version
    desk.world.abort(olts=[desk.world.olt_id])
    with pytest.raises(LeaseLost):
        desk.deliver(desk.result(onu(1)))

    assert Olt.objects.get().inventory_version == before


def test_the_least_recently_used_inventory_goes_when_there_is_no_room(desk):
    inventories = Inventories(most_onus=3)
    for number in (1, 2, 3):
        olt = Olt.objects.create(name=f"OLT-{number}", brand="huawei", host=f"127.0.1.{number}", community="public")
        Onu.objects.create(olt=olt, index="1.1", first_seen_at=T0, own_read_at=T0)
        Onu.objects.create(olt=olt, index="1.2", first_seen_at=T0, own_read_at=T0)
        inventories.known(olt.pk)

    assert list(inventories._kept) == [olt.pk]


def test_an_inventory_that_is_loaded_again_is_not_dropped_to_make_room(desk):
    inventories = Inventories(most_onus=3)
    for number in (1, 2):
        olt = Olt.objects.create(name=f"OLT-{number}", brand="huawei", host=f"127.0.1.{number}", community="public")
        Onu.objects.create(olt=olt, index="1.1", first_seen_at=T0, own_read_at=T0)
        inventories.known(olt.pk)
    first = Olt.objects.get(name="OLT-1")
    for index in ("1.2", "1.3"):
        Onu.objects.create(olt=first, index=index, first_seen_at=T0, own_read_at=T0)
    Olt.objects.filter(pk=first.pk).update(inventory_version=first.inventory_version + 1)

    assert [onu.index for onu in inventories.known(first.pk)] == ["1.1", "1.2", "1.3"]
