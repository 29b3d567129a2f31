"""What lies in deploy/ fits this version: its settings exist, its commands parse, its images are pinned."""

import re
import shlex
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.urls import resolve

from facho import __version__
from facho.brands import BRANDS
from facho.engine.scheduling import workers
from facho.runtime import cli, config
from facho.runtime.serving import make_server
from facho.store import leases, recovery

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
FILES = [*UNITS, *(path for path in sorted(DEPLOY.iterdir()) if path.is_file())]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("facho:")}


def name_of(path):
    return path.name


def directives(unit):
    """Return what a unit says, by section and key; a key may be said several times."""
    said, section = {}, ""
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            said.setdefault((section, key), []).append(value)
    return said


def parses(words):
    """Return the name of the command if `facho` understands these words."""
    cli._parser(words[0]).parse_args(words)
    return words[0]


def seconds(span):
    number, unit = re.fullmatch(r"(\d+)(s|m|h)?", span).groups()
    return int(number) * {"m": 60, "h": 3600}.get(unit, 1)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_setting_is_one(path):
    named = set(re.findall(r"\bFACHO_[A-Z_]+", path.read_text()))

    assert named <= config.KNOWN_NAMES


def test_the_example_of_the_environment_is_one_that_facho_starts_with(tmp_path):
    lines = (DEPLOY / "facho.env.example").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))

    assert config.load({**settings, "FACHO_DATA_DIR": str(tmp_path)}).spool_mb == 256


@pytest.mark.parametrize("name", ["facho.env.example", "compose.env.example"])
def test_examples_have_no_secrets(name):
    lines = [line.lstrip("#") for line in (DEPLOY / name).read_text().splitlines()]
    secret = [line for line in lines if re.match(r"[A-Z_]*(PASSWORD|KEYS|TOKEN)=", line)]

    assert secret
    assert [line for line in secret if not line.endswith("=")] == []


@pytest.mark.parametrize("unit", UNITS, ids=name_of)
def test_a_unit_runs_a_command_that_there_is(unit):
    (line,) = directives(unit)[("Service", "ExecStart")]
    program, *words = shlex.split(line)

    assert program == "/opt/facho/bin/facho"
    assert parses(words) in {"run", "web", "scheduler", "worker"}


@pytest.mark.parametrize("unit", UNITS, ids=name_of)
def test_a_unit_may_write_to_its_state_and_nothing_else(unit):
    said = directives(unit)

    assert said[("Service", "StateDirectory")] == ["facho"]
    assert "FACHO_DATA_DIR=/var/lib/facho" in said[("Service", "Environment")]
    assert said[("Service", "ProtectSystem")] == ["strict"]
    assert said[("Service", "NoNewPrivileges")] == ["yes"]
    assert said[("Service", "User")] == ["facho"]


@pytest.mark.parametrize("unit", UNITS, ids=name_of)
def test_a_unit_starts_after_the_clock_was_set(unit):
    said = directives(unit)

    assert "time-sync.target" in said[("Unit", "After")][0]
    assert "time-sync.target" in said[("Unit", "Wants")][0]


@pytest.mark.parametrize("unit", UNITS, ids=name_of)
def test_a_unit_is_tried_again_forever(unit):
    said = directives(unit)

    assert said[("Service", "Restart")] == ["always"]
    assert said[("Unit", "StartLimitIntervalSec")] == ["0"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("unit", UNITS, ids=name_of)
def test_systemd_understands_a_unit(unit, tmp_path):
    copy = tmp_path / unit.name
    # What it runs, and as whom, is not on this machine.
    text = re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
    copy.write_text(re.sub(r"^(User|Group)=.*\n", "", text, flags=re.MULTILINE))

    result = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True)

    # It looks at every unit of the machine, and has its own opinion of those.
    assert [line for line in result.stderr.splitlines() if unit.stem in line] == []


