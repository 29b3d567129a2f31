"""Configuration changes, found by comparing two states of an OLT. Values only, no I/O."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from facho.engine.model import Node


@dataclass(frozen=True, slots=True)
class OltState:
    """Configuration of one enabled OLT. `credentials` is a digest: comparable, but never readable."""

    olt_id: int
    name: str
    address: str
    nodes: tuple[Node, ...]
    credentials: str = field(default="", repr=False)


class ChangeKind(StrEnum):
    """Kinds of changes, as they appear in the log."""

    TASK_ADDED = "task_added"
    TASK_REMOVED = "task_removed"
    TASK_INTERVAL_CHANGED = "task_interval_changed"
    TASK_CHANGED = "task_changed"
    OLT_ENABLED = "olt_enabled"
    OLT_DISABLED = "olt_disabled"
    ADDRESS_CHANGED = "address_changed"
    CREDENTIALS_CHANGED = "credentials_changed"


@dataclass(frozen=True, slots=True)
class OltChange:
    """One change. `details` are the values for its message and hold no secret."""

    kind: ChangeKind
    olt_id: int
    olt_name: str
    node: Node | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def fingerprint(parts: Iterable[object]) -> str:
    """Return a SHA-256 of values that have a stable `repr`: numbers, texts, None and tuples of them."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def detect_changes(before: OltState | None, after: OltState | None) -> list[OltChange]:
    """Return the changes between two states of one OLT. None stands for an OLT that is disabled or deleted.

    The nodes of an OLT that is added or removed are not listed separately.
    """
    if after is None:
        return [] if before is None else [OltChange(ChangeKind.OLT_DISABLED, before.olt_id, before.name)]
    if before is None:
        return [OltChange(ChangeKind.OLT_ENABLED, after.olt_id, after.name, details={"nodes": len(after.nodes)})]
    changes = []
    if before.address != after.address:
        addresses = {"before": before.address, "after": after.address}
        changes.append(OltChange(ChangeKind.ADDRESS_CHANGED, after.olt_id, after.name, details=addresses))
    if before.credentials != after.credentials:
        changes.append(OltChange(ChangeKind.CREDENTIALS_CHANGED, after.olt_id, after.name))
    old = {node.id: node for node in before.nodes}
    new = {node.id: node for node in after.nodes}
    changes += [_change(ChangeKind.TASK_REMOVED, after, old[id_]) for id_ in sorted(old.keys() - new.keys())]
    changes += [_change(ChangeKind.TASK_ADDED, after, new[id_]) for id_ in sorted(new.keys() - old.keys())]
    for id_ in sorted(old.keys() & new.keys()):
        was, node = old[id_], new[id_]
        if was.interval != node.interval and node.master_id is None:
            seconds = {"before": was.interval.total_seconds(), "after": node.interval.total_seconds()}
            changes.append(_change(ChangeKind.TASK_INTERVAL_CHANGED, after, node, seconds))
        elif _settings(was) != _settings(node):
            changes.append(_change(ChangeKind.TASK_CHANGED, after, node))
    return changes


def _settings(node: Node) -> Node:
    """Return a node without the fields that the engine writes or that have their own kind of change."""
    return replace(
        node, next_check=None, run_requested_at=None, expected=None, olt_name="", interval=type(node.interval)()
    )


def _change(kind: ChangeKind, olt: OltState, node: Node, details: Mapping[str, Any] | None = None) -> OltChange:
    return OltChange(kind, olt.olt_id, olt.name, node, details or {})
