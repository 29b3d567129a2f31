"""The workflows of the forge run what a person runs, on what is supported."""

import re
import runpy
import shlex
import subprocess
from pathlib import Path

import yaml

import facho
import run

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (GITHUB / "workflows").glob("*.yml")}


def steps():
    return [step for workflow in WORKFLOWS.values() for job in workflow["jobs"].values() for step in job["steps"]]


def commands(name):
    """Return the command lines of a workflow."""
    return [line for job in WORKFLOWS[name]["jobs"].values() for step in job["steps"]
            for line in step.get("run", "").splitlines()]  # fmt: skip


def test_ci_runs_every_check_on_the_oldest_and_the_newest_python():
    job = WORKFLOWS["ci"]["jobs"]["test"]
    versions = [tuple(map(int, version.split("."))) for version in job["strategy"]["matrix"]["python"]]

    assert versions == list(runpy.run_path(str(ROOT / "dev.py"))["SUPPORTED"])
    assert "python3 dev.py test" in commands("ci")


def test_ci_names_servers_as_the_tests_look_for_them():
    assert {run.POSTGRES_URL_NAME, run.REDIS_URL_NAME} == set(WORKFLOWS["ci"]["jobs"]["test"]["env"])


def test_every_option_of_dev_py_in_a_workflow_exists():
    said = [shlex.split(line) for name in WORKFLOWS for line in commands(name) if line.startswith("python3 dev.py")]
    options = {word for words in said for word in words[2:] if word.startswith("--")}

    assert {words[2] for words in said} <= {"setup", "test"}
    assert options
    assert [option for option in options if option not in run.__doc__] == []


def test_every_action_has_a_version():
    used = [step["uses"] for step in steps() if "uses" in step]

    assert used
    assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@v\d+", name)] == []


def test_the_notes_of_a_release_are_its_section_of_the_changelog():
    (line,) = [line for line in commands("release") if line.startswith("awk")]
    command = line.replace("${GITHUB_REF_NAME#v}", facho.__version__).partition(" > ")[0]

    notes = subprocess.run(shlex.split(command), cwd=ROOT, capture_output=True, text=True, check=True).stdout

    after = (ROOT / "CHANGELOG.md").read_text().partition(f"## {facho.__version__} ")[2]
    assert notes.strip() == after.partition("\n")[2].partition("\n## ")[0].strip()
    assert notes.strip()


def test_every_form_of_an_issue_has_a_name_and_a_required_field():
    forms = [yaml.safe_load(path.read_text()) for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml")]

    assert len({form["name"] for form in forms}) == len(forms) > 0
    for form in forms:
        assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_hooks_are_programs_that_the_checks_run():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    programs = {Path(hook["entry"].split()[0]).name for repo in config["repos"] for hook in repo["hooks"]}

    assert programs == {"ruff", "mypy", "lint-imports"}


def test_coverage_is_summed_up_by_folder():
    def lines(all_of_them, ran):
        return {"summary": {"num_statements": all_of_them, "covered_lines": ran}}

    files = {
        "src/facho/store/a.py": lines(30, 15),
        "src/facho/store/b.py": lines(10, 10),
        "src/facho/c.py": lines(10, 10),
    }

    table = [line.split() for line in run.by_folder(files).splitlines()]

    assert table[1:] == [
        ["src/facho", "10", "10", "100.0%"],
        ["src/facho/store", "40", "25", "62.5%"],
        ["total", "50", "35", "70.0%"],
    ]
