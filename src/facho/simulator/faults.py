"""Faults of real agents, as one value and as options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

from facho.engine.brand import Position
from facho.engine.oid import Oid, parse, text

Kind = TypeVar("Kind", bound=Enum)


class Spoiling(Enum):
    """Ways of spoiling an answer."""

    # Random bytes.
    NOISE = "noise"
    # The datagram is truncated.
    CUT = "cut"
    # No variables and no error.
    EMPTY = "empty"
    # Only the first half of the variables.
    HALF = "half"
    # Another request id.
    STRAY = "stray"


class Disorder(Enum):
    """Rows after one at which GETNEXT fails."""

    # The first row of its column, forever.
    LOOP = "loop"
    # The row itself.
    REPEAT = "repeat"
    # The next two rows in the wrong order; then it continues.
    SWAP = "swap"


def seconds(written: str) -> float:
    """Return a number of seconds."""
    return _number(written, "a number of seconds, like 0.2")


def share(written: str) -> float:
    """Return a share, such as 0.05 or 5%."""
    number = _number(written.removesuffix("%"), "a share, like 0.05 or 5%")
    return number / 100 if written.endswith("%") else number


def factor(written: str) -> float:
    """Return a factor."""
    return _number(written, "a factor, like 2.5")


def count(written: str) -> int:
    """Return a whole number."""
    if not (written.isascii() and written.isdigit()):
        raise ValueError("write a whole number, like 25")
    return int(written)


def flag(written: str) -> bool:
    """Return yes or no. An option without a value means yes."""
    words = {"": True, "yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if written.lower() not in words:
        raise ValueError("write yes or no")
    return words[written.lower()]


def place(written: str) -> Position:
    """Return an ONU from slot/port/onu, or with the shelf in front.

    A simulated OLT has one shelf, so its number is ignored.
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
    """Return a kind of disorder by name."""
    return _choice(Disorder, written)


def spoiling_kind(written: str) -> Spoiling:
    """Return a way of spoiling by name."""
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
    """Faults of an agent, frozen. Times are in seconds.

    Rows are counted within their column, from 1, in index order. Each fault has its option format and its help text
    beside its type.
    """

    mute: Annotated[bool, flag, "nothing is ever answered"] = False
    latency: Annotated[float, seconds, "each answer is late by so many seconds"] = 0.0
    jitter: Annotated[float, seconds, "and by up to so many more"] = 0.0
    loss: Annotated[float, share, "a share of answers that is lost"] = 0.0
    # Work of the agent, one request after the other.
    per_pdu: Annotated[float, seconds, "seconds of work for each request, one after the other"] = 0.0
    per_varbind: Annotated[float, seconds, "seconds of work for each variable that is answered"] = 0.0
    per_optical_row: Annotated[float, seconds, "seconds of work for each ONU whose optics are read, once a request"] = (
        0.0
    )
    slow_by: Annotated[float, factor, "all its work takes so many times as long"] = 1.0
    crowding: Annotated[float, share, "each request that waits makes the work for another longer by this share"] = 0.0
    queue_limit: Annotated[int | None, count, "requests that may wait or be served; more are dropped in silence"] = None
    too_big_above: Annotated[int | None, count, "a request for more variables than this is answered with tooBig"] = None
    bulk_rows: Annotated[int | None, count, "a GETBULK is answered with no more rows than this"] = None
    bulk_bytes: Annotated[int | None, count, "a GETBULK is answered with no more bytes than this"] = None
    gen_err_at: Annotated[Position | None, place, "slot/port/onu that answers genErr to whatever touches it"] = None
    silent_at: Annotated[Position | None, place, "slot/port/onu that silences whatever touches it"] = None
    only_column: Annotated[Oid | None, column, "the OID of the only column where the two above are so"] = None
    dies_at_row: Annotated[int | None, count, "from the row behind this one on there is no answer"] = None
    disorder: Annotated[Disorder | None, disorder_kind, "rows come out of order: loop, repeat or swap"] = None
    disorder_at_row: Annotated[int, count, "the row behind which they do"] = 1
    spoiled: Annotated[float, share, "a share of answers that is spoiled"] = 0.0
    spoiling: Annotated[Spoiling, spoiling_kind, "in which way: noise, cut, empty, half or stray"] = Spoiling.NOISE
    # A C300 hangs for this long on a GETBULK with 0 repetitions, and then returns nothing.
    zero_repetitions_hang: Annotated[float, seconds, "seconds that a GETBULK for 0 repetitions keeps it busy"] = 0.0

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
    """A fault as an option. `type` parses its value or raises ValueError; a flag needs none."""

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
    """Return `base` with these changes, such as {"loss": "0.05"}; `none` resets one to its default."""
    return replace(base, **{name.replace("-", "_"): _value(name, written) for name, written in options.items()})


def _value(name: str, written: str) -> Any:
    option = _OPTIONS.get(name.replace("-", "_"))
    if option is None:
        raise ValueError(f"there is no fault {name!r}; there are {', '.join(_OPTIONS)}")
    if written == "none":
        return getattr(WELL, option.name)
    try:
        return option.type(written)
    except ValueError as error:
        raise ValueError(f"{name}={written}: {error}") from None


def to_options(faults: Faults) -> dict[str, str]:
    """Return the faults in the form of `faults_from`, without defaults."""
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
