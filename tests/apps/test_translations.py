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
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from cast import make_execution
from django.test import Client
from django.utils import timezone, translation
from django.utils.text import capfirst

from facho.apps.jobs.models import raw_decoder_choices
from facho.brands.decode import RAW_DECODERS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "facho"
CATALOGUE = Path("locale", "es", "LC_MESSAGES", "django.po")
PO = SOURCE / CATALOGUE
MO = PO.with_suffix(".mo")

# What a translation must not lose: %(olt)s, {span}, %% and markup.
FIXED = re.compile(r"%\(\w+\)[sd]|\{\w*\}|%%|<[^>]+>")

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


@pytest.fixture(autouse=True)
def _the_next_test_begins_in_the_default_language() -> Iterator[None]:
    yield
    # The language of a request stays with the thread that answered it, and here that is ours.
    translation.deactivate()


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return read_po(PO)


@pytest.fixture
def spanish(boss) -> Client:
    """A browser in Peru."""
    client = Client(headers={"accept-language": "es-PE,es;q=0.9,en;q=0.5"})
    client.force_login(boss)
    return client


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

    assert len(entries) > 400
    assert open_questions == []


def test_a_translation_keeps_placeholders_and_markup(entries):
    broken = [entry.id for entry in entries for text in entry.texts if fixed(text) != fixed(entry.id)]

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
    assert len(found) > 400
    assert found - {entry.key for entry in entries} == set()


@pytest.mark.parametrize("wish", ["es", "es-PE", "es-PE,es;q=0.9,en;q=0.8"])
def test_the_login_speaks_spanish_to_whoever_wishes_it(db, client, wish):
    response = client.get("/login/", headers={"accept-language": wish})

    text = response.content.decode()
    assert '<html lang="es">' in text
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

    text = html(spanish, "/")

    boot = re.search(r'<script id="boot" type="application/json">(.*?)</script>', text, re.S)
    assert boot
    assert json.loads(boot[1])["text"]["ago"] == "hace {span}"
    assert "ONUs en línea" in text
    assert "Últimas ejecuciones" in text
    assert "exitosa: 1" in text
    assert "1 encadenado<" in text


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/", id="overview"),
        pytest.param("/olts/", id="OLTs"),
        pytest.param("/olts/{olt}/", id="an OLT"),
        pytest.param("/onus/", id="ONUs"),
        pytest.param("/onus/{onu}/", id="ONU 7"),
        pytest.param("/executions/", id="executions"),
        pytest.param("/admin/", id="admin"),
        pytest.param("/admin/inventory/olt/{olt}/change/", id="admin: an OLT"),
        pytest.param("/admin/jobs/snmpjob/add/", id="admin: a new job"),
        pytest.param("/admin/jobs/workflow/{olt}/change/", id="admin: a workflow"),
        pytest.param("/admin/polling/execution/{execution}/change/", id="admin: an execution"),
        pytest.param("/admin/telemetry/onu/{onu}/change/", id="admin: ONU 7"),
    ],
)
def test_a_spanish_page_says_nothing_of_ours_in_english(spanish, entries, execution, onu, path):
    # Single words may be part of a name or an address; two and more are ours.
    english = {entry.id for entry in entries if " " in entry.id and entry.texts[0] != entry.id}

    text = html(spanish, path.format(olt=execution.olt_id, onu=onu.pk, execution=execution.pk))

    assert 'lang="es"' in text
    assert pieces(text) & (english | {capfirst(message) for message in english}) == set()


def test_a_refusal_of_the_api_is_in_the_language_of_the_request(reader_api, node):
    path = f"/api/v1/pollers/nodes/{node.pk}/run/"

    spanish = reader_api.post(path, headers={"accept-language": "es"}).json()["detail"]
    english = reader_api.post(path, headers={"accept-language": "en"}).json()["detail"]

    assert spanish == "Esto requiere el permiso jobs.change_workflownode. Un administrador puede otorgarlo."
    assert english == "This needs the permission jobs.change_workflownode. An admin can grant it."


def test_a_message_of_the_admin_is_in_the_language_of_the_request(spanish, node):
    path = f"/admin/jobs/workflow/{node.olt_id}/run/{node.pk}/"

    response = spanish.post(path, follow=True)

    assert "Optical power @ OLT-CENTRAL-01 se ejecuta apenas su OLT quede libre." in response.content.decode()


def test_every_way_to_read_a_raw_oid_has_a_spanish_name(entries):
    with translation.override("es"):
        choices = dict(raw_decoder_choices())

    assert {decoder.label for decoder in RAW_DECODERS.values()} <= {entry.id for entry in entries}
    assert choices["integer"] == "Número entero"


def test_the_spanish_readme_has_the_same_commands_and_settings():
    english, spanish = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.es.md"))

    for pattern in (r"^ {4,}\S.*$", r"^\| (`.*?`) \|", r"^#+(?= )"):
        assert re.findall(pattern, spanish, re.M) == re.findall(pattern, english, re.M)
