"""Actions on many OLTs: on the page with a confirmation, and in the API with a result for each."""

import re

import pytest
from cast import make_job, make_olt
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role, set_role
from facho.apps.changes.models import Change
from facho.apps.inventory import bulk
from facho.apps.inventory.models import Olt, Scope, Site, Tag

API = "/api/v1/olts/bulk/"


def make_user(role):
    user = User.objects.create(username=f"user {role}")
    set_role(user, role)
    return user


def results(answer):
    assert answer.status_code == 200, answer.json()
    return {each["name"]: each["result"] for each in answer.json()["results"]}


def test_olts_are_disabled_and_the_result_is_told_for_each(api, central, norte):
    norte.disable()

    answer = api.post(API, {"action": "disable", "ids": [central.pk, norte.pk, 9999]}, format="json")

    assert results(answer) == {"OLT-CENTRAL-01": "done", "OLT-NORTE-02": "unchanged", "": "refused"}
    assert answer.json()["detail"] == "1 OLT disabled, 1 already was, 1 was refused."
    assert not Olt.objects.filter(enabled=True).exists()


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        pytest.param({}, {"OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03"}, id="all"),
        pytest.param({"state": "slow"}, {"OLT-NORTE-02"}, id="by state"),
        pytest.param({"site": "lima", "brand": "huawei"}, {"OLT-CENTRAL-01"}, id="by two"),
        pytest.param({"site": "nowhere"}, set(), id="none"),
    ],
)
def test_a_filter_chooses_olts_as_the_list_does(api, central, norte, sur, chosen, names):
    central.site = Site.objects.create(name="Lima")
    central.save()

    assert results(api.post(API, {"action": "disable", "filter": chosen}, format="json")).keys() == names


def test_tags_and_sites_are_set(api, central, norte):
    Tag.objects.create(name="core")
    Site.objects.create(name="Lima")
    ids = [central.pk, norte.pk]
    central.tags.add(Tag.objects.get())

    added = api.post(API, {"action": "add_tag", "tag": "Core", "ids": ids}, format="json")
    moved = api.post(API, {"action": "set_site", "site": "lima", "ids": ids}, format="json")
    removed = api.post(API, {"action": "remove_tag", "tag": "core", "ids": [norte.pk]}, format="json")
    away = api.post(API, {"action": "set_site", "site": None, "ids": [norte.pk]}, format="json")

    assert added.json()["detail"] == "1 OLT tagged, 1 already was."
    assert moved.json()["detail"] == "Site of 2 OLTs set."
    assert [set(results(each).values()) for each in (removed, away)] == [{"done"}, {"done"}]
    assert [(olt.site and olt.site.name, olt.tags.count()) for olt in Olt.objects.all()] == [("Lima", 1), (None, 0)]


def test_discoveries_are_requested(api, central, norte, sur):
    job = make_job("Discovery", kind="discovery")
    job.apply_to([central, sur])
    sur.disable()

    answer = api.post(API, {"action": "discover", "filter": {}}, format="json")

    assert results(answer) == {"OLT-CENTRAL-01": "done", "OLT-NORTE-02": "refused", "OLT-SUR-03": "refused"}
    details = {each["name"]: each["detail"] for each in answer.json()["results"]}
    assert details["OLT-NORTE-02"] == "OLT-NORTE-02 has no discovery job."
    assert details["OLT-SUR-03"] == "OLT-SUR-03 is disabled. Enable it first."
    assert central.nodes.get().run_requested_at is not None


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"ids": [1]}, "action"),
        ({"action": "explode", "ids": [1]}, "action"),
        ({"action": "enable"}, "ids"),
        ({"action": "enable", "ids": [1], "filter": {}}, "ids"),
        ({"action": "enable", "ids": [1], "tag": "core"}, "tag"),
        ({"action": "add_tag", "ids": [1]}, "tag"),
        ({"action": "add_tag", "ids": [1], "tag": "unknown"}, "tag"),
        ({"action": "enable", "filter": {"colour": "red"}}, "filter"),
        ({"action": "enable", "filter": {"state": "red"}}, "filter"),
        ({"action": "enable", "ids": list(range(1001))}, "ids"),
    ],
)
def test_nonsense_is_refused(api, central, body, name):
    answer = api.post(API, body, format="json")

    assert (answer.status_code, list(answer.json())) == (400, [name])


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (Role.SUPPORT, set()),
        (Role.OPERATOR, {"enable", "disable", "discover"}),
        (Role.ENGINEER, {"enable", "disable", "discover", "add_tag", "set_site"}),
    ],
)
def test_each_action_needs_its_permission(central, role, allowed):
    Tag.objects.create(name="core")
    client = APIClient()
    client.force_authenticate(make_user(role))
    bodies = {"enable": {}, "disable": {}, "discover": {}, "add_tag": {"tag": "core"}, "set_site": {"site": None}}

    statuses = {
        action: client.post(API, {"action": action, "ids": [central.pk], **more}, format="json").status_code
        for action, more in bodies.items()
    }

    assert {action for action, status in statuses.items() if status == 200} == allowed
    assert set(statuses.values()) <= {200, 403}


