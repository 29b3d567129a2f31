"""Users, groups and tokens in the admin."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from facho.apps.accounts.models import ApiToken
from facho.apps.accounts.roles import Role, set_role
from facho.apps.changes.models import Change

LIST = reverse("admin:accounts_apitoken_changelist")
NEW = reverse("admin:accounts_apitoken_add")
SUBMITTED = {"_form_submitted": "on"}


def page_of(token, page):
    return reverse(f"admin:accounts_apitoken_{page}", args=[token.pk])


def make_token(user):
    token = ApiToken(user=user, name="Grafana")
    return token, token.issue()


def test_a_token_is_shown_when_it_is_made_and_never_again(admin_page, reader):
    form = {"user": reader.pk, "name": "Grafana", "networks": "192.0.2.0/24, ::1\n198.51.100.7"}

    made = admin_page.post(NEW, form)

    token = ApiToken.objects.get()
    key = made.context["key"]
    assert (token.user, token.networks) == (reader, ["192.0.2.0/24", "::1/128", "198.51.100.7/32"])
    assert key in made.content.decode()
    assert "no-store" in made.headers["Cache-Control"]
    answer = Client().get("/api/v1/olts/", headers={"authorization": f"Token {key}"}, REMOTE_ADDR="192.0.2.9")
    assert answer.status_code == 200
    later = [admin_page.get(url, follow=True).content.decode() for url in (LIST, *(page_of(token, p) for p in PAGES))]
    assert all("Grafana" in page and key not in page and token.key_hash not in page for page in later)
    assert key not in str(list(Change.objects.values()))
    assert key not in str(dict(admin_page.session)) + str(admin_page.cookies)


PAGES = ["change", "history", "delete"]


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("networks", "lan", "is not a network"),
        ("expires_at_0", "2020-01-01", "This time is in the past."),
        ("user", "", "This field is required."),
    ],
)
def test_an_invalid_token_is_refused(admin_page, reader, field, value, sentence):
    form = {"user": reader.pk, "name": "x", "networks": "", "expires_at_1": "00:00:00"} | {field: value}
    if field != "expires_at_0":
        form.pop("expires_at_1")

    answer = admin_page.post(NEW, form)

    assert sentence in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_a_token_is_changed_but_not_given_to_another_user(admin_page, reader, boss):
    token, _key = make_token(reader)

    admin_page.post(page_of(token, "change"), {"user": boss.pk, "name": "new", "networks": "", "is_read_only": "on"})

    token.refresh_from_db()
    assert (token.name, token.user, token.is_read_only) == ("new", reader, True)


def test_a_token_is_revoked_and_opens_nothing_more(admin_page, reader):
    token, key = make_token(reader)

    asked = admin_page.get(page_of(token, "revoke"))
    still_valid = ApiToken.objects.valid().exists()
    admin_page.post(page_of(token, "revoke"), SUBMITTED)

    assert b"Programs that use it lose access immediately." in asked.content
    assert still_valid
    answer = Client().get("/api/v1/olts/", headers={"authorization": f"Token {key}"})
    assert answer.status_code == 401
    assert admin_page.get(LIST).status_code == 200
    assert admin_page.post(page_of(token, "change"), {"name": "x"}).status_code == 403


def test_only_superusers_hand_out_tokens(boss, reader):
    token, _key = make_token(reader)
    clerk = User.objects.create(username="clerk", is_staff=True)
    set_role(clerk, Role.ADMIN)
    clerk.user_permissions.set(Permission.objects.filter(content_type__app_label="accounts"))
    client = Client()
    client.force_login(clerk)

    seen = client.get(LIST)
    tried = [
        client.post(NEW, {"user": boss.pk, "name": "x"}),
        client.post(page_of(token, "change"), {"name": "x"}),
    ]
    revoked = client.post(page_of(token, "revoke"), SUBMITTED)

    assert [seen.status_code, *(answer.status_code for answer in tried), revoked.status_code] == [200, 403, 403, 200]
    token.refresh_from_db()
    assert (ApiToken.objects.count(), token.name, token.revoked_at) == (1, "Grafana", timezone.now())


def test_staff_without_permissions_see_no_tokens(reader):
    token, _key = make_token(reader)
    clerk = User.objects.create(username="clerk", is_staff=True)
    client = Client()
    client.force_login(clerk)

    tried = [client.get(LIST), client.get(page_of(token, "change")), client.post(page_of(token, "revoke"), SUBMITTED)]

    assert [answer.status_code for answer in tried] == [403, 403, 403]
    assert ApiToken.objects.valid().exists()


@pytest.mark.parametrize("kind", ["user", "group"])
def test_users_and_roles_with_tokens_can_be_deleted(admin_page, reader, kind):
    role = Group.objects.create(name="Scripts")
    ApiToken(user=reader, name="x", role=role).issue()
    row = {"user": reader, "group": role}[kind]

    admin_page.post(reverse(f"admin:auth_{kind}_delete", args=[row.pk]), {"post": "yes"})

    assert not type(row).objects.filter(pk=row.pk).exists()
    assert not ApiToken.objects.exists()


def test_a_user_is_added(admin_page):
    form = {"username": "noc", "password1": "a long passphrase", "password2": "a long passphrase"}

    admin_page.post(reverse("admin:auth_user_add"), form | {"usable_password": "true"})

    assert User.objects.get(username="noc").check_password("a long passphrase")


@pytest.mark.parametrize("page", ["auth_user_changelist", "auth_user_add", "auth_group_changelist", "auth_group_add"])
def test_users_and_groups_have_their_pages(admin_page, page):
    assert admin_page.get(reverse(f"admin:{page}")).status_code == 200
