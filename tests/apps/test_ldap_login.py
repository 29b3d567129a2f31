"""Login with a password of a real OpenLDAP server on loopback, over TLS."""

import logging
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.test import Client

from facho.apps.accounts.models import ApiToken, ExternalIdentity
from facho.apps.accounts.roles import Role, role_of
from server_ldap import GROUPS, PEOPLE, ROOT_DN, ROOT_PASSWORD, LaunchedLdap
from server_process import NoServerError

ldap = pytest.importorskip("ldap", reason="python-ldap is not installed: pip install -r requirements/ldap.txt")

pytestmark = pytest.mark.slow

ANA, LUIS = f"uid=ana,{PEOPLE}", f"uid=100% (luis)*,{PEOPLE}"
PASSWORD = "ana's password"


@pytest.fixture(scope="module")
def server():
    try:
        running = LaunchedLdap()
    except NoServerError as error:
        pytest.skip(str(error))
    with running:
        yield running


@pytest.fixture
def directory(server, settings, db):
    settings.CONFIG = replace(
        settings.CONFIG,
        ldap_url=server.url,
        ldap_ca_file=server.ca_file,
        ldap_bind_dn=ROOT_DN,
        ldap_bind_password=ROOT_PASSWORD,
        ldap_user_base=PEOPLE,
        ldap_group_base=GROUPS,
        ldap_roles={"noc": "Operator", "noc-admins": "Admin", "desk": "Support"},
    )
    backend = "facho.apps.accounts.directory.DirectoryBackend"
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, backend]
    # Passwords of local accounts are not the subject here, and a good hash is expensive.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return server


@pytest.fixture
def in_groups(directory):
    """Return a function that puts Ana in these groups, by the three ways to name a member. Afterwards she is in NOC."""
    connection = ldap.initialize(directory.url)
    connection.simple_bind_s(ROOT_DN, ROOT_PASSWORD)
    ways = {
        "noc": ("member", ANA, LUIS),
        "noc-admins": ("uniqueMember", ANA, ROOT_DN),
        "desk": ("memberUid", "ana", ""),
    }

    def put(*groups):
        for group, (attribute, member, other) in ways.items():
            values = [name.encode() for name in ([member] if group in groups else []) + [other] if name]
            connection.modify_s(f"cn={group},{GROUPS}", [(ldap.MOD_REPLACE, attribute, values or None)])

    yield put
    put("noc")
    connection.unbind_s()


@pytest.fixture
def failures():
    """Collect names of failed logins, as the lock of accounts counts them."""
    names = []

    def note(credentials, **_):
        names.append(credentials["username"])

    user_login_failed.connect(note)
    yield names
    user_login_failed.disconnect(note)


def log_in(password=PASSWORD, username="ana", browser=None):
    browser = browser or Client()
    return browser.post("/login/", {"username": username, "password": password, "next": "/account/password/"})


def refusal(page):
    return [str(error) for error in page.context["form"].non_field_errors()]


def test_the_first_login_creates_a_user_with_the_role_of_the_group(directory):
    assert log_in()["Location"] == "/account/password/"

    user = User.objects.get()
    assert (user.username, user.email, user.get_full_name()) == ("ana", "ana@example.net", "Ana Paz")
    assert (role_of(user), user.is_superuser, user.has_usable_password()) == (Role.OPERATOR, False, False)
    identity = ExternalIdentity.objects.get(user=user)
    # The permanent id of the entry, not its DN.
    assert (identity.provider, len(identity.subject)) == ("ldap", 36)


def test_a_second_login_is_the_same_user_however_the_name_is_written(directory):
    log_in()
    log_in(username=" ANA ")

    assert User.objects.count() == 1


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        pytest.param(("noc-admins",), Role.ADMIN, id="uniqueMember"),
        pytest.param(("desk",), Role.SUPPORT, id="memberUid"),
        pytest.param(("desk", "noc-admins", "noc"), Role.ADMIN, id="the highest of several"),
    ],
)
def test_a_login_sets_the_role_of_the_groups_of_today(in_groups, groups, role):
    log_in()
    in_groups(*groups)
    log_in()

    assert role_of(User.objects.get()) is role


def test_who_lost_the_group_loses_the_role_and_is_refused(in_groups, failures):
    log_in()
    in_groups()

    page = log_in()

    assert "none of your groups has one" in refusal(page)[0]
    assert role_of(User.objects.get()) is None
    assert failures == ["ana"]


