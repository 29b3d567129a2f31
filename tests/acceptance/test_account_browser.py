"""A user's own pages in a browser: create, copy and revoke a token, on a desk and on a phone."""

import pytest
from dashboard_bridge import DESK
from django.contrib.auth.models import User
from playwright.sync_api import expect

from facho.apps.accounts.models import ApiToken, hash_key
from facho.apps.rest.addresses import parse_address

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

PHONE = {"width": 390, "height": 844}


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def page(bridge, request):
    bridge.client.force_login(User.objects.create(username="reader"))
    bridge.page.set_viewport_size(request.param)
    bridge.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return bridge.open("/account/tokens/")


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_a_token_is_created_copied_and_revoked(page):
    expect(page.get_by_text("You have no tokens.")).to_be_visible()
    assert overflow(page) == 0

    page.get_by_label("Name").fill("Grafana")
    page.get_by_label("Read-only").check()
    page.get_by_label("Allowed networks").fill("127.0.0.0/8, 2001:db8::/32")
    page.get_by_role("button", name="Create").click()
    key = page.locator("#token-key").text_content()
    page.get_by_role("button", name="Copy").click()

    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == key
    assert ApiToken.objects.get().key_hash == hash_key(key)
    assert overflow(page) == 0
    ApiToken.find(key).record_use(parse_address("127.0.0.1"))

    page.goto(page.url)
    assert key not in page.content()
    row = page.locator("tbody tr")
    expect(row).to_contain_text("valid")
    expect(row).to_contain_text("127.0.0.1")
    row.locator("summary").click()
    assert overflow(page) == 0
    row.get_by_role("button", name="Revoke").click()

    expect(page.get_by_text("“Grafana” was revoked.")).to_be_visible()
    expect(page.locator("tbody tr")).to_contain_text("revoked")
    assert ApiToken.find(key).state == "revoked"
