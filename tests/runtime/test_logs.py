"""Where lines go, in which form, and what never stands in one."""

import errno
import io
import json
import logging
import logging.handlers
import sys
import traceback
from datetime import datetime, timedelta
from urllib.request import Request

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from contracts.worlds import Inline, done
from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import SystemClock
from facho.alerts.models import Channel
from facho.apps.accounts.models import ApiToken
from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.models import Olt
from facho.engine.events import Event, log_event
from facho.engine.model import Olt as EngineOlt
from facho.runtime import config, logs
from facho.runtime.logs import HIDDEN, redact
from facho.store.events import EventRows, Journal, Pool

KEY = Fernet.generate_key().decode()
BOT = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
SECRETS = {"community": "s3cret-community", "v3_auth_key": "s3cret-auth-key", "v3_priv_key": "s3cret-priv-key"}

logger = logging.getLogger("facho.tests.logs")


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """Set logging up as an installation has it, and say what the terminal and the file have then."""
    root, ours = logging.getLogger(), logging.getLogger("facho")
    before = root.handlers[:], root.level, ours.level
    terminal = io.StringIO()

    def configure(*, to_file=True, **settings):
        environ = {f"FACHO_{name.upper()}": value for name, value in settings.items()}
        monkeypatch.setattr("sys.stderr", terminal)
        # The handlers of the tests themselves are put aside, not closed.
        root.handlers = []
        logs.configure(config.load({"FACHO_DATA_DIR": str(tmp_path)} | environ), to_file=to_file)
        return lambda: (terminal.getvalue(), "".join(path.read_text() for path in tmp_path.glob("logs/facho.log*")))

    yield configure
    for handler in root.handlers:
        handler.close()
    root.handlers, level, our_level = before
    root.setLevel(level)
    ours.setLevel(our_level)


def fail(message="the OLT is away"):
    try:
        raise OSError(message)
    except OSError:
        logger.exception("OLT-SUR-03 was asked in vain")


def test_a_line_has_its_time_its_level_and_its_place(lines):
    said = lines()

    logger.warning("%s did not answer", "OLT-SUR-03")

    terminal, file = said()
    assert terminal == file
    assert terminal.endswith(" WARNING  facho.tests.logs: OLT-SUR-03 did not answer\n")


def test_a_command_can_do_without_the_file(lines, tmp_path):
    said = lines(to_file=False)

    logger.warning("heard")

    assert "heard" in said()[0]
    assert not (tmp_path / "logs").exists()


def test_the_file_is_rotated_before_it_fills_the_disk(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "FILE_SIZE", 2000)
    lines()

    for number in range(200):
        logger.warning("line %d", number)

    file, _ = (each for each in logging.getLogger().handlers if hasattr(each, "backupCount"))
    assert sorted(path.name for path in tmp_path.glob("logs/facho.log*")) == [
        "facho.log",
        *(f"facho.log.{number}" for number in range(1, 6)),
    ]
    assert all(path.stat().st_size <= 2000 for path in tmp_path.glob("logs/facho.log*"))
    assert isinstance(file, logging.handlers.RotatingFileHandler)


def test_the_file_may_have_ten_megabytes_and_five_backups():
    assert (logs.FILE_SIZE, logs.BACKUPS) == (10 * 1024 * 1024, 5)


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        pytest.param("DEBUG", ["debug", "info", "warning", "error"], id="everything"),
        pytest.param("INFO", ["info", "warning", "error"], id="as usual"),
        pytest.param("ERROR", ["error"], id="only what is broken"),
    ],
)
def test_lines_below_the_level_are_left_out(lines, level, heard):
    said = lines(log_level=level)

    for name in ("debug", "info", "warning", "error"):
        getattr(logger, name)("said %s", name)

    terminal, file = said()
    assert [line.split()[-1] for line in terminal.splitlines()] == heard
    assert file == terminal


def test_of_others_only_warnings_are_lines(lines):
    said = lines(log_level="DEBUG")

    logging.getLogger("django.request").info("GET /")
    logging.getLogger("django.request").warning("Not Found: /x")

    assert [line.split(": ", 1)[1] for line in said()[0].splitlines()] == ["Not Found: /x"]


