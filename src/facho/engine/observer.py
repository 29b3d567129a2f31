"""Hooks for metrics, empty by default."""

from collections.abc import Mapping

from facho.engine.model import Cause, Outcome, RunResult, Status
from facho.engine.snmp import Answer


class Observer:
    """Base with empty hooks. A subclass overrides some of them; a hook must not raise.

    Hooks of the store are called after the commit, once per fact: a result that is delivered twice is counted once.
    """

    def slot_waited(self, waits: Mapping[Cause, float]) -> None:
        """A slot was claimed after it had waited for these causes, in seconds."""

    def slots_ended(self, status: Status, cause: Cause | None, count: int) -> None:
        """Slots of the grid ended in the database."""

    def manual_runs_ended(self, status: Status, count: int) -> None:
        """Manual executions ended in the database."""

    def retries_planned(self, count: int) -> None:
        """Executions were left pending for another attempt."""

    def attempt_started(self, lateness: float | None) -> None:
        """An attempt started; `lateness` in seconds after its slot, None without a slot."""

    def attempt_ended(self, outcome: Outcome) -> None:
        """A started attempt is over, whether or not its result was stored."""

    def result_stored(self, result: RunResult, seconds: float) -> None:
        """A result is in the database; `seconds` includes the time until the writer was free."""

    def result_failed(self, error: Exception) -> None:
        """A result with readings could not be stored."""

    def lease_taken(self) -> None:
        """A lease of a device was taken."""

    def lease_released(self, *, is_lost: bool) -> None:
        """A lease that was taken is no longer held; `is_lost`: it ended while it was needed."""

    def lease_refused(self) -> None:
        """Another holder had the device."""

    def request_ended(self, operation: str, result: str, seconds: float, answer: Answer | None) -> None:
        """An SNMP request ended: `answered`, `agent_error`, `no_answer`, `bad_answer`, `refused` or `given_up`.

        The variables of the answer may not have been decoded, and a hook must not ask for them.
        """

    def values_pushed(self, values: int, seconds: float) -> None:
        """A time series store accepted values; `seconds` from reading them to the answer."""

    def push_failed(self, reason: str) -> None:
        """A time series store did not accept a request: `unavailable`, `refused` or `rejected`."""

    def push_dropped(self, reason: str, runs: int) -> None:
        """Runs will never be pushed: `expired` or `rejected`."""

    def push_waits(self, runs: int, seconds: float) -> None:
        """So many runs are not pushed yet, the oldest of them for so many seconds."""
