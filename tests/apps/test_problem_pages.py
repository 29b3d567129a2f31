"""Pages of problems: the list, one problem, forms, and the panels of the overview and an OLT."""

from datetime import timedelta

import pytest
from cast import make_job, make_onu
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from facho.apps.accounts.roles import Role, set_role
from facho.apps.dashboard.templatetags.problems import problem_url
from facho.apps.telemetry.models import Onu
from problem_rows import make_problem

HOUR = timedelta(hours=1)


@pytest.fixture
def ana(db):
    """A browser of Support."""
    user = User.objects.create(username="ana")
    set_role(user, Role.SUPPORT)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def viewer(reader):
    client = Client()
    client.force_login(reader)
    return client


@pytest.fixture
def cut(central):
    return make_problem(central, since=timezone.now() - HOUR)


def text(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_shows_the_worst_first(ana, central, sur, cut):
    make_problem(central, key="weak", kind="low_power", severity="minor", evidence={"weak": 4, "up": 30})
    make_problem(sur, key="down", kind="olt_down", affected=300, slot=None, port=None, evidence={"error": ""})

    answer = ana.get("/problems/")

    assert [each.key for each in answer.context["page"]] == ["down", cut.key, "weak"]
    shown = answer.content.decode()
    assert "28 of 28 ONUs down: 28 with loss of signal; within 6 s" in shown
    assert "Probable cause: fibre cut before the first splitter" in shown
    assert '<span class="nav-count">3</span>' in shown


def test_without_problems(ana):
    assert "No problems." in text(ana, "/problems/")
    assert "No past problems." in text(ana, "/problems/?tab=past")
    assert "No problem matches the filter." in text(ana, "/problems/?severity=minor")
    assert "nav-count" not in text(ana, "/problems/")


def test_a_silent_engine_is_named(ana):
    assert "The engine has not reported yet: this list may be out of date." in text(ana, "/problems/")


FOUND = [
    pytest.param("", ["new", "seen"], id="all but the snoozed"),
    pytest.param("handled=new", ["new"], id="not acknowledged"),
    pytest.param("handled=acknowledged", ["seen"], id="acknowledged"),
    pytest.param("handled=snoozed", ["later"], id="snoozed"),
    pytest.param("tab=past", ["past"], id="past"),
    pytest.param("q=central+0/1", ["new"], id="an OLT and a place"),
    pytest.param("q=SPLICER", ["seen"], id="a comment"),
    pytest.param("q=sur", [], id="another OLT"),
    pytest.param("kind=low_power", ["seen"], id="kind"),
]


@pytest.mark.parametrize(("query", "expected"), FOUND)
def test_filters(ana, boss, central, query, expected):
    make_problem(central, key="new")
    seen = make_problem(central, key="seen", kind="low_power", severity="minor", port=2)
    seen.acknowledge(by=boss, comment="Splicer sent.")
    make_problem(central, key="later", port=3).snooze(by=boss, until=timezone.now() + HOUR)
    make_problem(central, key="past", until=timezone.now(), port=4)

    assert [each.key for each in ana.get(f"/problems/?{query}").context["page"]] == expected


def test_an_invalid_filter_is_named(ana, cut):
    answer = ana.get("/problems/?severity=blue")

    assert "blue" in answer.content.decode()
    assert list(answer.context["page"]) == []


def test_a_problem_has_its_history_and_its_onus(ana, boss, central, cut):
    onu = make_onu(central, 7, state="los")
    cut.onus = [onu.pk]
    cut.save()
    cut.acknowledge(by=boss, comment="Splicer <sent>.")

    answer = ana.get(f"/problems/{cut.pk}/")

    assert answer.context["page"].object_list == [onu]
    assert "acknowledged: Splicer &lt;sent&gt;." in answer.content.decode()


def test_a_port_with_low_power_lists_its_weak_onus(ana, central):
    weak, _strong = make_onu(central, 1, rx_dbm=-29.0), make_onu(central, 2, rx_dbm=-20.0)
    problem = make_problem(central, kind="low_power", evidence={"weak": 1, "up": 2})

    assert ana.get(f"/problems/{problem.pk}/").context["page"].object_list == [weak]


def test_the_onus_of_a_problem_can_be_sorted(ana, central, cut):
    weakest, other = make_onu(central, 7, rx_dbm=-30.0), make_onu(central, 1, rx_dbm=-20.0)
    cut.onus = [weakest.pk, other.pk]
    cut.save()

    by_place, by_power = (ana.get(f"/problems/{cut.pk}/{query}") for query in ("", "?sort=rx_dbm"))

    assert by_place.context["page"].object_list == [other, weakest]
    assert by_power.context["page"].object_list == [weakest, other]
    assert 'href="?sort=rx_dbm"' in by_place.content.decode()


ACTIONS = [
    pytest.param({"action": "acknowledge", "comment": "On it."}, "Acknowledged.", id="acknowledge"),
    pytest.param({"action": "unacknowledge"}, "The acknowledgement was withdrawn.", id="withdraw"),
    pytest.param({"action": "assign", "user": "ana"}, "Assigned to ana.", id="assign"),
    pytest.param({"action": "take"}, "Assigned to you.", id="take over"),
    pytest.param({"action": "assign", "user": ""}, "No longer assigned.", id="unassign"),
    pytest.param({"action": "snooze", "hours": "4"}, "Snoozed.", id="snooze"),
    pytest.param({"action": "snooze", "hours": ""}, "No longer snoozed.", id="wake"),
    pytest.param({"action": "comment", "comment": "Km 3."}, "The comment was added.", id="comment"),
    pytest.param({"action": "comment"}, "Choose an action, or write a comment.", id="nothing"),
    pytest.param({"action": "assign", "user": "reader"}, "This user may not act on this problem.", id="a viewer"),
]


@pytest.mark.parametrize(("form", "said"), ACTIONS)
def test_forms(ana, reader, cut, form, said):
    answer = ana.post(f"/problems/{cut.pk}/act/", form | {"back": "/problems/?q=central"}, follow=True)

    assert answer.redirect_chain == [("/problems/?q=central", 302)]
    assert said in answer.content.decode()


def test_a_second_acknowledgement_names_the_first(ana, boss, cut):
    cut.acknowledge(by=boss)

    answer = ana.post(f"/problems/{cut.pk}/act/", {"action": "acknowledge", "comment": "Ticket 4711."}, follow=True)

    assert "Already acknowledged by boss. Your comment was added." in answer.content.decode()
    assert cut.entries.last().text == "Ticket 4711."


@pytest.mark.parametrize("action", ["take", "unacknowledge"])
def test_a_comment_is_kept_with_any_action(ana, cut, action):
    ana.post(f"/problems/{cut.pk}/act/", {"action": action, "comment": "Ticket 4711."})

    assert cut.entries.filter(kind="commented", text="Ticket 4711.", user_name="ana").exists()


@pytest.mark.parametrize("path", ["/problems/", "/", "/?tv"])
def test_lists_show_the_last_comment(ana, boss, cut, path):
    cut.acknowledge(by=boss, comment="Splicer <sent>.")
    cut.assign(by=boss, to=None)

    assert "“Splicer &lt;sent&gt;.” boss" in text(ana, path)


def test_a_form_does_not_lead_elsewhere(ana, cut):
    answer = ana.post(f"/problems/{cut.pk}/act/", {"action": "acknowledge", "back": "https://evil.example/"})

    assert answer["Location"] == f"/problems/{cut.pk}/"


def test_viewers_see_no_forms(viewer, cut):
    assert "act/" not in text(viewer, "/problems/")
    assert "act/" not in text(viewer, f"/problems/{cut.pk}/")
    assert viewer.post(f"/problems/{cut.pk}/act/", {"action": "acknowledge"}).status_code == 403


def test_a_violated_quota_leads_to_its_job(ana, central):
    (node,) = make_job("Optical power").apply_to([central])
    problem = make_problem(central, kind="quota_violated", evidence={"task": "Optical power", "completed": 1})
    other = make_problem(central, key="other", kind="low_power", evidence={"weak": 1, "up": 2})

    assert f'href="/nodes/{node.pk}/"' in ana.get(f"/problems/{problem.pk}/").content.decode()
    assert "/nodes/" not in ana.get(f"/problems/{other.pk}/").content.decode()


@pytest.mark.parametrize(("number", "said"), [(6, None), (7, "All 7 open problems")])
def test_the_overview_names_the_number_of_problems_if_it_does_not_show_all(ana, central, number, said):
    for port in range(number):
        make_problem(central, key=f"port/{port}", port=port)

    overview = text(ana, "/")

    assert ("open problems" in overview) == (said is not None)
    assert said is None or said in overview


def test_the_overview_and_the_olt_show_problems_first(ana, central, sur, cut):
    overview, own, other = (text(ana, path) for path in ("/", f"/olts/{central.pk}/", f"/olts/{sur.pk}/"))

    assert overview.index("title-problems") < overview.index("OLTs reachable")
    assert f"/problems/{cut.pk}/" in overview
    assert f"/problems/{cut.pk}/" in own
    assert "No problems." in other


def test_links_lead_to_the_place(central, cut):
    onu = Onu.objects.get(pk=make_onu(central, 7).pk)

    assert problem_url(cut) == f"/olts/{central.pk}/ports/0/1/"
    assert problem_url(make_problem(central, key="1", slot=0, port=None)) == f"/olts/{central.pk}/"
    assert problem_url(make_problem(central, key="2", onu=onu)) == f"/onus/{onu.pk}/"
    assert problem_url(make_problem(central, key="3", evidence={"node": 9})) == "/nodes/9/"
    assert problem_url(make_problem(None, key="4", slot=None, port=None)) == ""
