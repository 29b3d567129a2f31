"""A clock that only moves when a test advances it."""

from datetime import UTC, datetime, timedelta


class HandClock:
    """Both of its times pass together: when advanced, or when a task sleeps."""

    def __init__(self, now: datetime = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)) -> None:
        self._now = now
        self._seconds = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        self.pass_by(timedelta(seconds=seconds))

    def pass_by(self, time: timedelta) -> None:
        self._now += time
        self._seconds += time.total_seconds()
