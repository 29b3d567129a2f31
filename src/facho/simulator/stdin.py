"""Lines from standard input for an event loop, and its end, which means that the parent has ended."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

STDIN = 0


def watch_stdin(loop: asyncio.AbstractEventLoop, on_line: Callable[[str], None], on_end: Callable[[], None]) -> None:
    """Call back in the loop for each line of standard input that is not blank, and when there are no more."""
    # A thread, because a file or /dev/null cannot be awaited in the loop.
    threading.Thread(target=_watch, args=(loop, on_line, on_end), name="stdin", daemon=True).start()


def _watch(loop: asyncio.AbstractEventLoop, on_line: Callable[[str], None], on_end: Callable[[], None]) -> None:
    pending = b""
    # RuntimeError: the loop has ended for another reason.
    with suppress(RuntimeError):
        # Without a standard input its number may belong to another file.
        while sys.stdin and (data := os.read(STDIN, 4096)):
            *lines, pending = (pending + data).split(b"\n")
            _hand_over(loop, lines, on_line)
        _hand_over(loop, [pending], on_line)
        loop.call_soon_threadsafe(on_end)


def _hand_over(loop: asyncio.AbstractEventLoop, lines: list[bytes], on_line: Callable[[str], None]) -> None:
    for line in lines:
        if line.strip():
            loop.call_soon_threadsafe(on_line, line.decode("utf-8", "replace"))
