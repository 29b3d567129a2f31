"""Claims as messages to workers, and results as records of the spool.

Reader and writer may be of different versions. Unknown fields are ignored, and missing ones take their default.
"""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from facho.engine import oid
from facho.engine.batch import UNREAD
from facho.engine.errors import FachoError
from facho.engine.model import Claim, RunResult
from facho.engine.oid import Oid

# Fields of a node that are seconds in JSON.
DURATIONS = ("interval", "timeout", "retry_delay")

# Extension type of MessagePack for a value that was not read.
UNREAD_CODE = 1


class UnreadableMessage(FachoError):
    """A message cannot be read: it is damaged, or its version is too different."""

    is_temporary = False


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Convert the errors of a reader."""
    try:
        yield
    except KeyError as error:
        raise UnreadableMessage(f"the field {error} is missing") from error
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, AttributeError) as error:
        raise UnreadableMessage(f"it cannot be read: {error}") from error


def claim_to_message(claim: Claim) -> dict[str, Any]:
    """Return a claim as plain JSON."""
    message: dict[str, Any] = _plain(msgspec.to_builtins(claim, builtin_types=(bytes, timedelta)))
    return message


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, timedelta):
        return value.total_seconds()
    return oid.text(Oid(value)) if isinstance(value, bytes) else value


def claim_from_message(message: Mapping[str, Any]) -> Claim:
    """Return the claim of a message; `UnreadableMessage` explains an error."""
    with reading():
        composite = message["composite"]
        nodes = {"master": typed_node(composite["master"]), "chain": [typed_node(node) for node in composite["chain"]]}
        return msgspec.convert({**message, "composite": {**composite, **nodes}}, Claim)


def typed_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a node with the types that JSON does not have."""
    durations = {name: timedelta(seconds=node[name]) for name in DURATIONS if name in node}
    oids = [{**each, "oid": oid.parse(each["oid"])} for each in node.get("oids", ())]
    return {**node, **durations, "oids": oids}


def encode_result(result: RunResult) -> bytes:
    """Return a result as MessagePack; TypeError if it has a value that cannot be saved."""
    try:
        return _encoder.encode(result)
    except (OverflowError, ValueError) as error:
        raise TypeError(f"a value cannot be saved: {error}") from error


def decode_result(body: bytes) -> RunResult:
    """Return the result of a record; `UnreadableMessage` explains an error."""
    with reading():
        return _decoder.decode(body)


def _to_known(value: Any) -> Any:
    if value is UNREAD:
        return msgspec.msgpack.Ext(UNREAD_CODE, b"")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value cannot be saved: its type is {type(value).__name__}")


def _from_extension(code: int, data: memoryview) -> Any:
    if code != UNREAD_CODE:
        raise ValueError(f"unknown extension {code}")
    return UNREAD


_encoder = msgspec.msgpack.Encoder(enc_hook=_to_known)
_decoder = msgspec.msgpack.Decoder(RunResult, ext_hook=_from_extension)
