"""Rules that the repository keeps about itself. Cheap: they only read files."""

import ast
import inspect
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import facho
from facho.brands import BRANDS
from facho.engine import ports
from facho.runtime import config

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for path in (ROOT / "src").rglob("*.py") if "migrations" not in path.parts)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

# Fulfilled by the engine itself: nothing outside stands behind them.
WITHOUT_ADAPTERS = {"PollerWatch", "NodeRunner"}


def name_of(path):
    return str(path.relative_to(ROOT))


def test_the_top_of_the_changelog_is_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    top = re.search(r"^## (\S+) - \d{4}-\d{2}-\d{2}$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert top is not None
    assert top[1] == project["version"] == facho.__version__


@pytest.mark.parametrize(
    "port", [name for name, each in vars(ports).items() if inspect.isclass(each) and each.__module__ == ports.__name__]
)
def test_every_port_with_adapters_has_a_contract(port):
    subject = re.findall("[A-Z][a-z]+", port)[-1].lower()
    contracts = [path.stem for path in (ROOT / "tests" / "contracts").glob("test_*.py")]

    assert port in WITHOUT_ADAPTERS or any(subject in contract for contract in contracts)


@pytest.mark.parametrize("brand", BRANDS)
def test_every_brand_has_tests_of_its_own(brand):
    maker = brand.split("_")[0]

    assert (ROOT / "tests" / "brands" / f"test_{maker}_brand.py").exists()


# Django wants an `apps.py` of every app; it has nothing to say that its folder does not.
@pytest.mark.parametrize("path", [path for path in SOURCES if path.name != "apps.py"], ids=name_of)
def test_a_file_says_what_it_is_for(path):
    text = path.read_text()

    assert not text or ast.get_docstring(ast.parse(text))


def test_no_two_test_files_have_the_same_name():
    names = Counter(path.name for path in TESTS if path.name not in ("conftest.py", "__init__.py", "__main__.py"))

    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*")), ids=name_of)
def test_requirements_say_what_and_not_from_where(path):
    text = path.read_text()

    assert "--hash=sha256:" in text
    assert [line for line in text.splitlines() if "://" in line or "index-url" in line or "find-links" in line] == []


@pytest.mark.parametrize("path", [*SOURCES, *TESTS, *DOCS, ROOT / "pyproject.toml", ROOT / "dev.py"], ids=name_of)
def test_nothing_speaks_of_how_it_was_built(path):
    if path == Path(__file__).resolve():
        return
    said = re.findall(r"\.\./shared|/work/\w+|\bissues?[ /#]+\d+|\bTODO\b|\bFIXME\b", path.read_text())

    assert said == []


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_every_link_to_a_file_leads_somewhere(path):
    targets = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", path.read_text())

    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_every_setting_is_explained():
    explained = "".join(path.read_text() for path in DOCS)

    assert sorted(name for name in config.KNOWN_NAMES if name not in explained) == []


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "bench").glob("*.py")), ids=name_of)
def test_every_benchmark_is_a_command(path):
    names = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}

    assert path.name.startswith("bench_")
    assert "main" in names
