"""Pages of users: role, scope, sessions, tokens, locks; and what an admin does there."""

from datetime import timedelta

import pytest
from cast import make_user
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from facho.apps.accounts.models import ApiToken, FailedLogin, UserSession
from facho.apps.accounts.roles import Role
from facho.apps.changes.models import Change
from facho.apps.inventory.models import Scope, Site


@pytest.fixture
def admin(db):
    client = Client()
    client.force_login(make_user(Role.ADMIN))
    return client


@pytest.fixture
def ana(db):
    user = make_user(Role.OPERATOR)
    User.objects.filter(pk=user.pk).update(username="ana", first_name="Ana", last_name="Quispe")
    user.refresh_from_db()
    return user


def html(page, path):
    return page.get(path).content.decode()


def fail(name, *, times=1, minutes=0):
    failed = FailedLogin.objects.create(
        username=name,
        ip_address="203.0.113.9",
        failures_since_start=times,
        user_agent="",
        get_data="",
        post_data="",
        http_accept="",
        path_info="/login/",
    )
    # Saving sets it.
    FailedLogin.objects.filter(pk=failed.pk).update(attempt_time=timezone.now() - timedelta(minutes=minutes))
    return failed


def row_of(admin, name):
    [row] = [each for each in admin.get("/users/").context["users"] if each.user.username == name]
    return row


def test_a_row_has_role_scope_sessions_and_tokens(admin, ana):
    Scope.objects.create(user=ana).sites.add(Site.objects.create(name="Cusco"))
    Client().force_login(ana)
    ApiToken(user=ana, name="grafana").issue()
    ApiToken(user=ana, name="old").issue()
    ApiToken.objects.get(name="old").revoke()

    row = row_of(admin, "ana")

    assert (row.role, row.scope, row.sessions, row.tokens) == ("Operator", ["Cusco"], 1, 1)
    assert "Cusco" in html(admin, "/users/")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("?q=quispe", {"ana"}, id="name"),
        pytest.param("?role=Operator", {"ana"}, id="role"),
        pytest.param("?role=superuser", set(), id="superusers"),
        pytest.param("?is_active=false", set(), id="disabled"),
    ],
)
def test_filters_find_users(admin, ana, query, expected):
    assert {row.user.username for row in admin.get(f"/users/{query}").context["users"]} == expected


def test_a_locked_user_is_unlocked(admin, ana, settings):
    failed = fail("ana", times=settings.AXES_FAILURE_LIMIT)
    assert row_of(admin, "ana").is_locked
    assert "locked until" in html(admin, f"/users/{ana.pk}/")

    answer = admin.post("/users/unlock/", {"failed": failed.pk, "user": ana.pk})

    assert (answer.status_code, answer.url) == (302, f"/users/{ana.pk}/")
    assert not row_of(admin, "ana").is_locked
    assert Change.objects.filter(action=Change.Action.UNLOCKED).exists()


@pytest.mark.parametrize(
    ("times", "minutes"), [pytest.param(1, 0, id="one failure"), pytest.param(99, 24 * 60, id="long ago")]
)
def test_a_failed_login_alone_is_no_lock(admin, ana, times, minutes):
    fail("ana", times=times, minutes=minutes)

    assert not row_of(admin, "ana").is_locked


def test_access_of_a_user_ends(admin, ana):
    Client().force_login(ana)
    ApiToken(user=ana, name="grafana").issue()

    admin.post(f"/users/{ana.pk}/act/", {"action": "end"})

    assert not UserSession.of(ana).exists()
    assert not ApiToken.objects.filter(user=ana).valid().exists()
    assert Change.objects.filter(action=Change.Action.SESSIONS_ENDED, object_id=ana.pk).exists()


def test_one_token_is_revoked(admin, ana):
    for name in ("grafana", "backup"):
        ApiToken(user=ana, name=name).issue()
    token = ApiToken.objects.get(name="grafana")

    admin.post(f"/users/{ana.pk}/act/", {"action": "revoke", "token": token.pk})

    assert [each.name for each in ApiToken.objects.filter(user=ana).valid()] == ["backup"]


def test_a_token_of_another_user_is_not_revoked_through_this_one(admin, ana):
    other = User.objects.create(username="other")
    ApiToken(user=other, name="x").issue()

    said = admin.post(
        f"/users/{ana.pk}/act/", {"action": "revoke", "token": ApiToken.objects.get().pk}, follow=True
    ).content.decode()

    assert "revoked or deleted before" in said
    assert ApiToken.objects.valid().count() == 1


def test_an_admin_does_not_end_the_access_of_a_user_with_more_rights(admin):
    root = User.objects.create(username="root", is_superuser=True)
    Client().force_login(root)

    said = admin.post(f"/users/{root.pk}/act/", {"action": "end"}, follow=True).content.decode()

    assert "more permissions than you" in said
    assert UserSession.of(root).exists()


def test_the_page_leads_to_settings_and_to_changes_and_changes_lead_back(admin, ana):
    shown = html(admin, f"/users/{ana.pk}/")
    assert f'href="/admin/auth/user/{ana.pk}/change/"' in shown
    assert f'href="/changes/?user={ana.pk}"' in shown

    admin.post(f"/users/{ana.pk}/act/", {"action": "end"})

    assert f'href="/users/{ana.pk}/"' in html(admin, "/changes/?action=sessions_ended")


def test_no_secret_is_shown(admin, ana):
    Client().force_login(ana)
    key = ApiToken(user=ana, name="grafana").issue()
    session = UserSession.of(ana).get().session_key

    shown = html(admin, f"/users/{ana.pk}/")

    assert key not in shown
    assert session not in shown


@pytest.mark.parametrize("number", [2, 30])
def test_the_list_costs_a_few_queries_whatever_it_shows(admin, django_assert_max_num_queries, number):
    for each in range(number):
        user = User.objects.create(username=f"user {each}")
        Scope.objects.create(user=user).sites.add(Site.objects.get_or_create(name="Cusco")[0])
        ApiToken(user=user, name="x").issue()
        fail(user.username)
    admin.get("/account/sessions/")

    # Session, user, permissions, scope, problems; views, ids, users, groups, sites, tags, sessions, tokens, locks, and
    # failed logins.
    with django_assert_max_num_queries(18):
        admin.get("/users/")
