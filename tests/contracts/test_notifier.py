"""What every channel promises: one message arrives once, and what goes wrong is said without a secret."""

import hashlib
import hmac
import json
import logging
import re
import subprocess
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import unescape
from pathlib import Path

import pytest

from contracts.notify_servers import HttpServer, SmtpServer, closed_port
from facho.alerts.channels import apprise, http
from facho.alerts.channels.apprise import Apprise
from facho.alerts.channels.email import Email, Security
from facho.alerts.channels.slack import Slack
from facho.alerts.channels.telegram import Telegram
from facho.alerts.channels.webhook import Webhook
from facho.alerts.rules import AlertSeverity, Message, News
from facho.engine.errors import DeliveryFailed

SECRET = "s3cret-of-this-channel"
MANUAL = Path(__file__).parents[2] / "docs" / "alerts.md"
T0 = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
NOON = 1_772_366_400
MESSAGE = Message(
    news=News.RAISED,
    delivery_id="42",
    subject="[critical] OLT-SUR-03 does not answer",
    text="Since 10:00.\nSeñal: <perdida> & más.",
    severity=AlertSeverity.CRITICAL,
    rule="OLTs that are gone",
    alert_id=7,
    olt="OLT-SUR-03",
    opened_at=T0,
    details={"kind": "olt_unreachable"},
    url="https://noc.example.net/olts/3/",
    key="0b6c9a1e-5a0f-5f55-8a3b-4a0f4a3a7f6e",
)


class HttpWorld:
    """A channel that posts, and the server it posts to."""

    def __init__(self):
        self.server = HttpServer()

    def refuse(self, code, words="go away", **headers):
        self.server.status, self.server.answer = code, words.encode()
        self.server.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    temporary, permanent = 503, 404
    named = "127.0.0.1"
    unreachable = "127.0.0.1 could not be reached: Connection refused"
    late = "127.0.0.1 did not answer within 0.3 s"


class WebhookWorld(HttpWorld):
    def make(self, port=None, **more):
        url = f"http://127.0.0.1:{port or self.server.port}/hook?key={SECRET}"
        return Webhook(url=url, secret=SECRET, now=lambda: NOON, **more)

    def seen(self):
        return [(each["subject"], each["text"]) for each in self.server.json]


class TelegramWorld(HttpWorld):
    def make(self, port=None, **more):
        base_url = f"http://127.0.0.1:{port or self.server.port}"
        return Telegram(token=f"7:{SECRET}", chat_id="-100", base_url=base_url, **more)

    def seen(self):
        return [tuple(each["text"].removesuffix(f"\n\n{MESSAGE.url}").split("\n\n", 1)) for each in self.server.json]


class SlackWorld(HttpWorld):
    def make(self, port=None, **more):
        return Slack(url=f"http://127.0.0.1:{port or self.server.port}/services/{SECRET}", **more)

    def seen(self):
        texts = [unescape(each["text"]) for each in self.server.json]
        return [tuple(text.removesuffix(f"\n\n{MESSAGE.url}").split("\n\n", 1)) for text in texts]


class AppriseWorld(HttpWorld):
    named = "JSON"
    unreachable = "JSON did not accept the message: A Connection error occurred sending JSON notification to 127.0.0.1."
    late = "the service did not answer within 0.3 s"

    def make(self, port=None, **more):
        url = f"json://noc:{SECRET}@127.0.0.1:{port or self.server.port}/{SECRET}?-key={SECRET}"
        return Apprise(url=url, **more)

    def seen(self):
        return [(each["title"], each["message"].removesuffix(f"\n\n{MESSAGE.url}")) for each in self.server.json]


class EmailWorld:
    temporary, permanent = 451, 550
    named, unreachable, late = HttpWorld.named, HttpWorld.unreachable, HttpWorld.late

    def __init__(self):
        self.server = SmtpServer()

    def make(self, port=None, **more):
        return Email(
            host="127.0.0.1",
            port=port or self.server.port,
            security=Security.NONE,
            user="facho",
            password=SECRET,
            sender="facho@example.net",
            recipients=("noc@example.net", "boss@example.net"),
            **more,
        )

    def refuse(self, code, words="go away", **_headers):
        self.server.replies["MAIL"] = f"{code} {words}"

    def seen(self):
        bodies = [each.body.rstrip("\n").removesuffix(f"\n\n{MESSAGE.url}") for each in self.server.received]
        return [
            (each.subject, body.split("\n\n", 1)[1]) for each, body in zip(self.server.received, bodies, strict=True)
        ]


WORLDS = {
    "webhook": WebhookWorld,
    "telegram": TelegramWorld,
    "slack": SlackWorld,
    "apprise": AppriseWorld,
    "email": EmailWorld,
}


