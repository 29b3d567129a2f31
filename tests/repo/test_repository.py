"""Rules that the repository keeps about itself. Cheap: they only read files."""

import ast
import inspect
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import facho
import settings_tables
from facho.brands import BRANDS
from facho.engine import ports

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for path in (ROOT / "src").rglob("*.py") if "migrations" not in path.parts)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")])
TOOLING = [*ROOT.glob("*.toml"), ROOT / "dev.py", ROOT / ".pre-commit-config.yaml", *(ROOT / ".github").rglob("*.yml")]

# Fulfilled by the engine itself: nothing outside stands behind them.
WITHOUT_ADAPTERS = {"PollerWatch", "NodeRunner"}


def name_of(path):
    return str(path.relative_to(ROOT))


def found_in(texts, pattern):
    """Return each match with the name of its file."""
    return [f"{name_of(path)}: {match[0]}" for path, text in texts.items() for match in re.finditer(pattern, text)]


def test_the_top_of_the_changelog_is_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    top = re.search(r"^## (\S+) - \d{4}-\d{2}-\d{2}$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert top is not None
    assert top[1] == project["version"] == facho.__version__


def test_every_port_with_adapters_has_a_contract():
    named = [name for name, each in vars(ports).items() if inspect.isclass(each) and each.__module__ == ports.__name__]
    contracts = " ".join(path.stem for path in (ROOT / "tests" / "contracts").glob("test_*.py"))

    subjects = {name: re.findall("[A-Z][a-z]+", name)[-1].lower() for name in named if name not in WITHOUT_ADAPTERS}
    assert subjects
    assert [name for name, subject in subjects.items() if subject not in contracts] == []


def test_every_brand_has_tests_of_its_own():
    tests = {path.name for path in (ROOT / "tests" / "brands").glob("test_*_brand.py")}

    assert [brand for brand in BRANDS if f"test_{brand.split('_')[0]}_brand.py" not in tests] == []


def test_every_file_has_a_docstring():
    # Django wants an `apps.py` of every app; it has nothing to say that its folder does not.
    texts = {path: path.read_text() for path in SOURCES if path.name != "apps.py"}

    assert [name_of(path) for path, text in texts.items() if text and not ast.get_docstring(ast.parse(text))] == []


def test_no_two_test_files_have_the_same_name():
    names = Counter(path.name for path in TESTS if path.name not in ("conftest.py", "__init__.py", "__main__.py"))

    assert [name for name, count in names.items() if count > 1] == []


def test_requirements_have_hashes_and_name_no_registry():
    texts = {path: path.read_text() for path in (ROOT / "requirements").glob("*.txt")}

    assert texts
    assert [name_of(path) for path, text in texts.items() if "--hash=sha256:" not in text] == []
    assert found_in(texts, r".*://.*|.*index-url.*|.*find-links.*") == []


def test_nothing_speaks_of_how_it_was_built():
    own = Path(__file__).resolve()
    texts = {path: path.read_text() for path in [*SOURCES, *TESTS, *DOCS, *TOOLING] if path != own}

    assert found_in(texts, r"\.\./shared|/work/\w+|\bissues?[ /#]+\d+|\bTODO\b|\bFIXME\b") == []


def test_every_link_to_a_file_leads_somewhere():
    targets = [(path, target) for path in DOCS for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", path.read_text())]

    assert [f"{name_of(path)}: {target}" for path, target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("language", settings_tables.READMES)
def test_the_table_of_settings_is_current(language):
    """If this fails, run `python3 dev.py settings`."""
    readme = settings_tables.READMES[language].read_text()

    assert settings_tables.with_table(readme, language) == readme
    assert readme.count("| `FACHO_DATA_DIR` |") == 1


def test_every_benchmark_is_a_command():
    benches = sorted((ROOT / "tests" / "bench").glob("*.py"))
    functions = {path: [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
                 for path in benches}  # fmt: skip

    assert [path.name for path in benches if not path.name.startswith("bench_")] == []
    assert [path.name for path in benches if "main" not in {each.name for each in functions[path]}] == []
