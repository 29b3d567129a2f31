"""What a runner has to say, as values that can wait on a disk and be said later. None of them carries a secret."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Protocol

from facho.adapters.wire import UnreadableMessage, from_wire, to_wire
from facho.engine.model import Collected, Lease, Node, Outcome, Status
from facho.engine.ports import Ledger, ReadingSink

# An error may quote anything; what is kept of it where space is scarce.
SHORT_ERROR = 1000


class PatientSink(ReadingSink, Protocol):
    """A sink to which a harvest can be brought that may be there already."""

    async def write_again(
        self, node: Node, execution_id: int, collected: Collected, *, lease: Lease, now: datetime
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Store:
    """Where it is said in the end."""

    sink: PatientSink
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Harvest:
    """`ReadingSink.write`."""

    kind: ClassVar[str] = "harvest"

    node: Node
    execution_id: int
    collected: Collected
    lease: Lease
    now: datetime

    @property
    def execution_ids(self) -> tuple[int, ...]:
        return (self.execution_id,)

    async def say(self, store: Store) -> None:
        await store.sink.write(self.node, self.execution_id, self.collected, lease=self.lease, now=self.now)

    async def say_again(self, store: Store) -> None:
        """Say what may have been heard before; then it is not taken twice."""
        await store.sink.write_again(self.node, self.execution_id, self.collected, lease=self.lease, now=self.now)

    def bare(self) -> "Harvest":
        return self


@dataclass(frozen=True, slots=True)
class Identification:
    """`ReadingSink.identified`."""

    kind: ClassVar[str] = "identification"

    node: Node
    execution_id: int
    brand: str
    seen: Mapping[str, Any]
    lease: Lease

    @property
    def execution_ids(self) -> tuple[int, ...]:
        return (self.execution_id,)

    async def say(self, store: Store) -> None:
        await store.sink.identified(self.node, self.execution_id, self.brand, self.seen, lease=self.lease)

    def bare(self) -> "Identification":
        return self


@dataclass(frozen=True, slots=True)
class End:
    """`Ledger.close`."""

    kind: ClassVar[str] = "end"

    execution_ids: tuple[int, ...]
    outcome: Outcome
    lease: Lease | None
    now: datetime

    async def say(self, store: Store) -> None:
        await store.ledger.close(self.execution_ids, self.outcome, lease=self.lease, now=self.now)

    def bare(self) -> "End":
        return replace(self, outcome=_bare(self.outcome))

    def without_harvest(self, why: str) -> "End":
        """Return the end of an execution whose readings were lost on the way: it brought nothing home."""
        if self.outcome.status not in (Status.SUCCESS, Status.PARTIAL):
            return self
        failed = replace(
            self.outcome, status=Status.FAILED, error=why, error_class="NotKept", readings=0, completeness=None
        )
        return replace(self, outcome=failed)


@dataclass(frozen=True, slots=True)
class Postponement:
    """`Ledger.put_off`."""

    kind: ClassVar[str] = "postponement"

    execution_ids: tuple[int, ...]
    outcome: Outcome
    retry_at: datetime
    lease: Lease
    now: datetime

    async def say(self, store: Store) -> None:
        await store.ledger.put_off(
            self.execution_ids, self.outcome, retry_at=self.retry_at, lease=self.lease, now=self.now
        )

    def bare(self) -> "Postponement":
        return replace(self, outcome=_bare(self.outcome))


Entry = Harvest | Identification | End | Postponement
KINDS: dict[str, type[Harvest] | type[Identification] | type[End] | type[Postponement]] = {
    each.kind: each for each in (Harvest, Identification, End, Postponement)
}


def _bare(outcome: Outcome) -> Outcome:
    """Return an outcome without its long lists: what it covered is worth less than that it ended."""
    return replace(outcome, error=outcome.error[:SHORT_ERROR], coverage=(), failed_onus=())


def label(entry: Entry) -> str:
    """Return what a file with an entry is called. It tells whose harvest was in one that cannot be read any more."""
    return f"{entry.kind}-{entry.execution_ids[0]}" if entry.execution_ids else entry.kind


def lost_harvests(labels: Sequence[str]) -> set[int]:
    """Return the executions whose harvest has one of these labels."""
    parts = [each.partition("-") for each in labels]
    return {int(id_) for kind, _, id_ in parts if kind == Harvest.kind and id_.isdigit()}


def encode(entry: Entry) -> bytes:
    return json.dumps({"kind": entry.kind, "entry": to_wire(entry)}, separators=(",", ":")).encode()


def decode(data: bytes) -> Entry:
    """Return an entry as it was put in; `UnreadableMessage` if it cannot be read."""
    try:
        message = json.loads(data)
        kind = KINDS[message["kind"]]
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableMessage(f"it is no entry that this version knows: {type(error).__name__} {error}") from error
    return from_wire(kind, message.get("entry"))
