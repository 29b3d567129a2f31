"""A user's own tokens and password, on pages for everybody."""

from datetime import timedelta

import pytest
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from facho.apps.accounts import models
from facho.apps.accounts.models import ApiToken, hash_key

TOKENS, PASSWORD = "/account/tokens/", "/account/password/"
OLD, NEW = "an old passphrase", "a new passphrase"


@pytest.fixture
def noc(db):
    return User.objects.create_user("noc", password=OLD)


@pytest.fixture
def page(noc):
    client = Client()
    client.force_login(noc)
    return client


def make_token(user, name="Grafana"):
    token = ApiToken(user=user, name=name)
    return token, token.issue()


@pytest.mark.parametrize("path", [TOKENS, PASSWORD])
def test_a_stranger_is_sent_to_the_login(db, path):
    for answer in (Client().get(path), Client().post(path)):
        assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={path}")


@pytest.mark.parametrize("path", [TOKENS, PASSWORD])
def test_pages_are_not_cached_and_load_nothing_from_elsewhere(page, path):
    answer = page.get(path)

    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert "default-src 'self'" in answer["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("lifetime", "expected"), [("30", timedelta(days=30)), ("365", timedelta(days=365)), ("", None)]
)
def test_a_token_is_created_and_its_key_is_shown_once(page, noc, lifetime, expected):
    role = Group.objects.create(name="Scripts")
    form = {"name": "Grafana", "role": role.pk, "networks": "192.0.2.0/24 ::1", "lifetime": lifetime}

    made = page.post(TOKENS, form)
    later = page.get(TOKENS).content.decode()

    token = ApiToken.objects.get()
    key = made.context["created"]["key"]
    assert (token.user, token.role, token.networks) == (noc, role, ["192.0.2.0/24", "::1/128"])
    assert token.expires_at == (expected and timezone.now() + expected)
    assert token.key_hash == hash_key(key)
    assert key in made.content.decode()
    assert "Grafana" in later
    assert key not in later
    assert key not in str(dict(page.session)) + str(page.cookies)


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        pytest.param({"name": ""}, "This field is required.", id="no name"),
        pytest.param({"name": "x", "networks": "lan"}, "“lan” is not a network.", id="not a network"),
        pytest.param({"name": "x", "lifetime": "9999"}, "Select a valid choice.", id="lifetime"),
        pytest.param({"name": "x", "role": "9"}, "Select a valid choice.", id="role"),
    ],
)
def test_an_invalid_token_is_refused(page, form, sentence):
    assert sentence in page.post(TOKENS, form).content.decode()
    assert not ApiToken.objects.exists()


def test_too_many_tokens_are_refused_with_a_sentence(page, monkeypatch):
    monkeypatch.setattr(models, "MOST_TOKENS", 1)
    page.post(TOKENS, {"name": "first"})

    answer = page.post(TOKENS, {"name": "second"})

    assert "A user can have 1 tokens. Revoke one first." in answer.content.decode()
    assert ApiToken.objects.count() == 1


def test_users_see_and_revoke_their_own_tokens_only(page, noc, boss):
    own, _key = make_token(noc, "own")
    theirs, _key = make_token(boss, "theirs")

    shown = page.get(TOKENS).content.decode()
    answers = [page.post(f"{TOKENS}{token.pk}/revoke/").status_code for token in (own, theirs)]

    assert "own" in shown
    assert "theirs" not in shown
    assert answers == [302, 404]
    assert list(ApiToken.objects.valid()) == [theirs]


def test_a_token_is_not_revoked_by_a_link(page, noc):
    token, _key = make_token(noc)

    assert page.get(f"{TOKENS}{token.pk}/revoke/").status_code == 405
    assert ApiToken.objects.valid().exists()


def test_names_are_text(page, noc):
    make_token(noc, '<script>alert("7")</script>')

    assert "<script>alert" not in page.get(TOKENS).content.decode()


@pytest.mark.parametrize("revoke", [True, False])
def test_a_password_is_changed_with_or_without_the_tokens(page, noc, boss, revoke):
    make_token(noc)
    make_token(boss)
    form = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW} | (
        {"revoke_tokens": "on"} if revoke else {}
    )

    answer = page.post(PASSWORD, form, follow=True)

    noc.refresh_from_db()
    assert noc.check_password(NEW)
    assert "Your password was changed." in answer.content.decode()
    assert {token.user.username for token in ApiToken.objects.valid()} == ({"boss"} if revoke else {"boss", "noc"})
    # This session goes on.
    assert page.get(TOKENS).status_code == 200


def test_the_admin_leads_to_the_same_password_page(admin_page):
    assert admin_page.get("/admin/password_change/")["Location"] == PASSWORD


def test_a_new_password_ends_other_sessions(page, noc):
    other = Client()
    other.force_login(noc)

    page.post(PASSWORD, {"old_password": OLD, "new_password1": NEW, "new_password2": NEW})

    assert other.get(TOKENS).status_code == 302


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"old_password": "wrong"}, id="wrong old password"),
        pytest.param({"new_password2": "another"}, id="not repeated"),
        pytest.param({"new_password1": "9 letters", "new_password2": "9 letters"}, id="too short"),
        pytest.param({"new_password1": "8301746529", "new_password2": "8301746529"}, id="only digits"),
        pytest.param({"new_password1": "basketball", "new_password2": "basketball"}, id="common"),
    ],
)
def test_a_refused_password_changes_nothing(page, noc, change):
    make_token(noc)
    form = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW, "revoke_tokens": "on"} | change

    answer = page.post(PASSWORD, form)

    noc.refresh_from_db()
    assert answer.context["form"].errors
    assert noc.check_password(OLD)
    assert ApiToken.objects.valid().exists()
    assert NEW not in answer.content.decode()


class OtherPerson(BaseBackend):
    """A login server where the same name belongs to another person."""

    def authenticate(self, request, username=None, password=None):
        return User.objects.get(username=f"{username}-2") if password == "password of the other" else None


def test_the_password_of_another_person_with_the_same_name_is_not_ones_own(page, noc, settings):
    User.objects.create_user("noc-2")
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, f"{__name__}.OtherPerson"]

    answer = page.post(PASSWORD, {"old_password": "password of the other", "new_password1": NEW, "new_password2": NEW})

    assert answer.context["form"].has_error("old_password")
    assert User.objects.get(pk=noc.pk).check_password(OLD)
