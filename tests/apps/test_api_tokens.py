"""API tokens: which are accepted, what they allow, and how they are managed."""

import logging
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone
from rest_framework.settings import api_settings
from rest_framework.test import APIClient

from facho.apps.accounts import models
from facho.apps.accounts.models import ApiToken, TokenUser, hash_key
from facho.apps.accounts.roles import Role, set_role
from facho.apps.accounts.serializers import ApiTokenSerializer
from facho.apps.changes.models import Change
from facho.apps.inventory.models import Olt

URL = "/api/v1/tokens/"
HOUR = timedelta(hours=1)


def make_token(user, name="script", **fields):
    token = ApiToken(user=user, name=name, **fields)
    return token, token.issue()


def bearer(key, scheme="Token", **headers):
    return APIClient(headers={"authorization": f"{scheme} {key}", **headers})


def allow(user_or_group, *codenames):
    found = Permission.objects.filter(codename__in=codenames)
    assert len(found) == len(codenames)
    (user_or_group.permissions if isinstance(user_or_group, Group) else user_or_group.user_permissions).set(found)


def own_api(user):
    client = APIClient()
    client.force_login(user)
    return client


# Authentication


@pytest.mark.parametrize("scheme", ["Token", "Bearer", "token", "BEARER"])
def test_a_token_is_accepted_with_both_schemes(reader, scheme):
    _token, key = make_token(reader)

    assert bearer(key, scheme).get("/api/v1/olts/").status_code == 200


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param({}, None, id="no limits"),
        pytest.param({"expires_at": HOUR}, None, id="expires later"),
        pytest.param({"expires_at": -HOUR}, "This token has expired.", id="expired"),
        pytest.param({"expires_at": timedelta()}, "This token has expired.", id="expires now"),
        pytest.param({"revoked_at": -HOUR}, "This token was revoked.", id="revoked"),
        pytest.param({"networks": ["127.0.0.0/8"]}, None, id="IPv4 network"),
        pytest.param({"networks": ["::1/128", "127.0.0.1/32"]}, None, id="one of two networks"),
        pytest.param(
            {"networks": ["192.0.2.0/24"]}, "This token is not valid from this address.", id="another IPv4 network"
        ),
        pytest.param({"networks": ["::/0"]}, "This token is not valid from this address.", id="IPv6 only"),
        pytest.param({"is_read_only": True}, None, id="read-only"),
    ],
)
def test_a_token_is_refused_with_the_reason(reader, fields, sentence):
    fields = {name: timezone.now() + value if name.endswith("_at") else value for name, value in fields.items()}
    token, key = make_token(reader, **fields)

    answer = bearer(key).get("/api/v1/olts/")

    assert answer.status_code == (401 if sentence else 200)
    if sentence:
        assert answer.json() == {"detail": sentence}
        assert answer.headers["WWW-Authenticate"] == "Token"
    token.refresh_from_db()
    assert (token.last_used_at is None) == bool(sentence)


def test_a_token_of_a_disabled_user_is_refused(reader):
    _token, key = make_token(reader)
    User.objects.update(is_active=False)

    answer = bearer(key).get("/api/v1/olts/")

    assert (answer.status_code, answer.json()["detail"]) == (401, "The user of this token is disabled.")


@pytest.mark.parametrize("header", ["Token", "Token ", "Token nonsense", "Token a b", "Bearer ä", "Token \x00"])
def test_an_unknown_key_is_refused(db, header):
    answer = APIClient().get("/api/v1/olts/", headers={"authorization": header})

    assert (answer.status_code, answer.json()["detail"]) == (401, "Invalid token.")


@pytest.mark.parametrize("part", ["hash", "prefix"])
def test_what_is_stored_is_not_a_key(reader, part):
    token, _key = make_token(reader)

    stored = {"hash": token.key_hash, "prefix": token.prefix}[part]

    assert bearer(stored).get("/api/v1/olts/").status_code == 401


@pytest.mark.parametrize(
    ("proxies", "forwarded", "connection", "expected"),
    [
        pytest.param(0, "192.0.2.7", "127.0.0.1", 401, id="no proxy: the header counts for nothing"),
        pytest.param(0, None, "192.0.2.7", 200, id="no proxy: the connection counts"),
        pytest.param(1, "192.0.2.7", "127.0.0.1", 200, id="behind the proxy: its last hop"),
        pytest.param(1, "192.0.2.7, 203.0.113.5", "127.0.0.1", 401, id="behind the proxy: not an earlier hop"),
        pytest.param(1, "203.0.113.5,192.0.2.7", "127.0.0.1", 200, id="behind the proxy: last of two"),
        pytest.param(1, None, "192.0.2.7", 200, id="behind the proxy: direct connection"),
        pytest.param(1, "nonsense", "192.0.2.7", 401, id="behind the proxy: no address"),
        pytest.param(0, None, "::ffff:192.0.2.7", 200, id="IPv4 in IPv6"),
        pytest.param(0, None, "2001:db8::7", 200, id="IPv6"),
        pytest.param(0, None, "", 401, id="no address"),
    ],
)
def test_the_address_is_the_one_that_facho_or_its_proxy_saw(
    reader, monkeypatch, proxies, forwarded, connection, expected
):
    monkeypatch.setattr(api_settings, "NUM_PROXIES", proxies)
    _token, key = make_token(reader, networks=["192.0.2.0/24", "2001:db8::/32"])
    headers = {"x-forwarded-for": forwarded} if forwarded else {}

    answer = bearer(key, **headers).get("/api/v1/olts/", REMOTE_ADDR=connection)

    assert answer.status_code == expected


