"""Finds out which of several columns makes a request fail, by asking parts of them."""

from collections import deque

from facho.engine.collect.column import ColumnWalk

# When so many columns were found guilty of one row, and the others fail again, it is the row: all of it.
ENOUGH = 2


class Inquiry:
    """Halves what failed until the guilty column stands alone; where the agent names one, it is asked first.

    It may find nobody: then the request had too many columns, not a bad one.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._parts: deque[list[ColumnWalk]] = deque()
        self._accused: ColumnWalk | None = None
        self._trusts_accusations = True
        self._guilty = 0
        # The fewest columns that failed together.
        self._fewest = 0

    def next_part(self) -> list[ColumnWalk]:
        """Return the columns to ask now; none if there is nothing left to ask."""
        return self._parts.popleft() if self._parts else []

    def look_into(self, together: list[ColumnWalk], error_index: int) -> bool:
        """Go into a failure of several columns; False if there is nothing to find out any more: all are guilty.

        `error_index` counts from 1, as agents do; 0 accuses nobody.
        """
        self.is_open = True
        if self._guilty >= ENOUGH:
            return False
        if self._trusts_accusations and 0 < error_index <= len(together):
            self._accused = together[error_index - 1]
            self._parts.extendleft([[walk for walk in together if walk is not self._accused], [self._accused]])
            return True
        self._fewest = min(self._fewest or len(together), len(together))
        middle = len(together) // 2
        self._parts.extendleft([together[middle:], together[:middle]])
        return True

    def ask_again(self, walk: ColumnWalk) -> None:
        """Ask for one column once more, in another way, before it is judged."""
        self.is_open = True
        self._parts.appendleft([walk])

    def acquit(self, together: list[ColumnWalk]) -> None:
        """Note that these answered. An agent that accused one of them wrongly is not believed again."""
        if together == [self._accused]:
            self._trusts_accusations = False
        self._accused = None

    def convict(self) -> None:
        """Note that a column was at fault, and has been dealt with."""
        self._guilty += 1
        self._accused = None

    def close(self) -> int:
        """End the inquiry; return how many columns were too many for the agent, or 0 if that was not it."""
        too_many = 0 if self._guilty else self._fewest
        self.is_open = False
        self._guilty = self._fewest = 0
        return too_many
