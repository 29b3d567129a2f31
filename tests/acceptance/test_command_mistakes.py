"""What people mistype is answered by a sentence about it, and what programs read stays JSON."""

import json
import subprocess
import sys

import pytest
from simulated import ENVIRONMENT, sim


def facho(folder, *words):
    environment = ENVIRONMENT | {"FACHO_DATA_DIR": str(folder / "nothing")}
    command = [sys.executable, "-m", "facho.runtime.cli", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["collect", "192.0.2.1", "--window=many"], "'many' is not a whole number", id="a window in words"),
        pytest.param(["collect", "192.0.2.1", "--timeout=soon"], "soon is not a number above 0", id="a time in words"),
        pytest.param(["sim", "--onus=some"], "'some' is not a whole number", id="ONUs in words"),
        pytest.param(["sim", "--port=http"], "'http' is not a whole number", id="a port in words"),
        pytest.param(["sim", "--recording=away.snmprec"], "away.snmprec: No such file", id="a recording that is away"),
        pytest.param(["sim", "--recording=."], ".: Is a directory", id="a folder for a recording"),
    ],
)
def test_a_mistake_is_named_as_the_person_wrote_it(tmp_path, words, sentence):
    said = facho(tmp_path, *words)

    assert said.returncode == 2
    assert sentence in said.stderr
    assert "Errno" not in said.stderr
    assert "Traceback" not in said.stderr


def test_a_program_gets_json_of_an_olt_that_answers_and_whose_maker_nobody_knows(tmp_path):
    with sim(tmp_path, "--too-big-above=0") as olt:
        said = facho(tmp_path, "collect", "--json", olt.address)

    report = json.loads(said.stdout)
    assert said.returncode == 2
    assert (report["brand"], report["onus"], report["coverage"], report["failed_onus"]) == (None, [], [], [])
    assert "no known brand matches" in report["errors"][0]
