"""The policy of the headers in a browser: the admin and the API docs work, and nothing is blocked.

A blocked script or style is a message of the console, which the bridge does not accept.
"""

import pytest
from playwright.sync_api import expect

from facho.alerts.models import Channel
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob

pytestmark = [pytest.mark.browser, pytest.mark.django_db]


def test_the_admin_and_the_api_docs_work_under_their_policy(bridge):
    Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    job = SnmpJob.objects.create(name="Optical power", brand="huawei", kind="table", columns=["rx_dbm"])
    channel = Channel.objects.create(
        name="NOC", kind="webhook", url="https://127.0.0.1/s3cret", signing_secret="of the receiver"
    )

    page = bridge.open("/api/v1/docs/")
    expect(page.locator(".opblock").first).to_be_visible()
    page = bridge.open("/admin/inventory/olt/")
    expect(page.get_by_role("link", name="OLT-CENTRAL-01")).to_be_visible()
    page = bridge.open(f"/admin/jobs/snmpjob/{job.pk}/change/")
    expect(page.get_by_label("Name").first).to_have_value("Optical power")
    bridge.open("/admin/coordinator/coordinatorlog/")
    page = bridge.open(f"/admin/alerts/channel/{channel.pk}/change/")
    expect(page.get_by_text("Stored: https://127.0.0.1/… Leave empty to keep it.")).to_be_visible()
    # Alpine shows the fields of the chosen kind.
    page.locator("select[name=kind]").select_option("telegram")
    expect(page.locator("input[name=bot_token]")).to_be_visible()
    expect(page.locator("input[name=url]")).to_be_hidden()
