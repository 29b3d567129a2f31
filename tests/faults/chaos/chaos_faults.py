"""What can happen to an installation, each thing with its end: what died is started again, what was cut is mended."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING

from stack import Role, wait_for

if TYPE_CHECKING:
    from chaos_story import Chaos

# Longer than the lease of an OLT lasts here.
PAUSE = 14.0
# Long enough that the run was ended and another worker has the OLT: its lease lasts 10 s, its holder has 15 s
# more to deliver its result, and the reaper runs every 5 s.
LONG_PAUSE = 35.0
# Longer than the turn of a scheduler, which lasts 8 s.
SCHEDULER_PAUSE = 11.0
AWAY = 4.0
# A standby takes over in 10 s; a machine that has other things to do may be late by as much again.
TAKES_OVER_IN = 10.0 + 10.0


class Hand:
    """Does things to an installation, one after the other."""

    def __init__(self, chaos: "Chaos", random: Random) -> None:
        self.chaos = chaos
        self.random = random

    @contextmanager
    def busy_worker(self) -> Iterator[Role]:
        """Take a worker that is in the middle of a run, and that nobody else does anything to."""
        # Others may be doing things to the rest of the installation, one after the other.
        worker: Role = wait_for(lambda: self.chaos.take(self.random), "a worker is busy", 180)
        # Not at the same step of a run each time.
        time.sleep(self.random.uniform(0, 1.5))
        try:
            yield worker
        finally:
            self.chaos.give_back(worker)

    def active_scheduler(self) -> Role:
        (name,) = wait_for(lambda: self.chaos.holders("scheduler"), "there is an active scheduler")
        return self.chaos.stack.roles[name]

    def restart(self, role: Role) -> None:
        """Start a role as a service manager does: again, if it does not find its servers."""

        def try_it() -> bool:
            try:
                role.start()
            except AssertionError as error:
                self.chaos.log(f"{role.name} has to be started again: {str(error).strip().splitlines()[-1]}")
                return False
            return True

        wait_for(try_it, f"{role.name} starts", 120)

    def await_takeover(self, scheduler: Role) -> float:
        """Wait until another one is active, and return how many seconds that took."""
        began = time.monotonic()
        wait_for(lambda: self.chaos.holders("scheduler") - {scheduler.name}, "the standby takes over", TAKES_OVER_IN)
        took = time.monotonic() - began
        self.chaos.log(f"the standby took over after {took:.1f} s")
        return took


Fault = Callable[[Hand], None]


def a_worker_is_killed(hand: Hand) -> None:
    with hand.busy_worker() as worker:
        hand.chaos.log(f"{worker.name} is killed")
        worker.kill()
        hand.restart(worker)


def a_worker_is_paused(hand: Hand) -> None:
    with hand.busy_worker() as worker:
        hand.chaos.log(f"{worker.name} is paused")
        worker.pause()
        time.sleep(LONG_PAUSE)
        worker.resume()
        hand.chaos.log(f"{worker.name} wakes up")


def a_worker_is_drained(hand: Hand) -> None:
    with hand.busy_worker() as worker:
        hand.chaos.log(f"{worker.name} is asked to stop")
        status = worker.stop()
        assert status == 0, f"{worker.name} ended with status {status}"
        hand.restart(worker)


def a_worker_is_cut_off_from_postgres(hand: Hand) -> None:
    _cut(hand, (0,), "PostgreSQL", LONG_PAUSE)


def a_worker_is_cut_off_from_redis(hand: Hand) -> None:
    _cut(hand, (1,), "Redis", PAUSE)


def a_worker_is_cut_off_from_everything(hand: Hand) -> None:
    _cut(hand, (0, 1), "everything", PAUSE)


def _cut(hand: Hand, which: tuple[int, ...], whom: str, seconds: float) -> None:
    with hand.busy_worker() as worker:
        hand.chaos.log(f"{worker.name} is cut off from {whom}")
        lines = [hand.chaos.lines[worker.name][place] for place in which]
        for line in lines:
            line.cut()
        time.sleep(seconds)
        for line in lines:
            line.mend()
        hand.chaos.log(f"{worker.name} is back")


def the_connections_of_a_worker_are_lost(hand: Hand) -> None:
    with hand.busy_worker() as worker:
        hand.chaos.log(f"the connections of {worker.name} are lost")
        for line in hand.chaos.lines[worker.name]:
            line.lose()


def the_scheduler_is_killed(hand: Hand) -> None:
    scheduler = hand.active_scheduler()
    hand.chaos.log(f"{scheduler.name} is killed")
    scheduler.kill()
    hand.await_takeover(scheduler)
    hand.restart(scheduler)


def the_scheduler_is_paused(hand: Hand) -> None:
    scheduler = hand.active_scheduler()
    hand.chaos.log(f"{scheduler.name} is paused")
    scheduler.pause()
    time.sleep(max(0.0, SCHEDULER_PAUSE - hand.await_takeover(scheduler)))
    scheduler.resume()


def redis_restarts(hand: Hand) -> None:
    hand.chaos.log("Redis restarts")
    hand.chaos.stack.redis.stop()
    time.sleep(AWAY)
    hand.chaos.stack.redis.start()


def redis_is_killed(hand: Hand) -> None:
    hand.chaos.log("Redis is killed")
    hand.chaos.stack.redis.kill()
    hand.chaos.stack.redis.start()


def postgres_restarts(hand: Hand) -> None:
    hand.chaos.log("PostgreSQL restarts")
    hand.chaos.stack.postgres.stop()
    hand.chaos.stack.postgres.start()


def postgres_is_unavailable(hand: Hand) -> None:
    hand.chaos.log("PostgreSQL is away for longer than a lease lasts")
    hand.chaos.stack.postgres.stop()
    time.sleep(PAUSE)
    hand.chaos.stack.postgres.start()


def postgres_is_killed(hand: Hand) -> None:
    hand.chaos.log("PostgreSQL is killed")
    hand.chaos.stack.postgres.kill()
    hand.chaos.stack.postgres.start()


# The groups happen side by side, the members of each one after the other.
FAULTS: dict[str, tuple[Fault, ...]] = {
    "workers that hang": (
        a_worker_is_paused,
        a_worker_is_cut_off_from_postgres,
        a_worker_is_cut_off_from_everything,
    ),
    "workers that go": (
        a_worker_is_killed,
        a_worker_is_drained,
        a_worker_is_cut_off_from_redis,
        the_connections_of_a_worker_are_lost,
    ),
    "all else": (
        the_scheduler_is_killed,
        the_scheduler_is_paused,
        redis_restarts,
        redis_is_killed,
        postgres_restarts,
        postgres_is_unavailable,
        postgres_is_killed,
    ),
}
