"""The spool on its disk: in order, whole or not at all, within its limit, and for one process only."""

import signal
import subprocess
import sys

import pytest
from builders import T0, make_node

from facho.adapters.wire import UnreadableMessage, encode_result
from facho.engine.model import Collected, Completeness, Lease, Outcome, Reading, RunResult, Status
from facho.store import spool as module
from facho.store.spool import MOST_REFUSED, NotKept, Spool, SpoolTaken

LEASE = Lease(7, "noc/3", 200)
DONE = Outcome(Status.SUCCESS, readings=1)


def end(execution_id):
    """Return a result without data."""
    return RunResult((execution_id,), DONE, LEASE, T0)


def harvest(execution_id, onus=1):
    """Return a result with the readings of so many ONUs."""
    readings = tuple(Reading(f"1.{onu}", 0, 1, onu, {"rx_dbm": -21.53, "last_up": T0}) for onu in range(onus))
    collected = Collected(Completeness.COMPLETE, readings)
    return RunResult((execution_id,), DONE, LEASE, T0, make_node(1, olt_id=7), collected)


@pytest.fixture
def make_spool(tmp_path):
    """Open the same spool again, as if its process had died."""
    opened = []

    def make(**settings):
        for each in opened:
            each.close()
        opened.append(Spool(tmp_path / "spool" / "1.sqlite3", **settings))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def drain(spool):
    """Take everything out, and return it in order."""
    found = []
    while (number := spool.first()) is not None:
        found.append(spool.read(number))
        spool.remove(number)
    return found


def test_results_come_out_as_they_went_in_and_in_order_also_after_a_restart(make_spool):
    results = [harvest(1), end(1), harvest(2, onus=64), end(2)]
    spool = make_spool()
    for result in results:
        spool.append(result)

    spool = make_spool()
    spool.append(end(3))

    assert len(spool) == 5
    assert drain(spool) == [*results, end(3)]
    assert (len(spool), spool.size, spool.first()) == (0, 0, None)


def test_no_other_user_can_read_it(make_spool):
    spool = make_spool()
    spool.append(harvest(7))

    modes = {path.name: path.stat().st_mode & 0o777 for path in [spool.path.parent, *spool.path.parent.iterdir()]}

    assert modes.pop("spool") == 0o700
    assert set(modes.values()) == {0o600}


def test_at_the_limit_readings_are_refused_and_results_without_them_have_a_reserve(make_spool):
    size = len(encode_result(harvest(1, onus=20)))
    spool = make_spool(limit_bytes=int(size * 16 / 15) + 2)
    spool.append(harvest(1, onus=20))

    with pytest.raises(NotKept, match="the spool is full"):
        spool.append(harvest(2))
    spool.append(end(2))

    assert spool.size <= spool.limit_bytes + len(encode_result(end(2)))
    assert [result.execution_ids for result in drain(spool)] == [(1,), (2,)]


def test_results_that_were_stored_make_room_also_for_the_next_process(make_spool):
    limit = len(encode_result(harvest(1, onus=20))) * 3 // 2
    spool = make_spool(limit_bytes=limit)
    spool.append(harvest(1, onus=20))
    spool = make_spool(limit_bytes=limit)
    with pytest.raises(NotKept):
        spool.append(harvest(2, onus=20))

    spool.remove(spool.first())
    spool.append(harvest(2, onus=20))

    assert [result.execution_ids for result in drain(spool)] == [(2,)]


def limit_pages(spool, pages):
    """Let the disk have room for no more than so many pages."""
    spool._file.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_refuses_readings_and_keeps_no_half_of_them(make_spool):
    spool = make_spool()
    spool.append(end(1))
    limit_pages(spool, spool._file.execute("PRAGMA page_count").fetchone()[0])

    with pytest.raises(NotKept, match="cannot be written: database or disk is full"):
        spool.append(harvest(2, onus=200))

    limit_pages(spool, 2**30)
    spool.append(end(3))
    assert [result.execution_ids for result in drain(make_spool())] == [(1,), (3,)]


