"""Texts of the search: written with the ONUs, only when they change, and by the migration."""

import pytest
from builders import T0
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test.utils import CaptureQueriesContext

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu, OnuSearch
from facho.apps.telemetry.search import matching
from facho.apps.telemetry.search_index import create_index, drop_index, is_indexed
from facho.runtime import checks
from facho.runtime.upgrade import without_idle_limit
from facho.store import inventory as inventories
from facho.store.inventory import Columns, Inventory, compare

pytestmark = pytest.mark.django_db


@pytest.fixture
def inventory(db):
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    return Inventory.load(olt.pk)


def run(inventory, indexes=("1.1", "1.2"), **columns):
    """Write a run with these values, and return the statements on the texts."""
    places = {"slot": [0] * len(indexes), "port": [1] * len(indexes), "onu": list(range(len(indexes)))}
    inventory.ensure(columns)
    changes = compare(inventory, Columns(list(indexes), places, columns), T0)
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        inventory.apply(changes)
    # PostgreSQL alters no table while it has references to check.
    connection.check_constraints()
    return [each["sql"] for each in queries if "onu_search" in each["sql"]]


def found(text):
    return set(matching(Onu.objects.all(), text).values_list("index", flat=True))


def test_a_new_onu_is_found_by_what_the_run_read(inventory):
    run(inventory, serial=["HWTC1234ABCD", None])

    assert found("hwtc-1234abcd") == {"1.1"}
    assert found("0/1") == {"1.1", "1.2"}
    assert OnuSearch.objects.filter(olt=inventory.olt_id).count() == 2


def test_a_new_name_is_found_and_the_old_one_is_not(inventory, monkeypatch):
    monkeypatch.setattr(inventories, "TEXTS_AT_ONCE", 1)
    run(inventory, serial=["HWTC1234ABCD", "HWTC1234ABCE"])
    run(inventory, name=["María", "José"])
    run(inventory, name=["Ana", "José"])

    assert found("maria") == set()
    assert found("ana 1234abcd") == {"1.1"}
    assert found("jose 1234abce") == {"1.2"}


def test_a_run_that_changes_no_text_writes_none(inventory):
    run(inventory, name=["María", "José"])

    assert run(inventory, name=["María", "José"], rx_dbm=[-20.0, -21.0], state=["online", "los"]) == []


def test_an_onu_that_moves_is_found_at_its_new_place(inventory):
    run(inventory, serial=["HWTC1234ABCD", "HWTC1234ABCE"])
    changes = compare(
        inventory, Columns(["1.1"], {"slot": [0], "port": [2], "onu": [7]}, {"serial": ["HWTC1234ABCD"]}), T0
    )
    with transaction.atomic():
        inventory.apply(changes)

    assert found("0/2/7") == {"1.1"}
    assert found("0/1/0") == set()


def test_the_index_is_created_once_and_again_after_it_is_gone(inventory):
    run(inventory, name=["María", "José"])
    assert is_indexed(connection)
    assert create_index(connection)

    with transaction.atomic():
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                for event in ("insert", "delete", "update"):
                    cursor.execute(f"DROP TRIGGER onu_search_{event}")
        drop_index(connection)
        assert not is_indexed(connection)
        assert create_index(connection)

    assert found("maria") == {"1.1"}


def test_a_postgresql_that_refuses_the_extension_is_searched_without_an_index(inventory):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has its index built in")
    run(inventory, name=["María", "José"])
    with connection.cursor() as cursor:
        cursor.execute("DROP EXTENSION pg_trgm CASCADE")
        cursor.execute("CREATE ROLE facho_without_rights")
        cursor.execute("SET LOCAL ROLE facho_without_rights")
        assert not create_index(connection)
        cursor.execute("RESET ROLE")
    [warning] = [each for each in checks.database(None, databases=["default"]) if each.id == "facho.W011"]
    assert "CREATE EXTENSION pg_trgm" in warning.hint

    assert found("maria") == {"1.1"}
    assert create_index(connection)


@pytest.mark.django_db(transaction=True)
def test_the_migration_writes_the_texts_of_all_onus():
    before = [("telemetry", "0011_port_counters")]
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    with without_idle_limit():
        old = MigrationExecutor(connection).migrate(before).apps
        olt = old.get_model("inventory", "Olt").objects.create(name="OLT-CENTRAL-01", host="127.0.0.1", port=161)
        for number, name in enumerate(("María", None)):
            old.get_model("telemetry", "Onu").objects.create(
                olt=olt, index=f"1.{number}", name=name, slot=1, port=9, onu=number, first_seen_at=T0, own_read_at=T0
            )
        MigrationExecutor(connection).migrate(latest)

    assert found("maria") == {"1.0"}
    assert found("1/9/1") == {"1.1"}