def test_a_worker_has_a_name_that_lasts_and_time_to_finish():
    said = directives(DEPLOY / "systemd" / "facho-worker@.service")
    (timeout,) = said[("Service", "TimeoutStopSec")]

    assert "FACHO_WORKER_NAME=%H-%i" in said[("Service", "Environment")]
    assert said[("Service", "KillSignal")] == ["SIGTERM"]
    assert seconds(timeout) > longest_job()
    assert seconds(SERVICES["worker-1"]["stop_grace_period"]) > longest_job()
    assert SERVICES["worker-1"]["environment"]["FACHO_WORKER_NAME"] == "worker-1"


def longest_job():
    """Return how many seconds the longest job may take that Facho itself proposes."""
    return max(job.timeout.total_seconds() for brand in BRANDS.values() for job in brand.templates)


def test_images_have_versions():
    unpinned = [
        each["image"] for each in SERVICES.values() if not re.fullmatch(r"[\w/]+:\d+\.\d+(\.\d+)?", each["image"])
    ]

    assert unpinned == []
    assert {each["image"] for each in OURS.values()} == {f"facho:{__version__}"}


@pytest.mark.parametrize("name", OURS)
def test_a_container_runs_a_command_that_there_is(name):
    assert parses(OURS[name]["command"]) in {"migrate", "web", "scheduler", "worker"}


def test_the_compose_file_has_every_role_and_two_schedulers():
    roles = {service["command"][0] for service in OURS.values()}

    assert roles == {"migrate", "web", "scheduler", "worker"}
    assert SERVICES["scheduler"]["deploy"]["replicas"] == 2


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_is_watched_unless_it_ends_by_itself(name):
    assert SERVICES[name]["healthcheck"].get("disable") is (True if name == "migrate" else None)


def test_containers_wait_for_what_is_there():
    named = {other for service in SERVICES.values() for other in service.get("depends_on", {})}
    mounted = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}

    assert named <= SERVICES.keys()
    assert mounted == COMPOSE["volumes"].keys()


def test_every_variable_of_the_compose_file_stands_in_its_example():
    named = set(re.findall(r"(?<!\$)\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    explained = set(re.findall(r"^(\w+)=", (DEPLOY / "compose.env.example").read_text(), re.MULTILINE))

    assert named == explained


def test_the_redis_of_the_compose_file_throws_nothing_away_and_is_not_root():
    assert "--maxmemory-policy noeviction" in SERVICES["redis"]["command"][-1]
    assert SERVICES["redis"]["user"] == "redis"


def test_one_container_builds_the_image_for_all():
    # Several that do so at once fail on newer Dockers: "image already exists".
    assert [name for name, service in OURS.items() if "build" in service] == ["migrate"]


def test_the_user_of_the_image_owns_what_schedulers_write_to():
    text = (DEPLOY / "Dockerfile").read_text()
    (uid,), (gid,) = re.findall(r"--uid (\d+)", text), re.findall(r"--gid (\d+)", text)

    assert f"/var/lib/facho:uid={uid},gid={gid},mode=0700" in SERVICES["scheduler"]["tmpfs"]


def test_the_image_is_built_from_what_is_there_and_with_hashes():
    text = (DEPLOY / "Dockerfile").read_text()
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.*)", text, re.MULTILINE)]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()

    assert [base for base in bases if not re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base)] == []
    assert "--require-hashes" in text
    for source in (source for sources in copied for source in sources):
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored
    assert parses(yaml.safe_load(re.search(r"^CMD (.*)", text, re.MULTILINE)[1])) == "run"


def nginx_blocks(text):
    """Return the directives of an nginx file, by block. An unfinished line or block is an error."""
    blocks, path, words = {(): []}, (), ""
    for part in re.split(r"([;{}])", re.sub(r"#.*", "", text)):
        if part == ";":
            assert words, "a lone ;"
            blocks[path].append(words)
        elif part == "{":
            path = (*path, words)
            blocks.setdefault(path, [])
        elif part == "}":
            assert not words, f"{words} has no ;"
            path = path[:-1]
        words = " ".join(part.split()) if part not in ";{}" else ""
    assert path == (), "a block is not closed"
    return blocks


