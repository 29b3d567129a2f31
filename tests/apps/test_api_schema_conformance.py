"""Generated requests to every operation of the API: no server error, and each answer matches its description.

`FACHO_SCHEMA_EXAMPLES` is the number of requests per operation, user and kind of data.
"""

import os
from pathlib import Path

import pytest
from alert_cast import make_alert, make_channel, make_delivery, make_rule
from cast import make_event, make_log, make_maintenance, make_plan, make_port, make_quota, make_violation
from django.contrib.auth.models import Permission
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from examples import LONG_NAME
from facho.apps.accounts.models import ApiToken
from facho.apps.changes.actor import Interface
from facho.apps.changes.models import Change
from facho.apps.coordinator.models import Forecast
from facho.apps.dashboard.models import SavedView
from facho.apps.inventory.models import Question, Site, Tag
from facho.apps.telemetry.models import OnuNote
from facho.engine.model import QuestionKind
from problem_rows import make_problem

if not os.environ.get(LONG_NAME):
    pytest.skip("reading the schema takes seconds: run `dev.py test --long`", allow_module_level=True)

schemathesis = pytest.importorskip("schemathesis")
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

EXAMPLES = int(os.environ.get("FACHO_SCHEMA_EXAMPLES", "100"))
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]

SCHEMA = schemathesis.openapi.from_path(Path(__file__).parents[2] / "docs" / "openapi.yaml")
SCHEMA.app = get_wsgi_application()
OPERATIONS = {each.ok().label: each.ok() for each in SCHEMA.get_all_operations()}
# Of a request without parameters and body, nothing can be wrong.
CAN_BE_WRONG = [label for label, each in OPERATIONS.items() if any((each.path_parameters, each.query, each.body))]
# Without an engine these would wait for an answer.
WAITING = ("POST /api/v1/onus/{id}/read/",)
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
MODES = {"valid": schemathesis.GenerationMode.POSITIVE, "invalid": schemathesis.GenerationMode.NEGATIVE}


@pytest.fixture
def ids(db, onu, node, execution, central, boss):
    """Return the id of a row of each list, by the name of the list."""
    channel = make_channel()
    rule = make_rule()
    alert = make_alert(central, rule=rule)
    rows = {
        "alert-rules": rule,
        "alerts": alert,
        "changes": Change.objects.create(action=Change.Action.LOGIN, interface=Interface.PAGE),
        "channels": channel,
        "deliveries": make_delivery(channel, alert),
        "events": make_event(onu),
        "executions": execution,
        "forecasts": Forecast.objects.create(),
        "jobs": node.job,
        "logs": make_log(),
        "maintenance": make_maintenance(central),
        "nodes": node,
        "notes": OnuNote.objects.create(onu=onu, text="No light", author_name="boss"),
        "olts": central,
        "onus": onu,
        "plans": make_plan(node),
        "ports": make_port(central),
        "problems": make_problem(central),
        "questions": Question.ask(central, QuestionKind.TRY_JOB, {}, boss),
        "quotas": make_quota(node),
        "sites": Site.objects.create(name="Lima"),
        "tags": Tag.objects.create(name="core"),
        "views": SavedView.objects.create(list="onus", name="Dark", owner=boss),
        "violations": make_violation(node),
    }
    return {name: row.pk for name, row in rows.items()}


@pytest.fixture(params=["administrator", "viewer"])
def token(request, boss, reader):
    """Return the id and the key of a token of this user."""
    if request.param == "viewer":
        reader.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    issued = ApiToken(user=boss if request.param == "administrator" else reader, name="schema")
    return issued, issued.issue()


@pytest.mark.long
# The CSV of changes is streamed for ASGI; the generated requests use WSGI.
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
@pytest.mark.parametrize(
    ("label", "mode"), [*((each, "valid") for each in OPERATIONS), *((each, "invalid") for each in CAN_BE_WRONG)]
)
def test_every_answer_is_as_the_schema_says(label, mode, ids, token):
    operation = OPERATIONS[label]
    issued, key = token
    known = ids | {"tokens": issued.pk}
    resource = operation.path.removeprefix("/api/v1/").removeprefix("pollers/").partition("/")[0]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        # A failing request is short enough to be understood without minutes of shrinking.
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy(generation_mode=MODES[mode]), exists=st.integers(0, 3))
    def check(case, exists):
        # Mostly a row that exists: the others are only not found.
        for name in case.path_parameters if exists else ():
            case.path_parameters[name] = known[resource]
        if label in WAITING and (mode == "valid" or "wait" not in case.query):
            case.query["wait"] = 0
        with transaction.atomic():
            response = case.call(headers={"Authorization": f"Token {key}"})
            transaction.set_rollback(True)
        # In a form an empty field is null, and text between the parts is ignored. The schema is that of JSON.
        is_form = case.media_type in FORMS
        case.validate_response(response, checks=CHECKS[:-1] if is_form else CHECKS)

    check()
