"""Questions to a forecast: the fleet of today with more OLTs, or with another interval of a job."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from facho.engine.forecast.failures import RunRecord
from facho.engine.forecast.fleet import Durations, Fleet
from facho.engine.model import Node
from facho.engine.quota.durations import Prediction
from facho.engine.quota.hour_plan import HOUR
from facho.engine.scheduling.grid import GOLDEN_RATIO


@dataclass(frozen=True, slots=True)
class FleetQuestion:
    """What would be different. Pollers are not part of a fleet, and are added where it is simulated."""

    more_olts: int = 0
    more_pollers: int = 0
    interval: timedelta | None = None
    # Masters that get this interval.
    node_ids: frozenset[int] = frozenset()

    @property
    def changes_nothing(self) -> bool:
        return not (self.more_olts or self.more_pollers or self.interval)


@dataclass(frozen=True, slots=True)
class AskedFleet:
    """A fleet of a question. `copies`: the node that each node of an additional OLT was copied from."""

    fleet: Fleet
    copies: Mapping[int, int] = field(default_factory=dict)


def asked_fleet(fleet: Fleet, question: FleetQuestion, start: datetime) -> AskedFleet:
    """Return the fleet of today as the question would change it: first the interval, then the OLTs."""
    if question.interval is not None:
        fleet = with_interval(fleet, question.node_ids, question.interval)
    return with_copies(fleet, question.more_olts, start)


def with_interval(fleet: Fleet, node_ids: Collection[int], interval: timedelta) -> Fleet:
    """Return a fleet with another interval of these masters."""
    changed = (replace(node, interval=interval) if node.id in node_ids else node for node in fleet.nodes)
    return replace(fleet, nodes=tuple(changed))


def with_copies(fleet: Fleet, number: int, start: datetime) -> AskedFleet:
    """Return a fleet with copies of its OLTs: their jobs, durations and failures, with slots of their own.

    The OLTs are ordered by load and taken at equal distances, so that any number of copies has the mix of the fleet.
    OLTs that never answer are not copied: they would need no poller.
    """
    by_olt: dict[int, list[Node]] = {}
    for node in fleet.nodes:
        if node.olt_id not in fleet.dead:
            by_olt.setdefault(node.olt_id, []).append(node)
    if not number or not by_olt:
        return AskedFleet(fleet)
    loads = {olt_id: _load(nodes, fleet.durations, start) for olt_id, nodes in by_olt.items()}
    ordered = sorted(loads, key=lambda olt_id: (loads[olt_id], olt_id))
    chosen = [ordered[(2 * place + 1) * len(ordered) // (2 * number)] for place in range(number)]
    last_node, last_olt = (max(ids) for ids in zip(*((node.id, node.olt_id) for node in fleet.nodes), strict=True))
    originals: dict[int, Node] = {}
    records: dict[int, RunRecord] = dict(fleet.records)
    nodes = list(fleet.nodes)
    for place, olt_id in enumerate(chosen, 1):
        ids = {node.id: last_node + each for each, node in enumerate(by_olt[olt_id], len(originals) + 1)}
        for node in by_olt[olt_id]:
            nodes.append(_copy(node, ids, last_olt + place, start))
            originals[ids[node.id]] = node
        if olt_id in fleet.records:
            record = fleet.records[olt_id]
            habits = {ids[id_]: habit for id_, habit in record.habits.items() if id_ in ids}
            records[last_olt + place] = replace(record, habits=habits)

    def durations(node: Node, at: datetime) -> Prediction:
        return fleet.durations(originals.get(node.id, node), at)

    copies = {id_: node.id for id_, node in originals.items()}
    return AskedFleet(replace(fleet, nodes=tuple(nodes), durations=durations, records=records), copies)


def _copy(node: Node, ids: Mapping[int, int], olt_id: int, start: datetime) -> Node:
    id_ = ids[node.id]
    master_id = None if node.master_id is None else ids.get(node.master_id)
    slot = None
    if master_id is None:
        slot = (start + id_ * GOLDEN_RATIO % 1 * node.interval).replace(microsecond=0)
    return replace(node, id=id_, olt_id=olt_id, olt_name=f"+ {node.olt_name}", master_id=master_id, next_check=slot)


def _load(nodes: Collection[Node], durations: Durations, start: datetime) -> float:
    """Return the seconds of an hour that an OLT is polled."""
    intervals = {node.id: node.interval for node in nodes}
    return sum(
        durations(node, start).mean * (HOUR / intervals.get(node.master_id or node.id, node.interval)) for node in nodes
    )
