"""The device behind an OLT is replaced: the ONUs keep their rows and history, wherever they are on the new one."""

from datetime import timedelta

import pytest
from builders import MIN, T0

from contracts.worlds import RunDesk
from facho.apps.dashboard.history import Period, onu_history
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import Onu, OnuEvent, PonPort
from facho.engine.errors import LeaseLost
from facho.engine.model import Completeness, JobKind, Reading
from facho.store import history
from facho.store.replacement import replace_device

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def onu(number, serial=None, port=1, **values):
    return Reading(f"{port}.{number}", 0, port, number, {"serial": serial or f"S{number}", "state": "online", **values})


FLEET = [onu(number) for number in range(1, 11)]
# The same customers, each at another place. One of them was not connected again.
MIXED = [onu(number, f"S{11 - number}", port=2) for number in range(2, 11)]


class Desk(RunDesk):
    """Runs on OLT-CENTRAL-01, five minutes apart."""

    def __init__(self, kind=JobKind.DISCOVERY):
        self.now = T0
        super().__init__("Discovery", kind)
        SnmpJob.objects.update(kind=kind)

    def read(self, *readings, is_whole=True, **more):
        self.now += 5 * MIN
        self.write(*readings, now=self.now, is_whole=is_whole and bool(readings), **more)

    def replace(self, **new):
        self.now += MIN
        olt = self.olt
        olt.is_being_replaced = True
        for name, value in {"host": "10.0.9.9", "community": "of-the-new-one", **new}.items():
            setattr(olt, name, value)
        replace_device(olt, ["host", "brand", "community", *new], self.now)
        # The requested discovery is the next run of this desk.
        if WorkflowNode.objects.filter(pk=self.node.id, run_requested_at__isnull=False).update(run_requested_at=None):
            self.start()

    @property
    def olt(self):
        return Olt.objects.get(pk=self.world.olt_id)


@pytest.fixture
def desk(db):
    return Desk()


def rows():
    return {each.serial: each for each in Onu.objects.all()}


def test_every_onu_keeps_its_row_at_its_new_place(desk):
    desk.read(*FLEET)
    before = rows()

    desk.replace()
    desk.read(*MIXED)

    after = rows()
    assert {serial: each.pk for serial, each in after.items()} == {serial: each.pk for serial, each in before.items()}
    assert (after["S3"].port, after["S3"].onu, after["S3"].moved_from) == (2, 8, "0/1/3")
    assert not after["S3"].place_taken
    assert not any(each.is_missing or each.replaced_by_id for each in after.values())
    assert desk.olt.suspect_since is None


def test_an_onu_at_the_same_place_has_not_moved(desk):
    desk.read(*FLEET)

    desk.replace()
    desk.read(*FLEET)

    assert not OnuEvent.objects.filter(field="place").exists()
    assert {each.moved_at for each in rows().values()} == {None}
    assert not Onu.objects.filter(place_taken=True).exists()


def test_only_repeated_whole_discoveries_of_the_new_device_make_an_onu_missing(desk):
    desk.read(*FLEET)
    desk.replace()

    desk.read(completeness=Completeness.EMPTY)
    desk.read(*MIXED, is_whole=False)
    desk.read(*MIXED)
    assert rows()["S10"].is_unplaced

    desk.read(*MIXED)

    assert rows()["S10"].is_missing
    assert OnuEvent.objects.get(field="presence", new="missing").onu.serial == "S10"
    assert desk.olt.suspect_since is None


def test_half_of_the_customers_come_back_without_a_suspicion(desk):
    desk.read(*FLEET)
    desk.replace()

    desk.read(*MIXED[:3])
    assert desk.olt.suspect_since is None
    desk.read(*MIXED)

    assert Onu.objects.filter(missing_since=None, place_taken=False).count() == 9


def test_an_onu_that_comes_back_late_continues_its_row(desk):
    desk.read(*FLEET)
    before = rows()["S10"].pk
    desk.replace()
    desk.read(*MIXED)
    desk.read(*MIXED)

    desk.read(*MIXED, onu(1, "S10", port=3))

    back = Onu.objects.get(pk=before)
    assert (back.port, back.is_missing, back.place_taken) == (3, False, False)


