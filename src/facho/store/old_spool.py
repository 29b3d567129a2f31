"""Results in spools of earlier versions: records of 0.5 in JSON, and of 0.4 in one file each."""

import base64
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from facho.adapters.wire import UnreadableMessage, reading, typed_node
from facho.engine.model import RunResult

if TYPE_CHECKING:
    from facho.store.spool import Spool

logger = logging.getLogger(__name__)

# A value without a JSON type was an object with one of these as its only key.
TAGS: dict[str, Callable[[Any], Any]] = {
    "$at": datetime.fromisoformat,
    "$bytes": partial(base64.b64decode, validate=True),
    "$number": float,
    "$items": lambda pairs: {_untagged(key): _untagged(value) for key, value in pairs},
}

# An identification had no time of its own; its outcome has one.
NO_TIME = "1970-01-01T00:00:00+00:00"


def decode_json(body: bytes) -> RunResult:
    """Return the result of a record in JSON; `UnreadableMessage` explains an error."""
    with reading():
        return _result(json.loads(body))


def _result(record: Mapping[str, Any]) -> RunResult:
    fields = _untagged(record)
    if fields.get("node") is not None:
        fields["node"] = typed_node(fields["node"])
    if "clock_set" in fields["outcome"]:
        fields["outcome"]["clock_set"] = timedelta(seconds=fields["outcome"]["clock_set"])
    return msgspec.convert(fields, RunResult)


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(name, inner)] = value.items()
        if name in TAGS:
            return TAGS[name](inner)
    return {name: _untagged(each) for name, each in value.items()}


def import_old(folder: Path, spool: "Spool") -> None:
    """Move the records of old spools below a folder into a new one, in order, and delete their files."""
    for old in sorted(folder.glob("[0-9]*/")):
        paths = sorted(old.glob("*-*.json"))
        if paths:
            _import_folder(old, paths, spool)


def _import_folder(folder: Path, paths: list[Path], spool: "Spool") -> None:
    # By execution: readings come before their outcome.
    read: dict[int, RunResult] = {}
    done = []
    for path in paths:
        try:
            # Version 0.4 had another name for this cause.
            record = json.loads(path.read_bytes().replace(b'"database_away"', b'"database_unavailable"'))
            with reading():
                _add(record["kind"], record["entry"], read, spool)
        except (OSError, ValueError, UnreadableMessage) as error:
            logger.error("%s could not be imported into the spool and was left in place: %s", path, error)
        else:
            done.append(path)
    for result in read.values():
        spool.append(result)
    for path in done:
        path.unlink(missing_ok=True)
    logger.warning("imported %d records of an earlier version from %s", len(done), folder)


def _add(kind: str, entry: Mapping[str, Any], read: dict[int, RunResult], spool: "Spool") -> None:
    if kind in ("harvest", "identification"):
        read[entry["execution_id"]] = _result(
            {
                "execution_ids": [entry["execution_id"]],
                # Used if the engine died before it wrote the outcome.
                "outcome": {"status": "INTERRUPTED", "cause": "engine_down"},
                "lease": entry["lease"],
                "at": entry.get("now", NO_TIME),
                "node": entry["node"],
                "collected": entry.get("collected"),
                "identification": entry if kind == "identification" else None,
            }
        )
        return
    outcome = {**entry["outcome"], "retry_at": entry.get("retry_at")}
    ended = _result({**entry, "outcome": outcome, "at": entry["now"]})
    known = read.pop(ended.execution_ids[0], ended)
    spool.append(
        replace(ended, node=known.node, collected=known.collected, identification=known.identification),
    )