def test_a_scope_limits_the_olts_and_keeps_them_inside(central, norte):
    user = make_user(Role.ENGINEER)
    central.site = Site.objects.create(name="Lima")
    central.save()
    Site.objects.create(name="Cusco")
    Scope.objects.create(user=user).sites.set([central.site])
    client = APIClient()
    client.force_authenticate(User.objects.get(pk=user.pk))

    disabled = client.post(API, {"action": "disable", "ids": [central.pk, norte.pk]}, format="json")
    left = client.post(API, {"action": "set_site", "site": None, "ids": [central.pk]}, format="json")
    moved = client.post(API, {"action": "set_site", "site": "Cusco", "ids": [central.pk]}, format="json")

    assert results(disabled) == {"OLT-CENTRAL-01": "done", "": "refused"}
    assert "Give the OLT a site or tag of your scope." in left.json()["results"][0]["detail"]
    assert moved.status_code == 400
    assert Olt.objects.get(pk=norte.pk).enabled


def test_the_page_asks_before_it_acts(admin_page, central, norte, sur):
    sur.disable()
    form = {"id": [central.pk, sur.pk], "action": "disable", "back": "?sort=name"}

    asked = admin_page.post("/olts/bulk/", form)
    enabled = Olt.objects.get(pk=central.pk).enabled
    done = admin_page.post("/olts/bulk/", {**form, "id": asked.context["ids"], "confirmed": "1"}, follow=True)

    assert "2 OLTs will be disabled" in asked.content.decode()
    assert enabled
    assert done.redirect_chain[0][0] == "/olts/?sort=name"
    assert "1 OLT disabled, 1 already was." in done.content.decode()
    assert [olt.enabled for olt in Olt.objects.order_by("name")] == [False, True, False]
    change = Change.objects.get(object_id=central.pk, action="changed")
    assert (change.fields, change.actor) == ({"enabled": [True, False]}, "boss")


def test_all_that_match_are_chosen_at_once(admin_page, central, norte, sur):
    listed = admin_page.get("/olts/?state=slow&state=").context

    asked = admin_page.post("/olts/bulk/", {"all": "on", "all_ids": listed["all_ids"], "action": "enable"})

    assert [olt.name for olt in asked.context["olts"]] == ["OLT-NORTE-02"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        pytest.param({"action": "disable"}, "Tick OLTs and choose an action.", id="no ticks"),
        pytest.param({"all": "1"}, "Tick OLTs and choose an action.", id="no action"),
        pytest.param({"all": "1", "action": "add_tag"}, "Choose a tag.", id="no tag"),
        pytest.param({"all": "1", "action": "add_tag", "tag": "x"}, "“x” does not exist", id="an unknown tag"),
    ],
)
def test_an_incomplete_form_is_refused(admin_page, central, form, said):
    answer = admin_page.post("/olts/bulk/", {**form, "all_ids": str(central.pk)}, follow=True)

    assert said in answer.content.decode()


def test_too_many_olts_are_refused_instead_of_some(admin_page, central, norte, monkeypatch):
    monkeypatch.setattr(bulk, "MOST_OLTS", 1)

    form = {"all": "1", "action": "disable", "all_ids": f"{central.pk},{norte.pk}"}
    answer = admin_page.post("/olts/bulk/", form, follow=True)

    assert "At most 1 OLTs at once. Filter the list." in answer.content.decode()


def test_the_page_offers_what_the_user_may_do(central):
    shown = {}
    for role in (Role.VIEWER, Role.OPERATOR, Role.ENGINEER):
        client = Client()
        client.force_login(make_user(role))
        shown[role] = [value for value, _label in client.get("/olts/").context["actions"]]
        assert client.post("/olts/bulk/", {"action": "set_site", "id": central.pk}).status_code == (
            200 if role == Role.ENGINEER else 403
        )

    assert shown == {
        Role.VIEWER: [],
        Role.OPERATOR: ["enable", "disable", "discover", "change_job"],
        Role.ENGINEER: ["enable", "disable", "discover", "add_tag", "remove_tag", "set_site", "change_job"],
    }


def test_olts_are_many(api, db):
    for number in range(12):
        make_olt(f"OLT-{number:02}", host=f"127.0.2.{number}")

    answer = api.post(API, {"action": "disable", "filter": {}}, format="json")

    assert answer.json()["detail"] == "12 OLTs disabled."


def test_a_preview_is_not_fetched_again_and_a_language_leads_back_to_the_list(admin_page, central):
    # The address of the preview takes no GET.
    shown = admin_page.post("/olts/bulk/", {"action": "disable", "id": central.pk, "back": "?q=OLT"}).content.decode()

    assert re.search(r"<body[^>]* data-posted", shown)
    assert re.search(r'name="next" value="/olts/\?q=OLT"', shown)
    assert "data-posted" not in admin_page.get("/olts/").content.decode()
