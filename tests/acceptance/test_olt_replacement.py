"""The device of an OLT is replaced by another one of its brand, and then by one of another brand: nothing is lost."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from installation import Installation, embedded

from command_stage import simulated
from facho.simulator.fleet import OltSpec, SimulatedFleet

# A whole installation is started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(300)

ONUS = 60


@pytest.fixture(scope="module")
def fleet() -> Iterator[SimulatedFleet]:
    """Three devices with the same customers, each with its own places and counters."""
    specs = [OltSpec("OLD", onus=ONUS), OltSpec("NEW", onus=ONUS, seed=2), OltSpec("ZTE", "zte_c300", ONUS, seed=3)]
    with simulated(*specs) as fleet:
        customers = fleet["OLD"].device.plant.onus
        for name in ("NEW", "ZTE"):
            plant = fleet[name].device.plant
            pairs = zip(plant.onus, reversed(customers), strict=True)
            onus = tuple(replace(onu, serial=customer.serial, mac=customer.mac) for onu, customer in pairs)
            fleet[name].agent.install(fleet[name].device.replanted(replace(plant, onus=onus)))
        yield fleet


@pytest.fixture
def facho(blank: Path, tmp_path: Path) -> Iterator[Installation]:
    with embedded(blank, tmp_path / "data") as facho:
        yield facho


def settled(facho: Installation) -> dict[str, int] | None:
    """Return the ids of the ONUs by their serial when all of them have a place."""
    found = facho.rows("SELECT serial, id FROM onu_data WHERE NOT place_taken AND missing_since IS NULL")
    return dict(found) if len(found) == ONUS else None


def places(facho: Installation) -> set[tuple[Any, ...]]:
    return set(facho.rows("SELECT serial, slot, port, onu FROM onu_data"))


def device(fleet: SimulatedFleet, name: str) -> dict[str, Any]:
    return {"host": fleet[name].host, "port": fleet[name].port, "community": "public"}


def test_customers_keep_their_history_on_each_new_device(facho: Installation, fleet: SimulatedFleet):
    olt = facho.post("olts/", {"name": "OLT-SUR-03", **device(fleet, "OLD")})["id"]
    facho.wait_for(lambda: facho.get("nodes/", olt=olt, search="Discovery")["results"])
    facho.post("olts/bulk/", {"action": "discover", "ids": [olt]})
    before = facho.wait_for(lambda: settled(facho))
    old_places = places(facho)
    note = facho.post(f"onus/{min(before.values())}/notes/", {"text": "Dog bites."})["id"]

    facho.post(f"olts/{olt}/replace/", device(fleet, "NEW"))
    after = facho.wait_for(lambda: settled(facho))
    new_places = places(facho)
    facho.post(f"olts/{olt}/replace/", {**device(fleet, "ZTE"), "brand": ""})
    facho.wait_for(lambda: facho.get(f"olts/{olt}/")["brand"])
    facho.post("olts/bulk/", {"action": "discover", "ids": [olt]})
    last = facho.wait_for(lambda: settled(facho))

    assert before == after == last
    assert len({frozenset(each) for each in (old_places, new_places, places(facho))}) == 3
    assert facho.get(f"olts/{olt}/")["brand"] == "zte_c300"
    assert facho.rows("SELECT count(*) FROM onu_data") == [(ONUS,)]
    assert facho.rows("SELECT count(*) FROM onu_events WHERE new IN ('missing', 'replaced')") == [(0,)]
    assert facho.rows("SELECT suspect_since FROM olts") == [(None,)]
    assert facho.get(f"notes/{note}/")["text"] == "Dog bites."
    brands = facho.rows("SELECT DISTINCT j.brand FROM snmp_job_hosts n JOIN snmp_jobs j ON j.id = n.job_id")
    assert brands == [("zte_c300",)]


def test_a_deleted_olt_is_gone_although_it_is_polled(facho: Installation, fleet: SimulatedFleet):
    olt = facho.post("olts/", {"name": "OLT-SUR-03", **device(fleet, "OLD")})["id"]
    facho.wait_for(lambda: facho.get("nodes/", olt=olt, search="Discovery")["results"])
    facho.post("olts/bulk/", {"action": "discover", "ids": [olt]})
    facho.wait_for(lambda: settled(facho))
    facho.post("olts/bulk/", {"action": "discover", "ids": [olt]})

    status, _ = facho.call("DELETE", f"olts/{olt}/")

    assert status in (202, 204)
    facho.wait_for(lambda: not facho.rows("SELECT id FROM olts"))
    for table in ("onu_data", "onu_events", "snmp_executions", "snmp_job_hosts", "pon_ports", "onu_history_runs"):
        assert facho.rows(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608 - names of tables
