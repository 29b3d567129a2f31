"""An OLT whose maker nobody has said: it is found out, put to work, and its ONUs are kept track of from then on."""

import http.client

import pytest
from installation import Installation
from simulated import Sim, sim

# Whole installations are started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(300)

ONUS = 60


def add(facho: Installation, name: str, olt: Sim) -> int:
    """Add an OLT as somebody does who knows only its address, and return its id."""
    body = {"name": name, "host": olt.host, "port": olt.port, "community": "public"}
    return int(facho.post("olts/", body)["id"])


def run_now(facho: Installation, olt_id: int, job: str) -> dict:
    """Run a job of an OLT now, and return its execution."""
    (node,) = (each for each in nodes(facho, olt_id) if each["job_name"] == job)
    before = {each["id"] for each in facho.get("executions/", node=node["id"])["results"]}
    facho.post(f"pollers/nodes/{node['id']}/run/")

    def ended():
        rows = facho.get("executions/", node=node["id"])["results"]
        return [row for row in rows if row["id"] not in before and row["status"] not in ("PENDING", "RUNNING")]

    return facho.wait_for(ended)[0]


def nodes(facho: Installation, olt_id: int) -> list[dict]:
    return facho.get("nodes/", olt=olt_id)["results"]


def cost(facho: Installation, olt_id: int) -> int | None:
    """Return the requests by executions of an OLT, and the check before the first; None while one is not over."""
    rows = facho.get("executions/", olt=olt_id)["results"]
    if any(row["status"] in ("PENDING", "RUNNING") for row in rows):
        return None
    return 1 + sum(row["pdus"] for row in rows)


def onus(facho: Installation, olt_id: int) -> list[dict]:
    return facho.get("onus/", olt=olt_id, page_size=200)["results"]


def place(onu: dict) -> str:
    return "{slot}/{port}/{onu}".format(**onu)


def page(facho: Installation, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", facho.port, timeout=30)
    connection.request("GET", path, headers={"Cookie": facho._session()})
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_olts_of_any_maker_are_found_out_and_put_to_work(facho: Installation, tmp_path):
    with (
        sim(tmp_path, "--brand=huawei", f"--onus={ONUS}") as central,
        sim(tmp_path, "--brand=zte_c300", f"--onus={ONUS}", "--latency=0.02") as norte,
        sim(tmp_path, "--brand=huawei", "--mute") as sur,
    ):
        sims = {"OLT-CENTRAL-01": central, "OLT-NORTE-02": norte, "OLT-SUR-03": sur}
        ids = {name: add(facho, name, olt) for name, olt in sims.items()}
        known = {name: olt_id for name, olt_id in ids.items() if name != "OLT-SUR-03"}
        facho.wait_for(lambda: all(facho.get(f"olts/{olt_id}/")["brand"] for olt_id in known.values()))
        runs = {name: run_now(facho, olt_id, "Discovery") for name, olt_id in known.items()}
        (failed,) = facho.wait_for(lambda: facho.get("executions/", olt=ids["OLT-SUR-03"], status="FAILED")["results"])
        # Between two runs: the first of the grid come after a minute, which a test may take.
        facho.wait_for(lambda: all(cost(facho, known[name]) == sims[name].asked() for name in known))

    assert {facho.get(f"olts/{olt_id}/")["brand"] for olt_id in known.values()} == {"huawei", "zte_c300"}
    assert {name: (run["status"], run["readings"]) for name, run in runs.items()} == dict.fromkeys(
        known, ("SUCCESS", ONUS)
    )
    assert all({"Discovery", "State"} <= {node["job_name"] for node in nodes(facho, each)} for each in known.values())
    assert failed["cause"] == "unreachable"
    assert [node["kind"] for node in nodes(facho, ids["OLT-SUR-03"])] == ["identify"]


@pytest.fixture
def central(facho: Installation, tmp_path):
    """OLT-CENTRAL-01 after its first discovery: the simulator, and its id."""
    with sim(tmp_path, f"--onus={ONUS}") as olt:
        olt_id = add(facho, "OLT-CENTRAL-01", olt)
        facho.wait_for(lambda: facho.get(f"olts/{olt_id}/")["brand"])
        run_now(facho, olt_id, "Discovery")
        yield olt, olt_id


def test_an_onu_goes_missing_after_two_discoveries_and_one_that_moves_stays_itself(facho: Installation, central):
    olt, olt_id = central
    gone, mover = [onu for onu in onus(facho, olt_id) if onu["onu"] == 7][:2]
    run_now(facho, olt_id, "State")
    # In this order: else it would move in where the other has left.
    olt.type(f"move {place(mover)} {gone['slot']}/{gone['port']}")
    olt.type(f"go {place(gone)}")

    seen = []
    for _ in range(2):
        run_now(facho, olt_id, "Discovery")
        seen.append(facho.get(f"onus/{gone['id']}/"))

    moved = facho.get(f"onus/{mover['id']}/")
    assert [(onu["misses"], onu["is_missing"], onu["serial"]) for onu in seen] == [
        (1, False, gone["serial"]),
        (2, True, gone["serial"]),
    ]
    assert (moved["serial"], moved["port"], moved["moved_from"]) == (mover["serial"], gone["port"], place(mover))
    assert len(onus(facho, olt_id)) == ONUS
    # Its state was read a moment ago: that alone would look well.
    why = page(facho, f"/onus/{gone['id']}/")
    assert "The ONU has been missing since" in why
    assert "it is on schedule" not in why


def test_a_mass_vanishing_is_held_until_a_discovery_that_came_to_its_end_confirms_it(facho: Installation, central):
    olt, olt_id = central
    vanishing = onus(facho, olt_id)[::2]
    for onu in vanishing:
        olt.type(f"go {place(onu)}")

    stages = []
    for faults in ("well", "disorder=loop disorder-at-row=5", "well"):
        olt.type(faults)
        run = run_now(facho, olt_id, "Discovery")
        row = facho.get(f"olts/{olt_id}/")
        stages.append((run["status"], row["onus_missing"], row["suspect_since"] is not None))

    assert stages == [("SUCCESS", 0, True), ("PARTIAL", 0, True), ("SUCCESS", len(vanishing), False)]
