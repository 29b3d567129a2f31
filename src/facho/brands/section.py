"""Reader of a mapping, key by key. Errors are collected and reported together."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, TypeVar

from facho.engine import oid
from facho.engine.oid import Oid

T = TypeVar("T")

ABSOLUTE = re.compile(r"\.?1\.3\.6\.1(\.|$)")
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

# Maximum duration in seconds: a year.
LONGEST = 366 * 86400

# Marks a key without a default.
REQUIRED: Any = object()


class Section:
    """One mapping of a profile. All sections share a list of problems, as `path: sentence`."""

    def __init__(self, value: Any, path: str, problems: list[str]) -> None:
        self.path = path
        self.problems = problems
        self._asked: set[str] = set()
        self._values: dict[str, Any] = {}
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            self.complain("", f"{value!r} should be keys with values, one to a line")
            value = {}
        for key, each in value.items():
            self._values[str(key)] = each

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def peek(self, key: str) -> Any:
        """Return a value as written."""
        return self._values.get(key)

    def complain(self, key: str, sentence: str) -> None:
        where = ".".join(filter(None, (self.path, key))) or "the profile"
        self.problems.append(f"{where}: {sentence}.")

    def take(self, key: str, read: Callable[[Any], T], default: Any = None) -> T | Any:
        """Return the result of `read`; if it fails, or if the key is missing, the default."""
        self._asked.add(key)
        if key not in self._values:
            if default is REQUIRED:
                self.complain(key, "it is required")
            return None if default is REQUIRED else default
        try:
            return read(self._values[key])
        except ValueError as error:
            self.complain(key, str(error))
            return None if default is REQUIRED else default

    def section(self, key: str) -> "Section":
        """Return the mapping at a key, or an empty one."""
        self._asked.add(key)
        path = f"{self.path}.{key}" if self.path else key
        return Section(self._values.get(key), path, self.problems)

    def refuse_the_rest(self) -> None:
        """Report unknown keys."""
        for key in sorted(self._values.keys() - self._asked):
            self.complain(key, f"unknown key{meant(key, self._asked)}; the keys are {', '.join(sorted(self._asked))}")


def meant(word: str, known: Collection[str]) -> str:
    """Return a hint with the most similar known word, or nothing."""
    close = get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} should be a text")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} should be true or false")
    return value


def whole(value: Any) -> int:
    number = value
    if isinstance(value, str):
        try:
            number = int(value, 0)
        except ValueError:
            number = None
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{value!r} should be a whole number")
    return number


def positive(value: Any) -> int:
    number = whole(value)
    if number < 1:
        raise ValueError(f"{value!r} should be 1 or more")
    return number


def not_negative(value: Any) -> int:
    number = whole(value)
    if number < 0:
        raise ValueError(f"{value!r} should be 0 or more")
    return number


def number(value: Any) -> float:
    result = value
    if isinstance(value, str):
        try:
            result = int(value, 0) if value.strip("+-").isdecimal() else float(value)
        except ValueError:
            result = None
    if not isinstance(result, int | float) or isinstance(result, bool) or not abs(result) < float("inf"):
        raise ValueError(f"{value!r} should be a number, such as 0.01")
    return result


def duration(value: Any) -> timedelta:
    match = DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or not 0 < float(match[1]) * SECONDS[match[2]] <= LONGEST:
        raise ValueError(f"{value!r} should be a time with its unit, such as 10s, 15m or 1h")
    return timedelta(seconds=float(match[1]) * SECONDS[match[2]])


def pattern(value: Any) -> re.Pattern[str]:
    try:
        return re.compile(text(value))
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None


def list_of(read: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """Return a reader for a list; a single value is a list of one."""

    def reader(value: Any) -> tuple[T, ...]:
        return tuple(read(each) for each in (value if isinstance(value, list | tuple) else [value]))

    return reader


def words(value: Any) -> dict[int, str]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"{value!r} should be numbers with a word each, such as {{1: online, 2: offline}}")
    return {whole(key): text(word) for key, word in value.items()}


def oid_below(base: str) -> Callable[[Any], Oid]:
    """Return a reader for an OID: absolute if it starts with 1.3.6.1, else below the base."""

    def reader(value: Any) -> Oid:
        if isinstance(value, float):
            # YAML has turned 1.10 into 1.1 by now.
            raise ValueError(f"{value!r} was read as a number and may have lost a zero: put the OID in quotes")
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"{value!r} is not an OID: write numbers with dots between them")
        written = str(value).strip()
        if ABSOLUTE.match(written):
            return oid.parse(written)
        if not base:
            raise ValueError(f"{written} is not a full OID, and there is no base to complete it")
        return oid.parse(f"{base}.{written.removeprefix('.')}")

    return reader