@pytest.fixture(params=WORLDS)
def world(request):
    world = WORLDS[request.param]()
    yield world
    world.server.close()


@pytest.fixture
def webhook():
    world = WebhookWorld()
    yield world
    world.server.close()


@pytest.fixture
def through_apprise():
    world = AppriseWorld()
    yield world
    world.server.close()


@pytest.fixture
def mail():
    world = EmailWorld()
    yield world
    world.server.close()


def failure(notifier, message=MESSAGE):
    with pytest.raises(DeliveryFailed) as caught:
        notifier.send(message)
    return caught.value


def test_a_message_arrives_once_with_its_subject_and_its_text(world):
    world.make().send(MESSAGE)

    assert world.seen() == [(MESSAGE.subject, MESSAGE.text)]


def test_a_message_says_where_to_see_more(world):
    world.make().send(MESSAGE)

    assert MESSAGE.url in world.server.received[0].body


def test_a_long_message_is_taken_too(world):
    world.make().send(replace(MESSAGE, text="ONU 0/1/7: -28.10 dBm\n" * 3000))

    assert MESSAGE.url in world.server.received[0].body
    assert "ONU 0/1/7: -28.10 dBm" in world.server.received[0].body


def test_a_channel_that_cannot_now_may_be_tried_again(world):
    world.refuse(world.temporary)

    error = failure(world.make())

    assert (error.is_temporary, error.code) == (True, world.temporary)
    assert world.named in str(error)


def test_a_channel_that_will_not_is_left_alone(world):
    world.refuse(world.permanent)

    error = failure(world.make())

    assert (error.is_temporary, error.code) == (False, world.permanent)


def test_nobody_there_may_be_tried_again(world):
    with closed_port() as port:
        error = failure(world.make(port=port))

    assert error.is_temporary
    assert str(error) == world.unreachable


@pytest.mark.slow
def test_a_server_that_never_comes_to_an_end_is_cut_off(world):
    """It sends an octet now and then: no timeout between two of them ever comes."""
    world.server.mute.set()

    error = failure(world.make(timeout=0.3))

    assert error.is_temporary
    assert str(error) == world.late


def test_no_secret_is_in_what_it_says_of_itself(world):
    assert SECRET not in repr(world.make())


@pytest.mark.parametrize("code", ["temporary", "permanent"])
def test_no_secret_is_in_what_it_says_of_a_failure(world, code, caplog):
    """Not even if the server repeats it, and neither in the errors behind the error."""
    caplog.set_level(logging.DEBUG)
    world.refuse(getattr(world, code), f"who is {SECRET}?")
    try:
        world.make().send(MESSAGE)
    except DeliveryFailed:
        logging.getLogger("facho.tests").exception("it failed")

    assert "it failed" in caplog.text
    assert SECRET not in caplog.text


def test_no_secret_is_in_an_error_about_an_address_that_is_none(caplog):
    for notifier in (
        Slack(url=f"http://127.0.0.1:1/ {SECRET}"),
        Telegram(token=f"7:{SECRET} ñ\n", chat_id="1", base_url="http://127.0.0.1:1"),
        Webhook(url=f"ftp://{SECRET}/", secret=SECRET),
        Webhook(url=f"http://[{SECRET}", secret=SECRET),
    ):
        error = failure(notifier)

        assert SECRET not in str(error)
        assert error.__cause__ is None


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "file:///etc/passwd", "//127.0.0.1/x", "http://", "noc", ""])
def test_only_http_is_posted_to(url):
    error = failure(Webhook(url=url, secret=SECRET))

    assert not error.is_temporary
    assert str(error) == "the address must begin with http or https"


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_redirects_are_not_followed(webhook, code):
    """A redirect could have messages posted to any internal address."""
    elsewhere = HttpServer()
    webhook.refuse(code, "", Location=elsewhere.url)

    error = failure(webhook.make())
    elsewhere.close()

    assert elsewhere.received == []
    assert (error.is_temporary, error.code) == (False, code)


def test_a_long_answer_is_neither_read_nor_quoted_in_full(webhook):
    """The server breaks the connection after the first part: reading more would be another error."""
    webhook.refuse(500, "x" * 4096, Content_Length="50000000")

    assert str(failure(webhook.make())) == f"127.0.0.1 answered 500: {'x' * 200}"


