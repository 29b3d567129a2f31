"""Runs reach a time series store exactly as they were stored, whichever process dies in between."""

import asyncio
import random
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from builders import HOUR, MIN, T0, make_node
from django.conf import settings as django_settings
from django.db import connection, transaction

from contracts.worlds import Inline, done
from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import HistoryRun, Onu, OutboxRun
from facho.engine.batch import UNREAD, Batch
from facho.engine.chunks import FIELDS, RunColumns, decode, pack_run
from facho.engine.events import Event
from facho.engine.model import Collected, Completeness, JobKind, RawOid, Reading
from facho.engine.observer import Observer
from facho.engine.presence import Rules
from facho.engine.remote_write import ONU_METRICS, STATE_CODES
from facho.store import outbox, push
from facho.store.inventory import Inventory
from facho.store.push import SETTLES_AFTER, Push
from facho.store.runs import write_collected
from remote_write_reader import REFUSED, UNAVAILABLE, Store

pytestmark = pytest.mark.django_db

RULES = Rules(misses=2, mass=100)
PLACE = (("port", "1"), ("serial", "S1"), ("slot", "0"))


class Time:
    """A clock that goes on when somebody sleeps."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return T0 + timedelta(seconds=self.seconds)

    def monotonic(self):
        return self.seconds

    async def sleep(self, seconds):
        self.seconds += seconds


class Tally(Observer):
    def __init__(self):
        self.values, self.failures, self.drops, self.waiting = 0, [], {}, (0, 0.0)

    def values_pushed(self, values, seconds):
        self.values += values

    def push_failed(self, reason):
        self.failures.append(reason)

    def push_dropped(self, reason, runs):
        self.drops[reason] = self.drops.get(reason, 0) + runs

    def push_waits(self, runs, seconds):
        self.waiting = runs, seconds


class World:
    """An OLT whose runs are stored, and the sender beside it."""

    def __init__(self):
        self.clock = Time()
        self.store = Store(self.clock)
        self.tally = Tally()
        self.olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
        self.inventory = Inventory.load(self.olt.pk)
        self.restart()

    def restart(self):
        """Start another sender: the last one was killed."""
        self.push = Push(client=self.store, thread=Inline(), clock=self.clock, hours=24, observer=self.tally)

    def run(self, *readings, absent=None, is_single=False, oids=()):
        collected = Collected(Completeness.COMPLETE, Batch.of(readings), absent=tuple(absent or ()))
        kind = JobKind.TABLE if absent is None else JobKind.DISCOVERY
        node = replace(make_node(olt_id=self.olt.pk), kind=kind, oids=tuple(oids))
        write_collected(self.inventory, node, collected, RULES, self.clock.now(), is_single=is_single)
        self.clock.seconds += 0.25

    def steps(self, count=1):
        for _ in range(count):
            self.clock.seconds += done(self.push.step())

    def settle(self):
        """Let the sender work until the outbox is empty."""
        for _ in range(200):
            self.steps()
            if not OutboxRun.objects.exists():
                return
        raise AssertionError(f"{OutboxRun.objects.count()} runs are still in the outbox")


@pytest.fixture
def world(db, settings):
    settings.CONFIG = replace(django_settings.CONFIG, tsdb_url="http://127.0.0.1:1/api/v1/write")
    return World()


def onu(number, port=1, **values):
    return Reading(f"{port}.{number}", 0, port, number, {"serial": f"S{number}", **values})


def stored():
    """Return the samples of ONUs that the history has, by metric, id and time."""
    found = {}
    for at, data in HistoryRun.objects.values_list("at", "data"):
        run = RunColumns(bytes(data))
        for name in run.forms:
            for pk, cell in zip(run.onu_ids, decode(FIELDS[name], run.column(name)), strict=True):
                if cell is not None and cell is not UNREAD:
                    value = STATE_CODES[cell] if name == "state" else float(cell)
                    found[ONU_METRICS[name], pk, int(at.timestamp() * 1000)] = value
    return found


def sent(world):
    """Return the same of the store, by the serials of the ONUs."""
    ids = dict(Onu.objects.values_list("serial", "pk"))
    metrics = {ONU_METRICS[name] for name in FIELDS}
    rows = ((dict(labels), at, value) for (labels, at), value in world.store.kept.items())
    return {(row["__name__"], ids[row["serial"]], at): value for row, at, value in rows if row["__name__"] in metrics}


def fleet(minute, onus=20):
    """Return readings that differ from minute to minute."""
    return [
        onu(n, 1 + n % 2, state="los" if n == minute % 7 else "online", rx_dbm=-20 - (n + minute) / 100, in_octets=n)
        for n in range(onus)
    ]


class TestWhatIsSent:
    def test_every_field_of_an_onu_is_a_series_of_its_own(self, world):
        values = {"rx_dbm": -21.53, "tx_dbm": 2.1, "olt_rx_dbm": -23.0, "temperature_c": 41.5, "voltage_v": 3.27}
        world.run(onu(1, state="los", distance_m=1234, in_octets=10**12, out_octets=7, **values, name="client"))

        world.settle()

        found = {
            dict(labels)["__name__"]: value
            for (labels, _), value in world.store.kept.items()
            if ("serial", "S1") in labels
        }
        assert found == {
            "facho_onu_state": 3.0,
            "facho_onu_rx_dbm": -21.53,
            "facho_onu_tx_dbm": 2.1,
            "facho_onu_olt_rx_dbm": -23.0,
            "facho_onu_temperature_celsius": 41.5,
            "facho_onu_voltage_volts": 3.27,
            "facho_onu_distance_meters": 1234.0,
            "facho_onu_in_octets_total": 1e12,
            "facho_onu_out_octets_total": 7.0,
        }
        assert list(world.store.values("facho_onu_state")) == [(("olt", "OLT-CENTRAL-01"), ("onu", "1"), *PLACE)]

    def test_raw_oids_stay_in_the_history(self, world):
        fans = RawOid("fans", (1, 3, 6), "number")
        world.run(onu(1, state="online", fans=4), oids=[fans])

        world.settle()

        assert "oid.fans" in RunColumns(bytes(HistoryRun.objects.get().data)).forms
        assert {dict(labels)["__name__"] for labels, _ in world.store.kept if ("serial", "S1") in labels} == {
            "facho_onu_state"
        }

    def test_a_port_has_its_onus_by_state_and_its_powers(self, world):
        powers = {1: -20.0, 2: -28.0, 3: None}
        states = {1: "online", 2: "online", 3: "dying_gasp"}
        world.run(*(onu(n, state=states[n], rx_dbm=powers[n]) for n in powers), onu(9, 2, state="los", rx_dbm=None))

        world.settle()

        def of(name, port, **more):
            labels = {"olt": "OLT-CENTRAL-01", "port": port, "slot": "0", **more}
            return world.store.values(name).get(tuple(sorted(labels.items())))

        assert of("facho_port_onus", "1", state="online") == [2.0]
        assert of("facho_port_onus", "1", state="dying_gasp") == [1.0]
        assert of("facho_port_onus", "1", state="los") == [0.0]
        assert of("facho_port_onus", "2", state="los") == [1.0]
        assert of("facho_port_weak_onus", "1") == [1.0]
        assert of("facho_port_rx_min_dbm", "1") == [-28.0]
        assert of("facho_port_rx_mean_dbm", "1") == [-24.0]
        assert of("facho_port_rx_min_dbm", "2") is None

    def test_the_read_of_one_onu_says_nothing_of_its_port(self, world):
        world.run(onu(1, state="online", rx_dbm=-20.0), onu(2, state="online", rx_dbm=-22.0))
        world.run(onu(2, state="los", rx_dbm=-30.0), is_single=True)

        world.settle()

        (means,) = world.store.values("facho_port_rx_mean_dbm").values()
        assert means == [-21.0]
        assert sorted(map(len, world.store.values("facho_onu_rx_dbm").values())) == [1, 2]

    def test_an_unread_value_and_one_that_is_none_are_not_sent(self, world):
        world.run(onu(1, state="online", rx_dbm=-20.0), onu(2, rx_dbm=None), onu(3, state="los"))

        world.settle()

        assert sent(world) == stored()
        assert len(sent(world)) == 3

    def test_an_onu_without_a_place_has_its_index(self, world):
        world.run(Reading("4194304.7", None, None, None, {"mac": "00:11:22:33:44:55", "state": "online"}))

        world.settle()

        labels = (("olt", "OLT-CENTRAL-01"), ("onu", "4194304.7"), ("serial", "00:11:22:33:44:55"))
        assert world.store.values("facho_onu_state") == {labels: [1.0]}

    @pytest.mark.parametrize(
        "text", ['a"b\\c\n{x="y"} 1', "ñandú 中文 \U0001f600", "\x1b[31m\u202e", "x" * 64, " "], ids=range(5)
    )
    def test_hostile_names_and_serials_stay_one_label(self, world, text):
        Olt.objects.filter(pk=world.olt.pk).update(name=text)
        world.run(Reading("1.1", 0, 1, 1, {"serial": text, "state": "online"}))

        world.settle()

        serial = Onu.objects.get().serial
        labels = {"olt": text, "onu": "1", "port": "1", "serial": serial, "slot": "0"}
        assert world.store.values("facho_onu_state") == {tuple(sorted(labels.items())): [1.0]}

    def test_nothing_is_kept_without_a_store(self, world, settings):
        settings.CONFIG = replace(django_settings.CONFIG, tsdb_url="")

        world.run(onu(1, state="online"))

        assert not OutboxRun.objects.exists()
        assert HistoryRun.objects.count() == 1


class TestLabelsOfTheTime:
    def test_a_late_run_has_the_place_of_its_time(self, world):
        world.run(onu(1, state="online"), onu(2, state="online"), absent=[])
        world.run(Reading("5.9", 0, 5, 9, {"serial": "S1", "state": "online"}), absent=["1.1"])

        world.settle()

        places = {
            dict(labels)["port"] for labels in world.store.values("facho_onu_state") if ("serial", "S1") in labels
        }
        assert places == {"1", "5"}

    def test_a_sender_that_knows_an_onu_follows_its_move(self, world):
        world.run(onu(1, state="online"), absent=[])
        world.settle()
        world.run(Reading("5.9", 0, 5, 9, {"serial": "S1", "state": "online"}), absent=["1.1"])

        world.settle()

        assert [dict(labels)["port"] for labels in world.store.values("facho_onu_state")] == ["1", "5"]

    def test_a_run_that_is_sent_again_after_a_move_is_the_same(self, world):
        world.run(onu(1, state="online", rx_dbm=-20.0), absent=[])
        world.steps()
        world.run(Reading("5.9", 0, 5, 9, {"serial": "S1", "state": "online", "rx_dbm": -21.0}), absent=["1.1"])
        before = dict(world.store.kept)

        world.restart()
        world.settle()

        # Each sample of the first run came twice, and none under other labels.
        assert {key: world.store.kept[key] for key in before} == before
        assert len(world.store.values("facho_onu_rx_dbm")) == 2

    def test_a_renamed_olt_has_new_series(self, world):
        world.run(onu(1, state="online"))
        world.settle()
        Olt.objects.filter(pk=world.olt.pk).update(name="OLT-NORTE-02")
        world.run(onu(1, state="online"))

        world.settle()

        names = [dict(labels)["olt"] for labels in world.store.values("facho_onu_state")]
        assert names == ["OLT-CENTRAL-01", "OLT-NORTE-02"]

    def test_a_new_onu_and_a_first_serial_are_found_without_an_event(self, world):
        world.run(Reading("1.1", 0, 1, 1, {"state": "online"}))
        world.settle()
        world.run(onu(1, state="online"), onu(2, state="online"))
        world.clock.seconds += 61
        world.run(onu(1, state="online"), onu(2, state="online"))

        world.settle()

        serials = [dict(labels).get("serial") for labels in world.store.values("facho_onu_state")]
        assert sorted(map(str, serials)) == ["None", "S1", "S2"]

    def test_the_other_onus_are_sent_if_one_was_deleted(self, world):
        world.run(onu(1, state="online", rx_dbm=-20.0), onu(2, state="los", rx_dbm=None), onu(3, state="online"))
        Onu.objects.filter(serial="S1").delete()

        world.settle()

        assert [dict(labels)["serial"] for labels in world.store.values("facho_onu_state")] == ["S2", "S3"]

    def test_runs_of_a_deleted_olt_are_gone(self, world):
        world.run(onu(1, state="online"))
        world.olt.delete()

        world.steps()

        assert not OutboxRun.objects.exists()
        assert world.store.kept == {}


class TestNothingIsLost:
    def test_a_run_leaves_the_outbox_only_after_a_later_request(self, world):
        world.run(onu(1, state="online"))
        world.steps()
        assert (len(world.store.kept) > 0, OutboxRun.objects.count()) == (True, 1)

        world.clock.seconds += SETTLES_AFTER
        world.steps(2)

        assert not OutboxRun.objects.exists()

    def test_what_a_store_lost_when_it_died_is_sent_again(self, world):
        world.run(*fleet(0))
        world.steps()
        world.store.die()
        assert sent(world) == {}

        world.settle()

        assert sent(world) == stored()

    def test_a_request_that_failed_confirms_nothing(self, world):
        world.run(*fleet(0))
        world.steps()
        world.clock.seconds += SETTLES_AFTER
        world.store.die(flushes_after=60)
        world.store.trouble = UNAVAILABLE
        world.steps(3)
        assert OutboxRun.objects.count() == 1

        world.store.trouble = None
        world.settle()

        assert sent(world) == stored()

    @pytest.mark.parametrize("seed", range(12))
    def test_any_order_of_deaths_ends_with_every_run_in_the_store(self, world, seed):
        chance = random.Random(seed)
        for minute in range(40):
            world.run(*fleet(minute))
            match chance.choice(["store", "facho", "away", "back", "", "", ""]):
                case "store":
                    world.store.die()
                case "facho":
                    world.restart()
                case "away":
                    world.store.trouble = chance.choice([UNAVAILABLE, REFUSED])
                    world.store.die()
                case "back":
                    world.store.trouble = None
            world.steps(chance.randint(0, 3))
            world.clock.seconds += chance.choice([0, 1, 30])
        world.store.trouble = None

        world.settle()

        assert sent(world) == stored()
        assert len(sent(world)) == 40 * 20 * 3

    def test_without_troubles_each_sample_is_sent_once(self, world):
        for minute in range(30):
            world.run(*fleet(minute))
            world.steps()

        world.settle()

        assert set(world.store.times_sent.values()) == {1}
        assert world.tally.values == len(world.store.kept)

    def test_many_runs_go_in_large_batches(self, world, monkeypatch):
        monkeypatch.setattr(push, "LARGEST_REQUEST", 20_000)
        for minute in range(150):
            world.run(*fleet(minute))

        world.steps(3)

        assert sent(world) == stored()
        assert world.store.requests < 150

    def test_an_unavailable_database_is_tried_again(self, world, monkeypatch):
        world.run(*fleet(0))
        with monkeypatch.context() as patch:
            patch.setattr(outbox, "pending", lambda *_: connection.cursor().execute("SELECT nonsense"))
            with transaction.atomic():
                world.steps()
                transaction.set_rollback(True)

        assert sent(world) == {}
        world.settle()
        assert sent(world) == stored()


class TestTroubles:
    def test_an_unavailable_store_is_reported_once_and_tried_less_and_less(self, world, told):
        world.store.trouble = UNAVAILABLE
        world.run(onu(1, state="online"))

        world.steps(12)

        assert told() == [Event.PUSH_INTERRUPTED]
        assert world.clock.seconds > 300
        assert world.store.requests == 12

        world.store.trouble = None
        world.steps(2)

        assert told() == [Event.PUSH_INTERRUPTED, Event.PUSH_RESUMED]
        assert set(world.tally.failures) == {"unavailable"}

    def test_a_wrong_token_drops_nothing(self, world, told):
        world.store.trouble = REFUSED
        world.run(onu(1, state="online"))
        world.steps(5)
        assert told() == [Event.PUSH_REFUSED]

        world.store.trouble = None
        world.settle()

        assert sent(world) == stored()

    def test_a_run_that_is_rejected_does_not_stop_the_others(self, world, told):
        world.store.rejects = ("serial", "S666")
        for minute in range(9):
            world.run(*fleet(minute))
        world.run(onu(666, state="online"))

        world.settle()

        assert len(sent(world)) == 9 * 20 * 3
        assert world.tally.drops == {"rejected": 1}
        world.clock.seconds += 60
        world.steps()
        assert told() == [Event.PUSH_REJECTED]

    def test_a_server_that_rejects_everything_is_reported(self, world, told):
        world.store.rejects = ("slot", "0")
        send = world.store.send

        async def reject_all(body):
            if not done(send(body)) and body == push.NOTHING:
                raise push.BatchRejected("HTTP 400: what is this")

        world.store.send = reject_all
        world.run(onu(1, state="online"))

        world.steps(5)

        assert told() == [Event.PUSH_REFUSED]
        assert OutboxRun.objects.count() == 1

    def test_a_run_that_is_too_old_is_dropped_and_counted(self, world, told):
        world.store.trouble = UNAVAILABLE
        world.run(onu(1, state="online"))
        world.clock.seconds += 25 * HOUR.total_seconds()
        world.run(onu(1, state="los"))

        world.steps()

        assert OutboxRun.objects.count() == 1
        assert world.tally.drops == {"expired": 1}
        assert Event.PUSH_EXPIRED in told()
        assert HistoryRun.objects.count() == 2

    def test_the_backlog_is_measured(self, world):
        world.store.trouble = UNAVAILABLE
        world.run(onu(1, state="online"))
        world.clock.seconds += 5 * MIN.total_seconds()

        world.steps()

        runs, lag = world.tally.waiting
        assert runs == 1
        assert lag == pytest.approx(300.25)

    def test_a_damaged_run_is_left_out(self, world, caplog):
        world.run(onu(1, state="online"))
        OutboxRun.objects.update(data=b"nonsense")
        world.run(onu(2, state="online"))

        world.settle()

        assert [dict(labels)["serial"] for labels in world.store.values("facho_onu_state")] == ["S2"]
        assert "damaged" in caplog.text


@pytest.fixture
def told(caplog):
    """Return the events of the sender so far."""
    caplog.set_level("INFO")

    def events():
        return [record.event for record in caplog.records if getattr(record, "event", None)]

    return events


async def test_a_run_that_is_committed_after_a_later_one_is_sent(make_thread, settings):
    """Ids of concurrent transactions become visible in any order; SQLite has one writer at a time."""
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has concurrent writers")
    first, second, third = (make_thread(name) for name in ("first", "second", "push"))
    olt = await first.run(lambda: Olt.objects.create(name="OLT-1", brand="huawei", host="127.0.0.1", community="c").pk)

    def add(number):
        onu = Onu.objects.create(olt_id=olt, index=f"1.{number}", serial=f"S{number}", first_seen_at=T0, own_read_at=T0)
        data = pack_run([onu.pk], {"state": ["online"]})
        outbox.append(olt, T0 + number * MIN, data, [onu.pk], {}, [])

    store = Store(Time())
    push = Push(client=store, thread=third, clock=store._clock, hours=24)
    added, may_commit = threading.Event(), threading.Event()

    def add_and_wait():
        with transaction.atomic():
            add(1)
            added.set()
            may_commit.wait(30)

    slow = asyncio.ensure_future(first.run(add_and_wait))
    await asyncio.to_thread(added.wait, 30)
    await second.run(lambda: add(2))
    await push.step()
    assert len(store.kept) == 1

    may_commit.set()
    await slow
    await push.step()

    assert sorted(dict(labels)["serial"] for labels, _ in store.kept) == ["S1", "S2"]
