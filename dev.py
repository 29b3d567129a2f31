#!/usr/bin/env python3
"""Prepares .venv and runs things in it. Needs python3 and the package registry, nothing else.

python3 dev.py demo [--port N] [--data DIR] [--olts N] [--onus N] [--remove]
python3 dev.py scale [--port N] [--data DIR] [--olts N] [--onus N]
python3 dev.py test [--fast | --long | --coverage] [pytest arguments]
python3 dev.py settings
python3 dev.py screenshots [picture ...]
python3 dev.py bench [--quick] [--only CASE] [--help]
python3 dev.py setup
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
SUPPORTED = ((3, 11), (3, 14))


def main(arguments):
    command, *rest = arguments or ["help"]
    if command == "demo":
        prepare("run")
        run_instead([PYTHON, "-m", "facho.runtime.cli", "demo", *rest])
    elif command == "scale":
        prepare("dev")
        run_instead([PYTHON, ROOT / "tests" / "scale.py", *rest])
    elif command == "test":
        prepare("dev")
        run_instead([PYTHON, ROOT / "tests" / "run.py", *rest])
    elif command == "bench":
        prepare("dev")
        run_instead([PYTHON, ROOT / "tests" / "bench" / "compare", *rest])
    elif command == "settings":
        prepare("dev")
        run_instead([PYTHON, ROOT / "tests" / "settings_tables.py"])
    elif command == "screenshots":
        prepare("dev")
        run_instead([PYTHON, ROOT / "tests" / "screenshots.py", *rest])
    elif command == "setup":
        prepare("dev")
        print(f"Ready: {VENV / 'bin' / 'facho'}")
    else:
        sys.exit(__doc__)


def prepare(kind):
    """Install requirements/<kind>.txt and the project, unless they are current."""
    lowest, highest = SUPPORTED
    if not lowest <= sys.version_info[:2] <= highest:
        sys.exit(f"Facho needs Python 3.{lowest[1]} to 3.{highest[1]}; this is {sys.version.split()[0]}.")
    stamp = VENV / f".facho-{kind}"
    if kind == "run" and is_current(VENV / ".facho-dev", "dev"):
        return
    if is_current(stamp, kind):
        return
    print(f"Preparing {VENV} (about a minute, once) ...", flush=True)
    if not PYTHON.exists():
        make_venv()
    pip("--require-hashes", "-r", ROOT / "requirements" / f"{kind}.txt")
    pip("--no-deps", "--no-build-isolation", "-e", ROOT)
    stamp.write_text(fingerprint(kind))


def make_venv():
    result = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV])
    if result.returncode:
        sys.exit("python3 cannot make a virtual environment here. On Debian and Ubuntu: apt-get install python3-venv")


def pip(*arguments):
    command = [PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *arguments]
    if subprocess.run(command).returncode:
        sys.exit("Installing failed. The error of pip is above.")


def is_current(stamp, kind):
    return PYTHON.exists() and stamp.exists() and stamp.read_text() == fingerprint(kind)


def fingerprint(kind):
    files = [ROOT / "requirements" / f"{kind}.txt", ROOT / "pyproject.toml"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files) + sys.version.encode()).hexdigest()


def run_instead(command):
    """Replace this process by the command, so that signals and exit status are its own."""
    os.execv(command[0], [str(part) for part in command])


if __name__ == "__main__":
    main(sys.argv[1:])
