"""Sessions of users: who sees them, what keeps them open, and what ends them."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from facho.apps.accounts.models import ApiToken, UserSession
from facho.apps.dashboard import stream

SESSIONS, END = "/account/sessions/", "/account/sessions/end/"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
BY_PERSON = {"HTTP_ACCEPT": "text/html,*/*;q=0.8", "HTTP_USER_AGENT": FIREFOX}
BY_SCRIPT = {"HTTP_ACCEPT": "*/*", "HTTP_USER_AGENT": FIREFOX}


def open_session(user, **headers):
    client = Client(**(headers or BY_PERSON))
    client.force_login(user)
    return client


@pytest.fixture
def clock(monkeypatch):
    """Move the clock forward."""
    start = timezone.now()

    def move(**span):
        moment = start + timedelta(**span)
        monkeypatch.setattr(timezone, "now", lambda: moment)

    return move


def is_open(client):
    return client.get(SESSIONS).status_code == 200


def test_a_user_sees_the_own_sessions_without_their_keys(reader, boss):
    here, there = open_session(reader), open_session(reader)
    open_session(boss)
    there.get("/", REMOTE_ADDR="192.0.2.7")

    page = here.get(SESSIONS).content.decode()

    assert page.count("Firefox on Linux") == 2
    assert "192.0.2.7" in page
    assert page.count("this session") == 1
    assert here.session.session_key not in page
    assert there.session.session_key not in page


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        (FIREFOX, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0", "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/126.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Version/17.5 Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/17.5 Safari/605.1.15", "Safari on macOS"),
        ("curl/8.5.0", "unknown browser"),
    ],
)
def test_a_browser_is_named_in_words(agent, device):
    assert UserSession(user_agent=agent).device == device


def test_one_of_the_own_sessions_is_ended(reader):
    here, second, third = (open_session(reader) for _number in range(3))
    row = UserSession.objects.get(pk=second.session.session_key)

    here.post(END, {"session": row.reference})

    assert [is_open(each) for each in (here, second, third)] == [True, False, True]


def test_all_other_sessions_are_ended(reader, boss):
    here, other, theirs = open_session(reader), open_session(reader), open_session(boss)

    answer = here.post(END, follow=True)

    assert "1 session was ended." in answer.content.decode()
    assert [is_open(each) for each in (here, other, theirs)] == [True, False, True]


@pytest.mark.parametrize("by", ["reference", "key"])
def test_a_session_of_somebody_else_is_not_ended(reader, boss, by):
    theirs = open_session(boss)
    row = UserSession.objects.get(pk=theirs.session.session_key)

    open_session(reader).post(END, {"session": row.reference if by == "reference" else row.pk})

    assert is_open(theirs)


def test_sessions_are_not_ended_by_a_link(reader):
    assert open_session(reader).get(END).status_code == 405


@pytest.mark.parametrize(
    ("headers", "method", "is_kept"),
    [
        pytest.param(BY_PERSON, "get", True, id="a page that a person opens"),
        pytest.param(BY_SCRIPT, "post", True, id="a button that a person presses"),
        pytest.param(BY_SCRIPT, "get", False, id="a page that a script refreshes"),
    ],
)
def test_only_a_person_keeps_a_session_open(reader, clock, headers, method, is_kept):
    client = open_session(reader)
    clock(minutes=700)
    getattr(client, method)("/", **headers)
    clock(minutes=730)

    assert is_open(client) is is_kept


def test_an_idle_session_ends_for_pages_api_and_stream(reader, clock):
    client = open_session(reader)
    # A minute more, because activity is stored at most once a minute.
    clock(minutes=722)

    assert client.get("/")["Location"] == "/login/?next=/"
    assert client.get("/api/v1/olts/").status_code == 401


def test_a_session_ends_after_its_days_whatever_the_user_does(reader, clock):
    client = open_session(reader)
    for day in range(14):
        clock(days=day, hours=1)
        client.get("/")
        clock(days=day, hours=12)
        client.get("/")
    clock(days=14, minutes=1)

    assert not is_open(client)


def test_without_idle_limit_a_session_lasts_its_days(reader, clock, settings):
    settings.FACHO_SESSION_IDLE = timedelta(0)
    client = open_session(reader)
    clock(days=13)

    assert is_open(client)


def test_activity_is_written_once_a_minute(reader, clock, django_assert_num_queries):
    client = open_session(reader)
    client.get(SESSIONS)
    row = UserSession.objects.get()
    clock(seconds=59)
    client.get(SESSIONS)

    assert UserSession.objects.get().last_activity_at == row.last_activity_at
    clock(seconds=61)
    client.get(SESSIONS)
    assert UserSession.objects.get().last_activity_at == timezone.now()


def test_the_login_page_says_that_a_session_has_ended(db):
    assert "Your session has ended. Log in again." in Client().get("/login/?ended&next=/").content.decode()


def test_a_disabled_user_has_no_session_also_when_enabled_again(reader, admin_page):
    client = open_session(reader)
    form = {"username": "reader", "scope-TOTAL_FORMS": "0", "scope-INITIAL_FORMS": "0"}

    saved = admin_page.post(f"/admin/auth/user/{reader.pk}/change/", form)
    User.objects.update(is_active=True)

    assert saved.status_code == 302, saved.context["errors"]
    assert not is_open(client)


def test_an_admin_ends_sessions_and_tokens_of_a_user(reader, admin_page):
    client = open_session(reader)
    ApiToken(user=reader, name="Grafana").issue()

    admin_page.post(f"/admin/auth/user/{reader.pk}/end_sessions/", {"_form_submitted": "on"})

    assert not is_open(client)
    assert not ApiToken.objects.valid().exists()


class TestTheStream:
    async def parts(self):
        for part in "abc":
            yield part

    @pytest.mark.parametrize(("is_open", "expected"), [(True, ["a", "b", "c"]), (False, [])])
    async def test_it_ends_with_the_session(self, is_open, expected):
        async def check():
            return is_open

        assert [part async for part in stream.while_open(self.parts(), check, every=0)] == expected

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            pytest.param(None, True, id="open"),
            pytest.param({"is_active": False}, False, id="user disabled"),
            pytest.param("end", False, id="session ended"),
        ],
    )
    def test_a_session_is_open_while_its_user_may_log_in(self, reader, monkeypatch, change, expected):
        client = open_session(reader)
        if change == "end":
            UserSession.objects.all().delete()
        elif change:
            User.objects.update(**change)

        assert stream._is_open(client.session.session_key) is expected


def test_a_session_of_a_script_has_its_address_and_browser(reader):
    client = open_session(reader)
    client.get("/api/v1/tokens/", headers={"user-agent": "python-requests/2.32"})

    row = UserSession.of(reader).get()
    assert (row.last_address, row.user_agent) == ("127.0.0.1", "python-requests/2.32")
