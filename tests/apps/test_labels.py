"""Names and keys made by Facho are translated on pages; names written by users are not; the API keeps keys."""

import pytest
from alert_cast import make_rule
from cast import make_execution, make_job, make_log, make_quota
from django.test import Client
from django.utils import translation
from django.utils.functional import Promise

from facho.apps.coordinator.event_labels import EVENT_LABELS, LEVEL_LABELS
from facho.apps.coordinator.filters import LEVELS
from facho.apps.inventory import labels
from facho.apps.jobs.models import IDENTIFICATION
from facho.apps.polling.errors import TYPES
from facho.brands import BRANDS
from facho.engine import errors
from facho.engine.events import Event


@pytest.fixture
def spanish(boss) -> Client:
    client = Client(headers={"accept-language": "es-PE"})
    client.force_login(boss)
    return client


def html(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def names(table) -> dict[str, Promise]:
    """Return a table by the names of its keys."""
    return {getattr(key, "name", key): label for key, label in table.items()}


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        pytest.param(
            labels.JOBS,
            {template.name for brand in BRANDS.values() for template in brand.templates}
            | {IDENTIFICATION["name"], "Names"},
            id="jobs of the brands, the identification and the demonstration",
        ),
        pytest.param(labels.COLUMNS, {name for brand in BRANDS.values() for name in brand.columns}, id="columns"),
        pytest.param(EVENT_LABELS, set(Event.__members__), id="events"),
        pytest.param(LEVEL_LABELS, set(LEVELS), id="levels"),
    ],
)
def test_every_key_has_a_label(table, keys):
    assert set(names(table)) == keys


def test_every_error_of_a_run_has_a_label():
    # The others are bases, or end no run.
    others = {
        "FachoError",
        "SnmpError",
        "DeliveryFailed",
        "BadAddress",
        "StoreUnavailable",
        "StoreRefuses",
        "BatchRejected",
    }
    of_runs = {name for name, value in vars(errors).items() if isinstance(value, type) and "Error" in str(value.mro())}

    assert set(TYPES) == of_runs - others


def test_no_label_in_spanish_is_a_key():
    with translation.override("es"):
        tables = [labels.JOBS, labels.COLUMNS, EVENT_LABELS, LEVEL_LABELS, TYPES]
        found = [str(label) for table in tables for name, label in names(table).items() if "_" in str(label)]

    assert found == []


def test_a_job_of_facho_is_translated_and_one_of_a_user_is_not(spanish, node):
    own = make_job("Mis tareas State")
    make_execution(node)

    jobs = html(spanish, "/admin/jobs/snmpjob/")
    pages = [html(spanish, f"/olts/{node.olt_id}/"), html(spanish, "/executions/"), html(spanish, f"/nodes/{node.pk}/")]

    assert ">Potencia óptica<" in jobs
    assert own.name in jobs
    for page in pages:
        assert "Potencia óptica" in page
        assert ">Optical power<" not in page


def test_the_api_keeps_the_name_of_a_job(api, node):
    shown = api.get(f"/api/v1/nodes/{node.pk}/", headers={"accept-language": "es-PE"}).json()

    assert shown["job_name"] == "Optical power"


@pytest.mark.parametrize(
    "path",
    [
        "/admin/jobs/snmpjob/",
        "/admin/jobs/workflownode/",
        "/admin/polling/execution/",
        "/admin/coordinator/quotatracker/",
    ],
)
@pytest.mark.parametrize(
    ("search", "found"),
    [
        pytest.param("potencia ópt", True, id="the name that is shown"),
        pytest.param("Optical", True, id="the name that is stored"),
        pytest.param("descubrimiento", False, id="another job"),
    ],
)
def test_a_list_is_searched_in_the_language_of_the_user(spanish, node, path, search, found):
    make_execution(node)
    make_quota(node)

    rows = spanish.get(path, {"q": search}).context["cl"].result_list

    assert bool(rows) is found


def test_the_log_shows_labels_of_events_and_levels(spanish, sur):
    row = make_log(olt=sur, details={"olt": sur.name})

    pages = [
        html(spanish, "/admin/coordinator/coordinatorlog/"),
        html(spanish, f"/admin/coordinator/coordinatorlog/{row.pk}/change/"),
    ]

    with translation.override("es"):
        label = str(EVENT_LABELS[Event[row.event_type]])
    for page in pages:
        assert label in page
        assert f">{row.event_type}<" not in page


def test_the_form_of_a_rule_offers_labels_of_events(spanish, db):
    rule = make_rule(kind="event", params={"event_types": ["BREAKER_OPENED"]})

    page = html(spanish, f"/admin/alerts/rule/{rule.pk}/change/")

    assert "cortacircuitos abierto" in page
    assert ">BREAKER_OPENED<" not in page


def test_permissions_are_shown_in_the_language_of_the_user(spanish, db):
    page = html(spanish, "/admin/auth/group/add/")

    assert "| agregar<" in page
    assert "Can add" not in page
