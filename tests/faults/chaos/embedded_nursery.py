"""Gives birth to embedded engines: each is a process of its own, and ready in a moment, for all is loaded already.

`python embedded_nursery.py` reads lines from standard input. For each one it
forks an engine as `facho run` is one, and answers with the number of the
process. Engines end when their nursery does.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    from facho.runtime.cli import prepare

    config = prepare()
    # Loaded here once, so that no engine has to.
    from facho.runtime import embedded, logs
    from facho.runtime.lock import EngineLock

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        pid = os.fork()
        if pid:
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        logs.configure(config)
        with EngineLock(config):
            embedded.serve(config, on_ready=lambda: sys.stderr.write("ready\n"))
        os._exit(0)


if __name__ == "__main__":
    main()
