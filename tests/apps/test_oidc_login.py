"""Login at a real OpenID Connect provider on loopback."""

import logging
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.test import Client
from django.utils import timezone
from pyotp.totp import TOTP

from facho.apps.accounts.models import ApiToken, ExternalIdentity, FailedLogin, TwoFactor
from facho.apps.accounts.roles import Role, role_of
from facho.apps.changes.models import Change
from facho.runtime.logs import redact
from oidc_provider import CLIENT_ID, CLIENT_SECRET, KEY, OTHER_KEY, Provider

ANA = {
    "sub": "a-1",
    "preferred_username": "ana",
    "email": "ana@example.net",
    "given_name": "Ana",
    "family_name": "Paz",
    "groups": ["noc", "everybody"],
}
START = "/login/oidc/"
PASSWORD = "a good passphrase"


@pytest.fixture(scope="module")
def running():
    with Provider() as provider:
        yield provider


@pytest.fixture
def provider(running, settings, db):
    running.person, running.spoiled, running.key, running.algorithm = dict(ANA), {}, KEY, "RS256"
    settings.CONFIG = replace(
        settings.CONFIG,
        oidc_issuer=running.issuer,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        oidc_roles={"noc": "Operator", "noc-admins": "Admin", "desk": "Support"},
        oidc_label="Keycloak",
    )
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, "facho.apps.accounts.oidc.OidcBackend"]
    # Passwords of local accounts are not the subject here, and a good hash is expensive.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return running


def to_provider(browser, path=START):
    """Start a login, and return the address that the provider sends the browser back to."""
    answer = browser.get(path)
    return requests.get(answer["Location"], allow_redirects=False, timeout=5).headers["Location"]


def log_in(browser=None, path=START):
    browser = browser or Client()
    return browser.get(to_provider(browser, path), follow=True)


def local_login(username, password=PASSWORD):
    return Client().post("/login/?local=1", {"username": username, "password": password}).status_code


def code_of(factor):
    return TOTP(factor.secret.reveal()).at(timezone.now())


def said(page):
    return [str(message) for message in page.context["messages"]]


def user_of(page):
    return page.wsgi_request.user


def test_the_first_login_creates_a_user_with_the_role_of_the_group(provider):
    user = user_of(log_in())

    assert (user.username, user.email, user.get_full_name()) == ("ana", "ana@example.net", "Ana Paz")
    assert (role_of(user), user.is_superuser, user.has_usable_password()) == (Role.OPERATOR, False, False)
    identity = ExternalIdentity.objects.get()
    assert (identity.user, identity.provider, identity.subject) == (user, provider.issuer, "a-1")


def test_the_request_has_state_nonce_and_pkce(provider):
    sent = {name: values[0] for name, values in parse_qs(urlsplit(Client().get(START)["Location"]).query).items()}

    assert (sent["client_id"], sent["response_type"], sent["scope"]) == (CLIENT_ID, "code", "openid profile email")
    assert sent["code_challenge_method"] == "S256"
    assert len({sent["state"], sent["nonce"], sent["code_challenge"]}) == 3
    assert sent["redirect_uri"] == "http://testserver/login/oidc/callback/"


def test_a_person_keeps_the_account_when_name_and_address_change(provider):
    first = user_of(log_in())
    provider.person |= {"preferred_username": "ana.paz", "email": "paz@example.net"}

    again = user_of(log_in())

    assert (again.pk, again.username, again.email) == (first.pk, "ana", "paz@example.net")


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        pytest.param(["noc-admins"], Role.ADMIN, id="raised"),
        pytest.param(["desk"], Role.SUPPORT, id="lowered"),
        pytest.param(["desk", "noc-admins", "noc"], Role.ADMIN, id="the highest of several"),
        pytest.param("desk", Role.SUPPORT, id="a single group as a text"),
    ],
)
def test_a_login_sets_the_role_of_the_groups_of_today(provider, groups, role):
    log_in()
    provider.person["groups"] = groups

    assert role_of(user_of(log_in())) is role


