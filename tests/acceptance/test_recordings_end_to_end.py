"""Recordings of real devices through everything: `facho sim` serves them, `facho collect` reads them, null by null.

They are not ours to publish. FACHO_RECORDINGS names their folder, where they are at hand.
"""

import csv
import os
from pathlib import Path

import pytest
from simulated import collect, sim

RECORDINGS = Path(os.environ.get("FACHO_RECORDINGS") or "no-recordings")

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="FACHO_RECORDINGS does not name a folder of recordings")

WHOLE = ("slot", "port", "onu", "in_octets", "out_octets")
NUMBERS = ("rx_dbm", "tx_dbm", "olt_rx_dbm", "distance_m")
WORDS = ("index", "name", "serial", "state", "model")
# The words of an interface for the states of an ONU.
STATES = {"up": "online", "down": "offline"}


def expected(table):
    """Return what a recording must decode to; an empty cell must be null."""
    with (RECORDINGS / "expected" / f"{table}.csv").open(encoding="utf-8") as file:
        return [_cells(row) for row in csv.DictReader(file)]


def _cells(row):
    cells = {name: int(row[name]) if row[name] else None for name in WHOLE}
    cells |= {name: float(row[name]) if row[name] else None for name in NUMBERS}
    cells |= {name: row[name] or None for name in WORDS}
    return cells | {"state": STATES.get(cells["state"], cells["state"])}


def by_index(onus):
    return sorted(({name: onu[name] for name in (*WHOLE, *NUMBERS, *WORDS)} for onu in onus), key=str)


@pytest.mark.parametrize(
    ("name", "options", "brand", "table"),
    [
        pytest.param("edgeosolt", [], "ubiquiti", "edgeosolt", id="Ubiquiti"),
        pytest.param("vsolution_v1600d", [], "vsol_epon", "vsolution_v1600d", id="V-SOL"),
        pytest.param("bdcom", [], "bdcom_gpon", "bdcom_gp3600", id="BDCOM"),
        pytest.param("zxa10_c320", [], "zte_c300", "zxa10_c320_onu_distance", id="ZTE"),
        pytest.param(
            "zxa10_c320", ["--keep-order"], "zte_c300", "zxa10_c320_onu_distance", id="ZTE, out of order as it was"
        ),
    ],
)
def test_every_onu_of_a_recording_is_collected_as_expected(tmp_path, name, options, brand, table):
    with sim(tmp_path, f"--recording={RECORDINGS / name}.snmprec", *options) as olt:
        status, report = collect(tmp_path, olt.address)
        asked = olt.asked()

    assert (status, report["brand"], report["completeness"]) == (0, brand, "COMPLETE")
    assert by_index(report["onus"]) == by_index(expected(table))
    assert report["stats"]["pdus"] + report["olt"]["identify_pdus"] == asked


def test_an_olt_whose_port_counts_onus_that_it_does_not_list_is_not_called_complete(tmp_path):
    with sim(tmp_path, f"--recording={RECORDINGS / 'smartax'}.snmprec") as olt:
        status, report = collect(tmp_path, olt.address)

    assert (status, report["brand"], report["completeness"]) == (3, "huawei", "PARTIAL")
    assert report["onus"] == []
    assert any("0/15" in error and "11" in error for error in report["errors"])
