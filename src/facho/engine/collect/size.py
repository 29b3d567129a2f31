"""How much is asked for in one request of a walk: less after a failure, more again after a while without one."""

# Successes in a row before more is tried again.
PATIENCE = 4
MAX_PATIENCE = 4096

# More columns than this in one request gain nothing: the answer is full anyway.
MAX_COLUMNS = 16


class BulkSize:
    """Repetitions and columns of the next request. Both are always at least 1: asked for 0, some agents hang.

    A failure halves the repetitions, and then the columns. A size that fails
    again soon after it was tried is tried less and less often.
    """

    def __init__(self, repetitions: int, columns: int) -> None:
        self._most = (max(1, repetitions), max(1, min(columns, MAX_COLUMNS)))
        self.repetitions, self.columns = self._most
        self._patience = PATIENCE
        self._successes = 0
        self._has_grown = False

    def shrink(self, asked: int, *, costly: bool = False) -> bool:
        """Halve after a request for `asked` columns failed; False if there is nothing left to halve.

        `costly` says that the failure took timeouts to notice, and not just an answer.
        """
        if self._has_grown:
            self._patience = min(self._patience * (8 if costly else 2), MAX_PATIENCE)
            self._has_grown = False
        self._successes = 0
        if self.repetitions > 1:
            self.repetitions //= 2
            return True
        if asked > 1:
            self.columns = min(self.columns, asked // 2)
            return True
        return False

    def succeeded(self) -> bool:
        """Note a success, and grow when there were enough of them; return whether all seems well again."""
        if (self.repetitions, self.columns) == self._most:
            return True
        self._successes += 1
        if self._successes < self._patience:
            return False
        self._successes = 0
        self._grow()
        return True

    def _grow(self) -> None:
        repetitions, columns = self._most
        self._has_grown = True
        if self.columns < columns:
            self.columns = min(self.columns * 2, columns)
        else:
            self.repetitions = min(self.repetitions * 2, repetitions)
