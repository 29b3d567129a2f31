"""Reads the columns of a plan by walking them, group after group, and says how far each one came."""

from collections.abc import Sequence

from facho.engine.brand import Column, Manners
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.harvest import Harvest, Row
from facho.engine.collect.plan import groups
from facho.engine.collect.requester import Requester
from facho.engine.collect.sentences import describe_stop
from facho.engine.collect.walk import TableWalk
from facho.engine.model import JobKind


class Tables:
    """Columns in groups that are walked side by side. A group that fails does not keep the next from its turn."""

    def __init__(
        self,
        columns: Sequence[Column],
        kind: JobKind,
        manners: Manners,
        *,
        harvest: Harvest,
        requester: Requester,
    ) -> None:
        self._groups = [[ColumnWalk(column) for column in group] for group in groups(columns, kind)]
        self._manners = manners
        self._harvest = harvest
        self._requester = requester
        self._rows: list[tuple[ColumnWalk, list[Row]]] = []

    async def read(self) -> None:
        """Walk everything."""
        for group in self._groups:
            await TableWalk(group, self._requester, self._manners).run()

    def store(self, reason: str) -> list[str]:
        """Put what was read into the harvest, and say what was not; `reason` tells why the run ended early."""
        walks = [walk for group in self._groups for walk in group]
        for walk in walks:
            walk.stop(reason)
            self._rows.append((walk, self._harvest.add_column(walk.column, walk.rows)))
        for walk in walks:
            if walk.is_complete:
                self._harvest.fill(walk.column)
        return [self._describe(walk) for walk in walks if walk.stopped]

    def rows_of(self, column: Column | None) -> set[Row] | None:
        """Return all ONUs that a column has; None if it was not read to its end, and so decides nothing."""
        for walk, rows in self._rows:
            if walk.column is column and walk.is_complete:
                return set(rows)
        return None

    def _describe(self, walk: ColumnWalk) -> str:
        where = None if walk.last is None else self._harvest.name_of(walk.column.space, walk.last)
        return describe_stop(walk.column.field, walk.stopped, where, len(walk.rows))