@pytest.mark.parametrize(("verified", "role"), [(True, Role.ADMIN), ("true", Role.ADMIN), (False, None), (None, None)])
def test_a_role_by_address_needs_a_verified_address(provider, settings, verified, role):
    settings.CONFIG = replace(settings.CONFIG, oidc_groups_claim="email", oidc_roles={"ana@example.net": "Admin"})
    provider.person["email_verified"] = verified

    log_in()

    assert [role_of(user) for user in User.objects.all()] == ([role] if role else [])


def test_groups_may_be_in_the_id_token_only(provider):
    provider.spoiled = {"groups": provider.person.pop("groups")}

    assert role_of(user_of(log_in())) is Role.OPERATOR


def test_a_person_without_a_mapped_group_is_refused_and_leaves_no_account(provider):
    failures = []

    def note(credentials, **_):
        failures.append(credentials["username"])

    user_login_failed.connect(note)
    provider.person["groups"] = ["NOC", {"name": "noc"}, None]

    log_in()
    page = log_in()

    user_login_failed.disconnect(note)
    assert page.redirect_chain[-1][0] == "/login/"
    assert "none of your groups has one" in page.content.decode()
    assert not User.objects.exists()
    assert failures == ["ana", "ana"]
    # Somebody with an account at the provider could fill the record.
    assert Change.objects.filter(action="login_failed", actor="ana").count() == 1


def test_refusals_and_a_locked_address_do_not_stop_people_of_the_provider(provider, settings):
    settings.AXES_FAILURE_LIMIT = 1
    provider.person["groups"] = []
    log_in()
    assert not FailedLogin.objects.exists()
    for number in range(10):
        local_login(f"user-{number}", "wrong")
    assert local_login("luis", "wrong") == 429
    provider.person["groups"] = ["noc"]

    assert user_of(log_in()).username == "ana"


def test_who_lost_the_group_loses_the_role_and_is_refused(provider):
    user = user_of(log_in())
    provider.person["groups"] = []

    assert user_of(log_in()).is_anonymous
    user.refresh_from_db()
    assert (role_of(user), user.is_staff) == (None, False)


def test_without_a_mapping_admins_choose_the_role_after_the_first_login(provider, settings):
    settings.CONFIG = replace(settings.CONFIG, oidc_roles={}, oidc_default_role="Viewer")
    user = user_of(log_in())
    assert role_of(user) is Role.VIEWER
    user.groups.set([])

    assert role_of(user_of(log_in())) is None


def test_a_local_account_is_not_taken_over_by_name_or_address(provider):
    local = User.objects.create_user("Ana", "ana@example.net", "a passphrase of hers", is_superuser=True)

    user = user_of(log_in())

    assert (user.username, user.is_superuser) == ("ana-2", False)
    local.refresh_from_db()
    assert local.check_password("a passphrase of hers")


@pytest.mark.parametrize(
    ("claims", "username", "email"),
    [
        pytest.param({"preferred_username": None}, "ana@example.net", "ana@example.net", id="named by address"),
        pytest.param({"preferred_username": None, "email_verified": False}, "a-1", "", id="an unverified address"),
        pytest.param({"preferred_username": " a\nb<c> "}, "a-b-c", "ana@example.net", id="not a user name"),
        pytest.param({"preferred_username": "x" * 400}, "x" * 140, "ana@example.net", id="too long"),
    ],
)
def test_a_user_name_is_made_of_what_the_provider_knows(provider, claims, username, email):
    provider.person |= claims

    user = user_of(log_in())

    assert (user.username, user.email) == (username, email)