def test_results_without_readings_that_no_disk_takes_wait_in_memory_and_in_order(make_spool, monkeypatch):
    monkeypatch.setattr(module, "MOST_HELD", 2)
    spool = make_spool(limit_bytes=len(encode_result(end(1))) + 10)
    for number in (1, 2, 3):
        spool.append(end(number))

    with pytest.raises(NotKept, match="waiting in memory"):
        spool.append(end(4))
    assert len(spool) == 3
    assert [result.execution_ids for result in drain(spool)] == [(1,), (2,), (3,)]
    spool.append(end(5))
    assert [result.execution_ids for result in drain(make_spool())] == [(5,)]


def test_refused_results_are_kept_with_their_reason_the_newest_of_them(make_spool):
    spool = make_spool()
    for number in range(MOST_REFUSED + 2):
        spool.append(end(number))
        spool.refuse(spool.first(), f"reason {number}")

    spool = make_spool()

    assert [reason for _, reason in spool.refused()] == [f"reason {number}" for number in range(2, MOST_REFUSED + 2)]
    assert len(spool) == 0


def test_a_result_that_cannot_be_removed_is_delivered_again_after_a_restart(make_spool):
    spool = make_spool()
    spool.append(end(1))
    spool._file.execute("PRAGMA query_only = ON")

    spool.remove(spool.first())

    assert len(spool) == 0
    assert drain(make_spool()) == [end(1)]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[1, 2]", id="another thing"),
        pytest.param(b'{"at": "2026-03-01T10:00:00+00:00"}', id="half of it"),
        pytest.param(b"\xff\x00", id="not text"),
    ],
)
def test_a_damaged_result_is_unreadable_and_reports_it(make_spool, content):
    spool = make_spool()
    spool.append(end(1))
    with spool._file:
        spool._file.execute("UPDATE results SET body = ?", (content,))

    with pytest.raises(UnreadableMessage):
        spool.read(spool.first())


def test_a_damaged_file_is_set_aside(make_spool, caplog):
    spool = make_spool()
    spool.append(end(1))
    spool.close()
    spool.path.write_bytes(b"this is no database" * 100)

    spool = make_spool()
    spool.append(end(2))

    assert drain(spool) == [end(2)]
    assert spool.path.with_suffix(".damaged").exists()
    assert "is damaged" in caplog.text


def test_a_spool_belongs_to_one_process_and_the_next_one_gets_the_results_of_a_dead_one(tmp_path):
    first = Spool.take(tmp_path)
    first.append(end(1))

    second = Spool.take(tmp_path)
    with pytest.raises(SpoolTaken):
        Spool(first.path)
    first.close()
    third = Spool.take(tmp_path)

    assert [each.path.name for each in (first, second, third)] == ["1.sqlite3", "2.sqlite3", "1.sqlite3"]
    assert drain(third) == [end(1)]
    second.close()
    third.close()


# Adds results until it is killed, and prints the number of each when it is safe on the disk.
WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from facho.engine.model import Outcome, RunResult, Status
from facho.store.spool import Spool
spool = Spool(Path(sys.argv[1]))
for number in range(10**9):
    outcome = Outcome(Status.FAILED, error=f"{number} " * 2000)
    spool.append(RunResult((number,), outcome, None, datetime(2026, 3, 1, 10, tzinfo=UTC)))
    print(number, flush=True)
"""


def test_every_result_that_was_safe_is_there_after_a_kill(make_spool, tmp_path):
    path = tmp_path / "spool" / "1.sqlite3"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
    with writer:
        for _ in range(40):
            printed = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        printed = max([printed, *map(int, writer.stdout.read().split())])

    found = drain(make_spool())

    # The last one may have been safe before it was printed.
    assert len(found) in (printed + 1, printed + 2)
    assert [result.execution_ids[0] for result in found] == list(range(len(found)))
    assert all(result.outcome.error == f"{result.execution_ids[0]} " * 2000 for result in found)


def test_the_file_shrinks_when_results_are_stored(make_spool):
    spool = make_spool()
    for number in range(50):
        spool.append(harvest(number, onus=100))
    full = spool.path.stat().st_size

    drain(spool)

    assert spool.path.stat().st_size < full / 10
