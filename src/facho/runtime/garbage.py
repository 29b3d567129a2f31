"""Garbage collection of every process."""

import gc

# New objects after which cycles are looked for. With Python's own 700 that takes a twentieth of the CPU of a running
# installation, and a third of that of the migrations of a new one.
THRESHOLD = 50_000


def collect_rarely() -> None:
    """Leave what is loaded now to the end of the process, and look for cycles among other objects less often.

    A fleet is millions of objects, and hardly any of them is ever part of a cycle.
    """
    gc.freeze()
    gc.set_threshold(THRESHOLD)
