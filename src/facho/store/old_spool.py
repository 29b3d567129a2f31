"""Results in spools of version 0.5: records in JSON."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from facho.adapters.wire import reading, typed_node
from facho.engine.model import RunResult

# A value without a JSON type was an object with one of these as its only key.
TAGS: dict[str, Callable[[Any], Any]] = {
    "$at": datetime.fromisoformat,
    "$bytes": partial(base64.b64decode, validate=True),
    "$number": float,
    "$items": lambda pairs: {_untagged(key): _untagged(value) for key, value in pairs},
}


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
