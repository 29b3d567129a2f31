"""Users, groups and tokens in the admin."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from rest_framework.authtoken.models import Token

LIST = reverse("admin:authtoken_tokenproxy_changelist")
NEW = reverse("admin:authtoken_tokenproxy_new_token")
SUBMITTED = {"_form_submitted": "on"}


def take_back(user):
    return reverse("admin:authtoken_tokenproxy_take_back", args=[user.pk])


def test_a_token_is_shown_when_it_is_made_and_never_again(admin_page, reader):
    answer = admin_page.post(NEW, SUBMITTED | {"user": reader.pk})
    made = admin_page.get(answer.headers["HX-Redirect"]).content.decode()
    later = admin_page.get(LIST).content.decode()

    token = Token.objects.get(user=reader)
    assert f"The token of reader is {token.key}. Copy it now: it is not shown again." in made
    assert "reader" in later
    assert token.key not in later
    assert not LogEntry.objects.filter(object_repr__contains=token.key).exists()


def test_who_has_a_token_is_not_offered_another(admin_page, reader):
    Token.objects.create(user=reader)

    assert b"reader" not in admin_page.get(NEW).content


def test_a_token_is_taken_back_and_opens_nothing_more(admin_page, reader):
    token = Token.objects.create(user=reader)

    asked = admin_page.get(take_back(reader))
    still_there = Token.objects.exists()
    admin_page.post(take_back(reader), SUBMITTED)

    assert b"Programs that use it lose access immediately." in asked.content
    assert still_there
    answer = Client().get("/api/v1/olts/", headers={"authorization": f"Token {token.key}"})
    assert answer.status_code == 401


@pytest.mark.parametrize("page", ["change", "history", "delete"])
def test_a_token_has_no_page_that_would_name_its_key(admin_page, reader, page):
    token = Token.objects.create(user=reader)

    answer = admin_page.get(reverse(f"admin:authtoken_tokenproxy_{page}", args=[token.key]))

    assert answer.status_code == 403


def test_only_superusers_hand_out_tokens(boss, reader):
    Token.objects.create(user=reader)
    clerk = User.objects.create(username="clerk", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(content_type__app_label="authtoken"))
    client = Client()
    client.force_login(clerk)

    tried = [
        client.get(LIST),
        client.post(NEW, SUBMITTED | {"user": boss.pk}),
        client.post(take_back(reader), SUBMITTED),
    ]

    assert [answer.status_code for answer in tried] == [403, 403, 403]
    assert list(Token.objects.values_list("user", flat=True)) == [reader.pk]


def test_a_user_is_added(admin_page):
    form = {"username": "noc", "password1": "a long passphrase", "password2": "a long passphrase"}

    admin_page.post(reverse("admin:auth_user_add"), form | {"usable_password": "true"})

    assert User.objects.get(username="noc").check_password("a long passphrase")


@pytest.mark.parametrize("page", ["auth_user_changelist", "auth_user_add", "auth_group_changelist", "auth_group_add"])
def test_users_and_groups_have_their_pages(admin_page, page):
    assert admin_page.get(reverse(f"admin:{page}")).status_code == 200