def test_an_event_reaches_its_table_whatever_the_level_of_lines(lines):
    said = lines(log_level="ERROR")
    events = EventRows()
    logs.add_events(events)

    log_event(logger, Event.ENGINE_STARTED, pollers=10)
    logs.remove_events(events)
    log_event(logger, Event.ENGINE_STOPPED)

    assert said() == ("", "")
    assert [row["event_type"] for row in events.first(10)] == ["ENGINE_STARTED"]


class TestJson:
    def test_a_line_is_one_object(self, lines):
        said = lines(log_format="json")

        logger.warning("%s said\n%r", "OLT-CENTRAL-01", "ñ")

        terminal, file = said()
        line = json.loads(file)
        at = datetime.fromisoformat(line.pop("time"))
        assert terminal == file
        assert "ñ" in file
        assert at.utcoffset() == timedelta(0)
        assert line == {"level": "WARNING", "logger": logger.name, "message": r"OLT-CENTRAL-01 said\n'ñ'"}

    def test_an_event_brings_its_details(self, lines):
        said = lines(log_format="json")

        log_event(logger, Event.TASK_ADDED, olt_id=7, olt="OLT-CENTRAL-01", task="Optical power")

        line = json.loads(said()[1])
        assert line["message"] == "OLT-CENTRAL-01: polling of Optical power started"
        assert (line["event"], line["olt_id"]) == ("TASK_ADDED", 7)
        assert line["details"] == {"olt": "OLT-CENTRAL-01", "task": "Optical power"}

    def test_an_error_brings_its_traceback_in_the_same_line(self, lines):
        said = lines(log_format="json")

        fail()

        (line,) = said()[1].splitlines()
        assert json.loads(line)["exception"].endswith("OSError: the OLT is away")

    def test_what_no_encoding_has_does_not_lose_the_line(self, lines):
        said = lines(log_format="json")

        logger.warning("it said %s", "a\ud800b")

        assert json.loads(said()[1])["message"] == r"it said a\ud800b"


def test_words_that_do_not_fit_their_sentence_do_not_lose_the_line(lines):
    said = lines()

    logger.warning("%d of %d", 7)

    assert "%d of %d (7,)" in said()[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://facho:hunter2@db:5432/facho", f"postgresql://facho:{HIDDEN}@db:5432/facho"),
        ("postgresql://facho:p@ss:w@db/facho", f"postgresql://facho:{HIDDEN}@db/facho"),
        ("password=hunter2 host=db", f"password={HIDDEN} host=db"),
        ("{'v3_auth_key': 'hunter 2', 'port': 161}", f"{{'v3_auth_key': {HIDDEN}, 'port': 161}}"),
        ('{"Community": "hunter2"}', f'{{"Community": {HIDDEN}}}'),
        ("User(name='noc', auth_key=b'hunter2')", f"User(name='noc', auth_key={HIDDEN})"),
        ("GET /hook?token=hunter2&olt=7", f"GET /hook?token={HIDDEN}&olt=7"),
        ("Authorization: Token hunter2", f"Authorization: {HIDDEN}"),
        ("{'Authorization': 'Bearer hunter2'}", f"{{'Authorization': '{HIDDEN}'}}"),
        ("('Authorization', 'Basic aHVudGVyMg==')", f"('Authorization', '{HIDDEN}')"),
        ("sent with bearer hunter2.hunter2", f"sent with bearer {HIDDEN}"),
        (f"https://api.telegram.org/bot{BOT}/sendMessage", f"https://api.telegram.org/bot{HIDDEN}/sendMessage"),
        ("https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/hunter2hunter2", "https://hooks.slack.com/services/***"),
        (f"Key 1 is {KEY}", f"Key 1 is {HIDDEN}"),
        (f"it is stored as {Fernet(KEY).encrypt(b'hunter2').decode()}", f"it is stored as {HIDDEN}"),
    ],
    ids=[
        "a database",
        "a password with signs in it",
        "an argument",
        "an item of a dictionary",
        "an item of JSON",
        "a repr",
        "a query",
        "a header",
        "a header in a dictionary",
        "a header in a pair",
        "a bearer",
        "Telegram",
        "Slack",
        "a key",
        "a ciphertext",
    ],
)
def test_what_has_the_shape_of_a_secret_is_hidden(text, expected):
    assert redact(text) == expected


