"""Results that version 0.4 left in its spool: a file per record, with readings and outcome in different files."""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from facho.adapters.wire import UnreadableMessage, from_wire
from facho.engine.model import Cause, Collected, Identification, Lease, Node, Outcome, RunResult, Status
from facho.store.spool import Spool

logger = logging.getLogger(__name__)

# An identification had no time of its own; its outcome has one.
NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def import_old(folder: Path, spool: Spool) -> None:
    """Move the records of old spools below a folder into a new one, in order, and remove their files."""
    for old in sorted(folder.glob("[0-9]*/")):
        paths = sorted(old.glob("*-*.json"))
        if paths:
            _import_folder(old, paths, spool)


def _import_folder(folder: Path, paths: list[Path], spool: Spool) -> None:
    # By execution: readings wait for the outcome that follows them.
    read: dict[int, RunResult] = {}
    done = []
    for path in paths:
        try:
            # 0.4 had another name for this cause.
            record = json.loads(path.read_bytes().replace(b'"database_away"', b'"database_unavailable"'))
            _add(record["kind"], record["entry"], read, spool)
        except (OSError, ValueError, KeyError, TypeError, UnreadableMessage) as error:
            logger.error("%s could not be imported into the spool and stays where it is: %s", path, error)
        else:
            done.append(path)
    for result in read.values():
        spool.append(result)
    for path in done:
        path.unlink(missing_ok=True)
    logger.warning("imported %d records of an earlier version from %s", len(done), folder)


def _add(kind: str, entry: Mapping[str, Any], read: dict[int, RunResult], spool: Spool) -> None:
    lease = None if entry["lease"] is None else from_wire(Lease, entry["lease"])
    if kind in ("harvest", "identification"):
        read[entry["execution_id"]] = RunResult(
            (entry["execution_id"],),
            # The engine died before it wrote the outcome, unless that follows.
            Outcome(Status.INTERRUPTED, Cause.ENGINE_DOWN),
            lease,
            from_wire(datetime, entry["now"]) if kind == "harvest" else NO_TIME,
            from_wire(Node, entry["node"]),
            from_wire(Collected, entry["collected"]) if kind == "harvest" else None,
            Identification(entry["brand"], entry["seen"]) if kind == "identification" else None,
        )
        return
    outcome, ids, at = from_wire(Outcome, entry["outcome"]), tuple(entry["execution_ids"]), entry["now"]
    if kind == "postponement":
        outcome = replace(outcome, retry_at=from_wire(datetime, entry["retry_at"]))
    result = read.pop(ids[0], RunResult(ids, outcome, lease, from_wire(datetime, at)))
    spool.append(replace(result, execution_ids=ids, outcome=outcome, lease=lease, at=from_wire(datetime, at)))
