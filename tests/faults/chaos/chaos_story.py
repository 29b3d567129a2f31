"""A whole installation, and what can happen to it. Which of it, to whom and when is up to a seed."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Self

import psycopg
from audit import AUDIT
from chaos_faults import FAULTS, Fault, Hand
from line import Line

from stack import Fleet, Role, Stack, Stuck, wait_for

# So short that the story of a lease that is lost can be told in seconds.
LEASE_SECONDS = 10
# So long after the last fault nothing that was open then is still open.
ONE_MINUTE = 60.0

WORKERS = ("worker-1", "worker-2", "worker-3")
SCHEDULERS = ("scheduler-1", "scheduler-2")
POLLERS = 3

# The time limit is so long that it stops nobody who was paused: only the lease does.
_TRIED_AGAIN = {"retries": 1, "retry_delay_seconds": 2, "timeout_seconds": 90}
JOBS = {
    "Discovery": {"kind": "discovery", "interval_seconds": 30, "priority": 90, "timeout_seconds": 90},
    "Optical power": {
        "kind": "get",
        "columns": ["rx_dbm", "tx_dbm"],
        "interval_seconds": 10,
        "priority": 60,
        **_TRIED_AGAIN,
    },
    "State": {"kind": "table", "columns": ["state"], "follows": "Optical power", **_TRIED_AGAIN},
}
# OLTs whose runs take many requests, and ten seconds or so: there is always one to be hit in the middle of it.
SLOW = {
    "OLT-NORTE-02": "per_pdu=0.8 bulk_rows=3",
    "OLT-ESTE-04": "per_pdu=0.4 bulk_rows=4",
}


class Chaos:
    """Two schedulers and three workers on simulated OLTs; each worker has lines of its own that can be cut."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self._folder = folder
        self._began = time.monotonic()
        self._all = ExitStack()
        self._stops_at = 0.0
        # To PostgreSQL and to Redis, by worker.
        self.lines: dict[str, tuple[Line, Line]] = {}
        # Workers to which something is being done.
        self._taken: set[str] = set()
        self._lock = Lock()
        self.story: list[str] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            fleet = stack.enter_context(Fleet(self._folder, olts=6, onus=150))
            for olt, fault in SLOW.items():
                fleet.control(f"{olt} {fault}")
            settings = {"FACHO_LEASE_SECONDS": str(LEASE_SECONDS)}
            self.stack = stack.enter_context(Stack(self._folder, fleet, JOBS, **settings))
            self.stack.database.do(AUDIT)
            for name in WORKERS:
                self.lines[name] = to_postgres, to_redis = Line(self.stack.postgres.url), Line(self.stack.redis.url)
                stack.callback(to_postgres.close)
                stack.callback(to_redis.close)
                url = f"{to_postgres.url}?application_name={name}"
                self.stack.worker(name, POLLERS, DATABASE_URL=url, FACHO_REDIS_URL=to_redis.url)
            for name in SCHEDULERS:
                self.stack.scheduler(name)
            self.stack.await_ready()
            self._all = stack.pop_all()
        self.until_it_works()
        return self

    def __exit__(self, *_: object) -> None:
        self._all.close()

    def log(self, sentence: str) -> None:
        self.story.append(f"{time.monotonic() - self._began:6.1f} s  {datetime.now(UTC):%H:%M:%S}  {sentence}")
        with (self._folder / "story").open("a") as file:
            file.write(f"{self.story[-1]}\n")

    def ask(self, question: str, *values: Any) -> list[dict[str, Any]]:
        """Ask the database, as soon as there is one."""
        answers: list[list[dict[str, Any]]] = []

        def try_it() -> bool:
            try:
                answers.append(self.stack.database.rows(question, *values))
            except psycopg.OperationalError:
                return False
            return True

        wait_for(try_it, "the database answers")
        return answers[-1]

    def holders(self, keys: str) -> set[str]:
        """Return the roles that hold leases like these."""
        found = self.ask("SELECT holder FROM leases WHERE key LIKE %s AND expires_at > now()", keys)
        return {str(row["holder"]).split("/")[0] for row in found}

    def busy_workers(self) -> list[Role]:
        """Return the workers that have been asking a slow OLT for less than two seconds."""
        question = (
            "SELECT l.holder FROM snmp_executions e JOIN olts o ON o.id = e.olt_id"
            " JOIN leases l ON l.key = 'device:' || e.device"
            " WHERE e.status = 'RUNNING' AND e.started_at > now() - interval '2 seconds' AND o.name = ANY(%s)"
        )
        names = {str(row["holder"]).split("/")[0] for row in self.ask(question, list(SLOW))}
        return [self.stack.roles[name] for name in sorted(names) if self.stack.roles[name].is_alive]

    def take(self, random: Random) -> Role | None:
        """Take a busy worker to which nobody does anything."""
        busy = self.busy_workers()
        with self._lock:
            free = [worker for worker in busy if worker.name not in self._taken]
            if not free:
                return None
            worker = random.choice(free)
            self._taken.add(worker.name)
        return worker

    def give_back(self, worker: Role) -> None:
        with self._lock:
            self._taken.discard(worker.name)

    def until_it_works(self) -> None:
        """Wait for a run that begins from now on, and for its success."""
        since = datetime.now(UTC)
        question = "SELECT 1 FROM snmp_executions WHERE started_at > %s AND status = 'SUCCESS'"
        wait_for(lambda: self.ask(question, since), "a run succeeds again", ONE_MINUTE)

    def go_through_all(self) -> None:
        """Let everything happen once, in some order."""
        self._with_all_hands(self._once)

    def go_on_for(self, minutes: float) -> None:
        """Let things happen for so long."""
        self._stops_at = time.monotonic() + minutes * 60
        self._with_all_hands(self._again_and_again)

    def _with_all_hands(self, go: Callable[[Hand, Sequence[Fault]], None]) -> None:
        with ThreadPoolExecutor(len(FAULTS)) as pool:
            hands = [
                pool.submit(go, Hand(self, Random(f"{self.seed} {name}")), faults) for name, faults in FAULTS.items()
            ]
        for hand in hands:
            hand.result()

    def _once(self, hand: Hand, faults: Sequence[Fault]) -> None:
        for fault in hand.random.sample(faults, len(faults)):
            fault(hand)
            self.until_it_works()

    def _again_and_again(self, hand: Hand, faults: Sequence[Fault]) -> None:
        while time.monotonic() < self._stops_at:
            hand.random.choice(faults)(hand)
            # Sometimes the next thing happens before the last one is over.
            if hand.random.random() < 0.5:
                self.until_it_works()

    def settle(self) -> None:
        """Wait until nothing is open that was open at the last fault, and only those who live are on the list."""
        last = datetime.now(UTC)
        question = "SELECT id FROM snmp_executions WHERE status IN ('PENDING', 'RUNNING') AND claimed_at < %s"
        wait_for(lambda: not self.ask(question, last), "everything that was open is over", ONE_MINUTE)
        living = {f"{name}/{self.stack.roles[name].pid}": POLLERS for name in WORKERS}
        try:
            wait_for(
                lambda: self._listed() == living, "the pollers of the living are listed, and no others", ONE_MINUTE
            )
        except Stuck as error:
            raise Stuck(f"{error}: {self._listed()}, not {living}") from None
        self.log("all is quiet")

    def _listed(self) -> dict[str, int]:
        """Return the workers on the list, and how many pollers each has there that were written just now."""
        just_now = "count(*) FILTER (WHERE updated_at > now() - interval '15 seconds') AS pollers"
        rows = self.ask(f"SELECT worker, {just_now} FROM pollers GROUP BY 1")  # noqa: S608 - both parts are ours
        return {str(row["worker"]): int(row["pollers"]) for row in rows}

    def wrongs(self) -> list[str]:
        """Return what the database saw with its own eyes."""
        return [f"{row['at']}: {row['wrong']}" for row in self.ask("SELECT at, wrong FROM chaos_wrongs ORDER BY id")]
