"""The ways in which agents of real OLTs misbehave, as one value."""

from dataclasses import dataclass
from enum import Enum

from facho.engine.brand import Position


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

    # The first row of its column, for ever.
    LOOP = "loop"
    # The row itself.
    REPEAT = "repeat"
    # The two rows behind it, in the wrong order; then it goes on.
    SWAP = "swap"


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with an agent. Frozen: an agent that changes gets another one. Times are in seconds.

    Rows are counted within their column, from 1, in the order of the index.
    """

    # Nothing is ever answered.
    mute: bool = False
    # The network: each answer is late by so much, and by up to `jitter` more; a share of answers is lost.
    latency: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    # The agent's own work, one request after the other: for each request, for each variable that is answered, and
    # for each ONU whose optics are looked at, however many columns are asked for together.
    per_pdu: float = 0.0
    per_varbind: float = 0.0
    per_optical_row: float = 0.0
    # As many requests as may wait or be served; more are dropped in silence.
    queue_limit: int | None = None
    # A request for more variables than this is answered with tooBig.
    too_big_above: int | None = None
    # Whatever touches this ONU is answered with genErr.
    gen_err_at: Position | None = None
    # From the row behind this one on there is no answer.
    dies_at_row: int | None = None
    disorder: Disorder | None = None
    disorder_at_row: int = 1
    # A share of answers is spoiled in one way.
    spoiled: float = 0.0
    spoiling: Spoiling = Spoiling.NOISE
    # A GETBULK that asks for no repetitions keeps the agent busy for so long, and then gets nothing.
    zero_repetitions_hang: float = 0.0

    def __post_init__(self) -> None:
        for name in ("loss", "spoiled"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share between 0 and 1, not {getattr(self, name)}")
        for name in ("latency", "jitter", "per_pdu", "per_varbind", "per_optical_row", "zero_repetitions_hang"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is a number of seconds and cannot be negative: {getattr(self, name)}")


WELL = Faults()
