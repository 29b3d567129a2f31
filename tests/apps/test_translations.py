"""Facho in Spanish: the catalogue is whole and current, and the pages speak it."""

import ast
import gettext
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from alert_cast import make_alert, make_channel, make_delivery, make_rule
from cast import make_execution, make_log, make_plan, make_quota, make_violation
from django.test import Client
from django.utils import timezone, translation
from django.utils.text import capfirst
from forecast_answers import ANSWER, QUESTION

from facho.apps.coordinator.models import Forecast
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import raw_decoder_choices
from facho.brands.decode import RAW_DECODERS
from facho.engine.events import Event
from facho.engine.quota.quota import ADVICE, hour_of
from problem_rows import make_problem

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "facho"
CATALOGUE = Path("locale", "es", "LC_MESSAGES", "django.po")
PO = SOURCE / CATALOGUE
MO = PO.with_suffix(".mo")

# What a translation must not lose: %(olt)s, %(busy).0f, {span}, %% and markup.
FIXED = re.compile(r"%\(\w+\)[.\d]*[sdf]|\{\w*\}|%%|<[^>]+>")

# What marks a message in Python, and which of its arguments is one.
MARKS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"), 0),
    **dict.fromkeys(("pgettext", "pgettext_lazy", "npgettext", "npgettext_lazy"), 1),
}

# Models with pages in the admin.
COORDINATOR = ["quotatracker", "quotaviolation", "executionplan", "coordinatorlog"]
# Of a port without device times, beside others.
EVIDENCE = {"down": 9, "total": 12, "los": 5, "offline": 4, "first": "2026-03-01T07:31:50+00:00",
            "last": "2026-03-01T07:31:50+00:00", "interval": 300, "beside": ["0/2"]}  # fmt: skip
ALERTS = ["alert", "rule", "channel", "delivery"]

# Pages with a Spanish twin.
PAGES = ["README", "docs/accounts", "docs/quotas-and-breakers", "docs/alerts"]

needs_xgettext = pytest.mark.skipif(
    shutil.which("xgettext") is None, reason="there is no xgettext to look for messages with: apt-get install gettext"
)


@dataclass(frozen=True)
class Entry:
    """A message of a catalogue: one text, or the forms of singular and plural."""

    context: str | None
    id: str
    plural: str | None
    texts: tuple[str, ...]
    is_fuzzy: bool

    @property
    def key(self) -> tuple[str | None, str]:
        return self.context, self.id

    @property
    def forms(self) -> list[tuple[str, str]]:
        """Return each text beside what it translates."""
        return list(zip((self.id, self.plural or self.id), self.texts, strict=False))