@pytest.mark.parametrize(
    ("method", "expected"),
    [("get", 200), ("head", 200), ("options", 200), ("post", 403), ("put", 403), ("patch", 403), ("delete", 403)],
)
def test_a_read_only_token_only_reads(boss, central, method, expected):
    _token, key = make_token(boss, is_read_only=True)

    answer = getattr(bearer(key), method)(f"/api/v1/olts/{central.pk}/")

    assert answer.status_code == expected
    if expected == 403:
        assert answer.json() == {"detail": "This token is read-only. Use a token with full access."}
    assert Olt.objects.filter(pk=central.pk).exists()


@pytest.mark.parametrize(
    ("user_may", "role_may", "expected"),
    [
        pytest.param(["operate_olt"], ["operate_olt"], 202, id="both"),
        pytest.param(["operate_olt"], ["view_olt"], 403, id="only the user"),
        pytest.param(["view_olt"], ["operate_olt"], 403, id="only the role"),
        pytest.param(None, ["operate_olt"], 202, id="a superuser and the role"),
        pytest.param(None, [], 403, id="a superuser with an empty role"),
    ],
)
def test_a_role_limits_a_token_to_the_permissions_of_both(reader, central, user_may, role_may, expected):
    role = Group.objects.create(name="Scripts")
    allow(role, *role_may)
    allow(reader, *user_may or [])
    User.objects.filter(pk=reader.pk).update(is_superuser=user_may is None, is_staff=True)
    _token, key = make_token(reader, role=role)

    assert bearer(key).post(f"/api/v1/olts/{central.pk}/disable/").status_code == expected


def test_the_user_of_a_limited_token_has_no_flags_and_cannot_be_saved(boss):
    role = Group.objects.create(name="Scripts")
    allow(role, "view_olt")
    token, _key = make_token(boss, role=role)

    limited = token.effective_user()

    assert isinstance(limited, TokenUser)
    assert limited == boss
    assert (limited.is_superuser, limited.is_staff) == (False, False)
    assert limited.get_all_permissions() == limited.get_user_permissions() == {"inventory.view_olt"}
    assert limited.get_group_permissions() == set()
    assert (limited.has_module_perms("inventory"), limited.has_module_perms("jobs")) == (True, False)
    with pytest.raises(TypeError, match="must not be saved"):
        limited.save()
    assert User.objects.get().is_superuser


@pytest.mark.parametrize(("role", "status"), [(Role.SUPPORT, 201), (Role.OPERATOR, 201), (Role.ADMIN, 400)])
def test_a_role_above_that_of_the_user_is_refused(reader, role, status):
    set_role(reader, Role.OPERATOR)
    client = APIClient()
    client.force_authenticate(User.objects.get(pk=reader.pk))

    assert client.post(URL, {"name": "x", "role": role}, format="json").status_code == status


def test_a_token_is_deleted_with_its_role_and_does_not_become_unlimited(boss):
    role = Group.objects.create(name="Scripts")
    _token, key = make_token(boss, role=role)
    role.delete()

    assert bearer(key).get("/api/v1/olts/").status_code == 401


def test_the_last_use_is_written_once_a_minute(reader, monkeypatch, django_assert_num_queries):
    token, key = make_token(reader)
    start = timezone.now()
    client = bearer(key)
    seen = []
    for seconds, address in ((0, "192.0.2.1"), (59, "192.0.2.2"), (60, "192.0.2.3"), (61, "2001:db8::1")):
        monkeypatch.setattr(timezone, "now", lambda moment=start + timedelta(seconds=seconds): moment)
        # The token, and the write if one is due.
        with django_assert_num_queries(2 if seconds in (0, 60) else 1):
            client.get("/api/v1/brands/", REMOTE_ADDR=address)
        token.refresh_from_db()
        seen.append(((token.last_used_at - start).seconds, token.last_address))

    assert seen == [(0, "192.0.2.1"), (0, "192.0.2.1"), (60, "192.0.2.3"), (60, "192.0.2.3")]


# Login with name and password


