"""A secret is sent to the destination that it was written for, and to no other."""

import pytest
from alert_cast import SECRETS as CHANNEL_SECRETS
from alert_cast import make_channel
from cast import SECRETS, make_olt
from django.contrib.messages import get_messages
from django.db import DatabaseError
from django.urls import reverse

from facho.alerts.models import Channel
from facho.apps.inventory.models import Olt

WRITE_AGAIN = "The address or port changed. Write this again: the stored one is not sent to another address."
V3 = {"version": "3", "v3_user": "noc", "v3_auth": "SHA256", "v3_priv": "AES128"}
EMAIL = {
    "kind": "email",
    "smtp_host": "127.0.0.1",
    "smtp_user": "facho",
    "mail_from": "facho@example.net",
    "mail_to": "noc@example.net",
}
TELEGRAM = {"kind": "telegram", "chat_id": "-100"}


def stored(row, names):
    row.refresh_from_db()
    return {name for name in names if getattr(row, name)}


@pytest.mark.parametrize(
    ("olt", "change", "refused"),
    [
        pytest.param({}, {"host": "127.0.0.9"}, {"community"}, id="address"),
        pytest.param({}, {"port": 1161}, {"community"}, id="port"),
        pytest.param({"version": "1"}, {"port": 1161}, {"community"}, id="v1"),
        pytest.param({}, {"host": "127.0.0.9", "version": "3", "v3_user": "x"}, set(), id="v3 that needs no password"),
        pytest.param(V3, {"host": "127.0.0.9"}, {"v3_auth_key", "v3_priv_key"}, id="v3"),
        pytest.param(V3, {"host": "127.0.0.9", "v3_auth_key": "given again"}, {"v3_priv_key"}, id="v3, one of two"),
        pytest.param({}, {"host": "127.0.0.9", "community": SECRETS["community"]}, set(), id="given again"),
        pytest.param({}, {"location": "Sur"}, set(), id="another column"),
    ],
)
def test_an_olt_that_moves_asks_for_its_secrets(api, db, olt, change, refused):
    row = make_olt("OLT-CENTRAL-01", **{**SECRETS, **olt})

    answer = api.patch(f"/api/v1/olts/{row.pk}/", change, format="json")

    assert (answer.status_code, set(answer.json()) & {*SECRETS}) == (400 if refused else 200, refused)
    assert not refused or answer.json() == {name: [WRITE_AGAIN] for name in refused}


def test_secrets_that_an_olt_does_not_use_do_not_move_with_it(api, central):
    """Otherwise a second change, of the version, would send them."""
    moved = api.patch(f"/api/v1/olts/{central.pk}/", {"port": 1161, "community": "of a listener"}, format="json")
    to_v3 = api.patch(f"/api/v1/olts/{central.pk}/", V3, format="json")

    assert (moved.status_code, to_v3.status_code) == (200, 400)
    assert (moved.json()["has_community"], moved.json()["has_v3_auth_key"]) == (True, False)
    assert stored(central, SECRETS) == {"community"}


@pytest.mark.parametrize("columns", [pytest.param(None, id="all"), pytest.param(["host"], id="only the address")])
def test_a_row_that_is_saved_without_a_check_loses_its_secrets(central, columns, caplog):
    central.host = "127.0.0.9"
    central.save(update_fields=columns)

    assert stored(central, SECRETS) == set()
    assert "OLT-CENTRAL-01: the address changed; dropped: community" in caplog.text
    assert central.agent().obstacle.startswith("OLT-CENTRAL-01 has no community")


def test_a_secret_that_is_not_saved_with_the_address_was_not_given(central):
    central.host, central.community = "127.0.0.9", "not among the columns"
    central.save(update_fields=["host"])

    assert stored(central, SECRETS) == set()


def test_an_olt_without_a_secret_says_what_to_do(admin_page, central):
    Olt.objects.update(community="")

    page, form = admin_page.get(f"/olts/{central.pk}/"), admin_page.get(f"/admin/inventory/olt/{central.pk}/change/")

    for answer in (page, form):
        assert "has no community or SNMPv3 password" in answer.content.decode()


def test_the_form_of_an_olt_asks_too_and_names_what_it_deleted(admin_page, central):
    page = reverse("admin:inventory_olt_change", args=[central.pk])
    form = {"name": central.name, "brand": "huawei", "host": "127.0.0.9", "port": 161, "version": "2c", "enabled": "on"}

    refused = admin_page.post(page, form)
    saved = admin_page.post(page, form | {"community": "given again"})

    assert refused.context["adminform"].form.errors == {"community": [WRITE_AGAIN]}
    assert saved.status_code == 302
    said = " ".join(map(str, get_messages(saved.wsgi_request)))
    assert "v3 authentication password, v3 privacy password" in said


@pytest.mark.parametrize(
    ("channel", "change", "refused"),
    [
        pytest.param({}, {"url": "https://127.0.0.1/other"}, None, id="webhook: another path"),
        pytest.param({}, {"url": "https://127.0.0.9/hook"}, "signing_secret", id="webhook: another host"),
        pytest.param({}, {"url": "https://127.0.0.1:8443/hook"}, "signing_secret", id="webhook: another port"),
        pytest.param({}, {"url": "http://127.0.0.1/hook"}, "signing_secret", id="webhook: no longer encrypted"),
        pytest.param(EMAIL, {"smtp_host": "127.0.0.9"}, "smtp_password", id="mail: another host"),
        pytest.param(EMAIL, {"smtp_port": 25}, "smtp_password", id="mail: another port"),
        pytest.param(EMAIL, {"mail_to": "boss@example.net"}, None, id="mail: another recipient"),
        pytest.param(TELEGRAM, {"telegram_url": "https://127.0.0.9"}, "bot_token", id="Telegram: another host"),
        pytest.param(TELEGRAM, {"telegram_url": "https://api.telegram.org"}, None, id="Telegram: its own host"),
    ],
)
def test_a_channel_with_another_host_asks_for_its_secret(api, channel, change, refused):
    row = make_channel(**channel)
    page = f"/api/v1/channels/{row.pk}/"

    answer = api.patch(page, change, format="json")

    assert answer.json().get(refused) == ([WRITE_AGAIN] if refused else None)
    if refused:
        assert answer.status_code == 400
        again = api.patch(page, change | {refused: CHANNEL_SECRETS[refused]}, format="json")
        assert again.status_code == 200
    else:
        assert answer.status_code == 200
        assert stored(row, CHANNEL_SECRETS) == {*CHANNEL_SECRETS}


def test_a_kind_that_is_not_in_use_does_not_keep_its_secret_for_another_host(api):
    """A webhook that gets another Telegram API, and becomes a Telegram channel later."""
    channel = make_channel()

    api.patch(f"/api/v1/channels/{channel.pk}/", {"telegram_url": "https://127.0.0.9"}, format="json")

    assert stored(channel, ["bot_token", "signing_secret"]) == {"signing_secret"}


def test_the_address_of_a_webhook_is_stored_encrypted(db):
    channel = make_channel(url="https://127.0.0.1/s3cret-path")

    [raw] = Channel.objects.extra(select={"raw": "url"}).values_list("raw", flat=True)

    assert "s3cret" not in raw
    assert channel.url.reveal() == "https://127.0.0.1/s3cret-path"


def test_a_failed_save_is_not_half_done(central, monkeypatch):
    central.host = "127.0.0.9"
    monkeypatch.setattr(Olt, "touch", lambda _ids: (_ for _ in ()).throw(DatabaseError("full disk")))

    with pytest.raises(DatabaseError):
        central.save()

    assert stored(central, SECRETS) == {*SECRETS}