@pytest.mark.parametrize(
    ("code", "is_temporary"),
    [(400, False), (401, False), (403, False), (404, False), (410, False), (429, True), (500, True), (502, True)],
)
def test_a_status_says_whether_to_try_again(webhook, code, is_temporary):
    webhook.refuse(code)

    error = failure(webhook.make())

    assert (error.is_temporary, error.code) == (is_temporary, code)
    assert str(error) == f"127.0.0.1 answered {code}: go away"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        pytest.param("120", 120.0, id="seconds"),
        pytest.param(format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True), 0.0, id="a date that has passed"),
        pytest.param("soon", None, id="neither"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_a_wish_to_be_left_alone_is_passed_on(webhook, said, seconds):
    webhook.refuse(429, **({"Retry_After": said} if said else {}))

    assert failure(webhook.make()).retry_after == seconds


def test_a_date_to_be_left_alone_until_is_counted_from_now(monkeypatch):
    monkeypatch.setattr(http.time, "time", T0.timestamp)

    assert http._seconds(format_datetime(T0 + timedelta(seconds=90), usegmt=True)) == 90.0


def test_a_webhook_gets_all_there_is_to_know(webhook):
    part = {"alert_id": 7, "opened_at": T0, "recovered_at": None}
    webhook.make().send(
        replace(MESSAGE, news=News.RECOVERED, recovered_at=T0 + timedelta(minutes=5), alerts=[part, part])
    )

    assert webhook.server.json == [
        {
            "id": MESSAGE.key,
            "event": "recovered",
            "alert_id": 7,
            "rule": "OLTs that are gone",
            "severity": "critical",
            "olt": "OLT-SUR-03",
            "subject": MESSAGE.subject,
            "text": MESSAGE.text,
            "opened_at": "2026-03-01T10:00:00+00:00",
            "recovered_at": "2026-03-01T10:05:00+00:00",
            "details": {"kind": "olt_unreachable"},
            "alerts": [{"alert_id": 7, "opened_at": "2026-03-01T10:00:00+00:00", "recovered_at": None}] * 2,
            "url": "https://noc.example.net/olts/3/",
        }
    ]


def test_a_webhook_is_signed_over_its_time_and_its_body(webhook):
    webhook.make().send(MESSAGE)

    [received] = webhook.server.received
    signed = f"{NOON}.{received.body}".encode()
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert received.headers["X-Facho-Timestamp"] == str(NOON)
    assert received.headers["X-Facho-Signature"] == f"sha256={expected}"
    assert received.headers["X-Facho-Delivery"] == "42"
    assert received.headers["Idempotency-Key"] == json.loads(received.body)["id"] == MESSAGE.key
    assert received.headers["Content-Type"] == "application/json"


def test_a_receiver_that_does_what_the_manual_says_believes_us_and_nobody_else(webhook, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOON + 60.0)
    example = re.search(r"```python\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    receiver = {}
    exec(example[1], receiver)  # noqa: S102 - the manual's own words

    webhook.make().send(MESSAGE)

    [received] = webhook.server.received
    body = received.body.encode()
    is_ours = receiver["is_from_facho"]
    assert is_ours(received.headers, body, SECRET)
    assert not is_ours(received.headers, body + b" ", SECRET)
    assert not is_ours(received.headers, body, "another secret")
    assert not is_ours(received.headers | {"X-Facho-Timestamp": str(NOON + 1)}, body, SECRET)
    monkeypatch.setattr(time, "time", lambda: NOON + 301.0)
    assert not is_ours(received.headers, body, SECRET)


def test_the_body_of_a_webhook_is_written_in_one_way_only(webhook):
    webhook.make().send(MESSAGE)

    [received] = webhook.server.received
    again = json.dumps(json.loads(received.body), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert received.body == again


def test_a_bot_writes_to_its_chat():
    world = TelegramWorld()

    world.make().send(MESSAGE)
    world.server.close()

    assert world.server.received[0].path == f"/bot7:{SECRET}/sendMessage"
    assert world.server.json[0]["chat_id"] == "-100"


def test_telegram_takes_no_more_than_it_can():
    world = TelegramWorld()

    world.make().send(replace(MESSAGE, text="x" * 10_000))
    world.server.close()

    assert len(world.server.json[0]["text"]) == 4096


def test_nobody_is_called_by_the_name_of_an_onu_in_slack():
    world = SlackWorld()

    world.make().send(replace(MESSAGE, text="<!channel> is down"))
    world.server.close()

    assert "&lt;!channel&gt; is down" in world.server.json[0]["text"]


@pytest.mark.parametrize(
    ("news", "severity", "kind"),
    [
        (News.RAISED, AlertSeverity.CRITICAL, "failure"),
        (News.RAISED, AlertSeverity.WARNING, "warning"),
        (News.TEST, AlertSeverity.INFO, "info"),
        (News.RECOVERED, AlertSeverity.CRITICAL, "success"),
    ],
)
def test_apprise_gets_the_severity_as_its_type(through_apprise, news, severity, kind):
    through_apprise.make().send(replace(MESSAGE, news=news, severity=severity))

    assert [each["type"] for each in through_apprise.server.json] == [kind]


@pytest.mark.parametrize("wish", ["", "&redirect=yes"])
def test_apprise_follows_no_redirect(through_apprise, wish):
    elsewhere = HttpServer()
    through_apprise.refuse(307, "", Location=elsewhere.url)
    notifier = through_apprise.make()

    error = failure(replace(notifier, url=notifier.url + wish))
    elsewhere.close()

    assert elsewhere.received == []
    assert (error.is_temporary, error.code) == (False, 307)


def test_an_error_of_apprise_shows_no_part_of_its_url():
    """A service may quote any part: here the host, which is the token of many services."""
    error = failure(Apprise(url="json://word-of-the-noc:1/"))

    assert "word" not in str(error)
    assert "***" in str(error)


def test_apprise_reads_no_file_of_the_server(tmp_path):
    (tmp_path / "keys.json").write_text("{}")

    error = failure(Apprise(url=f"discord://{'1' * 18}/{'a' * 40}?template={tmp_path}/keys.json"))

    assert (error.is_temporary, str(error)) == (False, "Apprise does not accept the URL. Write it again")


def test_calls_of_apprise_that_do_not_end_do_not_pile_up(through_apprise, monkeypatch):
    monkeypatch.setattr(apprise, "_calls", threading.BoundedSemaphore(1))
    through_apprise.server.mute.set()
    failure(through_apprise.make(timeout=0.1))

    error = failure(through_apprise.make())
    through_apprise.server.released.set()
    for thread in threading.enumerate():
        if thread.name == "apprise":
            thread.join()

    assert (error.is_temporary, str(error)) == (True, "16 earlier calls of Apprise have not ended")


def test_apprise_that_is_not_installed_is_an_error_with_the_command(monkeypatch):
    monkeypatch.setattr(apprise, "is_installed", lambda: False)

    error = failure(Apprise(url="json://127.0.0.1:1/"))

    assert (error.is_temporary, str(error)) == (
        True,
        "Apprise is not installed. Install it with: pip install 'facho[apprise]'",
    )


def test_a_mail_goes_to_all_with_the_headers_of_a_machine(mail):
    mail.make().send(replace(MESSAGE, subject="[critical] OLT-SUR-03\nBcc: all@example.net"))

    [received] = mail.server.received
    assert received.headers["To"] == "noc@example.net, boss@example.net"
    assert received.headers["From"] == "facho@example.net"
    assert received.headers["Message-ID"] == f"<facho.{MESSAGE.key}@example.net>"
    assert received.headers["Auto-Submitted"] == "auto-generated"
    assert "Bcc" not in received.headers
    assert mail.server.logins == [["facho", SECRET]]


def test_a_mail_that_one_recipient_cannot_get_is_not_sent_to_the_others_again(mail):
    mail.server.replies["rcpt TO:<boss@example.net>"] = "450 not now"

    error = failure(mail.make())

    assert not error.is_temporary
    assert str(error) == "127.0.0.1 refused the message for boss@example.net; the other recipients got it"
    assert len(mail.server.received) == 1


def test_a_mail_that_no_recipient_can_get_is_an_error(mail):
    mail.server.replies["RCPT"] = "550 not here"

    error = failure(mail.make())

    assert not error.is_temporary
    assert str(error) == "127.0.0.1 refused all recipients"


def test_a_wrong_password_is_for_a_person_to_put_right(mail):
    mail.server.replies["AUTH"] = f"535 not {SECRET}"

    error = failure(mail.make())

    assert (error.is_temporary, error.code) == (False, 535)
    assert str(error) == "127.0.0.1 rejected the user or the password"


def test_a_mail_that_was_taken_is_sent_however_the_server_says_goodbye(mail):
    mail.server.replies["QUIT"] = "500 what?"

    assert mail.make().send(MESSAGE) is None
    assert len(mail.server.received) == 1


def test_a_password_is_not_sent_where_encryption_was_asked_for_and_is_not_offered(mail):
    error = failure(replace(mail.make(), security=Security.STARTTLS))

    assert not error.is_temporary
    assert mail.server.logins == []


@pytest.fixture
def https(tmp_path):
    """A server with a certificate that nobody vouches for."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    made = subprocess.run(
        [*make, "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("there is no openssl to make a certificate with")
    server = HttpServer()
    server.use_tls(certificate, key)
    yield server
    server.close()


def test_a_certificate_that_nobody_vouches_for_is_not_accepted(https):
    error = failure(Webhook(url=f"https://127.0.0.1:{https.port}/", secret=SECRET))

    assert "certificate" in str(error)
    assert https.received == []