def test_without_a_group_the_default_role_counts(in_groups, settings):
    settings.CONFIG = replace(settings.CONFIG, ldap_default_role="Viewer")
    in_groups()
    log_in()

    assert role_of(User.objects.get()) is Role.VIEWER


@pytest.mark.parametrize(
    ("username", "password"),
    [
        pytest.param("ana", "wrong", id="wrong password"),
        pytest.param("nobody", PASSWORD, id="no such user"),
        pytest.param("*", PASSWORD, id="every user"),
        pytest.param("ana)(uid=*", PASSWORD, id="a filter"),
        pytest.param("a\\6ea", PASSWORD, id="an escape"),
        pytest.param("%(user)s", PASSWORD, id="a format"),
    ],
)
def test_a_failed_login_is_reported_once(directory, failures, username, password):
    page = log_in(password, username)

    assert page.status_code == 200
    assert "correct username and password" in refusal(page)[0]
    assert failures == [username]
    assert not User.objects.exists()


def test_wrong_passwords_lock_a_user_as_those_of_local_accounts(directory, settings):
    for _ in range(settings.AXES_FAILURE_LIMIT):
        log_in("wrong")

    page = log_in()

    assert page.status_code == 429
    assert "Too many failed logins" in refusal(page)[0]


def test_a_name_with_characters_of_filters_finds_its_user_and_groups(directory):
    log_in("luis's password", "100% (luis)*")

    user = User.objects.get()
    assert (user.username, role_of(user)) == ("100-luis", Role.OPERATOR)


def test_a_local_account_is_not_taken_over_by_its_name(directory):
    User.objects.create_user("ana", password="a passphrase of hers", is_superuser=True)
    log_in()

    assert list(User.objects.order_by("pk").values_list("username", "is_superuser")) == [
        ("ana", True),
        ("ana-2", False),
    ]


def test_a_disabled_user_is_refused_and_the_session_ends(directory):
    browser = Client()
    log_in(browser=browser)
    User.objects.update(is_active=False)

    assert browser.get("/account/password/").status_code == 302
    assert refusal(log_in()) == ["Your account in Facho is disabled. Ask an admin to enable it."]
    answer = Client().post("/api/v1/auth/token/", {"username": "ana", "password": PASSWORD})
    assert (answer.status_code, ApiToken.objects.exists()) == (400, False)


def test_the_api_gives_a_token_for_a_password_of_the_directory(directory):
    answer = Client().post("/api/v1/auth/token/", {"username": "ana", "password": PASSWORD})

    assert ApiToken.find(answer.json()["token"]).user.username == "ana"


def test_the_password_is_kept_by_the_directory(directory):
    browser = Client()
    log_in(browser=browser)

    page = browser.get("/account/password/").content.decode()

    assert "The password of this account is kept by the LDAP directory. Change it there." in page


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param({"ldap_url": "ldap://127.0.0.1:9"}, id="nothing listens"),
        pytest.param({"ldap_bind_password": "wrong"}, id="our own password is wrong"),
        pytest.param({"ldap_ca_file": None}, id="an unknown certificate"),
        pytest.param({"ldap_ca_file": "/no/such/file"}, id="certificates that are gone"),
        pytest.param({"ldap_group_base": "ou=nowhere,dc=example,dc=net"}, id="no such group base"),
    ],
)
def test_a_directory_that_cannot_be_asked_is_no_wrong_password(directory, settings, failures, caplog, trouble):
    settings.CONFIG = replace(settings.CONFIG, **trouble)
    User.objects.create_user("luis", password="a passphrase of his")

    with caplog.at_level(logging.DEBUG):
        page = log_in()
        answer = Client().post("/api/v1/auth/token/", {"username": "ana", "password": PASSWORD})

    assert refusal(page) == answer.json()["non_field_errors"]
    assert refusal(page)[0].startswith("The directory server cannot be reached. Local accounts still work.")
    assert failures == []
    assert "LDAPError" in caplog.text or "FACHO_LDAP_CA_FILE" in caplog.text
    assert not any(secret in caplog.text for secret in (PASSWORD, ROOT_PASSWORD))
    assert log_in("a passphrase of his", "luis").status_code == 302


def test_a_directory_that_hangs_is_given_up(directory, monkeypatch):
    monkeypatch.setattr("facho.apps.accounts.directory.PATIENCE", 0.1)
    directory.pause()
    try:
        page = log_in()
    finally:
        directory.resume()

    assert refusal(page)[0].startswith("The directory server cannot be reached.")
