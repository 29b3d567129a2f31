"""How long to wait for an answer: as TCP does, by the round trips so far (RFC 6298)."""

# How much one measurement counts for the mean, and for the deviation from it.
GAIN = 1 / 8
DEVIATION_GAIN = 1 / 4

# An answer may take this many times as long as usual before it counts as lost: a request for
# twice as many rows takes twice the time.
PATIENCE = 3.0


class Timer:
    """Knows the round trips of one kind of request. Until one is measured it waits as long as the maker says.

    After a silence it doubles its patience until an answer comes, so an agent
    that has become slow is not asked again and again for what it is working on.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = min(shortest, longest)
        self._longest = longest
        self._mean: float | None = None
        self._deviation = 0.0
        self._backoff = 1.0

    @property
    def is_measured(self) -> bool:
        """Return whether an answer has shown how long one takes."""
        return self._mean is not None

    @property
    def timeout(self) -> float:
        """Return how long to wait for the next answer."""
        if self._mean is None:
            return self._longest
        usual = max(self._mean * PATIENCE, self._mean + 4 * self._deviation, self._shortest)
        return min(usual * self._backoff, self._longest)

    def has_room(self, round_trip: float) -> bool:
        """Say whether requests may become dearer: not if twice as much work would come near the longest wait."""
        return round_trip < self._longest / 4

    def measured(self, round_trip: float) -> None:
        """Note how long an answer took."""
        self._backoff = 1.0
        if self._mean is None:
            self._mean, self._deviation = round_trip, round_trip / 2
            return
        self._deviation += DEVIATION_GAIN * (abs(round_trip - self._mean) - self._deviation)
        self._mean += GAIN * (round_trip - self._mean)

    def expired(self) -> None:
        """Note that no answer came in time."""
        self._backoff = min(self._backoff * 2, 64.0)