def test_a_key_of_a_token_is_cut_to_the_part_that_lists_show():
    assert redact("got facho_ab12" + "x" * 44 + ", refused") == f"got facho_ab12{HIDDEN}, refused"


@pytest.mark.parametrize(
    "text",
    [
        "Facho is listening on http://127.0.0.1:8000",
        "OLT-CENTRAL-01: the address changed from 10.0.0.8:161 (v2c) to 10.0.0.7:161 (v2c)",
        "A wrong community looks like silence",
        "a secret cannot be read with the keys at hand",
        "1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4.4194304000.7",
        "noc@example.net could not be reached after 8 attempts: timed out",
        *(event.sentence for event in Event),
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def broken_by(value):
    raise ValueError(value)


def push(value):
    """Let a value come into the log in every way there is."""
    logger.warning("it was %s", value)
    logger.warning("it was %r", value)
    logger.warning(f"it was {value}")  # noqa: G004 - others write lines like that
    log_event(logger, Event.RUN_FAILED, olt_id=None, olt="OLT-CENTRAL-01", task="Optical power", error=value)
    try:
        broken_by(value)
    except ValueError as error:
        logger.exception("it was broken")
        log_event(logger, Event.CHORE_FAILED, exc_info=error, chore="settle", error=error)
        logger.error("it was broken: %s", "".join(traceback.format_exception(error)))


class Everywhere:
    """All that comes of values that are logged: lines on the terminal and in the file, rows in the table."""

    def __init__(self, said):
        self._said = said

    def after(self, values):
        events = EventRows()
        logs.add_events(events)
        for value in values:
            push(value)
        done(Journal(bus=LocalBus(), clock=SystemClock(), thread=Inline(), events=events, pool=Pool()).step())
        logs.remove_events(events)
        rows = [str(row) for row in CoordinatorLog.objects.values()]
        everything = "".join([*self._said(), *rows])
        # It did come in, each time.
        assert len(rows) == 2 * len(values)
        assert everything.count("it was") >= 5 * len(values)
        return everything


@pytest.fixture(params=["line", "json"])
def everywhere(db, lines, request, monkeypatch, tmp_path):
    # Every line is wanted, also one that comes again.
    monkeypatch.setattr(logs, "REPEAT_AFTER", 0.0)
    said = lines(log_format=request.param)
    return Everywhere(lambda: (*said(), (tmp_path / "logs" / "coordinator.log").read_text()))


V3 = {"version": "3", "v3_user": "noc", "v3_auth": "SHA256", "v3_priv": "AES128"}


@pytest.mark.parametrize("version", [{"version": "2c"}, V3], ids=["v2c", "v3"])
def test_no_secret_of_an_olt_reaches_terminal_file_or_table(everywhere, version):
    made = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", **version, **SECRETS)
    olt = Olt.objects.get(pk=made.pk)
    known = EngineOlt(id=olt.pk, name=olt.name, brand=olt.brand, agent=olt.agent())
    revealed = {name: getattr(olt, name).reveal() for name in SECRETS}
    tokens = [getattr(olt, name).token for name in SECRETS]

    everything = everywhere.after(
        [olt, vars(olt), olt.community, known, known.agent, known.agent.credentials, revealed, made, tokens]
    )

    assert [secret for secret in (*SECRETS.values(), *tokens) if secret in everything] == []


def test_no_secret_of_a_channel_reaches_terminal_file_or_table(everywhere):
    slack = "https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/hunter2hunter2"
    secrets = {"signing_secret": "s3cret-signing", "smtp_password": "s3cret-mail", "bot_token": BOT, "slack_url": slack}
    made = Channel.objects.create(name="NOC", kind="webhook", url="https://noc:s3cret-url@noc.example.net/", **secrets)
    channel = Channel.objects.get(pk=made.pk)
    asked = Request(f"https://api.telegram.org/bot{BOT}/sendMessage", headers={"Authorization": "Bearer s3cret-bearer"})

    everything = everywhere.after(
        [
            channel,
            vars(channel),
            secrets,
            channel.url,
            asked.full_url,
            asked.headers,
            asked.header_items(),
            f"HTTP 404 from {slack}: no_service",
        ]
    )

    hidden = ["s3cret-", BOT, BOT.split(":")[1], "hunter2"]
    assert [secret for secret in hidden if secret in everything] == []


def test_no_secret_of_the_installation_reaches_terminal_file_or_table(everywhere, tmp_path):
    url = "postgresql://facho:s3cret-db@db.example.net:5433/facho"
    loaded = config.load({"FACHO_DATA_DIR": str(tmp_path), "DATABASE_URL": url, "FACHO_SECRET_KEYS": KEY})

    everything = everywhere.after(
        [loaded, url, {"PASSWORD": loaded.database["PASSWORD"]}, loaded.database, f"FACHO_SECRET_KEYS={KEY}", [KEY]]
    )

    assert [secret for secret in ("s3cret-db", KEY) if secret in everything] == []


def test_a_detail_that_is_called_a_secret_is_one(lines):
    said = lines(log_format="json")

    log_event(logger, Event.ENGINE_STOPPED, community="hunter2", priv_key="hunter2", tokens=7)

    assert json.loads(said()[1])["details"] == {"community": HIDDEN, "priv_key": HIDDEN, "tokens": 7}


class Beat:
    """A clock for `Repeats`."""

    seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def repeats():
    """Return what is let through of an error that comes at these seconds."""
    beat = Beat()
    taken = logs.Repeats(60.0, beat)

    def log(error, *seconds):
        shown = []
        for at in seconds:
            beat.seconds = at
            try:
                raise error
            except type(error):
                record = logger.makeRecord(logger.name, logging.ERROR, __file__, 7, "it failed", (), sys.exc_info())
            shown.append(taken.take(record))
        return [each and (each.getMessage(), bool(each.exc_info)) for each in shown]

    return log


def test_an_error_that_repeats_itself_is_one_line_a_minute_with_a_count(repeats):
    shown = repeats(ValueError("a defect"), 0.0, 0.1, 0.2, 59.9, 60.0, 60.1)

    assert shown[0] == ("it failed", True)
    assert shown[1:4] == [None] * 3
    assert shown[4] == ("it failed: ValueError: a defect (3 more since the last line)", False)
    assert shown[5] is None


def test_an_error_that_comes_back_later_has_its_traceback_again(repeats):
    assert repeats(ValueError("a defect"), 0.0, 300.0) == [("it failed", True)] * 2


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [OperationalError("database or disk is full"), FULL], ids=["database", "disk"])
def test_a_full_disk_needs_no_traceback(repeats, error):
    assert repeats(error, 0.0) == [(f"it failed: {type(error).__name__}: {error}", False)]


def test_different_errors_and_plain_lines_are_all_there(lines):
    said = lines(log_level="INFO")

    for number in range(3):
        logger.info("polling")
        logger.warning("OLT %d is slow", number)

    for text in said():
        assert text.count("polling") == 3
        assert [f"OLT {number} is slow" in text for number in range(3)] == [True] * 3


def test_a_log_file_that_cannot_be_written_is_one_line_on_the_terminal(lines, monkeypatch):
    said = lines()
    file, _ = (each for each in logging.getLogger().handlers if isinstance(each, logs.LogFile))

    def full(text):
        raise OSError("No space left on device")

    monkeypatch.setattr(file.stream, "write", full, raising=False)
    for number in range(50):
        logger.warning("line %d", number)

    terminal, _ = said()
    assert terminal.count("cannot be written: No space left on device") == 1
    assert "Traceback" not in terminal


def test_events_alone_are_in_the_coordinators_log_whatever_the_level(lines, tmp_path):
    lines(log_level="ERROR")

    logger.error("no event")
    for _ in range(2):
        log_event(logger, Event.ENGINE_STOPPED)

    text = (tmp_path / "logs" / "coordinator.log").read_text()
    assert text.count("the engine is stopping") == 2
    assert "no event" not in text


def test_the_coordinators_log_rotates_as_the_other_does(lines):
    lines()
    files = [each for each in logging.getLogger().handlers if isinstance(each, logs.LogFile)]

    assert [(each.maxBytes, each.backupCount) for each in files] == [(10 * 1024 * 1024, 5)] * 2


@pytest.fixture
def somebody(db):
    user = User.objects.create(username="reader", is_staff=True)
    client = Client(headers={"host": "localhost"}, enforce_csrf_checks=True)
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    ("method", "path", "headers", "line"),
    [
        pytest.param(
            "get",
            "/admin/inventory/olt/",
            {},
            "403 user='reader' address=127.0.0.1 method=GET path='/admin/inventory/olt/': ",
            id="a page without the permission",
        ),
        pytest.param(
            "post",
            "/api/v1/olts/",
            {},
            "403 user='reader' address=127.0.0.1 method=POST path='/api/v1/olts/': Forbidden: /api/v1/olts/",
            id="API",
        ),
        pytest.param(
            "post",
            "/login/",
            {},
            "403 user=- address=127.0.0.1 method=POST path='/login/': Forbidden (CSRF cookie not set.): /login/",
            id="a form of another site",
        ),
        pytest.param(
            "get",
            "/",
            {"host": "evil.example.net"},
            "400 user=- address=127.0.0.1 method=GET path='/': Invalid HTTP_HOST header: 'evil.example.net'.",
            id="another host name",
        ),
        pytest.param(
            "get",
            "/admin/inventory/olt/?a=%0d%0aforged&p=\x00",
            {},
            "403 user='reader' address=127.0.0.1 method=GET path='/admin/inventory/olt/': ",
            id="control characters in the query",
        ),
    ],
)
def test_a_refused_request_is_one_line(lines, somebody, method, path, headers, line):
    said = lines()

    answer = getattr(somebody, method)(path, headers=headers)

    terminal, file = said()
    [written] = terminal.splitlines()
    assert terminal == file
    assert " WARNING  django." in written
    assert line in written
    assert written.endswith(f" [request {answer['X-Request-ID']}]")


