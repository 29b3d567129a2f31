"""The record on its page, on the pages of objects and in the API."""

import csv
import io
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from facho.apps.changes.actor import Actor, Interface, engine
from facho.apps.changes.csv import COLUMNS, cell
from facho.apps.changes.models import Change
from facho.apps.changes.record import write
from facho.apps.inventory.models import Scope, Tag

API = "/api/v1/changes/"
PAGE = "/changes/"
ANA = Actor(Interface.API, name="ana", address="192.0.2.7", token="Grafana (facho_ab12…)", request_id="req-1")


@pytest.fixture
def changes(central, node):
    """Two changes of ana and one of the engine, oldest first."""
    fields = {"enabled": [True, False], "version": ["2c", "3"], "community": "changed", "location": ["", "=1+1"]}
    write(ANA, Change.Action.CHANGED, [(central, fields)])
    write(ANA, Change.Action.RUN_REQUESTED, [(node, {})])
    write(engine(), Change.Action.BREAKER_CLOSED, [(central, {})])
    return list(Change.objects.order_by("id"))


def person(*permissions, **more):
    user = User.objects.create(username="noc", **more)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def listed(api, query):
    return [row["id"] for row in api.get(f"{API}?{query}").json()["results"]]


def test_the_api_lists_the_newest_change_first_with_its_fields(api, changes, central):
    rows = api.get(API).json()["results"]

    assert [row["id"] for row in rows] == [change.pk for change in reversed(changes)]
    first = rows[-1]
    assert (first["actor"], first["token"], first["address"]) == ("ana", "Grafana (facho_ab12…)", "192.0.2.7")
    assert (first["interface"], first["action"], first["olt"]) == ("api", "changed", central.pk)
    assert first["changes"] == [
        {"field": "enabled", "before": True, "after": False},
        {"field": "version", "before": "2c", "after": "3"},
        {"field": "community", "before": None, "after": "changed"},
        {"field": "location", "before": "", "after": "=1+1"},
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("by=people", [1, 0]),
        ("by=engine", [2]),
        ("actor=ana", [1, 0]),
        ("actor=nobody", []),
        ("interface=engine&interface=api", [2, 1, 0]),
        ("action=run_requested", [1]),
        ("object_type=jobs.workflownode", [1]),
        ("object_name=central", [2, 1, 0]),
        ("address=192.0.2.7", [1, 0]),
        ("token=facho_ab12", [1, 0]),
        ("field=enabled", [0]),
        ("request_id=req-1", [1, 0]),
        ("after=2000-01-01T00:00:00Z", [2, 1, 0]),
        ("before=2000-01-01T00:00:00Z", []),
        ("search=ana", [1, 0]),
        ("ordering=id", [0, 1, 2]),
    ],
)
def test_the_api_filters(api, changes, query, expected):
    assert listed(api, query) == [changes[number].pk for number in expected]


def test_the_api_filters_by_object_and_by_olt(api, changes, central, node):
    assert listed(api, f"object_type=inventory.olt&object={central.pk}") == [changes[2].pk, changes[0].pk]
    assert listed(api, f"olt={central.pk}") == [change.pk for change in reversed(changes)]


def test_a_refused_csv_is_answered_in_json(api, db):
    answer = api.get(f"{API}?format=csv&object=x")

    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")
    assert answer.json() == {"object": ["Enter a number."]}


def test_an_unknown_format_is_refused(api, db):
    answer = api.get(f"{API}?format=xml")

    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nobody_can_write_to_the_record(api, changes, method):
    for url in (API, f"{API}{changes[0].pk}/"):
        assert getattr(api, method)(url).status_code == 405


def test_reading_the_whole_record_needs_a_permission(changes, central):
    client = person("view_olt")

    refused = client.get(API)
    assert refused.status_code == 403
    assert "changes.view_change" in refused.json()["detail"]
    assert client.get(PAGE).status_code == 403
    assert client.get(f"{PAGE}?object_type=auth.user&object=1").status_code == 403


def test_the_changes_of_an_object_need_only_the_permission_to_see_it(changes, central):
    page = person("view_olt").get(f"{PAGE}?object_type=inventory.olt&object={central.pk}")

    assert page.status_code == 200
    assert "ana" in page.content.decode()
    # Addresses and tokens of others are for those who may read all.
    assert "192.0.2.7" not in page.content.decode()
    assert "facho_ab12" not in page.content.decode()


@pytest.mark.parametrize("query", ["address=198.51.100.1", "token=nothing"])
def test_hidden_columns_cannot_be_found_out_by_filters(changes, central, query):
    page = person("view_olt").get(f"{PAGE}?object_type=inventory.olt&object={central.pk}&{query}")

    assert [each.change.pk for each in page.context["changes"]] == [changes[2].pk, changes[0].pk]
    assert 'name="address"' not in page.content.decode()


def test_the_names_of_all_users_are_for_those_who_see_all_changes(changes, central, norte):
    User.objects.create(username="other-user")
    of_olt, everything = f"{PAGE}?object_type=inventory.olt&object={norte.pk}", PAGE

    assert "other-user" not in person("view_olt").get(of_olt).content.decode()
    reader = User.objects.get(username="noc")
    reader.user_permissions.add(Permission.objects.get(codename="view_change"))
    client = Client()
    client.force_login(reader)
    assert "other-user" in client.get(everything).content.decode()
    Scope.objects.create(user=reader)
    assert "other-user" not in client.get(everything).content.decode()


