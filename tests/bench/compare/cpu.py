"""CPU and memory of running processes, from /proc."""

import os
from collections.abc import Iterable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
KILOBYTE = 1024


def seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds of these processes and of all their children, ended ones included."""
    return sum(_seconds(pid) for pid in pids)


def _seconds(pid: int) -> float:
    # The name of the program, in brackets, may contain spaces. Then: own user and system time, that of ended children.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(int(field) for field in fields[11:15]) / TICKS
    return own + sum(_seconds(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def machine_seconds() -> float:
    """Return the CPU seconds of everything that ran on this machine."""
    # user, nice, system, idle, iowait, irq, softirq, ...
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


def megabytes(pids: Iterable[int]) -> float:
    """Return the sum of the resident sizes of these processes."""
    return sum(_kilobytes(pid, "VmRSS:") for pid in pids) / KILOBYTE


def peak_megabytes(pids: Iterable[int]) -> float:
    """Return the sum of the largest resident sizes of these processes."""
    return sum(_kilobytes(pid, "VmHWM:") for pid in pids) / KILOBYTE


def _kilobytes(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
