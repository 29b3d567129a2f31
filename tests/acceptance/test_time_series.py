"""A real VictoriaMetrics has exactly the runs of the database, although it and Facho are killed in between."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from installation import Installation, embedded
from scaled import scaled
from simulated import Fleet

from facho.engine.batch import UNREAD
from facho.engine.chunks import FIELDS, RunColumns, decode
from facho.engine.remote_write import ONU_METRICS, STATE_CODES
from server_victoria import LaunchedVictoria

# Whole installations are started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(600)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = ["serial", "name", "state", "distance_m", "rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "voltage_v"]


@pytest.fixture(params=["embedded", "scale"])
def facho(
    request: pytest.FixtureRequest, tmp_path: Path, victoria: LaunchedVictoria, fleet: Fleet
) -> Iterator[Installation]:
    settings = {"FACHO_TSDB_URL": victoria.url}
    if request.param == "embedded":
        running: Any = embedded(request.getfixturevalue("blank"), tmp_path / "data", settings)
    else:
        running = scaled(request.getfixturevalue("servers"), tmp_path / "data", settings)
    with running as facho:
        yield facho


def set_up(facho: Installation, fleet: Fleet) -> dict[str, Any]:
    """Add an OLT with one job, and return its node."""
    found = next(olt for olt in fleet.olts if olt["name"] == "OLT-CENTRAL-01")
    olt = facho.post("olts/", {key: found[key] for key in ("name", "brand", "host", "port", "community")})
    wanted = {"name": "Everything", "brand": olt["brand"], "kind": "discovery", "interval_seconds": 3600}
    job = facho.post("jobs/", {**wanted, "columns": COLUMNS})
    facho.post(f"jobs/{job['id']}/apply/", {"olts": [olt["id"]]})
    (node,) = facho.get("nodes/", olt=olt["id"])["results"]
    return dict(node)


def run(facho: Installation, node: dict[str, Any]) -> None:
    """Run the job by hand, to its end."""

    def ended() -> int:
        return len(facho.get("executions/", node=node["id"], status=["SUCCESS", "PARTIAL"])["results"])

    before = ended()
    facho.post(f"pollers/nodes/{node['id']}/run/")
    facho.wait_for(lambda: ended() > before)


def stored(facho: Installation) -> dict[tuple[str, str, int], float]:
    """Return the values of the database, by metric, serial and time."""
    serials = dict(facho.rows("SELECT id, serial FROM onu_data"))
    found = {}
    for at, data in facho.rows("SELECT at, data FROM onu_history_runs"):
        run = RunColumns(bytes(data))
        for name in run.forms:
            for pk, cell in zip(run.onu_ids, decode(FIELDS[name], run.column(name)), strict=True):
                if cell is not None and cell is not UNREAD:
                    value = STATE_CODES[cell] if name == "state" else float(cell)
                    found[ONU_METRICS[name], serials[pk], milliseconds(at)] = value
    return found


def milliseconds(at: Any) -> int:
    """Return a time as the database has it, SQLite as a text in UTC."""
    if isinstance(at, str):
        at = datetime.fromisoformat(at).replace(tzinfo=UTC)
    return (at - EPOCH) // timedelta(milliseconds=1)


def in_store(victoria: LaunchedVictoria) -> dict[tuple[str, str, int], float]:
    """Return the same of the store, which must have each sample once."""
    found: dict[tuple[str, str, int], float] = {}
    metrics = {ONU_METRICS[name] for name in FIELDS}
    for labels, samples in victoria.samples().items():
        named = dict(labels)
        assert len({at for at, _ in samples}) == len(samples), f"{named} has a sample twice"
        if named["__name__"] in metrics:
            for at, value in samples:
                assert found.setdefault((named["__name__"], named["serial"], at), value) == value, "two series"
    return found


def outbox(facho: Installation) -> int:
    return int(facho.rows("SELECT COUNT(*) FROM tsdb_outbox")[0][0])


def test_after_any_kill_the_store_has_every_run_once(facho: Installation, fleet: Fleet, victoria: LaunchedVictoria):
    node = set_up(facho, fleet)
    run(facho, node)
    facho.wait_for(lambda: in_store(victoria))
    # It has accepted the run, and not written it yet.
    victoria.kill()
    victoria.start()
    run(facho, node)
    victoria.kill()
    run(facho, node)
    # Facho dies with runs that nobody has, and starts again before the store.
    facho.kill()
    facho.start()
    run(facho, node)
    victoria.start()
    facho.wait_for(lambda: len(in_store(victoria)) == len(stored(facho)))
    # Both have the run, and it is still in the outbox.
    facho.kill()
    victoria.kill()
    victoria.start()
    facho.start()
    run(facho, node)

    facho.wait_for(lambda: not outbox(facho))

    readings = stored(facho)
    assert len({at for _, _, at in readings}) == 5
    assert in_store(victoria) == readings
    # On disk, not only in memory.
    victoria.kill()
    victoria.start()
    assert in_store(victoria) == readings
    (online,) = victoria.query('sum(last_over_time(facho_port_onus{state="online"}[1h]))')
    assert float(online["value"][1]) == facho.rows("SELECT COUNT(*) FROM onu_data WHERE state = 'online'")[0][0]
