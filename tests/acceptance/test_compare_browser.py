"""The comparison of two times in a browser: in the user's zone, and in an address that a colleague can open."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from apps.cast import make_olt, make_onu
from facho.store.history import append

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

LIMA = ZoneInfo("America/Lima")
PHONE = {"width": 390, "height": 844}


def times_of(page):
    """Return the two times in the address."""
    query = parse_qs(urlsplit(page.url).query)
    return [datetime.fromisoformat(query[name][0]) for name in ("before", "after")]


def test_a_night_is_compared_in_three_clicks_and_the_address_means_the_same_everywhere(bridge):
    now = timezone.now()
    evening = (now.astimezone(LIMA) - timedelta(days=1)).replace(hour=22, minute=0, second=0, microsecond=0)
    olt = make_olt("OLT-CENTRAL-01")
    first_seen = now - timedelta(days=9)
    dark, weaker = make_onu(olt, 1, name="dark", first_seen_at=first_seen), make_onu(olt, 2, first_seen_at=first_seen)
    for at, states, powers in (
        (evening - timedelta(minutes=5), ["online", "online"], [-20.0, -20.0]),
        (now - timedelta(minutes=1), ["los", "online"], [None, -24.0]),
    ):
        append(olt.pk, at, [dark.pk, weaker.pk], {"state": states, "rx_dbm": powers})

    page = bridge.open(f"/olts/{olt.pk}/compare/?before=2025-06-01T22:00:00Z&after=2025-06-02T11:00:00Z")
    expect(page.get_by_label("Before", exact=True)).to_have_value("2025-06-01T17:00")
    page.get_by_label("After", exact=True).fill("2025-06-02T05:30")
    page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile("after=2025-06-02T10%3A30%3A00Z"))
    # The script of the new page has run: until then the presets are in the zone of the installation.
    expect(page.get_by_label("Before", exact=True)).to_have_value("2025-06-01T17:00")
    assert times_of(page)[0] == datetime(2025, 6, 1, 22, tzinfo=UTC)

    page.get_by_role("link", name="Since yesterday 22:00").click()
    expect(page.locator("#summary")).to_have_text("2 ONUs: 0 unchanged, 1 went down, 1 lost at least 1 dB.")
    assert times_of(page) == [evening, now.replace(microsecond=0)]
    page.get_by_role("link", name="went down").click()
    expect(page.locator("tbody .row-link").filter(has_text="client-2")).to_have_count(0)
    expect(page.get_by_role("link", name="dark", exact=True)).to_be_visible()
    assert times_of(page)[0] == evening

    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
