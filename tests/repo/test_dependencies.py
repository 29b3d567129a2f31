"""An installation has everything that it loads: `facho` for the embedded mode, and `facho[scale]` for the roles."""

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

# The commands of the embedded mode that need a database.
EMBEDDED = (
    "facho.runtime.embedded",
    "facho.runtime.keys",
    "facho.runtime.migrate_to",
    "facho.runtime.shell",
    "facho.runtime.upgrade",
)
# Every role, and what Celery loads by name when a worker starts.
ROLES = (
    "facho.runtime.roles.web",
    "facho.runtime.roles.scheduler",
    "facho.runtime.roles.worker",
    "celery.bin.worker",
    "celery.concurrency.thread",
    "kombu.transport.redis",
)
LOAD = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

modules, missing = (words.split() for words in sys.argv[1:])
sys.meta_path.insert(0, Missing())
from facho.runtime.cli import prepare
prepare()
for name in modules:
    __import__(name)
"""


@pytest.mark.parametrize(
    ("extras", "modules"),
    [pytest.param((), EMBEDDED, id="facho"), pytest.param(("scale",), ROLES, id="facho[scale]")],
)
def test_an_installation_starts_with_what_is_declared_and_nothing_else(tmp_path, extras, modules):
    declared = {"facho", *closure(declarations(*extras))}
    foreign = [module for module, owners in packages_distributions().items() if declared.isdisjoint(map(plain, owners))]

    settings = {"PATH": "/usr/bin:/bin", "FACHO_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", LOAD, " ".join(modules), " ".join(foreign)]
    result = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=60)

    assert "pytest" in foreign
    assert ("redis" in foreign) is (not extras)
    assert result.returncode == 0, result.stderr[-2000:]


def declarations(*extras: str) -> list[Requirement]:
    """Return the requirements of Facho with these extras, as declared in the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines]


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