@pytest.mark.parametrize(
    "spoiled",
    [
        pytest.param({"nonce": "of another login"}, id="nonce of another login"),
        pytest.param({"nonce": None}, id="no nonce"),
        pytest.param({"exp": 1_000_000_000}, id="expired"),
        pytest.param({"exp": None}, id="no end"),
        pytest.param({"aud": "another program"}, id="for another program"),
        pytest.param({"aud": [CLIENT_ID, "another"], "azp": "another"}, id="issued to another program"),
        pytest.param({"iss": "https://evil.example.net"}, id="of another issuer"),
        pytest.param({"sub": "a-2"}, id="another person than in the details"),
    ],
)
def test_a_token_that_is_not_for_this_login_is_refused(provider, spoiled):
    provider.spoiled = spoiled

    page = log_in()

    assert user_of(page).is_anonymous
    assert said(page) == [
        "The login could not be completed. Try again. If it fails again, tell an admin: the log has the cause."
    ]
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        pytest.param(OTHER_KEY, "RS256", id="another key"),
        pytest.param(CLIENT_SECRET.ljust(32), "HS256", id="a shared secret"),
        pytest.param("", "none", id="not signed"),
    ],
)
def test_a_token_that_the_provider_did_not_sign_is_refused(provider, key, algorithm):
    provider.key, provider.algorithm = key, algorithm

    assert user_of(log_in()).is_anonymous
    assert not User.objects.exists()


def test_a_login_that_another_browser_started_is_refused(provider):
    url = to_provider(Client())
    other = Client()
    other.get(START)

    for browser in (Client(), other):
        assert user_of(browser.get(url, follow=True)).is_anonymous


def test_a_code_is_used_once(provider):
    browser = Client()
    url = to_provider(browser)
    browser.get(url)
    browser.post("/logout/")

    assert user_of(browser.get(url, follow=True)).is_anonymous


def test_a_code_in_the_address_of_the_login_form_is_not_used(provider):
    url = to_provider(Client())
    asked = len(provider.requests)

    page = Client().post(f"/login/?{urlsplit(url).query}", {"username": "ana", "password": "x"})

    assert user_of(page).is_anonymous
    assert len(provider.requests) == asked


def test_a_refusal_of_the_provider_is_shown(provider):
    page = Client().get(f"{START}callback/?error=access_denied&state=x", follow=True)

    assert said(page) == ["Keycloak refused the login, or you cancelled it."]


def test_a_provider_that_is_down_is_reported_and_local_accounts_work(provider, settings):
    with Provider() as dead:
        settings.CONFIG = replace(settings.CONFIG, oidc_issuer=dead.issuer)
    User.objects.create_user("luis", password=PASSWORD)

    page = Client().get(START, follow=True)

    assert said(page) == ["The login server Keycloak cannot be reached. Try again later, or use a local account."]
    assert local_login("luis") == 302


def test_a_discovery_document_of_another_issuer_is_refused(provider, settings):
    settings.CONFIG = replace(settings.CONFIG, oidc_issuer=provider.issuer.replace("127.0.0.1", "localhost"))

    page = Client().get(START, follow=True)

    assert said(page)[0].startswith("The login could not be completed.")