def test_a_run_without_serials_does_not_invent_onus_before_the_discovery(desk):
    desk.read(*FLEET)
    desk.replace()

    states = [Reading(each.index, 0, 2, each.onu, {"state": "online"}) for each in MIXED]
    desk.now += 5 * MIN
    desk.write(*states, now=desk.now, kind=JobKind.TABLE)
    assert Onu.objects.count() == 10
    desk.read(*MIXED)

    assert Onu.objects.count() == 10
    assert not Onu.objects.exclude(missing_since=None).exists()


def test_nothing_is_asked_of_an_onu_before_it_is_found(desk):
    desk.read(*FLEET)
    desk.replace()
    assert desk.known() == []

    desk.read(*MIXED)

    assert {each.serial for each in desk.known()} == {f"S{number}" for number in range(1, 10)}


def test_what_a_run_read_from_the_old_device_is_not_stored(desk):
    desk.read(*FLEET)
    result = desk.result(*[onu(number, f"X{number}") for number in range(1, 11)])

    desk.replace()

    with pytest.raises(LeaseLost):
        desk.deliver(result)
    assert not Onu.objects.filter(serial__startswith="X").exists()
    assert not Execution.objects.filter(status="RUNNING").exclude(pk=desk.execution_id).exists()


def test_what_was_learned_about_the_old_device_is_forgotten(desk):
    desk.read(*FLEET)
    Olt.objects.update(
        learned={"size": 40}, extra={"uptime": 7}, failures=9, breaker_opened_at=T0, reachability="unreachable",
        last_error="no answer", suspect_since=T0, suspect_reason="missing",
    )  # fmt: skip
    WorkflowNode.objects.update(durations={"mean": 300}, blank_runs={"rx_dbm": 9})

    desk.replace()

    olt, node = desk.olt, WorkflowNode.objects.get()
    assert (olt.learned, olt.extra, olt.failures, olt.last_error) == ({}, {}, 0, "")
    assert (olt.breaker_opened_at, olt.suspect_since, olt.reachability) == (None, None, "unknown")
    assert (node.durations, node.blank_runs) == ({}, {})
    assert (olt.community.reveal(), olt.host) == ("of-the-new-one", "10.0.9.9")


def test_another_brand_brings_its_own_jobs_and_the_discovery_first(desk):
    desk.read(*FLEET)

    desk.replace(brand="zte_c300")

    nodes = WorkflowNode.objects.select_related("job")
    assert {node.job.brand for node in nodes} == {"zte_c300"}
    assert [node.job.kind for node in nodes if node.run_requested_at] == ["discovery"]
    assert "ZTE" in desk.olt.replacements.get().headline


def test_an_unknown_brand_is_identified(desk):
    desk.read(*FLEET)

    desk.replace(brand="")

    assert [node.job.kind for node in WorkflowNode.objects.select_related("job")] == ["identify"]


OLD, NEW = 5_000_000, 900_000_000_000


@pytest.mark.parametrize("is_closed", [False, True], ids=["open day", "closed day"])
@pytest.mark.parametrize("at", [T0, T0.replace(hour=23, minute=49)], ids=["at noon", "before midnight"])
def test_the_counters_of_another_device_are_no_traffic(desk, at, is_closed):
    desk.now = at
    desk.read(*[onu(number, in_octets=OLD + number, out_octets=0) for number in range(1, 11)])
    desk.replace()

    for count in range(2):
        desk.read(*[onu(number, in_octets=NEW + 1000 * count, out_octets=0) for number in range(1, 11)])
    end = desk.now
    if is_closed:
        for day in (at, at + DAY):
            history.close(history.RAW, desk.olt.pk, history.start_of_day(day))

    pk = rows()["S3"].pk
    lines = onu_history(Onu.objects.get(pk=pk), Period(at - MIN, end + MIN)).lines
    by_hour = series(pk, ["in_octets"], at - MIN, end, timedelta(hours=1))
    by_day = series(pk, ["in_octets"], at - MIN, end, DAY)
    # Before midnight the two days meet, and the first reading after it has nothing to grow from.
    assert [round(rate * 300 / 8) for _at, rate in lines["in_octets"]] == [1000]
    for found in (by_hour, by_day):
        assert sum(each["in_octets"]["sum"] for each in found) in (1000, 0)


def test_ports_that_are_empty_now_count_no_onus(desk):
    desk.read(*FLEET)

    desk.replace()
    desk.read(*MIXED, onu(1, "S10", port=2))

    assert list(PonPort.objects.order_by("port").values_list("port", "total")) == [(1, 0), (2, 10)]
