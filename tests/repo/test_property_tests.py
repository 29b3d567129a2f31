"""Property tests try other examples in every run, in CI too, and a failing one says how to repeat it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FAILING = """
from hypothesis import given, settings, strategies as st

def test_examples_are_random():
    assert settings.default.derandomize is False

@given(st.integers(0, 10**9))
def test_no_number_is_large(number):
    assert number < 10**6
"""


@pytest.mark.slow
def test_a_failing_example_is_printed_with_its_reproduction_in_ci(tmp_path):
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_failing.py").write_text(FAILING)
    environment = {**os.environ, "CI": "true", "PYTHONPATH": str(TESTS)}

    # The last one hides the values of a failing example.
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:schemathesis"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, str(tmp_path)]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed, 1 passed" in run.stdout
    assert "number=1000000" in run.stdout
    assert re.search(r"@reproduce_failure\('[\d.]+', b'.+'\)", run.stdout)


def test_no_seed_is_fixed():
    fixed = re.compile(r"derandomize=True|^@seed\(|hypothesis[-_]seed", re.MULTILINE)
    own = Path(__file__).resolve()

    assert [str(path) for path in TESTS.rglob("*.py") if path != own and fixed.search(path.read_text())] == []


def test_no_reproduction_is_left_in_place_of_an_example():
    """`@reproduce_failure` ends with the version of Hypothesis; what was found is kept by `@example` or as a test."""
    own = Path(__file__).resolve()

    assert [
        str(path) for path in TESTS.rglob("*.py") if path != own and "@reproduce_failure(" in path.read_text()
    ] == []
