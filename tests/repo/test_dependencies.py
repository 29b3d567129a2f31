"""Who installs `facho[scale]` gets everything that a role loads, and not only who installs what tests need."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

# Every role, and what Celery loads by name when a worker starts.
MODULES = (
    "facho.runtime.roles.web",
    "facho.runtime.roles.scheduler",
    "facho.runtime.roles.worker",
    "celery.bin.worker",
    "celery.concurrency.thread",
    "kombu.transport.redis",
)
LOAD = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from facho.runtime.cli import prepare
prepare()
for name in {MODULES!r}:
    __import__(name)
"""


def test_roles_start_with_what_is_declared_and_nothing_else(tmp_path):
    declared = {"facho", *closure(declarations())}
    foreign = [module for module, owners in packages_distributions().items() if declared.isdisjoint(map(plain, owners))]

    settings = {"PATH": "/usr/bin:/bin", "FACHO_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", LOAD, *foreign]
    result = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=60)

    assert "pytest" in foreign
    assert result.returncode == 0, result.stderr[-2000:]


def declarations() -> list[Requirement]:
    """Return what the project asks for in scale-out, as it stands in the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(line) for line in (*project["dependencies"], *project["optional-dependencies"]["scale"])]


def closure(wanted: list[Requirement]) -> set[str]:
    """Return the names of all that pip installs for these."""
    seen: set[tuple[str, str]] = set()
    while wanted:
        requirement = wanted.pop()
        for extra in ("", *requirement.extras):
            if (plain(requirement.name), extra) not in seen:
                seen.add((plain(requirement.name), extra))
                wanted += needs(requirement.name, extra)
    return {name for name, _ in seen}


def needs(name: str, extra: str) -> list[Requirement]:
    try:
        lines = [Requirement(line) for line in requires(name) or []]
    except PackageNotFoundError:
        # For another Python or another system.
        return []
    return [line for line in lines if line.marker is None or line.marker.evaluate({"extra": extra})]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
