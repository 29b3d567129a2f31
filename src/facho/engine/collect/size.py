"""How much is asked for in one request of a table: less after a failure, more again after a while without one."""

# Successes in a row before more is tried.
PATIENCE = 4
MAX_PATIENCE = 4096

# Bytes of an answer that fits one datagram on any network. Many agents send no larger one, and where they do
# all of it is lost with any piece: a size beyond this has to wait so many times as long before it is tried.
ONE_DATAGRAM = 1400
CAUTION = 8

# More than these in one request gain nothing: an answer of one datagram is full by then.
MAX_COLUMNS = 16
# Above 50 rows there are agents that leave some out.
MAX_ROWS = 50
MAX_VARIABLES = 256


class Size:
    """Rows and columns of the next request. Both are always at least 1: asked for 0 rows, some agents hang.

    It begins where the maker or an earlier run says, and grows while answers
    succeed. A failure halves the rows, and then the columns; from there it goes
    halfway back towards what failed, until it stands right below. A size that
    fails again soon after it was tried is tried less and less often.
    """

    def __init__(self, rows: int, columns: int, *, is_proven: bool = False) -> None:
        self._most_rows = MAX_ROWS
        self._most_columns = max(1, min(columns, MAX_COLUMNS))
        self._rows = max(1, min(rows, self._most_rows))
        self.columns = self._most_columns
        # The fewest rows that failed, as far as anybody remembers. What an earlier run ended up with
        # is taken to be the most that fits, and is only felt for.
        self._ceiling: int | None = self._rows + 1 if is_proven else None
        self._patience = PATIENCE
        self._successes = 0
        self._has_grown = False
        # How many rows the last answer had, if it was cut short.
        self._cut: int | None = None
        # What it was before it grew, until the new size has been answered once.
        self._before_trial: int | None = None

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def is_on_trial(self) -> bool:
        """Say whether nobody knows yet that the agent can answer so much."""
        return self._before_trial is not None

    @property
    def proven_rows(self) -> int:
        """Return the most rows that were answered, as far as anybody asked."""
        return self._rows if self._before_trial is None else self._before_trial

    def rows_for(self, columns: int) -> int:
        """Return how many rows of so many columns to ask for."""
        return max(1, min(self._rows, MAX_VARIABLES // max(1, columns)))

    def shrink(self, rows: int, columns: int, *, fitting: int = 0, costly: bool = False) -> bool:
        """Ask for less after a request of this size failed; False if there is nothing left to halve.

        `fitting` is how many rows an answer that was cut short did have.
        `costly` says that the failure took timeouts to notice, and not just an answer.
        """
        if self._has_grown:
            self._patience = min(self._patience * (8 if costly else 2), MAX_PATIENCE)
            self._has_grown = False
        self._successes = 0
        self._before_trial = None
        if rows > 1:
            # Others may have met the same, and halved it already.
            self._rows = min(self._rows, max(1, fitting or rows // 2))
            self._ceiling = fitting + 1 if fitting else min(rows, self._ceiling or rows)
            return True
        if columns > 1:
            self.columns = min(self.columns, max(1, columns // 2))
            return True
        return False

    def cut_short(self, rows: int, columns: int, fitting: int) -> None:
        """Ask for no more than fits, once two answers in a row were cut short. One may be chance, and costs nothing."""
        if self._cut is None:
            self._cut = fitting
            return
        fitting, self._cut = max(fitting, self._cut), None
        self.shrink(rows, columns, fitting=fitting)

    def succeeded(self, *, may_grow: bool = True, fitting: int = 0) -> None:
        """Note a success, and grow when there were enough of them.

        `fitting` is how many rows like these should fit one datagram; 0 if nobody knows.
        """
        self._before_trial = self._cut = None
        if self._rows == self._most_rows and self.columns == self._most_columns:
            return
        self._successes += 1
        patience = self._patience * (CAUTION if 0 < fitting <= self._rows else 1)
        if self._successes >= patience and may_grow:
            self._successes = 0
            self._grow(fitting)

    def _grow(self, fitting: int) -> None:
        self._has_grown = True
        if self.columns < self._most_columns:
            self.columns = min(self.columns * 2, self._most_columns)
            return
        wanted = self._rows * 2 if self._ceiling is None else (self._rows + self._ceiling) // 2
        if self._rows < fitting:
            wanted = min(wanted, fitting)
        if wanted <= self._rows:
            # Right below what failed. It may fit by now: only one more, and only once in a while.
            self._ceiling = None
            wanted = self._rows + 1
        self._before_trial = self._rows
        self._rows = min(wanted, self._most_rows)
