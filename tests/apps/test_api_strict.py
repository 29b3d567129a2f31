"""Unknown query parameters, unknown fields and other values for read-only fields are refused, on every endpoint."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from django.urls import URLPattern, get_resolver
from django_filters import BooleanFilter

from facho.alerts.models import Channel, Rule
from facho.apps.coordinator.models import Forecast
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJobOid, WorkflowNode
from facho.apps.rest.strict import StrictSerializer, StrictView

# Parts of other libraries, which are no lists of ours.
FOREIGN = {"api-schema", "api-docs"}


@dataclass(frozen=True)
class Route:
    """One address of the API, with the view that answers there."""

    path: str
    name: str
    view: Any
    # Action by method of a view set; empty for other views.
    actions: dict[str, str]
    options: dict[str, Any]

    @property
    def is_list(self) -> bool:
        """Return whether it is a list of its own, not that of an object."""
        return self.actions.get("get") == "list" and "/1/" not in self.path

    def takes(self, method: str) -> bool:
        return method in self.actions if self.actions else hasattr(self.view, method)


def routes(patterns=None, prefix=""):
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + str(pattern.pattern).removeprefix("^").removesuffix("$").replace("\\Z", "")
        if not isinstance(pattern, URLPattern):
            if path.startswith("api/v1/") or path == "":
                yield from routes(pattern.url_patterns, path)
        elif path.startswith("api/v1/"):
            url = "/" + re.sub(r"<int:\w+>", "1", path.replace("(?P<pk>[^/.]+)", "1")).replace("^", "")
            call: Any = pattern.callback
            yield Route(
                url, pattern.name, call.cls, getattr(call, "actions", None) or {}, getattr(call, "initkwargs", {})
            )


ROUTES = [route for route in routes() if route.name not in FOREIGN]
READ = [route for route in ROUTES if route.takes("get")]
LISTS = [route for route in ROUTES if route.is_list]


def by_path(found):
    return pytest.mark.parametrize("route", found, ids=[route.path for route in found])


def test_the_routes_are_found():
    assert len(LISTS) >= 13
    assert {"/api/v1/olts/", "/api/v1/brands/", "/api/v1/pollers/queue/", "/api/v1/onus/1/history/"} <= {
        route.path for route in READ
    }


@by_path(ROUTES)
def test_every_view_of_the_api_is_strict(route):
    assert issubclass(route.view, StrictView)


@by_path(READ)
def test_an_unknown_query_parameter_is_refused_with_the_known_ones(api, db, route):
    answer = api.get(route.path, {"nonsense": "1"})

    assert answer.status_code == 400
    assert set(answer.json()) == {"nonsense"}
    assert "Valid parameters: " in str(answer.json()["nonsense"])
    assert "format" in str(answer.json()["nonsense"])


@by_path(LISTS)
def test_every_list_knows_its_filters_its_pages_and_its_order(api, db, route):
    said = api.get(route.path, {"nonsense": "1"}).json()["nonsense"][0]
    known = said.removesuffix(".").partition(": ")[2].split(", ")
    filters = list(route.view.filterset_class.base_filters) if hasattr(route.view, "filterset_class") else ["status"]

    assert set(known) >= {*filters, "ordering", "page", "page_size", "format"}
    answer = api.get(route.path, dict.fromkeys(known, ""))
    assert "Unknown parameter" not in str(answer.data)
    usual = {"page": 1, "page_size": 5, "ordering": "-id", "format": "json"}
    assert api.get(route.path, usual).status_code == 200


@by_path(LISTS)
@pytest.mark.parametrize("ordering", ["nonsense", "-nonsense", "id,nonsense", "community"])
def test_an_ordering_by_an_unknown_field_is_refused_with_the_known_ones(api, db, route, ordering):
    answer = api.get(route.path, {"ordering": ordering})

    assert answer.status_code == 400
    assert all(name in answer.json()["ordering"][0] for name in route.view.ordering_fields)


@pytest.mark.parametrize("ordering", ["name", "-name", "-onus_total,name", " name , -id", ""])
def test_an_ordering_by_known_fields_is_followed(api, central, ordering):
    assert api.get("/api/v1/olts/", {"ordering": ordering}).status_code == 200


YES_OR_NO = [
    (route, name)
    for route in LISTS
    for name, each in getattr(getattr(route.view, "filterset_class", None), "base_filters", {}).items()
    if isinstance(each, BooleanFilter)
]


@pytest.mark.parametrize(("route", "name"), [pytest.param(*each, id=f"{each[0].path}{each[1]}") for each in YES_OR_NO])
def test_a_parameter_of_yes_or_no_takes_nothing_else(api, db, route, name):
    answer = api.get(route.path, {name: "-1"})

    assert answer.status_code == 400
    assert answer.json()[name] == ["Write true or false."]


@pytest.mark.parametrize(
    "query",
    [
        "olts/?enabled=true&enabled=false",
        "onus/?olt=1&olt=2",
        "olts/?page=1&page=2",
        "olts/?ordering=name&ordering=id",
        "olts/?search=a&search=b",
        "pollers/queue/?limit=1&limit=2",
    ],
)
def test_a_parameter_that_counts_once_is_refused_when_it_is_repeated(api, db, query):
    name = query.partition("?")[2].partition("=")[0]

    answer = api.get(f"/api/v1/{query}")

    assert answer.status_code == 400
    assert answer.json() == {name: ["Give this parameter once."]}


@pytest.mark.parametrize(
    "query",
    ["onus/?state=los&state=online", "executions/?status=SUCCESS&status=FAILED", "events/?field=state&field=place"],
)
def test_a_parameter_that_takes_several_values_can_be_repeated(api, db, query):
    assert api.get(f"/api/v1/{query}").status_code == 200


def test_several_fields_of_a_history_can_be_repeated(api, onu):
    assert api.get(f"/api/v1/onus/{onu.pk}/history/?field=state&field=rx_dbm").status_code == 200


@pytest.mark.parametrize("path", ["olts/99/", "jobs/99/", "pollers/nodes/99/run/", "onus/99/history/"])
def test_a_row_that_does_not_exist_is_refused_without_names_of_the_code(api, db, path):
    answer = api.post(f"/api/v1/{path}") if path.endswith("run/") else api.get(f"/api/v1/{path}")

    assert (answer.status_code, answer.json()) == (404, {"detail": "Not found."})


def test_a_single_row_has_no_filters(api, central):
    answer = api.get(f"/api/v1/olts/{central.pk}/", {"enabled": "false"})

    assert answer.json() == {"enabled": ["Unknown parameter. Valid parameters: format."]}


@pytest.mark.parametrize("path", ["olts/?enabled", "onus/?is_missing", "executions/?is_master", "quotas/?current"])
def test_a_filter_that_is_neither_true_nor_false_is_refused(api, central, path):
    assert api.get(f"/api/v1/{path}=perhaps").status_code == 400
    assert [api.get(f"/api/v1/{path}={word}").status_code for word in ("true", "False", "1", "0")] == [200] * 4


def test_who_is_not_logged_in_is_not_told_the_parameters(client, db):
    assert client.get("/api/v1/olts/?nonsense=1").status_code == 401


@by_path([route for route in ROUTES if {"create", "update", "partial_update"} & set(route.actions.values())])
def test_every_generic_view_checks_its_body_strictly(route):
    serializer = route.view.body_serializer or route.view.serializer_class

    assert issubclass(serializer, StrictSerializer)


@by_path([route for route in ROUTES if route.takes("post") and "create" not in route.actions.values()])
def test_an_action_refuses_what_it_does_not_read(api, db, route):
    answer = api.post(route.path, {"nonsense": 1}, format="json")

    body = route.options.get("body_serializer") or route.view.body_serializer
    if body is None:
        assert (answer.status_code, answer.json()) == (400, {"detail": "This request takes no body."})
    else:
        assert issubclass(body, StrictSerializer)


@pytest.fixture
def rows(central, node):
    """Return a row of everything that can be changed, by the path of its list."""
    SnmpJobOid.objects.create(job=node.job, name="uptime", oid="1.3.6.1.2.1.1.3.0", decode="integer", scalar=True)
    rule = Rule.objects.create(name="Gone", kind="violation")
    channel = Channel.objects.create(
        name="NOC", kind="webhook", url="https://noc.example.net/in", signing_secret="0123456789abcdef"
    )
    return {"olts": central, "jobs": node.job, "nodes": node, "alert-rules": rule, "channels": channel}


WRITABLE = ["olts", "jobs", "nodes", "alert-rules", "channels"]


# Nodes have no PUT.
@pytest.mark.parametrize(
    ("path", "method"),
    [(path, method) for path in WRITABLE for method in ("patch", "put", "post") if (path, method) != ("nodes", "put")],
)
def test_an_unknown_field_is_refused_with_the_writable_ones(api, rows, path, method):
    url = f"/api/v1/{path}/" if method == "post" else f"/api/v1/{path}/{rows[path].pk}/"

    answer = getattr(api, method)(url, {"colour": "red"}, format="json")

    assert answer.status_code == 400
    assert "Unknown field. Writable fields: " in answer.json()["colour"][0]


@pytest.mark.parametrize("path", WRITABLE)
def test_the_whole_of_what_was_read_can_be_sent_back(api, rows, path):
    url = f"/api/v1/{path}/{rows[path].pk}/"
    read = api.get(url).json()
    # Some clients parse times, and write them in their own way.
    read["created_at"] = read["created_at"].replace("Z", "+00:00")

    answers = [api.patch(url, read, format="json"), path != "nodes" and api.put(url, read, format="json")]

    assert [answer.json() for answer in answers if answer and answer.status_code != 200] == []


@pytest.mark.parametrize(
    ("path", "change"),
    [
        pytest.param("olts", {"id": 99}, id="id"),
        pytest.param("olts", {"state": "unreachable"}, id="computed"),
        pytest.param("olts", {"reachability": "unreachable"}, id="observed"),
        pytest.param("olts", {"breaker": {"is_open": False}}, id="nested"),
        pytest.param("olts", {"created_at": "2020-01-01T00:00:00Z"}, id="time"),
        pytest.param("olts", {"last_answer_at": "yesterday"}, id="no time"),
        pytest.param("jobs", {"followers": [1, 2]}, id="list"),
        pytest.param("nodes", {"next_run_at": "2030-01-01T00:00:00Z"}, id="schedule"),
        pytest.param("nodes", {"interval_seconds": 10}, id="in effect"),
        pytest.param("alert-rules", {"has_lost_its_olts": True}, id="flag"),
    ],
)
def test_another_value_for_a_read_only_field_is_refused(api, rows, path, change):
    url = f"/api/v1/{path}/{rows[path].pk}/"
    before = api.get(url).json()

    answer = api.patch(url, change, format="json")

    [name] = change
    assert answer.status_code == 400
    assert answer.json()[name][0].startswith("This field is read-only. Remove it. Writable fields: ")
    assert api.get(url).json() == before


def test_a_new_row_has_no_read_only_values_yet(api, central):
    new = {"name": "OLT-NORTE-02", "host": "192.0.2.20", "community": "public", "id": 7, "state": "reachable"}

    answer = api.post("/api/v1/olts/", new, format="json")

    assert answer.status_code == 400
    assert set(answer.json()) == {"id", "state"}
    assert Olt.objects.count() == 1


def test_every_mistake_is_told_at_once(api, db):
    answer = api.post("/api/v1/olts/", {"colour": "red", "id": 7, "port": "many"}, format="json")

    assert set(answer.json()) >= {"colour", "id", "port", "name"}


def test_a_raw_oid_keeps_its_id_and_takes_no_other(api, rows):
    url = f"/api/v1/jobs/{rows['jobs'].pk}/"
    [oid] = api.get(url).json()["oids"]

    same, other, more = (
        api.patch(url, {"oids": [{**oid, **change}]}, format="json")
        for change in ({}, {"id": oid["id"] + 1}, {"colour": "red"})
    )

    assert (same.status_code, other.status_code, more.status_code) == (200, 400, 400)
    assert set(other.json()["oids"]["0"]) == {"id"}
    assert set(more.json()["oids"]["0"]) == {"colour"}


def test_a_forecast_with_an_unknown_wish_is_refused(api, db):
    answer = api.post("/api/v1/forecasts/", {"hours": 2, "poller": 10}, format="json")

    assert set(answer.json()) == {"poller"}
    assert not Forecast.objects.exists()


def test_a_body_that_is_no_object_is_refused(api, db):
    answer = api.post("/api/v1/olts/", ["OLT-NORTE-02"], format="json")

    assert answer.status_code == 400
    assert set(answer.json()) == {"non_field_errors"}


def test_applying_a_job_takes_olts_and_nothing_else(api, central, power):
    answer = api.post(f"/api/v1/jobs/{power.pk}/apply/", {"olts": [central.pk], "enabled": True}, format="json")

    assert set(answer.json()) == {"enabled"}
    assert not WorkflowNode.objects.filter(job=power).exists()


def test_the_identification_job_can_be_put_back_as_it_was_read(api, db):
    Olt.objects.create(name="OLT-NEW", host="192.0.2.9", brand="")
    job = WorkflowNode.objects.get().job

    answer = api.put(f"/api/v1/jobs/{job.pk}/", api.get(f"/api/v1/jobs/{job.pk}/").json(), format="json")

    assert answer.status_code == 200, answer.data


def test_any_other_job_needs_a_brand(api, db):
    answer = api.post(
        "/api/v1/jobs/", {"name": "State", "brand": "", "kind": "table", "columns": ["state"]}, format="json"
    )

    assert (answer.status_code, answer.data) == (400, {"brand": ["This field cannot be blank."]})


@pytest.mark.parametrize("path", ["pollers/queue/?limit", "search/?q=rosa&limit"])
@pytest.mark.parametrize(("limit", "status"), [("1", 200), ("1.0", 400), ("1.", 400), ("one", 400)])
def test_a_limit_is_a_whole_number(api, db, path, limit, status):
    assert api.get(f"/api/v1/{path}={limit}").status_code == status
