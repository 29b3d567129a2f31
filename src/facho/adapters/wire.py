"""Engine values as plain JSON and back, by type hints: for messages between processes, and for the spool.

Reader and writer may be of different versions. Unknown fields are ignored, and missing ones take their default.
"""

import base64
import binascii
import math
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from facho.engine import oid
from facho.engine.errors import FachoError
from facho.engine.oid import Oid

T = TypeVar("T")

# For a hint of `Any`, a value without a JSON type is an object with one of these as its only key.
AT, BYTES, NUMBER, ITEMS = "$at", "$bytes", "$number", "$items"


class UnreadableMessage(FachoError):
    """A message cannot be read: it is damaged, or its version is too different."""

    is_temporary = False


class Codec(NamedTuple):
    """Encoding and decoding of one type."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def to_wire(value: Any) -> Any:
    """Return a value as plain JSON. A value of a type that cannot be sent in a message is a TypeError."""
    kind: Any = type(value)
    return _codec(kind).write(value)


def from_wire(kind: type[T], data: Any) -> T:
    """Return the decoded value of this type; `UnreadableMessage` explains an error."""
    hint: Any = kind
    return cast(T, _codec(hint).read(data))


@cache
def _codec(hint: Any) -> Codec:
    """Return the codec of a hint. Cached per type, because a result has thousands of rows."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _optional(hint)
    if origin in (tuple, list, Sequence):
        return _sequence(hint)
    if origin in (dict, Mapping):
        return _mapping(*typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Codec(lambda value: value.value, lambda data: _or_unreadable(hint, data))
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass(hint)
    raise TypeError(f"{hint!r} cannot be sent in a message")


def _dataclass(kind: type) -> Codec:
    hints = typing.get_type_hints(kind)
    known = [field for field in fields(kind) if field.init]
    codecs = [(field.name, _codec(hints[field.name])) for field in known]
    needed = [field.name for field in known if field.default is MISSING and field.default_factory is MISSING]

    def write(value: Any) -> dict[str, Any]:
        return {name: codec.write(getattr(value, name)) for name, codec in codecs}

    def read(data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise UnreadableMessage(f"{reprlib.repr(data)} is not of type {kind.__name__}")
        missing = [name for name in needed if name not in data]
        if missing:
            raise UnreadableMessage(f"a {kind.__name__} is missing {', '.join(missing)}")
        return kind(**{name: _field(kind, name, codec, data[name]) for name, codec in codecs if name in data})

    return Codec(write, read)


def _field(kind: type, name: str, codec: Codec, data: Any) -> Any:
    try:
        return codec.read(data)
    except UnreadableMessage as error:
        raise UnreadableMessage(f"{kind.__name__}.{name}: {error}") from error


def _optional(hint: Any) -> Codec:
    """Return the codec of a value that may be None. Any other union would be ambiguous."""
    kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
    if len(kinds) > 1:
        raise TypeError(f"{hint!r} cannot be sent in a message: its type is ambiguous")
    inner = _codec(kinds[0])
    return Codec(
        lambda value: None if value is None else inner.write(value),
        lambda data: None if data is None else inner.read(data),
    )


def _sequence(hint: Any) -> Codec:
    """Return the codec of a sequence of one type; an unspecific sequence is read as a tuple."""
    kind, (inner, *others) = typing.get_origin(hint), typing.get_args(hint)
    if others not in ([], [...]):
        raise TypeError(f"{hint!r} cannot be sent in a message: its parts need names")
    codec, collect = _codec(inner), list if kind is list else tuple

    def read(data: Any) -> Any:
        return collect(map(codec.read, _checked(list, data)))

    return Codec(lambda value: list(map(codec.write, value)), read)


def _mapping(key: Any, inner: Any) -> Codec:
    """Return the codec of a mapping. JSON keys are texts."""
    keys, codec = _codec(key), _codec(inner)
    read_key = int if key is int else keys.read

    def read(data: Any) -> Any:
        items = _checked(dict, data).items()
        return {_or_unreadable(read_key, name): codec.read(value) for name, value in items}

    return Codec(lambda value: {str(keys.write(name)): codec.write(each) for name, each in value.items()}, read)


def _or_unreadable(read: Callable[[Any], Any], data: Any) -> Any:
    """Convert the errors of a reader."""
    try:
        return read(data)
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise UnreadableMessage(f"{reprlib.repr(data)} cannot be read: {error}") from error


def _checked(kind: type[T], data: Any) -> T:
    # bool is an int in Python, but not in JSON.
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise UnreadableMessage(f"{reprlib.repr(data)} is not of type {kind.__name__}")
    return data


def _read_float(data: Any) -> float:
    if _has_tag(data, NUMBER):
        return cast(float, _or_unreadable(float, data[NUMBER]))
    if not isinstance(data, int | float) or isinstance(data, bool):
        raise UnreadableMessage(f"{reprlib.repr(data)} is not a number")
    return float(data)


def _write_float(value: float) -> Any:
    # Not valid JSON; strict parsers refuse the whole message.
    return value if math.isfinite(value) else {NUMBER: str(value)}


def _write_at(value: datetime) -> str:
    if value.tzinfo is None:
        raise TypeError(f"{value} has no time zone, so it cannot be sent in a message")
    return value.astimezone(UTC).isoformat()


def _read_at(data: Any) -> datetime:
    at = _or_unreadable(datetime.fromisoformat, data)
    if at.tzinfo is None:
        raise UnreadableMessage(f"{data} is a time without a time zone")
    return cast(datetime, at.astimezone(UTC))


def _read_bytes(data: Any) -> bytes:
    try:
        return base64.b64decode(_checked(str, data), validate=True)
    except binascii.Error as error:
        raise UnreadableMessage(f"{reprlib.repr(data)} is not valid base64: {error}") from error


def _write_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _write_any(value: Any) -> Any:
    """Encode a value without a hint: unchanged if JSON has its type, else marked."""
    if isinstance(value, Enum):
        return _write_any(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, datetime):
        return {AT: value.isoformat()}
    if isinstance(value, bytes):
        return {BYTES: _write_bytes(value)}
    if isinstance(value, list | tuple):
        return [_write_any(each) for each in value]
    if isinstance(value, Mapping):
        return _write_any_mapping(value)
    raise TypeError(f"{reprlib.repr(value)} cannot be sent in a message: it is a {type(value).__name__}")


def _write_any_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: _write_any(each) for key, each in value.items()}
    return {ITEMS: [[_write_any(key), _write_any(each)] for key, each in value.items()]}


def _read_any(data: Any) -> Any:
    """Decode a value without a hint. Tuples have become lists, and enumeration members their values."""
    if isinstance(data, list):
        return [_read_any(each) for each in data]
    if not isinstance(data, dict):
        return data
    for tag, read in TAGS.items():
        if _has_tag(data, tag):
            return read(data[tag])
    return {key: _read_any(each) for key, each in data.items()}


def _read_items(data: Any) -> dict[Any, Any]:
    return cast(
        dict[Any, Any], _or_unreadable(lambda pairs: {_read_any(key): _read_any(each) for key, each in pairs}, data)
    )


def _has_tag(data: Any, tag: str) -> bool:
    return isinstance(data, dict) and len(data) == 1 and tag in data


SIMPLE: dict[Any, Codec] = {
    Any: Codec(_write_any, _read_any),
    types.NoneType: Codec(lambda value: None, lambda data: _checked(types.NoneType, data)),
    bool: Codec(_write_any, lambda data: _checked(bool, data)),
    int: Codec(_write_any, lambda data: _checked(int, data)),
    float: Codec(_write_float, _read_float),
    str: Codec(_write_any, lambda data: _checked(str, data)),
    bytes: Codec(_write_bytes, _read_bytes),
    Oid: Codec(oid.text, lambda data: _or_unreadable(oid.parse, data)),
    datetime: Codec(_write_at, _read_at),
    timedelta: Codec(
        timedelta.total_seconds, lambda data: _or_unreadable(lambda seconds: timedelta(seconds=seconds), data)
    ),
}
TAGS: dict[str, Callable[[Any], Any]] = {
    AT: lambda data: _or_unreadable(datetime.fromisoformat, data),
    BYTES: _read_bytes,
    NUMBER: lambda data: _read_float({NUMBER: data}),
    ITEMS: _read_items,
}