def test_a_disabled_user_is_refused_and_the_session_ends(provider):
    browser = Client()
    user = user_of(log_in(browser))
    User.objects.filter(pk=user.pk).update(is_active=False)

    assert browser.get("/account/tokens/").status_code == 302
    assert said(log_in()) == ["Your account in Facho is disabled. Ask an admin to enable it."]


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/account/tokens/", "/account/tokens/"),
        ("https://evil.example.net/", "/"),
        ("//evil.example.net/", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_a_login_continues_on_our_own_pages_only(provider, wanted, reached):
    browser = Client()

    answer = browser.get(to_provider(browser, f"{START}?next={wanted}"))

    assert answer["Location"] == reached


def test_the_login_page_has_a_button_and_without_a_provider_none(provider, settings):
    page = Client().get("/login/?next=/olts/").content.decode()
    assert 'href="/login/oidc/?next=%2Folts%2F"' in page
    assert "Log in with Keycloak" in page

    settings.CONFIG = replace(settings.CONFIG, oidc_issuer="")
    assert "/login/oidc/" not in Client().get("/login/").content.decode()
    assert [Client().get(path).status_code for path in (START, f"{START}callback/")] == [404, 404]


def test_a_logout_offers_the_logout_at_the_provider(provider):
    browser = Client()
    log_in(browser)

    page = browser.post("/logout/").content.decode()

    assert f'href="{provider.issuer}/end-session?client_id={CLIENT_ID}"' in page
    assert browser.get("/account/tokens/").status_code == 302


def test_only_superusers_log_in_locally_if_local_logins_are_off(provider, settings):
    settings.CONFIG = replace(settings.CONFIG, local_login=False)
    for name in ("root", "luis"):
        User.objects.create_user(name, password=PASSWORD, is_superuser=name == "root")

    forms = ['name="password"' in Client().get(path).content.decode() for path in ("/login/", "/login/?local=1")]

    assert forms == [False, True]
    assert [local_login(name) for name in ("root", "luis")] == [302, 200]


def test_the_password_is_kept_by_the_provider(provider, admin_page):
    browser = Client()
    user = user_of(log_in(browser))

    own = browser.get("/account/password/").content.decode()
    by_admin = admin_page.get(f"/admin/auth/user/{user.pk}/password/", follow=True).content.decode()

    for page in (own, by_admin):
        assert "The password of this account is kept by 127.0.0.1. Change it there." in page
    assert 'name="old_password"' not in own
    assert "a-1" in by_admin


def test_a_superuser_makes_the_account_a_local_one(provider, admin_page):
    user = user_of(log_in())
    path = f"/admin/auth/user/{user.pk}/change/"
    form = {"username": "ana", "role": "Operator", "is_active": "on", "is_staff": "on"}
    for each in admin_page.get(path).context["inline_admin_formsets"]:
        numbers = each.formset.management_form.initial
        form |= {f"{each.formset.prefix}-{name}": value for name, value in numbers.items()}
    row = {"id": user.external_identity.pk, "user": user.pk, "DELETE": "on"}
    form |= {f"external_identity-0-{name}": value for name, value in row.items()}

    answer = admin_page.post(path, form)

    assert answer.status_code == 302
    assert not ExternalIdentity.objects.exists()
    assert user_of(log_in()).username == "ana-2"


def test_the_api_says_where_people_of_the_provider_get_a_token(provider):
    log_in()

    answer = Client().post("/api/v1/auth/token/", {"username": "ana", "password": "x"})

    assert (answer.status_code, ApiToken.objects.exists()) == (400, False)
    assert "If you log in with Keycloak, create a token" in answer.json()["non_field_errors"][0]


def test_no_secret_reaches_the_log(provider, caplog, settings):
    settings.CONFIG = replace(settings.CONFIG, oidc_client_secret="another-secret")
    with caplog.at_level(logging.DEBUG):
        log_in()
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhLTEifQ.c2lnbmF0dXJl"

    assert "OIDC: login failed" in caplog.text
    assert "another-secret" not in redact(caplog.text) + repr(settings.CONFIG)
    assert token not in redact(f"Signature of {token} has expired, client_secret=another-secret")


def test_who_has_a_code_in_facho_enters_it_after_the_provider(provider):
    user = user_of(log_in())
    factor = TwoFactor.begin(user)
    TwoFactor.objects.update(confirmed_at=timezone.now())
    browser = Client()

    asked = log_in(browser, f"{START}?next=/account/sessions/")
    done = browser.post(asked.request["PATH_INFO"] + "?next=/account/sessions/", {"code": code_of(factor)}, follow=True)

    assert asked.redirect_chain[-1][0] == "/login/code/?next=%2Faccount%2Fsessions%2F"
    assert not user_of(asked).is_authenticated
    assert user_of(done) == user
    assert "oidc" in browser.session[BACKEND_SESSION_KEY]


def test_a_person_of_the_provider_sets_up_the_second_factor_there(provider):
    browser = Client()
    log_in(browser)

    page = browser.get("/account/two-factor/").content.decode()
    browser.post("/account/two-factor/")

    assert "You log in at 127.0.0.1. Set up two-factor authentication there." in page
    assert '<button class="button primary"' not in page
    assert not TwoFactor.objects.exists()
