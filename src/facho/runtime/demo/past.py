"""The past of the demo: what Facho would have stored in the 30 days before the first start.

Nothing is polled. The values are those of the simulated plants at these times, and the writers are those of a run.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from facho.adapters.clock import SystemClock
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.brands import brand
from facho.brands.decode import RAW_DECODERS
from facho.engine.batch import Batch, BatchLayout
from facho.engine.collect import collect
from facho.engine.model import Cause, Collected, Completeness, JobKind, Node, Status
from facho.engine.model import Olt as PolledOlt
from facho.engine.presence import USUAL_RULES
from facho.engine.quota.quota import HOUR, hour_of
from facho.engine.snmp import Agent, Community, Version
from facho.problems.evaluation import ENDS_AFTER, ProblemWatch
from facho.simulator import stories
from facho.simulator.device import Device
from facho.simulator.direct import COMMUNITY, DirectSnmp
from facho.simulator.fleet import OltSpec, build
from facho.simulator.life import Down, Observed, Onu, observe
from facho.simulator.stories import Stories
from facho.store import history, quotas
from facho.store.inventory import Inventory
from facho.store.runs import write_collected

DAYS = timedelta(days=30)
# Readings are denser on the last day.
SPARSE, DENSE, DENSE_FOR = timedelta(hours=8), timedelta(hours=1), timedelta(days=1)
# Readings of ONUs. With more ONUs than usual they are less dense, so that the first start does not take minutes.
MOST_READINGS = 800_000

# A failure is noticed by the next run over the states.
NOTICED_AFTER = timedelta(seconds=30)
# Its ONUs were read this time before that.
BEFORE = timedelta(minutes=2)

# Hours with quotas; in the last one, the optics of the slow OLT got only this share of their runs.
QUOTA_HOURS, SHARE_LATE = 24, 0.55
# Duration of a run, and of one of those optics: longer than their interval, so slots are lost.
SECONDS, SECONDS_LATE = 1.5, 50.0

STATES = {Down.LOS: "los", Down.DYING_GASP: "dying_gasp", Down.OFFLINE: "offline", Down.DEACTIVATED: "disabled"}
# Words of each brand for causes that are no states.
CAUSES = {
    "huawei": {Down.OFFLINE: "reset", Down.DEACTIVATED: "deactivated"},
    "zte_c300": {Down.OFFLINE: "unknown", Down.DEACTIVATED: "deactivated"},
}


class Past:
    """The plants of a fleet as they were before the first start."""

    def __init__(self, specs: Sequence[OltSpec], began: datetime) -> None:
        self.began = began
        healthy = {spec.name: build(spec) for spec in specs if not spec.faults.mute}
        told = Stories({name: device.plant for name, device in healthy.items()}, began.timestamp())
        self.devices = {name: device.replanted(told.applied(name, device.plant)) for name, device in healthy.items()}
        # OLTs that read their optics too slowly.
        self._slow = {spec.name for spec in specs if spec.faults.per_optical_row}

    def write(self, olts: Iterable[Olt], now: datetime) -> None:
        """Write the past of new OLTs in the open transaction."""
        pasts = [OltPast(olt, self.devices[olt.name], now - DAYS) for olt in olts if olt.name in self.devices]
        failures, watch = self._failures(), ProblemWatch()
        for at in sorted(
            {*self._times(now, sum(past.size for past in pasts)), *failures, *(at - BEFORE for at in failures)}
        ):
            for past in pasts:
                # The last values before a failure stay on the pages of its ONUs.
                past.read(at, is_full=at + BEFORE in failures)
            if at in failures:
                watch.evaluate(at, is_stale=True)
        for past in pasts:
            past.read(now, is_full=True)
        self._count_quotas([past.olt for past in pasts], now)
        watch.evaluate(now, is_stale=True)

    def _times(self, now: datetime, onus: int) -> list[datetime]:
        factor = max(onus * (DAYS / SPARSE + DENSE_FOR / DENSE) / MOST_READINGS, 1)
        sparse, dense = SPARSE * factor, DENSE * factor
        start, middle = now - DAYS, now - DENSE_FOR
        times = [start + step * sparse for step in range(1, int((middle - start) / sparse) + 1)]
        return times + [middle + step * dense for step in range(1, int((now - middle) / dense))]

    def _failures(self) -> list[datetime]:
        """Return when the runs noticed the failures before the first start, and their ends."""
        cut, repaired, dark = (
            self.began - timedelta(seconds=seconds) + NOTICED_AFTER
            for seconds in (stories.CUT, stories.REPAIRED, stories.DARK)
        )
        return [cut, repaired, repaired + ENDS_AFTER, dark]

    def _count_quotas(self, olts: Sequence[Olt], now: datetime) -> None:
        """Count the runs of the last hours, and let one quota be violated."""
        ended = []
        for node in WorkflowNode.objects.filter(olt__in=olts).select_related("job", "olt", "master__job"):
            slots = int(HOUR.total_seconds() // (node.master or node).interval_seconds)
            for back in range(1, QUOTA_HOURS + 1) if slots else ():
                is_late = back == 1 and node.olt.name in self._slow and "rx_dbm" in node.job.columns
                hour, done = hour_of(now) - back * HOUR, int(slots * SHARE_LATE) if is_late else slots
                seconds = SECONDS_LATE if is_late else SECONDS
                if back == 1 and node.olt.name in self._slow and node.master is None:
                    _add_runs(node, hour, slots, done, seconds)
                run = quotas.Ended(node.olt_id, node.pk, node.job.name, hour, Status.SUCCESS, done)
                ended.append(replace(run, milliseconds=int(done * seconds * 1000)))
                if is_late:
                    skipped = replace(run, status=Status.SKIPPED, slots=slots - done, cause=Cause.OLT_BUSY)
                    ended.append(skipped)
        quotas.count(ended)
        quotas.settle(now)


def _add_runs(node: WorkflowNode, hour: datetime, slots: int, done: int, seconds: float) -> None:
    """Add the executions of an hour with a violation, from which its report names the slowest jobs.

    Runs that are longer than their interval follow each other; the slots between them are skipped.
    """
    onus, interval = node.olt.onus.count(), HOUR / slots
    ran: dict[int, datetime] = {number * slots // done: hour + number * HOUR / done for number in range(done)}
    common = {"olt_id": node.olt_id, "node": node, "node_name": node.job.name}
    executions = Execution.objects.bulk_create(
        Execution(
            **common, slot=hour + number * interval, status=Status.SUCCESS, claimed_at=at, started_at=at,
            ended_at=at + timedelta(seconds=seconds), completeness=Completeness.COMPLETE, readings=onus,
            waits={Cause.OLT_BUSY: late} if (late := (at - hour - number * interval).total_seconds()) else {},
        )
        for number, at in ran.items()
    )  # fmt: skip
    ExecutionAttempt.objects.bulk_create(
        ExecutionAttempt(execution=each, number=1, status=Status.SUCCESS, started_at=at, ended_at=each.ended_at)
        for each, at in zip(executions, ran.values(), strict=True)
    )
    Execution.objects.bulk_create(
        Execution(**common, slot=hour + number * interval, status=Status.SKIPPED, cause=Cause.OLT_BUSY)
        for number in range(slots)
        if number not in ran
    )


class OltPast:
    """The past of one OLT, from a discovery on, in the order of time."""

    def __init__(self, olt: Olt, device: Device, start: datetime) -> None:
        self.olt = olt
        self._node = Node(0, olt.pk, "", JobKind.TABLE, SPARSE, olt.name)
        self._causes = STATES | CAUSES[device.brand]
        self._inventory = Inventory.load(olt.pk)
        discovery = replace(self._node, kind=JobKind.DISCOVERY, columns=tuple(brand(device.brand).columns))
        # What was learned of an agent without delays does not help with a slow one.
        found = replace(asyncio.run(read_all(discovery, olt, device, start)), learned={})
        write_collected(self._inventory, discovery, found, USUAL_RULES, start)
        columns = self._inventory.columns
        places = list(zip(*(columns[name] for name in ("slot", "port", "onu")), strict=True))
        onus = {(onu.position.slot, onu.position.port, onu.position.onu): onu for onu in device.plant.onus}
        # In the order of the inventory.
        self._onus: list[Onu] = [onus[place] for place in places]
        self._layout = BatchLayout(tuple(columns["index"]), *map(tuple, zip(*places, strict=True)))

    @property
    def size(self) -> int:
        return len(self._onus)

    def read(self, at: datetime, *, is_full: bool = False) -> None:
        """Store the values of a time. Values that always change become the present ones only by a full one."""
        seen = [observe(onu, at.timestamp()) for onu in self._onus]
        values = _values(seen)
        read = self._states(seen) | (values if is_full else {})
        collected = Collected(Completeness.COMPLETE, Batch(self._layout, read))
        write_collected(self._inventory, self._node, collected, USUAL_RULES, at)
        if not is_full:
            history.append(self.olt.pk, at, self._inventory.ids, values)

    def _states(self, seen: Sequence[Observed]) -> dict[str, list[Any]]:
        return {
            "state": ["online" if each.up else STATES[each.cause] for each in seen],
            "down_cause": [self._causes[each.cause] for each in seen],
            "distance_m": [each.distance_m for each in seen],
            "last_up": [_moment(each.last_up) for each in seen],
            "last_down": [_moment(each.last_down) for each in seen],
        }


def _values(seen: Sequence[Observed]) -> dict[str, list[Any]]:
    optics = [each.optics for each in seen]
    return {
        "rx_dbm": [each and round(each.rx_dbm, 2) for each in optics],
        "tx_dbm": [each and round(each.tx_dbm, 2) for each in optics],
        "olt_rx_dbm": [each and round(each.olt_rx_dbm, 2) for each in optics],
        "temperature_c": [each and round(each.temperature_c) for each in optics],
        "in_octets": [each.in_octets for each in seen],
        "out_octets": [each.out_octets for each in seen],
    }


# Most ONUs go up and down rarely, so they have the same times in all readings.
@lru_cache(maxsize=10_000)
def _moment(seconds: float | None) -> datetime | None:
    """Return a time as an OLT reports it, in whole seconds."""
    return None if seconds is None else datetime.fromtimestamp(int(seconds), UTC)


async def read_all(node: Node, olt: Olt, device: Device, at: datetime) -> Collected:
    """Read all values of all ONUs, as a poller would."""
    clock = SystemClock()
    agent = Agent(olt.host, olt.port, Version.V2C, Community(COMMUNITY))
    return await collect(
        node,
        PolledOlt(olt.pk, olt.name, device.brand, agent),
        brand(device.brand),
        snmp=DirectSnmp(device, at.timestamp()),
        clock=clock,
        deadline=clock.now() + node.timeout,
        known=(),
        raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
    )
