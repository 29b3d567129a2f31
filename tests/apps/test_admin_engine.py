"""What the engine owns, as the admin shows it: found by filters, masters with their chains."""

import re
from datetime import timedelta

import pytest
from cast import T0, make_execution, make_job, make_onu
from django.urls import reverse
from django.utils import timezone

from facho.apps.polling.models import Poller
from history_rows import add_reading

EXECUTIONS = reverse("admin:polling_execution_changelist")
POLLERS = reverse("admin:polling_poller_changelist")
ONUS = reverse("admin:telemetry_onu_changelist")


def rows(client, url):
    return [str(getattr(row, "node_name", row)) for row in client.get(url).context["cl"].result_list]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["Optical power"], id="masters, unless asked otherwise"),
        pytest.param("?part=links", ["Names"], id="links"),
        pytest.param("?part=all", ["Names", "Optical power"], id="both"),
        pytest.param("?part=all&status__exact=FAILED", ["Names"], id="by status"),
        pytest.param("?trigger__exact=manual", [], id="by who wanted it"),
        pytest.param("?poller_id=3", ["Optical power"], id="by poller"),
        pytest.param("?slot_from_0=2025-06-01&slot_from_1=10:00:01", [], id="from a time on"),
        pytest.param("?slot_from_0=2025-06-01&slot_to_0=2025-06-02", ["Optical power"], id="between two days"),
        pytest.param("?slot_to_0=2025-06-01", [], id="until a day begins"),
        pytest.param("?slot_from_0=someday", ["Optical power"], id="a day that is none"),
        pytest.param("?part=all&q=no+answer", ["Names"], id="by the error"),
    ],
)
def test_executions_are_found(admin_page, execution, query, expected):
    assert rows(admin_page, EXECUTIONS + query) == expected


def test_executions_are_found_by_olt(admin_page, execution, sur):
    assert rows(admin_page, f"{EXECUTIONS}?olt__id__exact={execution.olt_id}") == ["Optical power"]
    assert rows(admin_page, f"{EXECUTIONS}?olt__id__exact={sur.pk}") == []


def test_a_master_has_its_chain_folded_under_it(admin_page, execution):
    page = admin_page.get(EXECUTIONS).content.decode()

    assert page.index("Optical power") < page.index("Names") < page.index("No answer in 5 s.")
    assert "Jun 1, 2025, 10:00:02" in page


def test_a_chain_is_listed_in_the_order_in_which_it_ran(admin_page, execution):
    third = make_job("Third link", follows=execution.node.job).nodes.get()
    make_execution(third, master_execution=execution)

    page = admin_page.get(EXECUTIONS).content.decode()

    assert page.index("Optical power") < page.index("Names") < page.index("Third link")


def test_the_page_of_a_master_shows_its_chain_and_that_of_a_link_its_attempts(admin_page, execution):
    link = execution.links.get()

    master_page = admin_page.get(reverse("admin:polling_execution_change", args=[execution.pk]))
    link_page = admin_page.get(reverse("admin:polling_execution_change", args=[link.pk]))

    chain, _ = master_page.context["inline_admin_formsets"]
    _, attempts = link_page.context["inline_admin_formsets"]
    assert [form.instance for form in chain.formset.forms] == [link]
    assert [form.instance.number for form in attempts.formset.forms] == [1, 2]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["client-7", "client-8"], id="by place"),
        pytest.param("?state__exact=los", ["client-8"], id="by state"),
        pytest.param("?rx_dbm_from=-25&rx_dbm_to=-15", ["client-7"], id="by power"),
        pytest.param("?port=2", ["client-8"], id="by port"),
        pytest.param("?q=HWTC00000007", ["client-7"], id="by serial"),
        pytest.param("?o=6", ["client-8", "client-7"], id="ordered by power"),
    ],
)
def test_onus_are_found(admin_page, central, query, expected):
    make_onu(central, 7, rx_dbm=-21.53)
    make_onu(central, 8, state="los", rx_dbm=-30.0, port=2)

    assert rows(admin_page, ONUS + query) == expected


def test_an_onu_shows_its_latest_readings(admin_page, onu):
    for number in range(30):
        add_reading(onu, timezone.now() - timedelta(minutes=number), rx_dbm=-20.0 - number / 100)

    shown = admin_page.get(reverse("admin:telemetry_onu_change", args=[onu.pk])).content.decode()

    assert re.findall(r"<td[^>]*>(-2\d\.\d+)</td>", shown) == [str(-20.0 - number / 100) for number in range(20)]


def test_the_times_of_an_onu_are_written_to_the_second(admin_page, onu):
    type(onu).objects.update(own_state_at=T0 + timedelta(microseconds=114456))

    page = admin_page.get(reverse("admin:telemetry_onu_change", args=[onu.pk])).content.decode()

    assert "Jun 1, 2025, 10:00:00" in page
    assert ".114456" not in page


def test_seconds_of_executions_have_two_decimals(admin_page, execution):
    started = execution.slot + timedelta(microseconds=26444)
    type(execution).objects.update(started_at=started, ended_at=started + timedelta(microseconds=43716))

    page = admin_page.get(EXECUTIONS).content.decode()

    assert "0.03" in page
    assert "0.04" in page
    assert "0.026444" not in page
    assert "0.043716" not in page


def test_an_onu_without_readings_of_the_last_day_reports_it(admin_page, onu):
    shown = admin_page.get(reverse("admin:telemetry_onu_change", args=[onu.pk])).content.decode()

    assert "No readings in the last day." in shown


def test_a_master_without_a_chain_reports_it(admin_page, sur):
    [node] = make_job("Alone").apply_to([sur])
    node.executions.create(olt=sur, node_name="Alone", slot=sur.created_at)

    assert rows(admin_page, EXECUTIONS) == ["Alone"]
    assert "No data" in admin_page.get(EXECUTIONS).content.decode()


def test_pollers_are_listed_with_their_worker_and_what_they_are_called_that_they_ask(admin_page, node):
    busy = {"status": "BUSY", "current_olt_id": node.olt_id, "current_node_id": node.pk, "link": 1, "links": 2}
    Poller.objects.create(poller_id=3, worker="worker-1/4711", host="noc-2", updated_at=T0, **busy)
    Poller.objects.create(poller_id=4, worker="worker-2/4712", host="noc-3", updated_at=T0)

    page = admin_page.get(POLLERS).content.decode()
    of_noc_2 = [poller.poller_id for poller in admin_page.get(f"{POLLERS}?q=noc-2").context["cl"].result_list]

    for shown in ("worker-1/4711", "noc-2", "OLT-CENTRAL-01", "Optical power", "1 / 2", "worker-2/4712", "noc-3"):
        assert shown in page
    assert of_noc_2 == [3]
