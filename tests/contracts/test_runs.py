"""What `Runs.finish` promises about readings: stored whole or not at all, once, and only under the present lease."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
from builders import MIN, SEC, T0
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from worlds import OLD, RunDesk

from facho.apps.coordinator.models import QuotaTracker
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.telemetry.models import HistoryRun, Onu, OnuEvent, PonPort
from facho.engine.batch import UNREAD
from facho.engine.chunks import FIELDS, RunColumns, decode
from facho.engine.errors import LeaseLost
from facho.engine.model import Cause, KnownOnu, Outcome, Reading, Status
from facho.store import sql
from facho.store.inventory import Inventories
from facho.store.runs import store
from history_rows import readings, stored

pytestmark = pytest.mark.django_db

INDEX = "4194304000.7"
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")


# From how many rows PostgreSQL updates by arrays: each promise is kept by them as by statements.
WAYS = {"by arrays": 1, "by statements": 10**9} if connection.vendor == "postgresql" else {"by statements": 1}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def desk(request, db, monkeypatch):
    monkeypatch.setattr(sql, "FEWEST_IN_ARRAYS", request.param)
    return RunDesk()


def reading(onu=7, **values):
    return Reading(f"4194304000.{onu}", 0, 1, onu, values)


def onu7():
    return Onu.objects.get(index=INDEX)


def history():
    """Return the number and the values of each ONU in the only run."""
    run = RunColumns(bytes(HistoryRun.objects.get().data))
    columns = {name: decode(FIELDS[name], run.column(name)) for name in run.forms}
    numbers = [Onu.objects.get(pk=onu_id).onu for onu_id in run.onu_ids]
    rows = [(number, {name: cells[place] for name, cells in columns.items()}) for place, number in enumerate(numbers)]
    return sorted((number, values) for number, values in rows if any(each is not UNREAD for each in values.values()))


def test_an_onu_read_for_the_first_time_is_met(desk):
    desk.write(reading(serial="HWTC00000007", state="online", rx_dbm=-21.53))

    onu = onu7()
    assert (onu.olt_id, onu.slot, onu.port, onu.onu) == (desk.world.olt_id, 0, 1, 7)
    assert (onu.serial, onu.state, onu.rx_dbm, onu.tx_dbm) == ("HWTC00000007", "online", -21.53, None)
    assert (onu.first_seen_at, onu.read_at, onu.state_at, onu.power_at) == (T0, T0, T0, T0)
    assert onu.extra == {}


def test_columns_that_were_not_read_keep_what_they_had(desk):
    desk.write(reading(name="client-7", state="online", rx_dbm=-21.53))

    desk.write(reading(tx_dbm=2.1), now=T0 + 5 * MIN)

    onu = onu7()
    assert (onu.name, onu.state, onu.rx_dbm, onu.tx_dbm) == ("client-7", "online", -21.53, 2.1)
    assert (onu.first_seen_at, onu.state_at) == (T0, T0)
    assert (onu.read_at, onu.power_at) == (T0 + 5 * MIN, T0 + 5 * MIN)


def test_a_value_the_device_does_not_have_any_more_is_none(desk):
    desk.write(reading(name="client-7", state="online", rx_dbm=-21.53))

    desk.write(reading(name=None, state="offline", rx_dbm=None), now=T0 + 5 * MIN)

    onu = onu7()
    assert (onu.name, onu.state, onu.rx_dbm) == (None, "offline", None)


def test_rows_of_one_harvest_may_have_different_columns(desk):
    desk.write(reading(6, rx_dbm=-20.0), reading(7, rx_dbm=-21.53), reading(8, name="client-8"))

    desk.write(reading(6, name="client-6"), reading(7, rx_dbm=-22.0), reading(8, rx_dbm=-19.0, name=None))

    rows = Onu.objects.order_by("onu").values_list("onu", "name", "rx_dbm")
    assert list(rows) == [(6, "client-6", -20.0), (7, None, -22.0), (8, None, -19.0)]


def test_an_onu_that_does_not_say_where_it_sits_sits_where_it_sat(desk):
    desk.write(reading(7, rx_dbm=-21.53))

    desk.write(Reading(INDEX, None, None, 9, {"rx_dbm": -22.0}))

    onu = onu7()
    assert (onu.slot, onu.port, onu.onu, onu.rx_dbm) == (0, 1, 9, -22.0)


def test_of_an_onu_that_was_read_twice_in_one_run_the_last_of_each_value_is_kept(desk):
    desk.write(
        reading(7, rx_dbm=-20.0, name="first", vlan=100, cvlan=1),
        reading(8, rx_dbm=-19.0),
        reading(7, rx_dbm=-21.0, vlan=200),
        Reading(INDEX, None, 2, None, {"rx_dbm": None, "name": "last"}),
    )

    onu = onu7()
    assert (onu.slot, onu.port, onu.onu, onu.rx_dbm, onu.name) == (0, 2, 7, None, "last")
    assert onu.extra == {"vlan": 200, "cvlan": 1}
    assert history() == [(7, {"rx_dbm": None}), (8, {"rx_dbm": -19.0})]


def test_twins_that_are_alike_are_one_row(desk):
    desk.write(*[reading(7, rx_dbm=-20.0 - n) for n in range(3)])

    assert (onu7().rx_dbm, history()) == (-22.0, [(7, {"rx_dbm": -22.0})])


def test_no_state_at_all_is_unknown(desk):
    desk.write(reading(6, state=None), reading(7, rx_dbm=-21.53))

    assert set(Onu.objects.with_freshness().values_list("onu", "state", "state_at")) == {
        (6, "unknown", T0),
        (7, "unknown", None),
    }


def test_columns_of_one_maker_only_go_into_extra_beside_what_is_there(desk):
    desk.write(reading(config_state="normal", vlan=100))

    desk.write(reading(vlan=200, ranged_at=T0, rx_dbm=-21.53))

    assert onu7().extra == {"config_state": "normal", "vlan": 200, "ranged_at": T0.isoformat()}


def test_the_extra_of_one_onu_does_not_cost_another_its_own(desk):
    desk.write(reading(7, vlan=100), reading(8, vlan=300))

    desk.write(reading(7, vlan=200), reading(8, rx_dbm=-19.0), reading(9, rx_dbm=-18.0))

    rows = Onu.objects.order_by("onu").values_list("onu", "extra")
    assert list(rows) == [(7, {"vlan": 200}), (8, {"vlan": 300}), (9, {})]


def test_scalars_belong_to_the_olt_and_are_merged(desk):
    desk.write(scalars={"uptime": 100, "sysname": "central"})
    before = Olt.objects.get(pk=desk.world.olt_id).revision

    desk.deliver(desk.result(scalars={"uptime": 200, "booted_at": T0}))

    olt = Olt.objects.get(pk=desk.world.olt_id)
    assert olt.extra == {"uptime": 200, "sysname": "central", "booted_at": T0.isoformat()}
    assert olt.revision == before
    assert Onu.objects.count() == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({"name": "x" * 300}, {"name": "x" * 254 + "…"}, id="a text that is too long is cut"),
        pytest.param({"name": "cli\0ent\0"}, {"name": "client"}, id="NUL, which PostgreSQL refuses, is left out"),
        pytest.param({"in_octets": 2**64 - 1}, {"in_octets": None}, id="a counter no database can hold is no value"),
        pytest.param({"in_octets": 2**63 - 1}, {"in_octets": 2**63 - 1}, id="the largest counter is kept"),
        pytest.param({"in_octets": 41.6}, {"in_octets": 42}, id="a fraction of an octet is rounded"),
        pytest.param({"distance_m": 2**64}, {"distance_m": None}, id="a distance no database can hold is no value"),
        pytest.param({"distance_m": 1200}, {"distance_m": 1200.0}, id="an integer in a column of numbers is one"),
        pytest.param({"name": ""}, {"name": ""}, id="a text without letters is not the same as none"),
        pytest.param({"name": "\\N"}, {"name": "\\N"}, id="what means nothing to COPY is a text"),
        pytest.param({"name": "a\tb\r\nc\\t"}, {"name": "a\tb\r\nc\\t"}, id="tabs and lines are those of the text"),
        pytest.param({"name": 'Peña\'s "café"'}, {"name": 'Peña\'s "café"'}, id="quotes and accents stay"),
        pytest.param({"last_up": T0 - 1 * SEC}, {"last_up": T0 - 1 * SEC}, id="a date is a date"),
        pytest.param({"name": 12}, {"name": "12"}, id="a number in a column of text is text"),
    ],
)
def test_what_does_not_fit_never_costs_the_row(desk, values, expected):
    desk.write(reading(**values), reading(8, rx_dbm=-19.0))

    assert Onu.objects.count() == 2
    assert {name: getattr(onu7(), name) for name in expected} == expected


def test_an_extra_may_hold_any_text(desk):
    text = 'Peña\'s "a\tb\nc\\N" %s'

    desk.write(reading(profile=text))

    assert onu7().extra == {"profile": text}


def test_nul_in_an_extra_or_a_scalar_costs_nothing_but_itself(desk):
    desk.write(reading(profile="ftth\0"), scalars={"sysname": "central\0"})

    assert onu7().extra == {"profile": "ftth"}
    assert Olt.objects.get(pk=desk.world.olt_id).extra == {"sysname": "central"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")], ids=str)
def test_a_number_that_is_none_is_no_value(desk, number):
    desk.write(reading(rx_dbm=number, ratio=number), scalars={"load": number})

    assert (onu7().rx_dbm, onu7().extra) == (None, {"ratio": None})
    assert Olt.objects.get(pk=desk.world.olt_id).extra == {"load": None}


def test_a_place_no_database_can_hold_costs_the_place_and_not_the_harvest(desk):
    desk.write(Reading("1.4294967295", 2**32 - 1, 2**31, 2**31 - 1, {"rx_dbm": -21.53}), reading(8, rx_dbm=-19.0))

    onu = Onu.objects.get(index="1.4294967295")
    assert (onu.slot, onu.port, onu.onu, onu.rx_dbm) == (None, None, 2**31 - 1, -21.53)


def test_history_has_the_values_that_change_as_they_were_read(desk):
    desk.write(reading(state="online", rx_dbm=-21.53, name="client-7"))
    desk.write(reading(rx_dbm=-22.0, in_octets=2**64), now=T0 + 5 * MIN)

    assert readings(onu7()) == [
        {"at": T0, "state": "online", "rx_dbm": -21.53},
        {"at": T0 + 5 * MIN, "rx_dbm": -22.0},
    ]


def test_names_alone_make_no_history(desk):
    desk.write(reading(7, name="client-7", serial="HWTC00000007", vlan=100), reading(8, state="online"))

    assert [onu for onu, _ in history()] == [8]
    assert (onu7().state_at, onu7().power_at) == (None, None)


def test_a_holder_of_an_older_lease_writes_nothing(desk):
    with pytest.raises(LeaseLost, match="not stored"):
        desk.write(reading(rx_dbm=-21.53), scalars={"uptime": 1}, token=OLD)

    assert Onu.objects.count() == len(stored()) == 0
    assert Olt.objects.get(pk=desk.world.olt_id).extra == {}


def test_an_execution_that_was_ended_writes_nothing(desk):
    desk.world.close([desk.execution_id], SILENT)

    with pytest.raises(LeaseLost):
        desk.write(reading(rx_dbm=-21.53))

    assert Onu.objects.count() == 0


def test_readings_and_outcome_are_stored_together(desk):
    desk.deliver(desk.result(reading(rx_dbm=-21.53), now=T0 + 3 * SEC))

    assert onu7().rx_dbm == -21.53
    row = desk.world.row(desk.execution_id)
    assert (row.status, row.ended_at) == (Status.SUCCESS, T0 + 3 * SEC)
    assert [status for status, _, _ in row.attempts] == [Status.SUCCESS]


def test_a_crash_at_any_statement_leaves_neither_readings_nor_an_outcome(desk):
    """Readings without their status, or the reverse, would be counted wrongly by every later run."""
    desk.write(reading(6, rx_dbm=-20.0, state="online"), reading(7, rx_dbm=-21.0, state="online"))
    before = dump()
    result = desk.result(reading(6, rx_dbm=-19.0, state="los"), reading(8, rx_dbm=-18.0, vlan=4), scalars={"uptime": 1})

    crashes = 0
    while crashes_at(crashes + 1, result):
        crashes += 1
        assert dump() == before, f"statement {crashes}"

    assert crashes > 10
    assert desk.status() is Status.SUCCESS
    assert Onu.objects.get(onu=8).rx_dbm == -18.0


class Crash(BaseException):
    """The process was killed."""


def crashes_at(number, result):
    """Store a result in a process that is killed before its statement with this number; False if it has fewer."""
    numbers = itertools.count(1)

    def execute(run, statement, *arguments):
        # In production these are the BEGIN and COMMIT of the transaction, which the server does whole or not at all.
        if "SAVEPOINT" not in statement and next(numbers) == number:
            raise Crash
        return run(statement, *arguments)

    try:
        with connection.execute_wrapper(execute), transaction.atomic():
            store(result, Inventories())
    except Crash:
        return True
    return False


def dump():
    """Return all rows that a result may touch."""
    models = (Onu, OnuEvent, PonPort, HistoryRun, Execution, ExecutionAttempt, WorkflowNode, Olt, QuotaTracker)
    return [list(model.objects.order_by("pk").values()) for model in models]


def test_a_result_that_is_delivered_again_changes_nothing(desk):
    result = desk.result(reading(rx_dbm=-21.53, in_octets=7))
    desk.deliver(result)
    before = dump()

    desk.deliver(result)
    desk.deliver(result)

    assert dump() == before


def test_a_result_that_waits_for_a_retry_is_stored_once(desk):
    partial = desk.result(reading(rx_dbm=-21.53), outcome=replace(SILENT, retry_at=T0 + 2 * MIN))
    desk.deliver(partial)
    before = dump()

    desk.deliver(partial)

    assert dump() == before
    assert (desk.status(), desk.world.row(desk.execution_id).retry_at) == (Status.PENDING, T0 + 2 * MIN)


def test_an_execution_that_was_interrupted_meanwhile_stores_nothing(desk):
    desk.world.abort(olts=[desk.world.olt_id])

    with pytest.raises(LeaseLost, match="not stored"):
        desk.deliver(desk.result(reading(rx_dbm=-21.53)))

    assert (desk.status(), Onu.objects.count()) == (Status.INTERRUPTED, 0)


def test_a_row_that_fails_takes_the_whole_harvest_with_it(desk):
    desk.write(reading(7, rx_dbm=-21.53))

    with pytest.raises(IntegrityError, match=r"NULL|null"):
        desk.write(reading(7, rx_dbm=-30.0), Reading(None, 0, 1, 8, {"rx_dbm": -30.0}), scalars={"uptime": 1})

    assert list(Onu.objects.values_list("rx_dbm", flat=True)) == [-21.53]
    assert len(stored()) == 1
    assert Olt.objects.get(pk=desk.world.olt_id).extra == {}


def test_nothing_read_is_nothing_written(desk):
    desk.write()

    assert Onu.objects.count() == len(stored()) == 0


def test_five_thousand_rows_take_a_few_statements(desk):
    rows = [reading(n, state="online", rx_dbm=-20.0, vlan=n) for n in range(5000)]

    with CaptureQueriesContext(connection) as first:
        desk.deliver(desk.result(*rows))
    desk.start()
    with CaptureQueriesContext(connection) as again:
        desk.deliver(desk.result(*rows, now=T0 + 5 * MIN))

    assert Onu.objects.count() == 5000
    assert len(stored()) == 10_000
    assert max(len(first), len(again)) <= 24


def test_what_is_known_of_an_olt_is_its_onus_and_their_states(desk):
    other = Olt.objects.create(name="OLT-NORTE-02", brand="zte_c300", host="127.0.0.2", community="public")
    Onu.objects.create(olt=other, index="1.1", state="online", first_seen_at=T0, own_read_at=T0)
    desk.write(reading(7, state="los"), reading(8, rx_dbm=-19.0))

    known = desk.known()

    assert sorted(known, key=lambda onu: onu.index) == [
        KnownOnu(INDEX, "los", 0, 1, 7),
        KnownOnu("4194304000.8", "unknown", 0, 1, 8),
    ]


def test_the_same_index_on_another_olt_is_another_onu(desk):
    other = Olt.objects.create(name="OLT-NORTE-02", brand="huawei", host="127.0.0.2", community="public")
    Onu.objects.create(olt=other, index=INDEX, rx_dbm=-10.0, first_seen_at=T0, own_read_at=T0 - timedelta(days=1))

    desk.write(reading(7, rx_dbm=-21.53))

    assert Onu.objects.get(olt=other).rx_dbm == -10.0
    assert Onu.objects.count() == 2
