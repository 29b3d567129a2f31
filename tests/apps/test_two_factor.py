"""Two-factor authentication: set-up, login, recovery codes, and users who must have it."""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pyotp.totp import TOTP

from facho.apps.accounts.logins import turn_of
from facho.apps.accounts.models import RecoveryCode, TwoFactor, UserSession
from facho.apps.accounts.two_factor import refusal
from facho.apps.changes.models import Change

PAGE, LOGIN, CODE, TOKEN = "/account/two-factor/", "/login/", "/login/code/", "/api/v1/auth/token/"
PASSWORD = "a good passphrase"
# A page for every user.
OWN = "/account/sessions/"


@pytest.fixture(autouse=True)
def _fast_hashes(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def noc(db):
    return User.objects.create_user("noc", password=PASSWORD)


@pytest.fixture
def page(noc):
    client = Client()
    client.force_login(noc)
    return client


@pytest.fixture
def factor(noc):
    """A second factor that was confirmed two minutes ago."""
    factor = TwoFactor.begin(noc)
    TwoFactor.objects.update(confirmed_at=timezone.now())
    return factor


def code_of(factor, **later):
    return TOTP(factor.secret.reveal()).at(timezone.now() + timedelta(**later))


def first_step(client=None, password=PASSWORD):
    client = client or Client()
    return client, client.post(LOGIN, {"username": "noc", "password": password, "next": "/olts/"})


def ask_token(**fields):
    return Client().post(TOKEN, {"username": "noc", "password": PASSWORD, **fields})


class TestSetUp:
    def test_it_is_turned_on_by_the_first_code(self, page, noc):
        page.post(PAGE)
        shown = page.get(PAGE).content.decode()
        factor = TwoFactor.objects.get()
        wrong = page.post(PAGE, {"code": "000000"}).content.decode()
        assert TwoFactor.of(noc) is None

        done = page.post(PAGE, {"code": code_of(factor)})

        assert "<svg" in shown
        assert factor.secret.reveal() in shown
        assert "This code is not valid." in wrong
        assert TwoFactor.of(noc)
        codes = done.context["codes"]
        assert len(set(codes)) == 10
        assert all(code in done.content.decode() for code in codes)
        later = page.get(PAGE).content.decode()
        assert "10 recovery codes are left." in later
        assert codes[0] not in later
        assert factor.secret.reveal() not in later

    def test_the_secret_is_encrypted_and_the_codes_are_hashed(self, page, factor):
        codes = factor.renew_recovery_codes()

        stored = str(list(TwoFactor.objects.values())) + str(list(RecoveryCode.objects.values()))
        assert factor.secret.reveal() not in stored
        assert not any(code in stored or code.replace("-", "") in stored for code in codes)

    def test_it_can_be_cancelled(self, page):
        page.post(PAGE)
        page.post(PAGE, {"cancel": "1"})

        assert not TwoFactor.objects.exists()
        assert not Change.objects.exists()

    def test_a_set_up_that_was_not_finished_does_not_ask_for_a_code(self, noc):
        TwoFactor.begin(noc)

        assert first_step()[1]["Location"] == "/olts/"

    @pytest.mark.parametrize("button", ["turn_off", "renew"])
    def test_a_change_needs_the_password(self, page, factor, button):
        factor.renew_recovery_codes()
        before = set(RecoveryCode.objects.values_list("code_hash", flat=True))

        refused = page.post(PAGE, {button: "1", "password": "wrong"})
        assert "This is not your password." in refused.content.decode()
        assert AccessAttempt.objects.get().failures_since_start == 1
        assert set(RecoveryCode.objects.values_list("code_hash", flat=True)) == before

        page.post(PAGE, {button: "1", "password": PASSWORD})
        assert TwoFactor.objects.exists() is (button == "renew")
        assert before.isdisjoint(RecoveryCode.objects.values_list("code_hash", flat=True))
        done = Change.objects.exclude(action="login_failed").get()
        wanted = "recovery_codes_new" if button == "renew" else "two_factor_off"
        assert (done.action, done.actor, done.object_name, done.fields) == (wanted, "noc", "noc", {})


class TestLogin:
    def test_the_password_alone_does_not_open_a_session(self, factor):
        client, answer = first_step()

        assert answer["Location"] == f"{CODE}?next=%2Folts%2F"
        assert client.get(OWN).status_code == 302
        assert client.get("/api/v1/olts/").status_code == 401
        session = UserSession.objects.get()
        assert session.user is None
        assert session.expire_date < timezone.now() + timedelta(hours=1)

    @pytest.mark.parametrize("later", [-30, 0, 30], ids="{:+d} s".format)
    def test_a_code_opens_it(self, factor, later):
        client, answer = first_step()

        done = client.post(answer["Location"], {"code": code_of(factor, seconds=later)})

        assert done["Location"] == "/olts/"
        assert client.get(OWN).status_code == 200

    @pytest.mark.parametrize(
        "code",
        [
            pytest.param(lambda factor: "000000", id="wrong"),
            pytest.param(lambda factor: code_of(factor, seconds=-60), id="old"),
            pytest.param(lambda factor: code_of(factor, seconds=60), id="future"),
            pytest.param(lambda factor: "", id="empty"),
            pytest.param(lambda factor: "١٢٣٤٥٦", id="digits of another script"),
        ],
    )
    def test_another_code_does_not(self, factor, code):
        client, _answer = first_step()

        refused = client.post(CODE, {"code": code(factor)})

        assert refused.status_code == 200
        assert client.get(OWN).status_code == 302

    def test_a_code_is_accepted_once(self, factor):
        code = code_of(factor)
        for expected in (302, 200):
            client, _answer = first_step()
            assert client.post(CODE, {"code": code}).status_code == expected

    def test_a_recovery_code_is_accepted_once(self, factor):
        code = factor.renew_recovery_codes()[0].upper().replace("-", " ")
        for expected in (302, 200):
            client, _answer = first_step()
            assert client.post(CODE, {"code": code}).status_code == expected
        assert factor.remaining_codes == 9
        # At the login nobody is logged in yet: the record names the account.
        used = Change.objects.get(action="recovery_code_used")
        assert (used.object_name, used.fields) == ("noc", {})

    def test_wrong_codes_lock_the_user(self, factor):
        client, _answer = first_step()
        statuses = [client.post(CODE, {"code": "000000"}).status_code for _number in range(5)]

        locked = client.post(CODE, {"code": code_of(factor)})

        assert statuses == [200] * 4 + [429]
        assert locked.status_code == 429
        assert "Too many failed logins." in locked.content.decode()
        assert "Retry-After" in locked

    def test_a_client_tries_one_code_after_the_other(self, factor, monkeypatch, rf):
        had_turn = []
        monkeypatch.setattr(TwoFactor, "accept", lambda _factor, _code: had_turn.append(turn_of(request).locked()))
        request = rf.post("/login/code/")

        refusal(request, factor, "123456")

        assert had_turn == [True]

    @pytest.mark.parametrize("change", ["time", "password", "disabled", "none"])
    def test_the_second_step_needs_a_valid_first_one(self, factor, noc, monkeypatch, change):
        client, _answer = first_step()
        if change == "time":
            later = timezone.now() + timedelta(seconds=301)
            monkeypatch.setattr(timezone, "now", lambda: later)
        elif change == "password":
            noc.set_password("another passphrase")
            noc.save()
        elif change == "disabled":
            User.objects.update(is_active=False)
        else:
            client = Client()

        answer = client.post(CODE, {"code": code_of(factor)})

        assert answer["Location"].startswith(LOGIN)
        assert client.get(OWN).status_code == 302

    def test_it_leads_to_pages_of_this_site_only(self, factor):
        client, _answer = first_step()

        done = client.post(f"{CODE}?next=https://evil.example/", {"code": code_of(factor)})

        assert done["Location"] == "/"


class TestTokenEndpoint:
    def test_a_code_is_needed(self, factor):
        missing, wrong, right = ask_token(), ask_token(code="000000"), ask_token(code=code_of(factor))

        assert (missing.status_code, wrong.status_code, right.status_code) == (400, 400, 200)
        assert missing.json()["code"][0].startswith("This user has two-factor authentication.")
        assert wrong.json()["code"][0].startswith("This code is not valid.")
        assert right.json()["token"]

    def test_wrong_codes_lock_the_user(self, factor):
        statuses = [ask_token(code="000000").status_code for _number in range(5)]

        assert statuses == [400] * 4 + [429]
        assert ask_token(code=code_of(factor)).status_code == 429

    def test_a_wrong_password_is_not_told_from_a_missing_code(self, factor):
        assert list(ask_token(password="wrong").json()) == ["non_field_errors"]


class TestRequired:
    @pytest.mark.parametrize(
        ("whom", "is_staff", "is_led"),
        [("none", True, False), ("staff", False, False), ("staff", True, True), ("all", False, True)],
    )
    def test_users_without_it_are_led_to_the_set_up(self, page, noc, settings, whom, is_staff, is_led):
        settings.FACHO_REQUIRE_TOTP = whom
        User.objects.update(is_staff=is_staff)

        answer = page.get(OWN, headers={"accept": "text/html"})

        assert answer.get("Location") == (PAGE if is_led else None)

    def test_they_can_do_nothing_else(self, page, settings):
        settings.FACHO_REQUIRE_TOTP = "all"

        refused = [page.get(path).status_code for path in ("/api/v1/olts/", "/events/", "/account/tokens/")]
        set_up = page.get(PAGE)

        assert refused == [403] * 3
        assert "Set it up to continue." in set_up.content.decode()
        assert ask_token().status_code == 400
        assert page.post("/logout/").status_code == 302

    def test_users_with_it_are_not_concerned(self, page, factor, settings):
        settings.FACHO_REQUIRE_TOTP = "all"

        assert page.get(OWN).status_code == 200

    def test_users_of_another_login_service_are_not_concerned(self, page, noc, settings):
        settings.FACHO_REQUIRE_TOTP = "all"
        noc.set_unusable_password()
        noc.save()
        page.force_login(noc)

        assert page.get(OWN).status_code == 200


class TestAdmin:
    def remove(self, client, user):
        return client.post(f"/admin/auth/user/{user.pk}/remove_two_factor/", {"_form_submitted": "on"}).status_code

    def test_a_superuser_removes_it(self, admin_page, noc, factor):
        assert self.remove(admin_page, noc) == 200
        assert not TwoFactor.objects.exists()

    def test_nobody_removes_their_own_without_the_password(self, admin_page, boss):
        TwoFactor.begin(boss)

        assert self.remove(admin_page, boss) == 403
        assert TwoFactor.objects.exists()

    def test_other_admins_do_not_remove_it_from_a_superuser(self, boss, reader):
        from django.contrib.auth.models import Permission

        reader.is_staff = True
        reader.save()
        reader.user_permissions.set(Permission.objects.filter(codename__in=["change_user", "view_user"]))
        TwoFactor.begin(boss)
        client = Client()
        client.force_login(reader)

        assert self.remove(client, boss) == 403
        assert TwoFactor.objects.exists()
