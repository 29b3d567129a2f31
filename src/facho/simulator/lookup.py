"""Lookup of the variables of one request in a MIB, with the faults of the table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facho.adapters.snmp.codec import encode_varbind
from facho.engine.oid import Oid
from facho.engine.snmp import ErrorStatus, Missing, Tag, Version
from facho.simulator.faults import Disorder, Faults
from facho.simulator.mib import Mib, Place
from facho.simulator.recorded import RecordedMib


class Fails(Exception):  # nothing of ours went wrong: the agent reports an error
    """The whole request gets an error status."""

    def __init__(self, status: ErrorStatus, index: int) -> None:
        super().__init__(status, index)
        self.status = status
        self.index = index


class Dies(Exception):  # a fault that is played, not one that happened
    """No answer from here on."""


class NoReply(Exception):  # a fault that is played, not one that happened
    """The whole request gets no answer."""


@dataclass(frozen=True, slots=True)
class Poison:
    """Bad ONUs by number, which make a request fail, and the column; None: all columns."""

    gen_err: int | None = None
    silent: int | None = None
    column: Oid | None = None


class Lookup:
    """Reads for one request. `number` is the position of a variable, from 1, for error indexes."""

    def __init__(
        self, mib: Mib | RecordedMib, version: Version, faults: Faults, poison: Poison | None, now: float
    ) -> None:
        self._mib = mib
        self._is_v1 = version == Version.V1
        self._faults = faults
        self._poison = poison
        self._dies_at = faults.dies_at_row
        self._trips = poison is not None or self._dies_at is not None
        self._now = now
        # ONUs whose optics were read.
        self.lit: set[int] = set()

    def get(self, number: int, oid: Oid) -> bytes:
        """Return the variable of this name, or the kind of exception."""
        place = self._mib.find(oid)
        if place and not self._is_hidden(place) and not self._is_absent(place):
            return self._read(place, number)
        if self._is_v1:
            raise Fails(ErrorStatus.NO_SUCH_NAME, number)
        missing = Missing.NO_SUCH_OBJECT if self._mib.column_of(oid) is None else Missing.NO_SUCH_INSTANCE
        return encode_varbind(oid, missing.value, missing)

    def get_next(self, number: int, oid: Oid) -> bytes:
        """Return the variable after this name."""
        place = self._after(oid)
        while place and self._is_hidden(place):
            place = self._present(self._mib.skip_column(place))
        if place:
            return self._read(place, number)
        if self._is_v1:
            raise Fails(ErrorStatus.NO_SUCH_NAME, number)
        return _end_of_mib(oid)

    def bulk(self, oids: Sequence[Oid], once: int, repetitions: int) -> Iterator[bytes]:
        """Yield the first `once` variables, then the others row by row, until all are at the end."""
        for number, oid in enumerate(oids[:once], 1):
            yield self.get_next(number, oid)
        names = list(oids[once:])
        places = [self._after(oid) for oid in names]
        for _ in range(repetitions if names else 0):
            is_last = not any(places)
            for at, place in enumerate(places):
                if place is None:
                    yield _end_of_mib(names[at])
                    continue
                yield self._read(place, once + at + 1)
                places[at] = following = self._step(place)
                if following is None:
                    names[at] = self._mib.columns[place[0]].name(place[1])
            if is_last:
                return

    def _read(self, place: Place, number: int) -> bytes:
        row = place[1]
        column = self._mib.columns[place[0]]
        rows = column.rows
        if self._trips and rows.of_onus:
            self._trip(row, rows.subjects[row], column.prefix, number)
        if column.optical:
            self.lit.add(rows.subjects[row])
        return column.varbind(row, self._now)

    def _trip(self, row: int, onu: int, prefix: Oid, number: int) -> None:
        """Fail at a row that the agent cannot read."""
        if self._dies_at is not None and row >= self._dies_at:
            raise Dies
        poison = self._poison
        if poison is None or (poison.column is not None and not prefix.startswith(poison.column)):
            return
        if onu == poison.silent:
            raise NoReply
        if onu == poison.gen_err:
            raise Fails(ErrorStatus.GEN_ERR, number)

    def _is_hidden(self, place: Place) -> bool:
        """Return whether version 1 cannot show it: it has no 64-bit counters (RFC 3584, 4.2.2.1)."""
        return self._is_v1 and self._mib.columns[place[0]].is_counter64(place[1])

    def _is_absent(self, place: Place) -> bool:
        return self._mib.is_sparse and self._mib.columns[place[0]].is_absent(place[1], self._now)

    def _after(self, oid: Oid) -> Place | None:
        place = self._mib.find(oid)
        return self._step(place) if place else self._present(self._mib.after(oid))

    def _step(self, place: Place) -> Place | None:
        """Return the next place, as the agent sees it."""
        if self._faults.disorder and self._mib.columns[place[0]].rows.of_onus:
            rows = len(self._mib.columns[place[0]].rows)
            row = _disordered(self._faults.disorder, place[1], self._faults.disorder_at_row - 1, rows)
            following = (place[0], row) if row < rows else self._mib.skip_column((place[0], rows - 1))
        else:
            following = self._mib.step(place)
        return self._present(following) if self._mib.is_sparse else following

    def _present(self, place: Place | None) -> Place | None:
        """Return this place, or the next existing one at this time."""
        while place and self._is_absent(place):
            place = self._mib.step(place)
        return place


def _disordered(disorder: Disorder, row: int, at: int, rows: int) -> int:
    """Return the row after `row` for an agent that fails after the row `at`."""
    if disorder is Disorder.SWAP and at + 2 < rows:
        return {at: at + 2, at + 2: at + 1, at + 1: at + 3}.get(row, row + 1)
    if disorder is Disorder.LOOP and row == at:
        return 0
    if disorder is Disorder.REPEAT and row == at:
        return row
    return row + 1


def _end_of_mib(oid: Oid) -> bytes:
    return encode_varbind(oid, Tag.END_OF_MIB_VIEW, Missing.END_OF_MIB_VIEW)