@pytest.fixture
def demo(db):
    user = User.objects.create_user("demo", password="demo")
    set_role(user, Role.VIEWER)
    return user


def login(**more):
    return APIClient().post("/api/v1/auth/token/", {"username": "demo", "password": "demo", **more}, format="json")


def test_each_login_creates_a_token(demo):
    keys = [login().json()["token"] for _ in range(2)]

    assert len(set(keys)) == 2
    assert [(token.name, token.origin) for token in ApiToken.objects.all()] == [("Login", "login")] * 2
    assert all(bearer(key).get("/api/v1/olts/").status_code == 200 for key in keys)


@pytest.mark.parametrize("field", ["name", "token", "expires_at"])
def test_a_login_with_an_unknown_field_is_refused(demo, field):
    answer = login(**{field: "x"})

    assert answer.status_code == 400
    assert answer.json() == {field: ["Unknown field. Writable fields: username, password, code."]}
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("field", ["username", "password"])
def test_a_login_without_a_field_is_refused(demo, field):
    answer = APIClient().post("/api/v1/auth/token/", {field: "demo"})

    assert answer.status_code == 400
    assert list(answer.json().values()) == [["This field is required."]]


def test_a_disabled_user_cannot_log_in(demo):
    User.objects.update(is_active=False)

    assert login().status_code == 400


def test_a_login_replaces_the_login_token_that_was_not_used_for_the_longest_time(demo, monkeypatch):
    monkeypatch.setattr(models, "MOST_TOKENS", 3)
    manual, _key = make_token(demo, "Grafana")
    used, unused = (login().json()["token"] for _ in range(2))
    bearer(used).get("/api/v1/olts/")

    newest = login().json()["token"]

    assert [bearer(key).get("/api/v1/olts/").status_code for key in (used, unused, newest)] == [200, 401, 200]
    assert ApiToken.objects.filter(pk=manual.pk).exists()


# Management


def test_a_token_is_created_and_its_key_is_returned_once(reader):
    Group.objects.create(name="Scripts")
    client = own_api(reader)
    body = {
        "name": "Grafana",
        "is_read_only": True,
        "role": "Scripts",
        "networks": ["192.0.2.0/24", " 2001:DB8::/32", "198.51.100.7"],
        "expires_at": (timezone.now() + HOUR).isoformat(),
    }

    created = client.post(URL, body, format="json")
    listed = client.get(URL)
    single = client.get(f"{URL}{created.json()['id']}/")

    assert created.status_code == 201
    key = created.json()["token"]
    token = ApiToken.objects.get()
    assert (token.user, token.key_hash, token.prefix) == (reader, hash_key(key), key[:10])
    assert key.startswith("facho_")
    assert len(key) == 54
    assert token.networks == ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7/32"]
    assert single.json().items() <= created.json().items()
    assert single.json()["state"] == "valid"
    for answer in (listed, single):
        assert key not in answer.content.decode()
        assert token.key_hash not in answer.content.decode()


@pytest.mark.parametrize(
    ("body", "field", "sentence"),
    [
        pytest.param({}, "name", "This field is required.", id="no name"),
        pytest.param({"name": ""}, "name", "This field may not be blank.", id="empty name"),
        pytest.param({"name": "x", "user": 1}, "user", "This field is read-only.", id="another user"),
        pytest.param({"name": "x", "token": "mine"}, "token", "Unknown field.", id="own key"),
        pytest.param({"name": "x", "key_hash": "0" * 64}, "key_hash", "Unknown field.", id="own hash"),
        pytest.param({"name": "x", "role": "nobody"}, "role", "does not exist", id="unknown role"),
        pytest.param({"name": "x", "networks": ["10.0.0.1/8"]}, "networks", "is not a network", id="host bits"),
        pytest.param({"name": "x", "networks": ["lan"]}, "networks", "is not a network", id="not a network"),
        pytest.param({"name": "x", "networks": "10.0.0.0/8"}, "networks", "Expected a list", id="not a list"),
        pytest.param(
            {"name": "x", "networks": [f"10.0.{n}.0/24" for n in range(51)]}, "networks", "at most 50", id="too many"
        ),
        pytest.param({"name": "x", "expires_at": "2020-01-01T00:00Z"}, "expires_at", "in the past", id="past"),
    ],
)
def test_an_invalid_token_is_refused(reader, body, field, sentence):
    answer = own_api(reader).post(URL, body, format="json")

    assert answer.status_code == 400
    assert sentence in str(answer.json()[field])
    assert not ApiToken.objects.exists()


def test_a_user_has_a_limited_number_of_valid_tokens(reader, monkeypatch):
    monkeypatch.setattr(models, "MOST_TOKENS", 2)
    client = own_api(reader)
    statuses = [client.post(URL, {"name": "x"}).status_code for _ in range(3)]
    ApiToken.objects.first().revoke()

    assert statuses == [201, 201, 400]
    assert client.post(URL, {"name": "x"}).status_code == 201