async def csv_rows(user, query):
    client = AsyncClient()
    await client.aforce_login(user)
    answer = await client.get(f"{API}?format=csv&{query}")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join([part async for part in answer.streaming_content]).decode()
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.django_db(transaction=True)
async def test_the_csv_has_a_line_for_each_field_of_the_filtered_list(monkeypatch):
    user = await User.objects.acreate(username="boss", is_superuser=True)
    monkeypatch.setattr("facho.apps.changes.csv.BATCH", 1)
    fields = {"name": ["@x", "=1+1"], "community": "changed", "port": [161, -1]}
    for action, values in ((Change.Action.CHANGED, fields), (Change.Action.LOGIN, {})):
        await Change.objects.acreate(actor="ana", interface="api", action=action, fields=values)
    await Change.objects.acreate(actor="Facho", interface="engine", action="breaker_closed")

    rows = await csv_rows(user, "by=people")

    assert list(rows[0]) == COLUMNS
    assert [(row["action"], row["field"], row["before"], row["after"]) for row in rows] == [
        ("login", "", "", ""),
        ("changed", "name", "'@x", "'=1+1"),
        ("changed", "community", "", "changed"),
        ("changed", "port", "161", "-1"),
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+49", "'+49"),
        ("-x", "'-x"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("Lima", "Lima"),
        (-3, -3),
        (None, None),
        (True, "true"),
        (["a", "b"], '["a", "b"]'),
    ],
    ids=repr,
)
def test_a_cell_is_never_a_formula(value, expected):
    assert cell(value) == expected


def test_the_page_shows_values_in_words(admin_page, changes):
    page = admin_page.get(PAGE).content.decode()

    assert "enabled:</span> yes → no" in " ".join(page.split())
    assert "v2c → v3" in " ".join(page.split())
    assert "192.0.2.7" in page
    assert "breaker closed" in page


def test_the_page_in_spanish(admin_page, changes):
    page = admin_page.get(PAGE, headers={"accept-language": "es"}).content.decode()

    assert "sí → no" in " ".join(page.split())
    assert "cortacircuitos cerrado" in page


def test_the_page_says_what_is_wrong_with_a_filter(admin_page, changes):
    assert "Enter a number." in admin_page.get(f"{PAGE}?object=x").content.decode()


def test_the_page_without_changes_has_a_message(admin_page):
    assert "No change was recorded." in admin_page.get(f"{PAGE}?actor=nobody").content.decode()


def test_the_days_of_the_page_are_whole_days(admin_page, changes):
    today = timezone.localdate()
    for query, is_shown in (
        (f"day_from={today}&day_to={today}", True),
        (f"day_to={today - timedelta(days=1)}", False),
        (f"day_from={today + timedelta(days=1)}", False),
    ):
        assert ("ana" in admin_page.get(f"{PAGE}?{query}").context["changes"].__repr__()) is is_shown


def test_older_changes_are_one_click_away(admin_page, changes, monkeypatch):
    monkeypatch.setattr("facho.apps.dashboard.changes.CHANGES_PER_PAGE", 2)
    first = admin_page.get(PAGE)
    second = admin_page.get(f"{PAGE}?older_than={first.context['older']}")

    shown = [[each.change.pk for each in page.context["changes"]] for page in (first, second)]
    assert shown == [[changes[2].pk, changes[1].pk], [changes[0].pk]]
    assert second.context["older"] is None


def test_the_link_to_the_csv_has_the_filters_of_the_page(admin_page, changes):
    page = admin_page.get(f"{PAGE}?actor=ana&action=&day_from=2026-01-02")

    assert page.context["csv"] == f"{API}?actor=ana&after=2026-01-02T00%3A00%3A00%2B00%3A00&format=csv"


def test_the_page_of_an_olt_and_of_a_node_show_their_changes(admin_page, changes, central, node):
    olt = admin_page.get(reverse("dashboard:olt", args=[central.pk]))
    page = admin_page.get(reverse("dashboard:node", args=[node.pk]))

    assert [each.change.pk for each in olt.context["changes"]] == [change.pk for change in reversed(changes)]
    assert [each.change.pk for each in page.context["changes"]] == [changes[1].pk]


def test_the_history_of_the_admin_is_the_record(admin_page, central):
    answer = admin_page.get(reverse("admin:jobs_workflow_history", args=[central.pk]))

    assert answer.url == f"{PAGE}?object_type=inventory.olt&object={central.pk}"


def test_a_user_with_a_scope_sees_only_changes_of_visible_olts(changes, central, norte, node):
    client = person("view_change", "view_olt")
    scope = Scope.objects.create(user=User.objects.get(username="noc"))
    scope.tags.add(Tag.objects.create(name="north"))
    norte.tags.add(Tag.objects.get())
    write(ANA, Change.Action.CHANGED, [(norte, {"enabled": [True, False]}), (scope.user, {"is_staff": [False, True]})])
    seen = Change.objects.get(object_type="inventory.olt", object_id=norte.pk).pk

    assert [row["id"] for row in client.get(API).json()["results"]] == [seen]
    assert client.get(f"{API}{changes[0].pk}/").status_code == 404
    assert [each.change.pk for each in client.get(PAGE).context["changes"]] == [seen]
    hidden = client.get(f"{PAGE}?object_type=inventory.olt&object={central.pk}").content.decode()
    assert central.name not in hidden


def test_the_cost_of_the_page_does_not_grow_with_the_list(admin_page, changes, central, django_assert_max_num_queries):
    write(ANA, Change.Action.CHANGED, [(central, {"enabled": [True, False]})] * 40)
    with django_assert_max_num_queries(12):
        admin_page.get(PAGE)
