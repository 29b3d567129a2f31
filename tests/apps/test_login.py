"""The login on the page and in the API: who is locked, where, for how long, and how a lock ends."""

from datetime import timedelta
from typing import ClassVar

import pytest
from axes.models import AccessAttempt, AccessLog
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.test import Client
from django.utils import timezone

from facho.apps.accounts import logins

LOGIN, TOKEN = "/login/", "/api/v1/auth/token/"
PASSWORD = "a good passphrase"
LIMIT = 5
LOCKED = "Too many failed logins. Try again in 15 minutes, or ask an admin to unlock you."


@pytest.fixture(autouse=True)
def _fast_hashes(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def noc(db):
    return User.objects.create_user("noc", password=PASSWORD)


def attempt(path=LOGIN, username="noc", password="wrong", address="192.0.2.1", **headers):
    form = {"username": username, "password": password}
    return Client(REMOTE_ADDR=address).post(path, form, headers=headers)


def fail(number=LIMIT, **attempts):
    return [attempt(**attempts).status_code for _number in range(number)]


def is_in(answer):
    return answer.status_code == 302 or "token" in answer.json()


@pytest.mark.parametrize(("path", "refused"), [(LOGIN, 200), (TOKEN, 400)])
def test_a_user_is_locked_after_five_failures(noc, path, refused):
    statuses = fail(path=path)

    answer = attempt(path, password=PASSWORD)

    assert statuses == [refused] * (LIMIT - 1) + [429]
    assert answer.status_code == 429
    assert LOCKED in answer.content.decode()
    assert 0 < int(answer["Retry-After"]) <= 900


class Watched(BaseBackend):
    """Remembers whether the client had its turn when a password was checked."""

    had_turn: ClassVar[list[bool]] = []

    def authenticate(self, request, username=None, password=None):
        self.had_turn.append(logins.turn_of(request).locked())


@pytest.mark.parametrize(
    ("path", "form"),
    [(LOGIN, {}), (TOKEN, {}), ("/account/password/", {"old_password": "x", "new_password1": "y"})],
    ids=["page", "API", "own password"],
)
def test_a_client_tries_one_password_after_the_other(noc, settings, monkeypatch, path, form):
    # Many at once would all be tried before the first failure is counted.
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, f"{__name__}.Watched"]
    monkeypatch.setattr(Watched, "had_turn", [])
    client = Client()
    if form:
        client.force_login(noc, "facho.apps.accounts.backends.LocalBackend")

    answer = client.post(path, form or {"username": "noc", "password": "wrong"})

    assert Watched.had_turn == [True]
    assert not logins.turn_of(answer.wsgi_request).locked()


def test_another_browser_is_the_same_client(noc):
    statuses = [attempt(**{"User-Agent": f"browser {number}"}).status_code for number in range(LIMIT)]

    assert statuses[-1] == 429
    assert AccessAttempt.objects.get().failures_since_start == LIMIT


def test_page_and_api_share_a_lock(noc):
    fail(2, path=LOGIN)
    fail(3, path=TOKEN)

    assert attempt(LOGIN, password=PASSWORD).status_code == 429


@pytest.mark.parametrize("name", ["NOC", " noc ", "ｎｏｃ", "NoC"])
def test_another_spelling_of_a_name_is_the_same_user(noc, name):
    fail(LIMIT - 1, path=TOKEN)

    assert attempt(TOKEN, username=name).status_code == 429


def test_an_unknown_user_is_answered_as_a_known_one(noc):
    known = [attempt(TOKEN) for _number in range(LIMIT)]
    unknown = [attempt(TOKEN, username="nobody", address="192.0.2.2") for _number in range(LIMIT)]

    assert [each.content for each in known] == [each.content for each in unknown]


def test_a_lock_counts_for_one_user_at_one_address(noc):
    User.objects.create_user("boss", password=PASSWORD)
    fail()

    assert is_in(attempt(username="boss", password=PASSWORD))
    assert is_in(attempt(password=PASSWORD, address="192.0.2.2"))


def test_an_address_that_tries_many_users_is_locked(noc):
    for number in range(LIMIT * logins.ADDRESS_FACTOR):
        AccessAttempt.objects.create(username=f"user {number}", ip_address="192.0.2.1", failures_since_start=1)

    assert attempt(password=PASSWORD).status_code == 429


def test_a_success_does_not_forget_the_failures_of_an_address(noc):
    User.objects.create_user("mallory", password=PASSWORD)
    fail(2, username="somebody")

    attempt(username="mallory", password=PASSWORD)

    assert AccessAttempt.objects.get().failures_since_start == 2


