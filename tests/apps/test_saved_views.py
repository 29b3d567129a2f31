"""Saved views: own or shared, in the menu of the list and in the API."""

import pytest
from cast import make_onu
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role, set_role
from facho.apps.changes.models import Change
from facho.apps.dashboard.models import SavedView
from facho.apps.inventory.models import Scope, Site

API = "/api/v1/views/"


@pytest.fixture
def operator(db):
    user = User.objects.create(username="operator")
    set_role(user, Role.OPERATOR)
    return user


def browser(user):
    client = Client()
    client.force_login(user)
    return client


def program(user):
    client = APIClient()
    client.force_authenticate(User.objects.get(pk=user.pk))
    return client


def make_view(owner, name="Weak", query="state=weak&sort=rx_dbm", **more):
    return SavedView.objects.create(owner=owner, list="onus", name=name, query=query, **more)


def test_a_view_is_saved_from_the_page_and_opened_again(reader, central):
    page = browser(reader)
    make_onu(central, 1, rx_dbm=-29.0)
    make_onu(central, 2)

    saved = page.post("/views/", {"list": "onus", "name": "Weak", "query": "state=weak&columns=rx_dbm&page=3&q="})
    shown = page.get(saved["Location"])

    view = SavedView.objects.get()
    assert (view.owner, view.name, view.query) == (reader, "Weak", "state=weak&columns=rx_dbm")
    assert saved["Location"] == f"/onus/?state=weak&columns=rx_dbm&view={view.pk}"
    assert [onu.onu for onu in shown.context["page"].object_list] == [1]
    assert shown.context["wanted"].current == view
    assert "was saved" in shown.content.decode()


def test_the_page_begins_with_the_default_view_and_leaves_it_on_request(reader, central):
    make_onu(central, 1, rx_dbm=-29.0)
    make_onu(central, 2)
    view, page = make_view(reader), browser(reader)
    view.set_default(reader, True)

    def shown(path):
        return [onu.onu for onu in page.get(path).context["page"].object_list]

    assert shown("/onus/") == [1]
    assert shown("/onus/?view=none") == [1, 2]
    # Its link keeps the list from turning into the default again.
    [chip] = page.get("/onus/").context["wanted"].chips
    assert chip.href == f"?sort=rx_dbm&view={view.pk}"


def test_one_view_of_a_list_is_the_default(reader):
    first, second = make_view(reader, "First"), make_view(reader, "Second")

    for view in (first, second):
        view.set_default(reader, True)

    assert [view.name for view in SavedView.seen_by(reader) if view.is_default] == ["Second"]


def test_a_changed_list_can_be_saved(reader):
    view, page = make_view(reader), browser(reader)

    changed = page.get(f"/onus/?state=los&view={view.pk}").context["wanted"]
    page.post(f"/views/{view.pk}/", {"action": "save", "name": "Lost", "query": changed.kept, "is_default": "on"})

    assert changed.is_changed
    saved = SavedView.seen_by(reader).get()
    assert (saved.name, saved.query, saved.is_default) == ("Lost", "state=los", True)


def test_others_see_a_shared_view_and_cannot_change_it(operator, reader):
    own, shared = make_view(operator, "Own"), make_view(operator, "Shared", is_shared=True)
    page, api = browser(reader), program(reader)

    assert [view.name for view, _href in page.get("/onus/").context["views"]] == ["Shared"]
    assert page.post(f"/views/{own.pk}/", {"action": "delete"}).status_code == 404
    page.post(f"/views/{shared.pk}/", {"action": "delete"})
    assert api.get(f"{API}{own.pk}/").status_code == 404
    assert api.delete(f"{API}{shared.pk}/").status_code == 403
    assert api.patch(f"{API}{shared.pk}/", {"name": "Mine"}).status_code == 403
    assert api.patch(f"{API}{shared.pk}/", {"is_default": True}).json()["is_default"] is True
    assert SavedView.objects.count() == 2


def test_sharing_needs_its_permission(reader, operator):
    refused = program(reader).post(API, {"list": "onus", "name": "Weak", "is_shared": True})
    browser(reader).post("/views/", {"list": "onus", "name": "Weak", "is_shared": "on"})
    created = program(operator).post(API, {"list": "onus", "name": "Weak", "is_shared": True})

    assert refused.status_code == 403
    assert "which the role Operator has" in refused.json()["detail"]
    assert created.status_code == 201, created.json()
    assert SavedView.objects.get().owner == operator


