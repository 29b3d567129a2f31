"""The ways in which agents of real OLTs misbehave, as one value, and as options that people can write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

from facho.engine.brand import Position
from facho.engine.oid import Oid, parse, text

Kind = TypeVar("Kind", bound=Enum)


class Spoiling(Enum):
    """What is wrong with an answer that is spoiled."""

    # Random bytes.
    NOISE = "noise"
    # The datagram ends in the middle.
    CUT = "cut"
    # No variables at all, and no error.
    EMPTY = "empty"
    # Only the first half of the variables.
    HALF = "half"
    # Somebody else's request id.
    STRAY = "stray"


class Disorder(Enum):
    """What follows a row that GETNEXT trips over."""

    # The first row of its column, forever.
    LOOP = "loop"
    # The row itself.
    REPEAT = "repeat"
    # The two rows behind it, in the wrong order; then it goes on.
    SWAP = "swap"


def seconds(written: str) -> float:
    """Return a number of seconds."""
    return _number(written, "a number of seconds, like 0.2")


def share(written: str) -> float:
    """Return a part of all, like 0.05 or 5%."""
    number = _number(written.removesuffix("%"), "a share, like 0.05 or 5%")
    return number / 100 if written.endswith("%") else number


def factor(written: str) -> float:
    """Return how many times as much."""
    return _number(written, "a factor, like 2.5")


def count(written: str) -> int:
    """Return a whole number."""
    if not (written.isascii() and written.isdigit()):
        raise ValueError("write a whole number, like 25")
    return int(written)


def flag(written: str) -> bool:
    """Return yes or no. An option that only stands there means yes."""
    words = {"": True, "yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if written.lower() not in words:
        raise ValueError("write yes or no")
    return words[written.lower()]


def place(written: str) -> Position:
    """Return an ONU from slot/port/onu, or from those with the shelf in front.

    A simulated OLT has one shelf, so nobody asks for its number.
    """
    parts = written.split("/")
    if len(parts) not in (3, 4):
        raise ValueError("write slot/port/onu, like 1/3/7")
    slot, port, onu = map(count, parts[-3:])
    return Position(0, slot, port, onu)


def column(written: str) -> Oid:
    """Return an OID."""
    return parse(written)


def disorder_kind(written: str) -> Disorder:
    """Return a kind of disorder by its word."""
    return _choice(Disorder, written)


def spoiling_kind(written: str) -> Spoiling:
    """Return a way of spoiling by its word."""
    return _choice(Spoiling, written)


def _number(written: str, what: str) -> float:
    try:
        number = float(written)
    except ValueError:
        raise ValueError(f"write {what}") from None
    if not isfinite(number):
        raise ValueError(f"write {what}")
    return number


def _choice(kind: type[Kind], written: str) -> Kind:
    words = {each.value: each for each in kind}
    if written not in words:
        raise ValueError(f"choose one of {', '.join(words)}")
    return words[written]


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with an agent. Frozen: an agent that changes gets another one. Times are in seconds.

    Rows are counted within their column, from 1, in the order of the index.
    Beside its type each fault has how people write it, and what it does.
    """

    mute: Annotated[bool, flag, "never answer"] = False
    latency: Annotated[float, seconds, "delay of each answer, in seconds"] = 0.0
    jitter: Annotated[float, seconds, "additional random delay of up to this many seconds"] = 0.0
    loss: Annotated[float, share, "share of answers that are lost"] = 0.0
    # The agent's own work, one request after the other.
    per_pdu: Annotated[
        float, seconds, "seconds of processing for each request; requests are processed one at a time"
    ] = 0.0
    per_varbind: Annotated[float, seconds, "seconds of processing for each variable in an answer"] = 0.0
    per_optical_row: Annotated[
        float, seconds, "seconds of processing for each ONU whose optical values are read, once per request"
    ] = 0.0
    slow_by: Annotated[float, factor, "factor on all processing times"] = 1.0
    crowding: Annotated[float, share, "each waiting request makes processing slower by this share"] = 0.0
    queue_limit: Annotated[
        int | None, count, "maximum number of requests waiting or in process; more are dropped without an answer"
    ] = None
    too_big_above: Annotated[int | None, count, "answer tooBig to a request for more variables than this"] = None
    bulk_rows: Annotated[int | None, count, "maximum number of rows in the answer to a GETBULK"] = None
    bulk_bytes: Annotated[int | None, count, "maximum number of bytes in the answer to a GETBULK"] = None
    gen_err_at: Annotated[Position | None, place, "slot/port/onu whose rows are answered with genErr"] = None
    silent_at: Annotated[Position | None, place, "slot/port/onu whose rows get no answer"] = None
    only_column: Annotated[Oid | None, column, "OID of the only column where the two options above apply"] = None
    dies_at_row: Annotated[int | None, count, "no answer for rows after this one"] = None
    disorder: Annotated[Disorder | None, disorder_kind, "rows come out of order: loop, repeat or swap"] = None
    disorder_at_row: Annotated[int, count, "row after which the disorder starts"] = 1
    spoiled: Annotated[float, share, "share of answers that are corrupted"] = 0.0
    spoiling: Annotated[Spoiling, spoiling_kind, "type of corruption: noise, cut, empty, half or stray"] = (
        Spoiling.NOISE
    )
    # What a C300 does to a GETBULK that asks for no repetitions: it is busy for so long, and then brings nothing.
    zero_repetitions_hang: Annotated[float, seconds, "seconds of processing for a GETBULK with 0 repetitions"] = 0.0

    invented: Annotated[int, count, "number of additional ONUs that do not exist, on all ports"] = 0
    name_bytes: Annotated[int, count, "length of the name of each ONU, in bytes"] = 0
    hostile_names: Annotated[bool, flag, "escape sequences, line ends and a direction mark in names"] = False

    def __post_init__(self) -> None:
        for name in ("loss", "spoiled"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a share between 0 and 1, not {getattr(self, name)}")
        for name in ("latency", "jitter", "per_pdu", "per_varbind", "per_optical_row", "zero_repetitions_hang"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is a number of seconds and cannot be negative: {getattr(self, name)}")
        for name in ("slow_by", "crowding"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} cannot be negative: {getattr(self, name)}")
        if self.disorder_at_row < 1:
            raise ValueError("disorder_at_row counts rows from 1")


WELL = Faults()


class FaultOption(NamedTuple):
    """A fault as people write it. `type` reads its value from a text, or raises ValueError; a flag needs none."""

    name: str
    type: Callable[[str], Any]
    help: str

    @property
    def is_flag(self) -> bool:
        return self.type is flag


FAULT_OPTIONS = tuple(
    FaultOption(name, *annotation.__metadata__)
    for name, annotation in get_type_hints(Faults, include_extras=True).items()
)
_OPTIONS = {option.name: option for option in FAULT_OPTIONS}


def faults_from(options: Mapping[str, str], base: Faults = WELL) -> Faults:
    """Return `base` with these changes, written as {"loss": "0.05"}; `none` takes one back to what is usual."""
    changes: dict[str, Any] = {}
    for name, written in options.items():
        option = _OPTIONS.get(name.replace("-", "_"))
        if option is None:
            raise ValueError(f"there is no fault {name!r}; there are {', '.join(_OPTIONS)}")
        try:
            changes[option.name] = getattr(WELL, option.name) if written == "none" else option.type(written)
        except ValueError as error:
            raise ValueError(f"{name}={written}: {error}") from None
    return replace(base, **changes)


def to_options(faults: Faults) -> dict[str, str]:
    """Return what is wrong, as `faults_from` would read it. What is as usual is left out."""
    return {
        option.name: _write(value)
        for option in FAULT_OPTIONS
        if (value := getattr(faults, option.name)) != getattr(WELL, option.name)
    }


def _write(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Position):
        return "/".join(str(part) for part in (value.slot, value.port, value.onu) if part is not None)
    if isinstance(value, bytes):
        return text(Oid(value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