def read_po(path: Path) -> list[Entry]:
    """Return the messages of a .po file, without its header."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    entries = [read_entry(block) for block in blocks if not block.startswith("#~")]
    return [entry for entry in entries if entry.id]


def read_entry(block: str) -> Entry:
    fields: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        if found := re.fullmatch(r'(?:(\w+(?:\[\d\])?) )?(".*")', line):
            name = found[1] or name
            fields[name] = fields.get(name, "") + ast.literal_eval(found[2])
    return Entry(
        context=fields.get("msgctxt"),
        id=fields["msgid"],
        plural=fields.get("msgid_plural"),
        texts=tuple(text for name, text in fields.items() if name.startswith("msgstr")),
        is_fuzzy=bool(re.search(r"^#,.*\bfuzzy\b", block, re.M)),
    )


def fixed(text: str) -> list[str]:
    return sorted(FIXED.findall(text))


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return read_po(PO)


@pytest.fixture
def spanish(boss) -> Client:
    """A browser in Peru."""
    client = Client(headers={"accept-language": "es-PE,es;q=0.9,en;q=0.5"})
    client.force_login(boss)
    return client


@pytest.fixture
def everything(execution, onu, sur) -> dict[str, int]:
    """One row of whatever has a page, by the name of the page."""
    node, now = execution.node, timezone.now()
    Olt.objects.filter(pk=sur.pk).update(breaker_opened_at=now, breaker_probed_at=now, failures=3)
    channel = make_channel()
    rule = make_rule()
    rule.channels.add(channel)
    alert = make_alert(sur, rule=rule)
    rows = {
        "olt": node.olt,
        "node": node,
        "onu": onu,
        "execution": execution,
        "quotatracker": make_quota(node, hour_of(now), completed=3, failed=1, skipped=1, pending=7),
        "quotaviolation": make_violation(node, hour_of(now)),
        "executionplan": make_plan(node, hour_of(now)),
        "coordinatorlog": make_log(olt=sur, details={"olt": sur.name}),
        "forecast": Forecast.objects.create(params=QUESTION, status="DONE", result=ANSWER),
        "alert": alert,
        "rule": rule,
        "channel": channel,
        "delivery": make_delivery(channel, alert),
        "problem": make_problem(node.olt, evidence=EVIDENCE),
    }
    return {name: row.pk for name, row in rows.items()}


def html(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return unescape(response.content.decode())


def pieces(text: str) -> set[str]:
    """Return what stands between tags, and in attributes."""
    return {(between or attribute).strip() for between, attribute in re.findall(r'>([^<>]+)<|="([^"]+)"', text)}


def test_the_compiled_catalogue_is_current(entries):
    """If this fails: msgfmt -o django.mo django.po, in src/facho/locale/es/LC_MESSAGES."""
    with MO.open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    [messages] = struct.unpack_from("<I", MO.read_bytes(), offset=8)

    for entry in entries:
        if entry.plural:
            said = tuple(compiled.ngettext(entry.id, entry.plural, n) for n in (1, 2))
        elif entry.context:
            said = (compiled.pgettext(entry.context, entry.id),)
        else:
            said = (compiled.gettext(entry.id),)
        assert said == entry.texts
    assert messages == len(entries) + 1  # the header is one of them


def test_every_message_is_translated_for_certain(entries):
    open_questions = [entry.id for entry in entries if entry.is_fuzzy or not all(entry.texts)]

    assert len(entries) > 900
    assert open_questions == []


def test_a_translation_keeps_placeholders_and_markup(entries):
    broken = [id for entry in entries for id, text in entry.forms if fixed(text) != fixed(id)]

    assert broken == []


def test_no_other_catalogue_speaks_over_ours(entries):
    with translation.override("es"):
        said = {entry.key: first_text(entry) for entry in entries}

    assert said == {entry.key: entry.texts[0] for entry in entries}


def first_text(entry):
    """Return what Django says for a message. Older Pythons find one with a plural only by asking for that."""
    if entry.plural and entry.context:
        return translation.npgettext(entry.context, entry.id, entry.plural, 1)
    if entry.plural:
        return translation.ngettext(entry.id, entry.plural, 1)
    return translation.pgettext(entry.context, entry.id) if entry.context else translation.gettext(entry.id)


def test_messages_are_marked_by_names_that_xgettext_knows():
    """A function called by another name works, and its messages are never found for the catalogue."""
    nicknames = [
        f"{path.relative_to(ROOT)}: {name.name} as {name.asname}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
        for name in node.names
        if name.asname not in (None, "_")
    ]

    assert nicknames == []


def test_no_message_escapes_xgettext(entries):
    """An older xgettext does not look into f-strings, and would drop what is marked in there."""
    known = {entry.id for entry in entries}

    lost = [
        f"{path.relative_to(ROOT)}: {node.args[MARKS[name]].value}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and (name := getattr(node.func, "id", "")) in MARKS
        if len(node.args) > MARKS[name] and isinstance(node.args[MARKS[name]], ast.Constant)
        if node.args[MARKS[name]].value not in known
    ]

    assert lost == []


@needs_xgettext
def test_the_catalogue_has_every_message_of_the_source(entries, tmp_path):
    """If this fails: python -m django makemessages -l es --no-location in src/facho, translate, then msgfmt."""
    copy = tmp_path / "facho"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("locale", "static", "__pycache__"))
    (copy / "locale").mkdir()
    # Without settings it writes here, and knows of no other place.
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}

    subprocess.run(
        [sys.executable, "-P", "-m", "django", "makemessages", "-l", "es", "-v", "0"],
        cwd=copy,
        env=environment,
        check=True,
    )

    found = {entry.key for entry in read_po(copy / CATALOGUE)}
    assert len(found) > 900
    assert found - {entry.key for entry in entries} == set()


def test_every_sentence_of_the_engine_has_a_spanish_one(entries):
    """The engine knows nothing of gettext; it only marks its sentences."""
    said = {form for event in Event for form in (event.singular, event.sentence)} | set(ADVICE.values())

    assert said - {form for entry in entries for form in (entry.id, entry.plural)} == set()


@pytest.mark.parametrize("wish", ["es", "es-PE", "es-PE,es;q=0.9,en;q=0.8"])
def test_the_login_speaks_spanish_to_spanish_browsers(db, client, wish):
    response = client.get("/login/", headers={"accept-language": wish})

    text = response.content.decode()
    assert '<html lang="es-419">' in text
    assert "Iniciar sesión" in text
    assert "Contraseña" in text


def test_who_wishes_no_language_of_ours_gets_the_default(db, client):
    response = client.get("/login/", headers={"accept-language": "qu"})

    assert "Log in" in response.content.decode()


def test_languages_are_called_by_their_own_names(db, client):
    response = client.get("/login/", headers={"accept-language": "es"})

    assert re.findall(r"<button [^>]*lang=[^>]*>(.*?)</button>", response.content.decode()) == ["English", "Español"]


def test_the_overview_speaks_spanish_in_its_html_and_to_its_scripts(spanish, execution):
    make_execution(execution.node, timezone.now())
    make_violation(execution.node, hour_of(timezone.now()), severity="CRITICAL")

    text = html(spanish, "/")

    boot = re.search(r'<script id="boot" type="application/json">(.*?)</script>', text, re.S)
    assert boot
    assert json.loads(boot[1])["text"]["ago"] == "hace {span}"
    assert "ONUs en línea" in text
    assert "Últimas ejecuciones" in text
    assert "exitosa: 1" in text
    assert "crítica: 1" in text
    assert "+1 nodo<" in text


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/", id="overview"),
        pytest.param("/olts/", id="OLTs"),
        pytest.param("/olts/{olt}/", id="an OLT"),
        pytest.param("/problems/", id="problems"),
        pytest.param("/problems/{problem}/", id="a problem"),
        pytest.param("/onus/", id="ONUs"),
        pytest.param("/onus/{onu}/", id="ONU 7"),
        pytest.param("/executions/", id="executions"),
        pytest.param("/admin/", id="admin"),
        pytest.param("/admin/inventory/olt/{olt}/change/", id="admin: an OLT"),
        pytest.param("/admin/jobs/snmpjob/add/", id="admin: a new job"),
        pytest.param("/admin/jobs/workflow/{olt}/change/", id="admin: a workflow"),
        pytest.param("/admin/polling/execution/{execution}/change/", id="admin: an execution"),
        pytest.param("/admin/telemetry/onu/{onu}/change/", id="admin: ONU 7"),
        pytest.param("/nodes/{node}/", id="a node"),
        pytest.param("/forecast/", id="forecast"),
        pytest.param("/forecast/{forecast}/", id="an answer"),
        *(pytest.param(f"/admin/coordinator/{name}/", id=f"admin: {name}") for name in COORDINATOR),
        *(pytest.param(f"/admin/coordinator/{name}/{{{name}}}/change/", id=f"admin: a {name}") for name in COORDINATOR),
        *(pytest.param(f"/admin/alerts/{name}/", id=f"admin: {name}") for name in ALERTS),
        *(pytest.param(f"/admin/alerts/{name}/{{{name}}}/change/", id=f"admin: a {name}") for name in ALERTS),
    ],
)
def test_a_spanish_page_says_nothing_of_ours_in_english(spanish, entries, everything, path):
    # Single words may be part of a name or an address; two and more are ours.
    english = {entry.id for entry in entries if " " in entry.id and entry.texts[0] != entry.id}

    text = html(spanish, path.format(**everything))

    assert 'lang="es-419"' in text
    assert pieces(text) & (english | {capfirst(message) for message in english}) == set()


def test_the_columns_of_the_nodes_are_in_spanish(spanish, node):
    titles = re.findall(r'data-label="(.*?)"', html(spanish, "/admin/jobs/workflownode/"))

    assert "prioridad" in titles
    assert "priority" not in titles


def test_a_refusal_of_the_api_is_in_the_language_of_the_request(reader_api, node):
    path = f"/api/v1/pollers/nodes/{node.pk}/run/"

    spanish = reader_api.post(path, headers={"accept-language": "es"}).json()["detail"]
    english = reader_api.post(path, headers={"accept-language": "en"}).json()["detail"]

    assert spanish == (
        "Esto requiere el permiso jobs.run_workflownode, que tiene el rol Operador. Un administrador puede otorgarlo."
    )
    assert english == (
        "This needs the permission jobs.run_workflownode, which the role Operator has. An admin can grant it."
    )


def test_a_message_of_the_admin_is_in_the_language_of_the_request(spanish, node):
    path = f"/admin/jobs/workflow/{node.olt_id}/run/{node.pk}/"

    response = spanish.post(path, follow=True)

    assert "Potencia óptica @ OLT-CENTRAL-01 se ejecuta apenas su OLT quede libre." in response.content.decode()


def test_every_way_to_read_a_raw_oid_has_a_spanish_name(entries):
    with translation.override("es"):
        choices = dict(raw_decoder_choices())

    assert {decoder.label for decoder in RAW_DECODERS.values()} <= {entry.id for entry in entries}
    assert choices["integer"] == "Número entero"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"^\|.*\|$", id="rows of tables"),
        pytest.param(r"^```\w*$", id="blocks of code"),
        pytest.param(r"^[*\d]+\.? ", id="lists"),
    ],
)
def test_a_spanish_page_is_built_like_the_english_one(name, pattern):
    english, spanish = (len(re.findall(pattern, text, re.M)) for text in twins(name))

    assert spanish == english


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"^#+(?= )", id="levels of headings"),
        pytest.param(r"^\| (`.*?`) \|", id="first cells"),
        pytest.param(r"/api/v1/[^\s`]*|\bFACHO_\w+|\bX-Facho-\w+", id="addresses and names"),
        pytest.param(r"\b\d\d:\d\d:\d\d\b|\b\d+ %|\(-?\d+\)", id="worked numbers"),
    ],
)
def test_a_spanish_page_names_the_same_things(name, pattern):
    english, spanish = twins(name)

    assert sorted(re.findall(pattern, spanish, re.M)) == sorted(re.findall(pattern, english, re.M))


def test_the_spanish_readme_has_the_same_commands():
    english, spanish = (re.findall(r"^ {4,}\S.*$", text, re.M) for text in twins("README"))

    assert spanish == english


def twins(name):
    """Return the two languages of a page."""
    return tuple((ROOT / f"{name}{ending}").read_text(encoding="utf-8") for ending in (".md", ".es.md"))
