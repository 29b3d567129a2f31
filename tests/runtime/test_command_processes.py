"""`facho sim` and who asks it, as processes of their own: what is printed, what can be typed, and how they end."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from command_stage import simulated, where
from facho.simulator.fleet import OltSpec

HEAVY = ("django", "cryptography", "dj_database_url", "snmp", "rest_framework")


def environment(tmp_path):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FACHO_", "DJANGO_"))}
    return kept | {"FACHO_DATA_DIR": str(tmp_path / "nothing"), "PYTHONUNBUFFERED": "1"}


def facho(*words, tmp_path, code=None):
    start = ["-c", code] if code else ["-m", "facho.runtime.cli"]
    return subprocess.run(
        [sys.executable, *start, *words], env=environment(tmp_path), capture_output=True, text=True, timeout=60
    )


class Sim:
    """A running `facho sim`, from the line that says where it is."""

    def __init__(self, process):
        self._process = process
        self.greeting = process.stdout.readline()
        self.address = re.search(r"answers on (127\.0\.0\.1:\d+)", self.greeting)[1]

    def type(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def wait_for(self, text):
        """Return the first line with this text. The test's own timeout ends a wait for what never comes."""
        return next(line for line in self._process.stdout if text in line)

    def complains(self):
        return self._process.stderr.readline()

    def stop(self):
        """Press Ctrl-C, and return status and last words."""
        self._process.send_signal(signal.SIGINT)
        _, err = self._process.communicate(timeout=30)
        return self._process.returncode, err


@contextmanager
def sim(tmp_path, *words, stdin=subprocess.PIPE):
    command = [sys.executable, "-m", "facho.runtime.cli", "sim", "--port=0", *words]
    with subprocess.Popen(
        command, env=environment(tmp_path), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Sim(process)
        finally:
            process.kill()


def test_the_command_that_the_simulator_prints_works(tmp_path):
    with sim(tmp_path, "--onus=40", "--name=OLT-NORTE-02", "--brand=zte_c300") as olt:
        typed = olt.wait_for("facho collect").split()[1:]
        collected = facho(*typed, "--json", tmp_path=tmp_path)
        status, last = olt.stop()

    report = json.loads(collected.stdout)
    assert collected.returncode == 0
    assert (report["brand"], report["olt"]["sys_name"], len(report["onus"])) == ("zte_c300", "OLT-NORTE-02", 40)
    assert status == 0
    asked = report["stats"]["pdus"] + report["olt"]["identify_pdus"]
    assert last == f"OLT-NORTE-02 received {asked} requests.\n"


def test_faults_can_be_typed_while_it_runs(tmp_path):
    with sim(tmp_path, "--latency=0.001") as olt:
        olt.type("mute")
        muted = olt.wait_for("mute=yes")
        silent = facho("collect", olt.address, "--timeout=0.3", tmp_path=tmp_path)
        olt.type("colour=blue")
        complaint = olt.complains()
        olt.type("well")
        olt.wait_for("faults: none")
        answering = facho("collect", olt.address, "--columns=serial", tmp_path=tmp_path)

    assert "latency=0.001" in muted
    assert silent.returncode == 4
    assert "there is no fault 'colour'" in complaint
    assert answering.returncode == 0


def test_onus_can_be_taken_away_while_it_runs(tmp_path):
    with sim(tmp_path, "--onus=40") as olt:
        before = json.loads(facho("collect", olt.address, "--json", tmp_path=tmp_path).stdout)["onus"]
        seven = "{slot}/{port}/{onu}".format(**before[7])
        olt.type(f"go {seven}")
        olt.wait_for("onus: 39")
        after = json.loads(facho("collect", olt.address, "--json", tmp_path=tmp_path).stdout)["onus"]

    gone = {onu["serial"] for onu in before} - {onu["serial"] for onu in after}
    assert gone == {before[7]["serial"]}


def test_it_goes_on_without_a_keyboard_and_writes_down_each_request(tmp_path):
    log = tmp_path / "pdus.jsonl"
    with sim(tmp_path, f"--log={log}", stdin=subprocess.DEVNULL) as olt:
        report = json.loads(facho("collect", olt.address, "--json", tmp_path=tmp_path).stdout)

    asked = report["stats"]["pdus"] + report["olt"]["identify_pdus"]
    assert len(log.read_text().splitlines()) == asked


def test_a_recording_is_served_as_it_was_made(tmp_path):
    file = tmp_path / "olt.snmprec"
    with sim(tmp_path, "--onus=20") as olt:
        recorded = facho("record", olt.address, "--anonymise", f"--output={file}", tmp_path=tmp_path)
    with sim(tmp_path, f"--recording={file}") as olt:
        replayed = facho("collect", olt.address, "--json", tmp_path=tmp_path)

    assert recorded.returncode == 0
    assert len(json.loads(replayed.stdout)["onus"]) == 20


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["--loss=2"], "loss must be a share", id="a share above all"),
        pytest.param(["--latency=soon"], "latency=soon: write a number of seconds", id="a word for a number"),
        pytest.param(["--recording=nobody.snmprec"], "nobody.snmprec", id="a recording that is not there"),
        pytest.param(["--brand=acme"], "invalid choice: 'acme'", id="a brand that cannot be simulated"),
        pytest.param(["--port=99999"], "the port must be between", id="a port that does not exist"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_a_sentence(tmp_path, words, sentence):
    said = facho("sim", *words, tmp_path=tmp_path)

    assert said.returncode == 2
    assert sentence in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("command", ["collect", "probe", "record", "brands"])
def test_no_command_loads_django_or_anything_else_that_it_does_not_need(tmp_path, command):
    code = (
        "import sys\nfrom facho.runtime.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    with simulated(OltSpec("OLT-CENTRAL-01", onus=3)) as fleet:
        whom = [] if command == "brands" else [where(fleet, "OLT-CENTRAL-01")]
        said = facho(command, *whom, tmp_path=tmp_path, code=code)

    loaded = said.stderr.splitlines()[-1]
    assert said.stdout
    assert "'facho'" in loaded
    assert [name for name in HEAVY if f"'{name}'" in loaded] == []


def test_a_reader_that_has_seen_enough_ends_a_command_without_a_traceback(tmp_path):
    with simulated(OltSpec("OLT-CENTRAL-01", onus=2000)) as fleet:
        command = [sys.executable, "-m", "facho.runtime.cli", "record", where(fleet, "OLT-CENTRAL-01")]
        with subprocess.Popen(
            command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()

    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors
