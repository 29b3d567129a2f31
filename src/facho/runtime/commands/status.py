"""How these commands end. Scripts read the exit status; people read the sentence."""

from facho.engine.model import Completeness

COMPLETE = 0
# What was asked for cannot be done: a bad option, a broken profile. argparse uses the same number.
USAGE = 2
PARTIAL = 3
UNREACHABLE = 4
# What the shell says of a command that was stopped by Ctrl-C.
STOPPED = 130


class CommandError(Exception):
    """Ends a command with a sentence and an exit status."""

    def __init__(self, sentence: str, status: int = USAGE) -> None:
        super().__init__(sentence)
        self.status = status


def of(completeness: Completeness) -> int:
    """Return the status of a reading. An OLT without ONUs that said so has been read completely."""
    return PARTIAL if completeness is Completeness.PARTIAL else COMPLETE
