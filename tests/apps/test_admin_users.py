"""Users in the admin: one choice of role, and no way to more rights than one's own."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from facho.apps.accounts.models import ApiToken, UserSession
from facho.apps.accounts.roles import Role, role_of, set_role

PASSWORD = "a long passphrase"
NEW = {"username": "new", "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}


def make_user(name, role=None, *permissions, **more):
    user = User.objects.create_user(name, password=PASSWORD, **more)
    if role is not None:
        set_role(user, role)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return User.objects.get(pk=user.pk)


def logged_in(user):
    client = Client()
    client.force_login(user)
    return client


# The scope on the form of a user, left alone.
NO_SCOPE = {"scope-TOTAL_FORMS": "0", "scope-INITIAL_FORMS": "0"}


def page(name, user):
    return reverse(f"admin:auth_user_{name}", args=[user.pk])


def fields_of(answer):
    return set(answer.context["adminform"].form.fields)


@pytest.fixture
def admin(db):
    return make_user("admin", Role.ADMIN)


@pytest.fixture
def clerk(db):
    """Somebody with the permission to change users, and nothing else of an admin."""
    return make_user("clerk", Role.OPERATOR, "view_user", "add_user", "change_user", "delete_user")


# The form


@pytest.mark.parametrize("role", ["", *Role])
def test_a_role_is_one_choice_of_the_form(admin_page, role):
    user = make_user("noc", Role.SUPPORT)

    shown = admin_page.get(page("change", user))
    form = {"username": "noc", "is_active": "on", "is_staff": "on", "role": role}
    admin_page.post(page("change", user), form | NO_SCOPE)

    assert list(dict(shown.context["adminform"].form.fields["role"].choices)) == ["", *Role]
    assert shown.context["adminform"].form["role"].value() == "Support"
    assert role_of(user) == (role or None)
    assert User.objects.get(pk=user.pk).is_staff == (role not in ("", "Viewer"))


@pytest.mark.parametrize("role", ["", "Viewer", "Admin"])
def test_a_new_user_gets_a_role(admin_page, role):
    admin_page.post(reverse("admin:auth_user_add"), {**NEW, "role": role})

    assert role_of(User.objects.get(username="new")) == (role or None)


def test_a_name_that_differs_by_case_only_is_refused(admin_page, boss):
    """Failed logins of both would count together, and a login of one would end the lock of the other."""
    answer = admin_page.post(reverse("admin:auth_user_add"), {**NEW, "username": "Boss", "role": ""})

    assert "A user with that username already exists." in answer.content.decode()
    assert not User.objects.filter(username="Boss").exists()


def test_superusers_also_choose_own_groups_and_permissions(admin_page):
    user, own = make_user("noc", Role.VIEWER), Group.objects.create(name="Night shift")
    permission = Permission.objects.get(codename="operate_olt")
    form = {"username": "noc", "is_active": "on", "role": "Viewer", "is_staff": "on", **NO_SCOPE}

    shown = admin_page.get(page("change", user))
    admin_page.post(page("change", user), {**form, "groups": [own.pk], "user_permissions": [permission.pk]})

    user = User.objects.get(pk=user.pk)
    assert [group.name for group in shown.context["adminform"].form.fields["groups"].queryset] == ["Night shift"]
    assert set(user.groups.values_list("name", flat=True)) == {"Viewer", "Night shift"}
    assert (user.is_staff, user.has_perm("inventory.operate_olt")) == (True, True)


def test_the_list_shows_role_and_last_login(admin_page, admin, boss):
    User.objects.filter(pk=admin.pk).update(last_login="2026-03-01T10:00Z")
    text = admin_page.get(reverse("admin:auth_user_changelist")).content.decode()

    assert "Superuser" in text
    assert "Admin" in text
    assert "2026" in text


def test_flags_and_permissions_are_for_superusers_only(admin, admin_page):
    user = make_user("noc", Role.VIEWER)
    hidden = {"is_superuser", "is_staff", "groups", "user_permissions"}

    assert hidden <= fields_of(admin_page.get(page("change", user)))
    assert not hidden & fields_of(logged_in(admin).get(page("change", user)))


# No way up


RAISE = {"is_superuser": "on", "is_staff": "on", "role": "Admin"}


def raised(user):
    user = User.objects.get(pk=user.pk)
    return user.is_superuser or "auth.change_user" in user.get_all_permissions() or role_of(user) == Role.ADMIN


@pytest.mark.parametrize("who", ["clerk", "admin"])
def test_nobody_raises_herself(request, who):
    editor = request.getfixturevalue(who)
    before = editor.get_all_permissions()
    everything = list(Permission.objects.values_list("pk", flat=True))
    groups = list(Group.objects.values_list("pk", flat=True))
    form = {"username": who, "is_active": "on", **RAISE, "groups": groups, "user_permissions": everything}
    form |= {"first_name": "Ana", **NO_SCOPE}

    shown = logged_in(editor).get(page("change", editor))
    logged_in(editor).post(page("change", editor), form)

    assert not {"role", "is_active", "is_superuser"} & fields_of(shown)
    after = User.objects.get(pk=editor.pk)
    # The form was accepted.
    assert after.first_name == "Ana"
    assert (after.get_all_permissions(), after.is_superuser) == (before, False)


def test_an_own_name_can_be_changed(admin):
    logged_in(admin).post(page("change", admin), {"username": "admin", "first_name": "Ana", **NO_SCOPE})

    assert User.objects.get(pk=admin.pk).first_name == "Ana"


@pytest.mark.parametrize("path", ["change", "password", "delete"])
@pytest.mark.parametrize(
    ("who", "other"),
    [("clerk", "boss"), ("clerk", "engineer"), ("clerk", "extra"), ("admin", "boss"), ("admin", "extra")],
)
def test_users_with_more_rights_are_out_of_reach(request, who, path, other, boss):
    editor = request.getfixturevalue(who)
    user = {
        "boss": lambda: boss,
        "engineer": lambda: make_user("engineer", Role.ENGINEER),
        "extra": lambda: make_user("extra", Role.VIEWER, "add_logentry"),
    }[other]()
    client = logged_in(editor)
    url = reverse("admin:auth_user_password_change", args=[user.pk]) if path == "password" else page(path, user)
    form = {"username": "taken", "password1": "x" * 20, "password2": "x" * 20, "usable_password": "true", "post": "yes"}

    answer = client.post(url, form)

    assert answer.status_code == 403
    after = User.objects.get(pk=user.pk)
    assert (after.username, after.password) == (user.username, user.password)


def test_superusers_can_be_seen_by_admins(admin, boss):
    answer = logged_in(admin).get(page("change", boss))

    assert answer.status_code == 200
    assert not answer.context["has_change_permission"]


def test_list_actions_cannot_delete_superusers_or_oneself(admin, boss):
    for user in (boss, admin):
        form = {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
        logged_in(admin).post(reverse("admin:auth_user_changelist"), form)

        assert User.objects.filter(pk=user.pk).exists()


@pytest.mark.parametrize(
    ("who", "roles"), [("clerk", ["", "Viewer", "Support", "Operator"]), ("admin", ["", *Role])], ids=["clerk", "admin"]
)
def test_only_roles_within_ones_own_rights_are_offered_and_accepted(request, who, roles):
    client = logged_in(request.getfixturevalue(who))
    user = make_user("noc", Role.VIEWER)

    shown = client.get(page("change", user))
    client.post(page("change", user), {"username": "noc", "is_active": "on", "role": "Admin", **NO_SCOPE})
    client.post(reverse("admin:auth_user_add"), {**NEW, "role": "Admin", "is_superuser": "on"})

    assert list(dict(shown.context["adminform"].form.fields["role"].choices)) == roles
    assert (role_of(user) == Role.ADMIN) is (who == "admin")
    assert User.objects.filter(username="new").exists() is (who == "admin")
    assert not User.objects.get(username="noc").is_superuser


def test_ones_own_password_is_changed_on_the_page_that_asks_for_the_present_one(admin, boss):
    for user in (admin, boss):
        url = reverse("admin:auth_user_password_change", args=[user.pk])
        answer = logged_in(user).post(url, {"password1": "x" * 20, "password2": "x" * 20})

        assert (answer.status_code, answer["Location"]) == (302, reverse("dashboard:password"))
        assert User.objects.get(pk=user.pk).password == user.password


def test_an_admin_sets_the_password_of_a_user_with_fewer_rights(admin):
    user = make_user("noc", Role.ENGINEER)
    url = reverse("admin:auth_user_password_change", args=[user.pk])

    logged_in(admin).post(url, {"password1": "another passphrase", "password2": "another passphrase"})

    assert User.objects.get(pk=user.pk).check_password("another passphrase")


@pytest.mark.parametrize("password", ["another passphrase", ""], ids=["new", "none"])
def test_setting_a_password_ends_the_sessions_of_the_user(admin, password):
    user = make_user("noc", Role.ENGINEER)
    logged_in(user)
    form = {"password1": password, "password2": password, "usable_password": "true" if password else "false"}
    form["set-password" if password else "unset-password"] = ""

    logged_in(admin).post(reverse("admin:auth_user_password_change", args=[user.pk]), form)

    # The row, because an open stream of events only looks at that.
    assert not UserSession.of(user).exists()


# Groups and tokens


def test_groups_are_changed_by_superusers_only(admin_page, admin):
    User.objects.get(pk=admin.pk).user_permissions.add(*Permission.objects.filter(content_type__model="group"))
    own = Group.objects.create(name="Night shift")
    url = reverse("admin:auth_group_change", args=[own.pk])

    tried = [
        logged_in(admin).post(reverse("admin:auth_group_add"), {"name": "x"}),
        logged_in(admin).post(url, {"name": "x"}),
        logged_in(admin).post(reverse("admin:auth_group_delete", args=[own.pk]), {"post": "yes"}),
    ]
    admin_page.post(url, {"name": "Day shift"})

    assert [answer.status_code for answer in tried] == [403, 403, 403]
    assert Group.objects.get(pk=own.pk).name == "Day shift"


def test_the_group_of_a_role_is_read_only_and_says_why(admin_page):
    group = Group.objects.get(name="Viewer")
    url = reverse("admin:auth_group_change", args=[group.pk])

    shown = admin_page.get(url).content.decode()
    tried = [admin_page.post(url, {"name": "x"}), admin_page.post(url.replace("change", "delete"), {"post": "yes"})]
    admin_page.post(
        reverse("admin:auth_group_changelist"),
        {"action": "delete_selected", "_selected_action": [group.pk], "post": "yes"},
    )

    assert "This is the group of a role." in shown
    assert "OLT | view" in shown
    assert [answer.status_code for answer in tried] == [403, 403]
    assert Group.objects.filter(pk=group.pk, name="Viewer").exists()


@pytest.mark.parametrize(("owner", "status"), [("boss", 403), ("noc", 200)])
def test_an_admin_revokes_tokens_except_those_of_users_with_more_rights(admin, boss, owner, status):
    make_user("noc", Role.ENGINEER)
    token = ApiToken(user=User.objects.get(username=owner), name="x")
    token.issue()

    answer = logged_in(admin).post(
        reverse("admin:accounts_apitoken_revoke", args=[token.pk]), {"_form_submitted": "on"}
    )

    assert answer.status_code == status
    assert ApiToken.objects.valid().exists() is (status == 403)


@pytest.mark.parametrize("id_", ["foo", "9" * 23])
@pytest.mark.parametrize(
    "path",
    ["auth/user/{}/change/", "auth/user/{}/end_sessions/", "auth/user/{}/password/", "alerts/delivery/{}/change/"],
)
def test_an_address_without_a_row_is_no_server_error(admin_page, path, id_):
    assert admin_page.get(f"/admin/{path.format(id_)}").status_code in (302, 403, 404)
