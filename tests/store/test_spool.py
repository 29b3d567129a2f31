"""The spool on its disk: in order, whole or not at all, within its limit, and one process's alone."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from facho.store import spool as module
from facho.store.spool import MOST_REFUSED, NotKept, Spool, SpoolTaken


@pytest.fixture
def make_spool(tmp_path):
    """Open the spool of a folder, as often as a process dies."""
    opened = []

    def make(**settings):
        if opened:
            # What the system does when a process dies.
            os.close(opened.pop()._lock)
        opened.append(Spool(tmp_path / "spool", **settings))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def drain(spool):
    """Take everything out, and return it in order."""
    found = []
    while (number := spool.first()) is not None:
        found.append((spool.label(number), spool.read(number)))
        spool.remove(number)
    return found


def files(spool):
    return sorted(path.name for path in spool.folder.iterdir() if path.is_file() and path.name != "lock")


def test_what_went_in_comes_out_in_order_also_after_a_restart(make_spool):
    spool = make_spool()
    for number in range(12):
        spool.append(f"end-{number}", b"%d" % number)

    spool = make_spool()
    spool.append("end-12", b"12")

    assert len(spool) == 13
    assert drain(spool) == [(f"end-{number}", b"%d" % number) for number in range(13)]
    assert (len(spool), spool.size, files(spool)) == (0, 0, [])


def test_nobody_else_may_look_into_it(make_spool):
    spool = make_spool()
    spool.append("harvest-7", b"{}")

    modes = {path.name: path.stat().st_mode & 0o777 for path in [spool.folder, *spool.folder.iterdir()]}

    assert modes == {"spool": 0o700, "refused": 0o700, "lock": 0o600, "000000000001-harvest-7.json": 0o600}


def test_what_was_never_finished_and_what_is_no_entry_is_not_taken_for_one(make_spool):
    spool = make_spool()
    spool.append("end-1", b"whole")
    (spool.folder / "000000000002-end-2.tmp").write_bytes(b"ha")
    (spool.folder / "notes.json").write_bytes(b"of an operator")

    spool = make_spool()

    assert files(spool) == ["000000000001-end-1.json", "notes.json"]
    assert drain(spool) == [("end-1", b"whole")]


def test_at_the_limit_harvests_are_refused_and_what_is_small_has_a_reserve(make_spool):
    spool = make_spool(limit_bytes=1600)
    spool.append("harvest-1", b"x" * 1500)

    with pytest.raises(NotKept, match="the spool is full"):
        spool.append("harvest-2", b"x")
    spool.append("end-1", b"x" * 100, is_small=True)
    with pytest.raises(NotKept):
        spool.append("end-2", b"x", is_small=True)

    assert [label for label, _ in drain(spool)] == ["harvest-1", "end-1"]


def test_what_has_landed_makes_room_also_for_a_process_that_comes_after(make_spool):
    spool = make_spool(limit_bytes=1600)
    spool.append("harvest-1", b"x" * 1500)
    spool = make_spool(limit_bytes=1600)
    with pytest.raises(NotKept):
        spool.append("harvest-2", b"x" * 1500)

    spool.remove(spool.first())
    spool.append("harvest-2", b"x" * 1500)

    assert [label for label, _ in drain(spool)] == ["harvest-2"]


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FullDisk:
    """A disk that takes the first half of what is written."""

    def __init__(self, *how):
        self._file = open(*how)  # noqa: SIM115 - it is closed as the file is that it stands in for

    def write(self, data):
        self._file.write(data[: len(data) // 2])
        self._file.flush()
        no_space()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


@pytest.mark.parametrize("step", ["write", "fsync", "replace", "sync_folder"])
def test_a_disk_that_is_full_refuses_an_entry_and_keeps_no_half_of_it(make_spool, monkeypatch, step):
    spool = make_spool()
    spool.append("end-1", b"before")
    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(module, "open", FullDisk, raising=False)
        elif step == "fsync":
            patch.setattr(os, "fsync", no_space)
        elif step == "replace":
            patch.setattr(Path, "replace", no_space)
        else:
            patch.setattr(module, "_sync_folder", no_space)
        with pytest.raises(NotKept, match="cannot be written: No space left on device"):
            spool.append("harvest-7", b"x" * 1000)
    size = spool.size

    spool.append("end-2", b"behind")

    assert size == len(b"before")
    assert files(spool) == ["000000000001-end-1.json", "000000000003-end-2.json"]
    assert [data for _, data in drain(make_spool())] == [b"before", b"behind"]


def test_what_no_disk_takes_waits_in_memory_and_in_order(make_spool, monkeypatch):
    monkeypatch.setattr(module, "MOST_HELD", 2)
    spool = make_spool()
    spool.append("end-1", b"on the disk")

    spool.hold("end-2", b"in memory")
    spool.append("end-3", b"on the disk again")
    spool.hold("end-4", b"in memory again")

    with pytest.raises(NotKept):
        spool.hold("end-5", b"too much")
    assert [label for label, _ in drain(spool)] == ["end-1", "end-2", "end-3", "end-4"]
    spool.hold("end-6", b"in memory once more")
    assert drain(spool) == [("end-6", b"in memory once more")]


def test_what_is_refused_is_set_aside_and_remembered_the_newest_of_it(make_spool):
    spool = make_spool()
    for number in range(MOST_REFUSED + 2):
        spool.append(f"harvest-{number}", b"?")
        spool.refuse(spool.first())
    spool.hold("end-99", b"from memory")
    spool.refuse(spool.first())

    spool = make_spool()
    spool.append("end-7", b"new")

    assert spool.refused_labels() == [*(f"harvest-{number}" for number in range(3, MOST_REFUSED + 2)), "end-99"]
    assert (spool.folder / "refused" / spool.refused()[-1]).read_bytes() == b"from memory"
    # Its number is not one that was there before: names in both folders are about one thing only.
    assert files(spool) == [f"{MOST_REFUSED + 4:012}-end-7.json"]


def test_a_file_that_cannot_be_removed_is_forgotten_until_the_next_start(make_spool, monkeypatch):
    spool = make_spool()
    spool.append("end-1", b"landed")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", no_space)
        spool.remove(spool.first())

    assert len(spool) == 0
    assert [label for label, _ in drain(make_spool())] == ["end-1"]


def test_a_spool_is_one_processs_alone_and_what_a_dead_one_left_goes_to_the_next(tmp_path):
    first = Spool.take(tmp_path)
    first.append("end-1", b"left behind")

    second = Spool.take(tmp_path)
    with pytest.raises(SpoolTaken):
        Spool(first.folder)
    first.close()
    third = Spool.take(tmp_path)

    assert [each.folder.name for each in (first, second, third)] == ["1", "2", "1"]
    assert drain(third) == [("end-1", b"left behind")]
    second.close()
    third.close()


# Puts entries in for ever, and says of each that it is safe.
WRITER = """
import sys
from pathlib import Path
from facho.store.spool import Spool
spool = Spool(Path(sys.argv[1]))
for number in range(10**9):
    spool.append(f"harvest-{number}", b"%d " % number * 2000)
    print(number, flush=True)
"""


def test_whatever_was_safe_is_there_after_a_kill(make_spool, tmp_path):
    writer = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "spool"], stdout=subprocess.PIPE, text=True)
    with writer:
        for _ in range(40):
            said = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        said = max([said, *map(int, writer.stdout.read().split())])

    found = drain(make_spool())

    # One may have been safe that it had no time to tell of.
    assert len(found) in (said + 1, said + 2)
    assert found == [(f"harvest-{number}", b"%d " % number * 2000) for number in range(len(found))]
