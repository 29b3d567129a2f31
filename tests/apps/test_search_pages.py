"""The search box, its suggestions, and the page of the results."""

import html

import pytest
from cast import make_onu
from django.test import Client

from facho.apps.telemetry.models import PonPort


@pytest.fixture
def page(reader):
    client = Client()
    client.force_login(reader)
    return client


@pytest.fixture
def maria(central):
    PonPort.objects.create(olt=central, slot=1, port=9)
    return make_onu(central, 7, slot=1, port=9, name="María <b>", serial="HWTC1234ABCD")


def content(answer):
    return html.unescape(answer.content.decode())


@pytest.mark.parametrize("text", ["hwtc-1234abcd", "1/9/7", "OLT-CENTRAL-01 1/9/7", "maria"])
def test_enter_opens_the_onu_that_is_meant(page, maria, text):
    assert page.get("/search/", {"go": 1, "q": text}).url == f"/onus/{maria.pk}/"


def test_enter_opens_the_port_that_is_meant(page, maria, central):
    assert page.get("/search/", {"go": 1, "q": "1/9"}).url == f"/olts/{central.pk}/ports/1/9/"


def test_enter_opens_the_olt_that_is_meant(page, maria, central):
    assert page.get("/search/", {"go": 1, "q": "olt-central-01"}).url == f"/olts/{central.pk}/"


@pytest.mark.parametrize("text", ["nobody", "a&b=c"])
def test_enter_opens_the_results_of_any_other_search(page, maria, text):
    answer = page.get("/search/", {"go": 1, "q": text}, follow=True)

    [(address, _status)] = answer.redirect_chain
    assert address.startswith("/search/?q=")
    assert answer.context["searched"] == text


def test_a_fetch_of_the_results_is_never_redirected(page, maria):
    """The script of the page would take a redirect for one to the login."""
    assert page.get("/search/?q=HWTC1234ABCD").status_code == 200


def test_the_results_are_grouped_and_link_to_the_lists(page, maria, central):
    for number in range(10, 40):
        make_onu(central, number, slot=1, port=9, name=f"María {number}", serial=f"S{number}")

    shown = page.get("/search/?q=1/9")

    assert f'href="/onus/{maria.pk}/"' in content(shown)
    assert f'href="/olts/{central.pk}/ports/1/9/"' in content(shown)
    assert 'href="/onus/?q=1/9"' in content(shown)
    assert "6 more ONUs" in content(shown)
    assert "<b>" not in shown.content.decode()


@pytest.mark.parametrize("query", ["", "?q=nobody"])
def test_an_empty_page_tells_what_can_be_searched(page, maria, query):
    assert "What can be searched" in content(page.get(f"/search/{query}"))


@pytest.mark.parametrize("path", ["/search/", "/search/suggestions/"])
def test_a_search_beyond_the_limits_is_explained(page, db, path):
    assert "at most 10 words" in content(page.get(path, {"q": "a " * 11}))


def test_suggestions_are_options_of_a_listbox(page, maria, central):
    shown = content(page.get("/search/suggestions/?q=central+1/9"))

    assert shown.count('role="option"') == 2
    assert 'data-status="2 results"' in shown
    assert "Show all results" not in shown
    assert "<html" not in shown


def test_suggestions_of_nothing_have_no_listbox(page, maria):
    shown = content(page.get("/search/suggestions/?q=nobody"))

    assert "Nothing was found." in shown
    assert "listbox" not in shown


def test_the_box_is_on_every_page_and_has_the_text_of_the_search_only(page, maria):
    assert 'role="combobox"' in content(page.get("/olts/?q=central"))
    assert 'name="q" value="" placeholder="Search"' in content(page.get("/olts/?q=central"))
    assert 'name="q" value="maria" placeholder="Search"' in content(page.get("/search/?q=maria"))


def test_the_list_of_onus_has_the_rules_of_the_search(page, maria):
    assert "María" in content(page.get("/onus/?q=hwtc-1234abcd+central"))
    assert "No ONU matches" in content(page.get("/onus/?q=hwtc-1234abcd+norte"))