def test_the_proxy_lets_news_through_as_they_come():
    blocks = nginx_blocks((DEPLOY / "nginx.conf").read_text())
    ((path, stream),) = [(path, lines) for path, lines in blocks.items() if "proxy_buffering off" in lines]

    assert path[-1] == "location = /events/"
    assert resolve("/events/").view_name == "dashboard:events"
    assert "proxy_read_timeout 1h" in stream


def test_the_proxy_says_itself_who_asks_and_how():
    blocks = nginx_blocks((DEPLOY / "nginx.conf").read_text())
    server = next(lines for path, lines in blocks.items() if any(line.startswith("ssl_certificate ") for line in lines))

    assert "proxy_set_header X-Forwarded-Proto $scheme" in server
    assert "proxy_set_header X-Forwarded-For $remote_addr" in server
    assert "proxy_set_header Host $host" in server
    # Headers of a location would take the place of all of these.
    assert [
        path for path, lines in blocks.items() if "location" in str(path) and "proxy_set_header" in str(lines)
    ] == []


def test_the_proxy_closes_idle_connections_before_facho_does():
    blocks = nginx_blocks((DEPLOY / "nginx.conf").read_text())
    (idle,) = [line.split()[1] for line in blocks[("upstream facho",)] if line.startswith("keepalive_timeout")]

    assert seconds(idle) < make_server(None).config.timeout_keep_alive


PAGES = ["scale-out", "operations"]
SECONDS = {
    "30 s": leases.OLT_TERMS.ttl,
    "5 s": leases.OLT_TERMS.renew_every,
    "25 s": leases.OLT_TERMS.ttl - leases.OLT_TERMS.margin,
    "15 s": timedelta(seconds=recovery.GRACE),
    "8 s": leases.TERMS.ttl,
    "2 s": leases.TERMS.renew_every,
}


@pytest.mark.parametrize("page", ["scale-out.md", "scale-out.es.md"])
def test_the_seconds_that_the_page_gives_are_those_of_the_code(page):
    table = re.search(r"^## (?:When something|Cuando algo).*?^## ", (ROOT / "docs" / page).read_text(), re.S | re.M)[0]

    for said, meant in SECONDS.items():
        assert f" {said}" in table
        assert int(said.split()[0]) == meant.total_seconds()
    assert workers.SILENT_AFTER == 5


@pytest.mark.parametrize("page", PAGES)
def test_a_page_and_its_translation_have_the_same_parts(page):
    english, spanish = ((ROOT / "docs" / f"{page}{end}.md").read_text() for end in ("", ".es"))

    assert shape(english) == shape(spanish)


def shape(text):
    """Return the headings, rows, points and steps of a page, without what they say."""
    return re.findall(r"^(#+ |\| |\|-|\* |\d+\. )", text, re.MULTILINE)


@pytest.mark.parametrize("page", [f"{page}{end}.md" for page in PAGES for end in ("", ".es")])
def test_every_command_of_a_page_is_one(page):
    commands = re.findall(r"(?:`|bin/|^ +|… |web )facho ([a-z-]+)", (ROOT / "docs" / page).read_text(), re.MULTILINE)

    assert commands
    known = cli._parser("")._subparsers._group_actions[0].choices.keys()
    assert [command for command in commands if command not in known] == []


@pytest.mark.parametrize("page", [f"{page}{end}.md" for page in PAGES for end in ("", ".es")])
def test_every_part_of_a_page_that_is_pointed_to_is_there(page):
    for target, anchor in re.findall(r"\]\(([\w./-]+\.md)#([^)]+)\)", (ROOT / "docs" / page).read_text()):
        headings = re.findall(r"^#+ (.*)", (ROOT / "docs" / target).read_text(), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
