"""Runs every check: `python3 dev.py test`. With arguments, only pytest with those arguments.

--fast        lint, and the tests without a database, a server or a browser: half a minute
--long        proofs that take minutes, property tests with ten times as many examples, a million damaged packets
--coverage    the tests of the first database, and how much of each folder they run

Each step runs even if one before it failed; the exit status says whether all
passed, and the last lines say what was skipped. Under CI nothing is skipped:
what cannot be run has failed.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from examples import LONG_NAME
from server_ldap import slapd
from server_victoria import victoria
from servers import POSTGRES_URL_NAME, REDIS_URL_NAME, Server, postgres, redis

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
# Refused requests and descriptions are the same with every database.
ANY_DATABASE = {
    f"test_api_{name}" for name in ("bad_input", "description", "errors", "mistakes", "reference", "strict")
}
# The suites whose promises depend on the database. Pages only show what these read.
APPS = [
    str(path)
    for kind in ("api", "models", "explain")
    for path in sorted(ROOT.glob(f"tests/apps/test_{kind}*.py"))
    if path.stem not in ANY_DATABASE
]
# Hours of polling are long; their sums are tested by `test_quota_balance.py` too.
DATABASE_SUITES = ["tests/contracts", "tests/store", "--ignore=tests/store/test_hours_of_polling.py", *APPS]
DATABASE_SUITES += ["tests/faults/test_database_away.py"]

PYTEST = ("pytest", "-q", "-n", "2", "--dist=worksteal")
PYTEST_BY_FILE = ("pytest", "-q", "-n", "2", "--dist=loadfile")
USUAL = "not chaos and not long"
# Elsewhere nearly every test needs a database, or starts processes.
FAST_SUITES = [f"tests/{name}" for name in ("adapters", "brands", "contracts", "engine", "repo", "simulator")]

failed: list[str] = []
skipped: list[str] = []


def main(arguments: list[str]) -> int:
    os.chdir(ROOT)
    option, *rest = arguments or [""]
    if option == "--fast":
        lint()
        step("fast tests", *PYTEST, "-m", f"{USUAL} and not browser and not slow", *(rest or FAST_SUITES))
    elif option == "--coverage":
        coverage(*(rest or ["--ignore=tests/acceptance", "tests"]))
    elif option == "--long":
        step("long tests", "pytest", "-m", "long or hypothesis or fuzz", *rest, **{LONG_NAME: "1"})
    elif option:
        return subprocess.run([BIN / "pytest", *arguments]).returncode
    else:
        with tempfile.TemporaryDirectory(prefix="facho-check-") as folder:
            os.environ["FACHO_DATA_DIR"] = folder
            with ThreadPoolExecutor(1) as pool:
                pool.submit(install_servers)
                static_checks()
            tests()
        os.environ.pop("FACHO_DATA_DIR")
    for reason in skipped:
        print(f"\n!!! SKIPPED: {reason}")
    print(f"\n{'FAILED: ' + ', '.join(failed) if failed else 'All checks passed.'}")
    return 1 if failed else 0


def lint() -> None:
    step("lint", "ruff", "check", "src", "tests", "dev.py")
    step("format", "ruff", "format", "--check", "src", "tests", "dev.py")


def static_checks() -> None:
    lint()
    step("layers", "lint-imports")
    settings = "--settings=facho.runtime.settings"
    step("migrations", "python", "-m", "django", "makemigrations", "--check", "--dry-run", settings)


def tests() -> None:
    with postgres() as database, redis() as messages:
        urls = named(database, messages)
        if messages.url is None:
            skip("tests that need Redis", messages.reason)
        if not has_ldap():
            skip("tests of LDAP", "install Debian's slapd, libldap2-dev and libsasl2-dev, and requirements/ldap.txt")
        if victoria() is None:
            skip("tests of VictoriaMetrics", "install Debian's victoria-metrics")
        # Whole installations: a file's is built once, and its tests mostly wait for it.
        acceptance = (*PYTEST_BY_FILE, "-m", f"{USUAL} and not browser", "tests/acceptance")
        with beside("types", "mypy"), beside("installations", *acceptance, **urls):
            step("tests", *PYTEST, "-m", f"{USUAL} and not browser", "--ignore=tests/acceptance", **urls)
        # Mostly it waits for what it has killed to be missed: meanwhile the processor is free for others.
        with beside("chaos", *PYTEST_BY_FILE, "-m", "chaos", "tests/faults/chaos"):
            if database.url is None:
                skip("tests on PostgreSQL", database.reason)
            else:
                urls["DATABASE_URL"] = database.url
                step("tests on PostgreSQL", *PYTEST, "-m", f"database and {USUAL}", *DATABASE_SUITES, **urls)
            browser()


def coverage(*which: str) -> None:
    """Run tests, and print how many lines of each folder of src/facho they ran, other processes not included."""
    with tempfile.TemporaryDirectory(prefix="facho-coverage-") as folder:
        report = Path(folder, "coverage.json")
        os.environ["COVERAGE_FILE"] = str(Path(folder, "data"))
        with postgres() as database, redis() as messages:
            options = ("--cov", "--cov-report=", f"--cov-report=json:{report}")
            step("coverage", *PYTEST, *options, "-m", f"{USUAL} and not browser", *which, **named(database, messages))
        if report.exists():
            print(f"\n{by_folder(json.loads(report.read_text())['files'])}")


def by_folder(files: dict[str, Any]) -> str:
    """Return a table of folders: lines, lines that ran, percent; the whole comes last."""
    lines: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    for name, figures in files.items():
        for folder in (str(Path(name).parent), "total"):
            lines[folder] += figures["summary"]["num_statements"]
            ran[folder] += figures["summary"]["covered_lines"]
    rows = [f"{'folder':40}{'lines':>8}{'ran':>8}"]
    for folder in (*sorted(lines.keys() - {"total"}), "total"):
        rows.append(f"{folder:40}{lines[folder]:8}{ran[folder]:8}{ran[folder] / max(lines[folder], 1):8.1%}")
    return "\n".join(rows)


def browser() -> None:
    if chromium() is None:
        skip("browser", "there is no Chromium. Install it: apt-get install chromium")
    else:
        step("browser", *PYTEST_BY_FILE, "-m", "browser", "tests/acceptance")


@contextmanager
def beside(name: str, program: str, *arguments: str, **environment: str) -> Iterator[None]:
    """Run a step beside others, and say at the end what came of it."""
    with tempfile.TemporaryFile("w+") as output:
        command, environ = [BIN / program, *arguments], {**os.environ, **environment}
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            status = process.wait()
        output.seek(0)
        print(f"\n=== {name}\n{output.read()}", flush=True)
    if status:
        failed.append(name)


def named(database: Server, messages: Server) -> dict[str, str]:
    """Return what tells every pytest, and each of its workers, to use these servers."""
    found = {POSTGRES_URL_NAME: database.url, REDIS_URL_NAME: messages.url}
    return {name: url for name, url in found.items() if url is not None}


def step(name: str, program: str, *arguments: str, **environment: str) -> None:
    print(f"\n=== {name}", flush=True)
    if subprocess.run([BIN / program, *arguments], env={**os.environ, **environment}).returncode:
        failed.append(name)


def skip(name: str, reason: str) -> None:
    """Say loudly that a step does not run. That is for a person to judge, and nobody judges in CI."""
    skipped.append(f"{name}: {reason}")
    if os.environ.get("CI"):
        failed.append(f"{name} (skipped)")


def chromium() -> str | None:
    """Return where Chromium is, installing it where that is possible."""
    names = ("chromium", "chromium-browser", "google-chrome")
    if not any(map(shutil.which, names)):
        apt_install("chromium")
    return next(filter(None, map(shutil.which, names)), None)


def install_ldap() -> None:
    """Install slapd and python-ldap where that is possible. The package is compiled, so not all developers have it."""
    if slapd() is None:
        # Without a database of its own, the service of the package does not start.
        answers = "slapd slapd/no_configuration boolean true"
        if shutil.which("debconf-set-selections") and os.geteuid() == 0:
            subprocess.run(["debconf-set-selections"], input=answers, text=True)
        apt_install("slapd", "gcc", "libldap2-dev", "libsasl2-dev")
    if slapd() is not None and not has_ldap():
        pip = [BIN / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements" / "ldap.txt"])


def install_servers() -> None:
    install_ldap()
    if victoria() is None:
        apt_install("victoria-metrics")


def has_ldap() -> bool:
    importlib.invalidate_caches()
    return slapd() is not None and importlib.util.find_spec("django_auth_ldap") is not None


def apt_install(*packages: str) -> None:
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], **quiet)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