def test_the_line_of_a_refused_token_has_its_user(lines, somebody):
    key = ApiToken(user=User.objects.get(), name="Grafana", is_read_only=True).issue()
    said = lines()

    Client(headers={"host": "localhost"}).post("/api/v1/olts/", headers={"authorization": f"Token {key}"})

    assert "403 user='reader' address=127.0.0.1 method=POST path='/api/v1/olts/'" in said()[0]


def test_a_path_cannot_forge_a_line(lines, somebody):
    said = lines()

    somebody.get("/admin/inventory/olt/%1b[31mroot/change/")

    [written] = said()[0].splitlines()
    assert r"path='/admin/inventory/olt/\x1b[31mroot/change/'" in written


HOSTILE = "Ana\x1b[2J\r\n2026-01-01 00:00:00,000 INFO     facho: forged\u202e"


def test_a_text_cannot_forge_a_line(lines):
    said = lines()

    logger.warning("ONU %s is missing", HOSTILE)

    [line] = said()[1].splitlines()
    assert line.endswith(r"ONU Ana\u001b[2J\r\n2026-01-01 00:00:00,000 INFO     facho: forged\u202e is missing")


def test_a_text_in_a_traceback_cannot_forge_a_line(lines):
    said = lines()

    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logger.exception("it failed")

    first, *rest = said()[1].splitlines()
    assert first.endswith("it failed")
    assert all(line.startswith("  ") for line in rest)
    assert rest[-1].endswith(r"forged\u202e")
    assert not any("\x1b" in line or "\r" in line for line in rest)