def test_the_api_creates_renames_and_deletes(reader):
    api = program(reader)

    created = api.post(API, {"list": "olts", "name": "Lima", "query": "?site=Lima&page=2", "is_default": True}).json()
    renamed = api.patch(f"{API}{created['id']}/", {"name": "Callao", "is_default": False}).json()

    assert created == {
        "id": created["id"], "list": "olts", "name": "Lima", "query": "site=Lima", "owner": "reader",
        "is_shared": False, "is_default": True,
    }  # fmt: skip
    assert (renamed["name"], renamed["is_default"]) == ("Callao", False)
    assert api.get(f"{API}?list=onus").json()["count"] == 0
    assert api.delete(f"{API}{created['id']}/").status_code == 204


@pytest.mark.parametrize(
    ("body", "name", "said"),
    [
        pytest.param({"list": "jobs"}, "list", "is not a valid choice", id="no such list"),
        pytest.param({"query": "colour=red"}, "query", "Unknown parameter “colour”.", id="no such filter"),
        pytest.param({"name": ""}, "name", "may not be blank", id="no name"),
        pytest.param(
            {"name": "weak"}, "non_field_errors", "You already have a view with this name.", id="the same name"
        ),
        pytest.param({"colour": "red"}, "colour", "Unknown field.", id="no such field"),
    ],
)
def test_nonsense_is_refused(reader, body, name, said):
    make_view(reader)

    answer = program(reader).post(API, {"list": "onus", "name": "New"} | body)

    assert answer.status_code == 400
    assert said in answer.json()[name][0]


def test_the_same_name_is_refused_on_the_page(reader):
    make_view(reader)

    answer = browser(reader).post("/views/", {"list": "onus", "name": "WEAK"}, follow=True)

    assert "You already have a view with this name." in answer.content.decode()
    assert SavedView.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "query"),
    [
        pytest.param("Weak", "site=Hidden", id="site"),
        pytest.param("Weak", "site=Lima&tag=secret", id="tag"),
        pytest.param("Weak", "q=Hidden+customer", id="search"),
        pytest.param("Weak", "serial=HWTC", id="serial"),
        pytest.param("Weak at hidden", "state=los", id="name of a site"),
        pytest.param("OLT-CENTRAL-01 weak", "state=los", id="name of an OLT"),
    ],
)
def test_a_user_with_a_scope_sees_no_view_that_names_others(operator, reader, central, name, query):
    site = Site.objects.create(name="Lima")
    Site.objects.create(name="Hidden")
    Scope.objects.create(user=reader).sites.set([site])
    make_view(operator, "At Lima", "site=Lima&state=los", is_shared=True)
    hidden = make_view(operator, name, query, is_shared=True)
    scoped = User.objects.get(pk=reader.pk)
    own = make_view(scoped, "Mine", query)

    assert [view.name for view in SavedView.seen_by(scoped)] == ["At Lima", "Mine"]
    assert name not in browser(scoped).get("/onus/").content.decode()
    assert program(scoped).get(f"{API}{hidden.pk}/").status_code == 404
    assert program(scoped).get(f"{API}{own.pk}/").status_code == 200


def test_views_are_in_the_record(operator):
    page = browser(operator)
    page.post("/views/", {"list": "onus", "name": "Own", "query": "state=los"})
    own = SavedView.objects.get()

    page.post(f"/views/{own.pk}/", {"action": "save", "name": "Own", "query": "state=los", "is_shared": "on"})
    page.post(f"/views/{own.pk}/", {"action": "default", "is_default": "on"})
    page.post(f"/views/{own.pk}/", {"action": "delete"})

    recorded = Change.objects.filter(object_type="dashboard.savedview", object_name="Own", actor="operator")
    created, shared, default, deleted = recorded.order_by("id").values_list("action", "fields")
    assert (created[0], created[1]["query"]) == ("created", [None, "state=los"])
    assert shared == ("changed", {"is_shared": [False, True]})
    assert default == ("changed", {"is_default": [False, True]})
    assert deleted[0] == "deleted"