def test_many_addresses_lock_a_user_except_where_the_user_has_logged_in(noc):
    assert is_in(attempt(password=PASSWORD, address="198.51.100.1"))
    for number in range(logins.USER_FACTOR):
        AccessAttempt.objects.create(username="noc", ip_address=f"192.0.2.{number}", failures_since_start=LIMIT)

    assert attempt(password=PASSWORD, address="198.51.100.2").status_code == 429
    assert is_in(attempt(password=PASSWORD, address="198.51.100.1"))


def test_addresses_of_one_ipv6_network_are_one_client(noc):
    statuses = [attempt(address=f"2001:db8:0:1::{number}").status_code for number in range(1, LIMIT + 1)]

    assert statuses[-1] == 429
    assert is_in(attempt(password=PASSWORD, address="2001:db8:0:2::1"))


@pytest.mark.parametrize(
    ("proxies", "expected"),
    [pytest.param(0, "192.0.2.1", id="no proxy"), pytest.param(1, "203.0.113.9", id="behind our proxy")],
)
def test_a_client_cannot_choose_its_address(noc, settings, proxies, expected):
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": proxies}

    for number in range(LIMIT):
        answer = attempt(**{"X-Forwarded-For": f"10.0.0.{number}, 203.0.113.9"})

    assert answer.status_code == 429
    assert AccessAttempt.objects.get().ip_address == expected


def test_a_lock_ends_by_itself_while_somebody_goes_on_trying(noc):
    fail()
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=14))

    during = attempt()
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=15, seconds=1))

    assert "Try again in 1 minute, or" in during.content.decode()
    assert is_in(attempt(password=PASSWORD))


def test_a_success_forgets_the_failures_and_remembers_the_address(noc):
    fail(LIMIT - 1)

    attempt(password=PASSWORD)

    assert not AccessAttempt.objects.exists()
    assert AccessLog.objects.get().ip_address == "192.0.2.1"
    assert fail(LIMIT - 1) == [200] * (LIMIT - 1)


def test_neither_password_nor_name_is_kept_with_an_attempt(noc):
    attempt(password="a typed secret", username="noc")

    stored = AccessAttempt.objects.values().get()
    assert "a typed secret" not in str(stored)
    assert "noc" not in stored["post_data"]


@pytest.mark.parametrize(
    ("target", "opened"),
    [
        pytest.param("Noc", ["noc 192.0.2.1", "noc 2001:db8:0:1::5"], id="user"),
        pytest.param("192.0.2.1", ["noc 192.0.2.1", "boss 192.0.2.1"], id="address"),
        pytest.param("2001:db8:0:1::7", ["noc 2001:db8:0:1::5"], id="IPv6 address"),
        pytest.param("nobody", [], id="unknown"),
    ],
)
def test_a_user_or_an_address_is_unlocked(noc, target, opened):
    User.objects.create_user("boss", password=PASSWORD)
    places = [("noc", "192.0.2.1"), ("boss", "192.0.2.1"), ("noc", "2001:db8:0:1::5")]
    for name, address in places:
        fail(username=name, address=address)

    number = logins.unlock(target)

    tried = {f"{name} {at}": attempt(username=name, address=at, password=PASSWORD).status_code for name, at in places}
    assert number == LIMIT * len(opened)
    assert [place for place, status in tried.items() if status == 302] == opened


def test_all_are_unlocked(noc):
    fail()

    assert logins.unlock_all() == LIMIT
    assert is_in(attempt(password=PASSWORD))


def test_an_admin_sees_and_ends_a_lock(noc, admin_page):
    fail()
    listed = admin_page.get("/admin/accounts/failedlogin/").content.decode()
    failed = AccessAttempt.objects.get()

    admin_page.post(
        "/admin/accounts/failedlogin/", {"action": "unlock_selected", "_selected_action": [failed.pk]}, follow=True
    )

    assert "192.0.2.1" in listed
    assert "until" in listed
    assert is_in(attempt(password=PASSWORD))


def test_a_login_to_the_api_is_signalled(noc):
    users = []

    def receive(user, **_rest):
        users.append(user)

    user_logged_in.connect(receive)
    answer = attempt(TOKEN, password=PASSWORD)
    user_logged_in.disconnect(receive)

    assert users == [noc]
    # A program that logs in has no session.
    assert not answer.cookies


class TestTheLoginOfTheAdmin:
    def test_it_leads_to_the_one_login_and_back(self, db):
        answer = Client().get("/admin/inventory/olt/", follow=True)

        assert answer.redirect_chain[-1][0] == "/login/?next=/admin/inventory/olt/"

    def test_a_user_who_may_not_use_it_is_refused(self, reader):
        client = Client()
        client.force_login(reader)

        assert client.get("/admin/", follow=True).status_code == 403

    def test_it_logs_out_to_the_one_login(self, admin_page):
        assert admin_page.post("/admin/logout/")["Location"] == LOGIN
        assert admin_page.get("/admin/")["Location"].startswith("/admin/login/")
