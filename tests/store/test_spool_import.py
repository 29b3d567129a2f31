"""A spool of version 0.4 becomes results of this one, and nothing in it is lost."""

import json

import pytest
from builders import MIN, SEC, T0

from facho.adapters.wire import to_wire
from facho.engine.model import Cause, Collected, Completeness, Identification, Lease, Outcome, Reading, Status
from facho.store.spool import Spool, import_old

NODE = {"id": 1, "olt_id": 7, "name": "Optical power", "kind": "table", "interval": 300.0}
LEASE = {"olt_id": 7, "holder": "noc/3", "token": 200}
READINGS = [
    {"index": "1.7", "slot": 0, "port": 1, "onu": 7, "values": {"rx_dbm": -21.53, "last_up": {"$at": T0.isoformat()}}}
]
COLLECTED = {"completeness": "COMPLETE", "readings": READINGS, "errors": [], "failed_onus": ["ONU 1/7"]}
DONE = {"status": "SUCCESS", "readings": 1, "coverage": [], "failed_onus": ["ONU 1/7"], "had_values": {}}


def harvest(id_, **more):
    entry = {"node": NODE, "execution_id": id_, "collected": COLLECTED, "lease": LEASE, "now": T0.isoformat()}
    return {"kind": "harvest", "entry": entry | more}


def end(*ids, outcome=DONE, lease=LEASE):
    entry = {"execution_ids": list(ids), "outcome": outcome, "lease": lease, "now": (T0 + 1 * SEC).isoformat()}
    return {"kind": "end", "entry": entry}


def identification(id_):
    entry = {"node": NODE, "execution_id": id_, "brand": "huawei", "seen": {"sysName": "central"}, "lease": LEASE}
    return {"kind": "identification", "entry": entry}


def postponement(id_):
    record = end(id_, outcome={"status": "FAILED", "cause": "database_away", "error": "no answer"})
    return {"kind": "postponement", "entry": record["entry"] | {"retry_at": (T0 + 2 * MIN).isoformat()}}


@pytest.fixture
def imported(tmp_path):
    """Import records, and return the results and the files that are left."""
    spool = Spool(tmp_path / "1.sqlite3")

    def run(*records):
        for number, record in enumerate(records):
            path = tmp_path / "1" / f"{number:012}-{record['kind']}-1.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(record))
        import_old(tmp_path, spool)
        numbers = list(range(1, len(spool) + 1))
        return [spool.read(number) for number in numbers], sorted(path.name for path in (tmp_path / "1").iterdir())

    yield run
    spool.close()


def test_readings_and_their_outcome_become_one_result(imported):
    (result,), left = imported(harvest(1), end(1))

    assert (result.execution_ids, result.lease, result.at) == ((1,), Lease(7, "noc/3", 200), T0 + 1 * SEC)
    assert (result.outcome.status, result.outcome.readings) == (Status.SUCCESS, 1)
    assert result.node.name == "Optical power"
    assert list(result.collected.readings) == [Reading("1.7", 0, 1, 7, {"rx_dbm": -21.53, "last_up": T0})]
    assert result.collected.failed_onus == ("ONU 1/7",)
    assert left == []


def test_every_other_record_is_a_result_without_readings(imported):
    results, left = imported(identification(1), end(1), postponement(2), end(3, 4, lease=None))

    assert results[0].identification == Identification("huawei", {"sysName": "central"})
    assert results[1].outcome == Outcome(Status.FAILED, Cause.DATABASE_UNAVAILABLE, "no answer", retry_at=T0 + 2 * MIN)
    assert (results[2].execution_ids, results[2].lease, results[2].has_data) == ((3, 4), None, False)
    assert left == []


def test_readings_whose_outcome_was_never_written_are_kept(imported):
    (result,), _ = imported(harvest(1))

    assert (result.outcome.status, result.outcome.cause) == (Status.INTERRUPTED, Cause.ENGINE_DOWN)
    assert (len(result.collected.readings), result.at) == (1, T0)


def test_a_record_that_cannot_be_read_stays_and_the_others_are_imported(imported, caplog):
    results, left = imported({"kind": "dream", "entry": {}}, end(2))

    assert [result.execution_ids for result in results] == [(2,)]
    assert left == ["000000000000-dream-1.json"]
    assert "was left in place" in caplog.text


def test_the_wire_format_of_readings_is_that_of_the_earlier_version():
    assert to_wire(Collected(Completeness.COMPLETE, (Reading("1.7", 0, 1, 7, {}),)))["readings"] == [
        {"index": "1.7", "slot": 0, "port": 1, "onu": 7, "values": {}}
    ]