def test_old_revoked_and_expired_tokens_are_deleted_with_the_next_new_one(reader):
    long_ago = timezone.now() - timedelta(days=91)
    make_token(reader, "revoked", revoked_at=long_ago)
    make_token(reader, "expired", expires_at=long_ago)
    make_token(reader, "lately", revoked_at=timezone.now())

    make_token(reader, "new")

    assert {token.name for token in ApiToken.objects.all()} == {"lately", "new"}


def test_a_token_is_changed(reader):
    token, key = make_token(reader)
    client = own_api(reader)

    answer = client.patch(f"{URL}{token.pk}/", {"name": "new", "networks": ["192.0.2.0/24"]}, format="json")

    assert (answer.status_code, answer.json()["name"]) == (200, "new")
    assert "token" not in answer.json()
    assert bearer(key).get("/api/v1/olts/").status_code == 401


def test_a_change_does_not_bring_back_a_token_that_was_revoked_meanwhile(reader):
    token, _key = make_token(reader)
    ApiToken.objects.revoke()

    change = ApiTokenSerializer(token, {"name": "new"}, partial=True)
    change.is_valid(raise_exception=True)
    change.save()

    assert [(row.name, row.state) for row in ApiToken.objects.all()] == [("new", "revoked")]


def test_a_deleted_token_is_revoked_and_stays_in_the_list(reader):
    token, key = make_token(reader)
    client = own_api(reader)

    statuses = [client.delete(f"{URL}{token.pk}/").status_code for _ in range(2)]

    assert statuses == [204, 204]
    assert client.get(URL).json()["results"][0]["state"] == "revoked"
    assert bearer(key).get("/api/v1/olts/").json()["detail"] == "This token was revoked."
    assert client.patch(f"{URL}{token.pk}/", {"name": "x"}, format="json").status_code == 409


def test_users_manage_their_own_tokens_and_superusers_all(reader, boss):
    theirs, _key = make_token(boss, "boss")
    own, _key = make_token(reader, "reader")

    seen = [{row["name"] for row in own_api(user).get(URL).json()["results"]} for user in (reader, boss)]
    strange = [getattr(own_api(reader), method)(f"{URL}{theirs.pk}/") for method in ("get", "patch", "delete")]
    own_api(boss).delete(f"{URL}{own.pk}/")

    assert seen == [{"reader"}, {"reader", "boss"}]
    assert [answer.status_code for answer in strange] == [404, 404, 404]
    assert set(ApiToken.objects.valid()) == {theirs}


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"role": True}, id="role"),
        pytest.param({"networks": ["127.0.0.0/8"]}, id="networks"),
        pytest.param({"expires_at": True}, id="expiry"),
    ],
)
def test_a_token_with_limits_cannot_remove_them(boss, limits):
    if "role" in limits:
        limits = {"role": Group.objects.create(name="Scripts")}
    if "expires_at" in limits:
        limits = {"expires_at": timezone.now() + HOUR}
    other, _key = make_token(boss, "other")
    token, key = make_token(boss, **limits)
    client = bearer(key)

    created = client.post(URL, {"name": "unlimited"}, format="json")
    changed = client.patch(f"{URL}{token.pk}/", {"networks": [], "role": None, "expires_at": None}, format="json")
    removed = [client.delete(f"{URL}{row.pk}/").status_code for row in (other, token)]

    said = "This token has limits and cannot manage tokens. Log in, or use a token without limits."
    assert [(answer.status_code, answer.json()["detail"]) for answer in (created, changed)] == [(403, said)] * 2
    assert removed == [403, 204]
    assert list(ApiToken.objects.valid()) == [other]


def test_a_token_without_limits_creates_another(reader):
    _token, key = make_token(reader)

    assert bearer(key).post(URL, {"name": "second"}, format="json").status_code == 201


def test_a_superusers_token_with_a_role_sees_only_its_own_user(boss, reader):
    make_token(reader, "reader")
    _token, key = make_token(boss, "boss", role=Group.objects.create(name="Scripts"))

    assert [row["name"] for row in bearer(key).get(URL).json()["results"]] == ["boss"]


# Secrets


def test_a_key_is_in_no_log_and_no_text_of_its_token(reader, caplog):
    caplog.set_level(logging.DEBUG)
    client = own_api(reader)
    answer = client.post(URL, {"name": "x"}, format="json")
    key = answer.json()["token"]
    bearer(key).get("/api/v1/nothing/")
    bearer(key).post("/api/v1/olts/", {})

    token = ApiToken.objects.get()
    texts = [caplog.text, repr(token), str(token), str(vars(token)), str(list(Change.objects.values()))]
    assert "x (facho_" in str(token)
    assert all(key not in text for text in texts)
