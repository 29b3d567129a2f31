"""Every URL with every role. The table decides for each URL and method the lowest role that may use it.

A new URL without a row fails, and so does a row without a URL.
"""

import logging
from enum import IntEnum

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import models, transaction
from django.template.backends.base import BaseEngine
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse
from django.utils import timezone

from apps.cast import make_maintenance
from facho.apps.accounts.models import ApiToken, TwoFactor
from facho.apps.accounts.roles import Role, set_role
from facho.apps.telemetry.models import PonPort

Level = IntEnum("Level", "ANYONE USER VIEWER SUPPORT OPERATOR ENGINEER ADMIN SUPERUSER NOBODY")
ANYONE, USER, VIEWER, SUPPORT, OPERATOR, ENGINEER, ADMIN, SUPERUSER, NOBODY = Level
# Every request with this method gets 405.
UNSUPPORTED = None
# Viewers do not use the admin.
STAFF = SUPPORT


def read(level):
    return {"get": level}


def act(level):
    return {"post": level}


def listed(view, add):
    return {"get": view, "post": add}


def row(view, change):
    return {"get": view, "put": change, "patch": change, "delete": change}


def page(level):
    return {"get": level, "post": UNSUPPORTED}


def form(level):
    return {"get": level, "post": level}


API = {
    "api-token": act(ANYONE),
    "api-schema": read(ANYONE),
    "api-docs": read(ANYONE),
    # Everybody manages their own tokens and no others.
    "api-apitoken-list": listed(USER, USER),
    "api-apitoken-detail": {"get": USER, "patch": USER, "delete": USER},
    "api-change-list": read(ENGINEER),
    "api-change-detail": read(ENGINEER),
    "api-brands": read(USER),
    "api-decoders": read(USER),
    # Only one's own.
    "api-question-detail": read(USER),
    "api-olt-list": listed(VIEWER, ENGINEER),
    "api-olt-detail": row(VIEWER, ENGINEER),
    "api-olt-enable": act(OPERATOR),
    "api-olt-disable": act(OPERATOR),
    "api-olt-close-breaker": act(OPERATOR),
    "api-olt-replace": act(ENGINEER),
    # Of the lowest role that may run one of its actions: see test_olt_bulk.py.
    "api-olt-bulk": act(OPERATOR),
    "api-olt-stats": read(VIEWER),
    "api-olt-compare": read(VIEWER),
    # Everybody has views of their own, and reads the shared ones: see test_saved_views.py.
    "api-view-list": listed(USER, USER),
    "api-view-detail": {"get": USER, "patch": USER, "delete": USER},
    "api-site-list": listed(VIEWER, ENGINEER),
    "api-site-detail": {"get": VIEWER, "patch": ENGINEER, "delete": ENGINEER},
    "api-tag-list": listed(VIEWER, ENGINEER),
    "api-tag-detail": {"get": VIEWER, "patch": ENGINEER, "delete": ENGINEER},
    # A PATCH of interval and enabled only is for operators: see test_operating.py.
    "api-job-list": listed(VIEWER, ENGINEER),
    "api-job-detail": row(VIEWER, ENGINEER),
    "api-job-apply": act(ENGINEER),
    "api-job-try": act(ENGINEER),
    "api-node-list": listed(VIEWER, ENGINEER),
    "api-node-detail": {"get": VIEWER, "patch": ENGINEER, "delete": ENGINEER},
    # Of the lowest role that may run one of its actions: see test_job_bulk.py.
    "api-node-bulk": act(OPERATOR),
    "api-explain": read(VIEWER),
    "api-run-node": act(OPERATOR),
    "api-pollers": read(VIEWER),
    "api-queue": read(VIEWER),
    "api-stats": read(VIEWER),
    "api-stats-history": read(VIEWER),
    "api-execution-list": read(VIEWER),
    "api-execution-detail": read(VIEWER),
    "api-onu-list": read(VIEWER),
    "api-onu-summary": read(VIEWER),
    "api-onu-detail": read(VIEWER),
    "api-onu-positions": act(OPERATOR),
    "api-onu-events": read(VIEWER),
    "api-onu-history": read(VIEWER),
    "api-search": read(VIEWER),
    "api-map-onus": read(VIEWER),
    "api-map-sites": read(VIEWER),
    "api-map-problems": read(VIEWER),
    "api-port-list": read(VIEWER),
    "api-port-detail": {"get": VIEWER, "patch": OPERATOR},
    "api-onu-read": act(SUPPORT),
    "api-onu-notes": listed(VIEWER, SUPPORT),
    # Only its author can change or delete a note: see test_onu_notes.py.
    "api-note-detail": {"get": VIEWER, "patch": NOBODY, "delete": NOBODY},
    "api-event-list": read(VIEWER),
    "api-event-detail": read(VIEWER),
    "api-quota-list": read(VIEWER),
    "api-quota-detail": read(VIEWER),
    "api-violation-list": read(VIEWER),
    "api-violation-detail": read(VIEWER),
    "api-plan-list": read(VIEWER),
    "api-plan-detail": read(VIEWER),
    "api-log-list": read(VIEWER),
    "api-log-detail": read(VIEWER),
    "api-forecast-list": listed(VIEWER, ENGINEER),
    "api-forecast-detail": read(VIEWER),
    "api-maintenance-list": listed(VIEWER, OPERATOR),
    "api-maintenance-detail": {"get": VIEWER, "patch": OPERATOR, "delete": OPERATOR},
    "api-maintenance-end": act(OPERATOR),
    "api-maintenance-extend": act(OPERATOR),
    "api-alert-list": read(VIEWER),
    "api-alert-detail": read(VIEWER),
    "api-alert-acknowledge": act(SUPPORT),
    "api-problem-list": read(VIEWER),
    "api-problem-detail": read(VIEWER),
    "api-problem-acknowledge": act(SUPPORT),
    "api-problem-unacknowledge": act(SUPPORT),
    "api-problem-assign": act(SUPPORT),
    "api-problem-snooze": act(SUPPORT),
    "api-problem-comment": act(SUPPORT),
    "api-rule-list": listed(VIEWER, ENGINEER),
    "api-rule-detail": row(VIEWER, ENGINEER),
    "api-rule-try-on-past": act(VIEWER),
    "api-rule-preview": read(VIEWER),
    "api-rule-test": act(ENGINEER),
    "api-channel-list": listed(VIEWER, ENGINEER),
    "api-channel-detail": row(VIEWER, ENGINEER),
    "api-channel-test": act(ENGINEER),
    "api-delivery-list": read(VIEWER),
    "api-delivery-detail": read(VIEWER),
    "api-delivery-retry": act(ENGINEER),
}

PAGES = {
    "login": form(ANYONE),
    # Leads back to the login of those who have not given a password.
    "login-code": form(NOBODY),
    "oidc-login": form(ANYONE),
    "oidc-callback": form(ANYONE),
    "logout": {"get": UNSUPPORTED, "post": ANYONE},
    "set_language": form(ANYONE),
    # Without a role it shows a sentence and nothing else.
    "dashboard:overview": page(USER),
    "dashboard:problems": page(VIEWER),
    "dashboard:problem": page(VIEWER),
    "dashboard:act-on-problem": {"get": UNSUPPORTED, "post": SUPPORT},
    "dashboard:alerts": page(VIEWER),
    "dashboard:acknowledge-alert": {"get": UNSUPPORTED, "post": SUPPORT},
    "dashboard:alert-rule": page(VIEWER),
    "dashboard:test-alert-rule": {"get": UNSUPPORTED, "post": ENGINEER},
    "dashboard:olts": page(VIEWER),
    "dashboard:olts-csv": page(VIEWER),
    "dashboard:olts-xlsx": page(VIEWER),
    "dashboard:olts-bulk": {"get": UNSUPPORTED, "post": OPERATOR},
    "dashboard:olts-job": {"get": UNSUPPORTED, "post": OPERATOR},
    "dashboard:forecast": {"get": VIEWER, "post": ENGINEER},
    "dashboard:forecast-answer": page(VIEWER),
    "dashboard:saved-views": {"get": UNSUPPORTED, "post": USER},
    "dashboard:saved-view": {"get": UNSUPPORTED, "post": USER},
    "dashboard:new-olt": form(ENGINEER),
    "dashboard:test-new-olt": {"get": UNSUPPORTED, "post": ENGINEER},
    "dashboard:import-olts": form(ENGINEER),
    "dashboard:preview-import": {"get": UNSUPPORTED, "post": ENGINEER},
    "dashboard:olt-template": page(VIEWER),
    "dashboard:olt-settings-file": page(VIEWER),
    "dashboard:olt": page(VIEWER),
    "dashboard:olt-settings": form(ENGINEER),
    "dashboard:test-olt": {"get": UNSUPPORTED, "post": ENGINEER},
    "dashboard:replace-olt": form(ENGINEER),
    "dashboard:test-olt-replacement": {"get": UNSUPPORTED, "post": ENGINEER},
    "dashboard:delete-olt": form(ENGINEER),
    "dashboard:maintenance": page(VIEWER),
    "dashboard:new-maintenance": form(OPERATOR),
    "dashboard:change-maintenance": form(OPERATOR),
    "dashboard:start-maintenance": {"get": UNSUPPORTED, "post": OPERATOR},
    "dashboard:act-on-maintenance": {"get": UNSUPPORTED, "post": OPERATOR},
    "dashboard:ports": page(VIEWER),
    "dashboard:port": page(VIEWER),
    "dashboard:port-history": page(VIEWER),
    "dashboard:port-capacity": {"get": UNSUPPORTED, "post": OPERATOR},
    "dashboard:compare": page(VIEWER),
    "dashboard:jobs": page(VIEWER),
    # Interval, and on or off: see test_job_pages.py.
    "dashboard:job": {"get": VIEWER, "post": OPERATOR},
    "dashboard:node": {"get": VIEWER, "post": OPERATOR},
    "dashboard:log": page(VIEWER),
    "dashboard:log-csv": page(VIEWER),
    "dashboard:log-xlsx": page(VIEWER),
    "dashboard:users": page(ADMIN),
    "dashboard:user": page(ADMIN),
    "dashboard:act-on-user": {"get": UNSUPPORTED, "post": ADMIN},
    "dashboard:unlock-user": {"get": UNSUPPORTED, "post": ADMIN},
    "dashboard:glossary": page(USER),
    "dashboard:onus": page(VIEWER),
    "dashboard:onus-csv": page(VIEWER),
    "dashboard:onus-xlsx": page(VIEWER),
    "dashboard:onu": page(VIEWER),
    "dashboard:onu-events": page(VIEWER),
    "dashboard:onu-history": page(VIEWER),
    "dashboard:onu-values": page(VIEWER),
    "dashboard:olt-values": page(VIEWER),
    "dashboard:executions": page(VIEWER),
    "dashboard:map": page(VIEWER),
    "dashboard:map-import": form(OPERATOR),
    "dashboard:map-template-csv": page(OPERATOR),
    "dashboard:map-template-xlsx": page(OPERATOR),
    "dashboard:search": page(VIEWER),
    "dashboard:suggestions": page(VIEWER),
    "dashboard:executions-csv": page(VIEWER),
    "dashboard:executions-xlsx": page(VIEWER),
    # Others see the changes of an object: see test_change_pages.py.
    "dashboard:changes": page(ENGINEER),
    "dashboard:tokens": form(USER),
    "dashboard:revoke-token": {"get": UNSUPPORTED, "post": USER},
    "dashboard:password": form(USER),
    "dashboard:sessions": form(USER),
    "dashboard:end-sessions": {"get": UNSUPPORTED, "post": USER},
    "dashboard:two-factor": form(USER),
    # Its events depend on the permissions: see test_dashboard_stream.py.
    "dashboard:events": page(USER),
}

# Of each model in the admin: who may view, add, change and delete.
ADMIN_MODELS = {
    "inventory.olt": (STAFF, ENGINEER, ENGINEER, ENGINEER),
    "inventory.site": (STAFF, ENGINEER, ENGINEER, ENGINEER),
    "inventory.tag": (STAFF, ENGINEER, ENGINEER, ENGINEER),
    # Operators change two fields only: see test_operating.py.
    "jobs.snmpjob": (STAFF, ENGINEER, OPERATOR, ENGINEER),
    "jobs.workflow": (STAFF, NOBODY, OPERATOR, NOBODY),
    "jobs.workflownode": (STAFF, NOBODY, OPERATOR, ENGINEER),
    "polling.execution": (STAFF, NOBODY, NOBODY, NOBODY),
    "polling.poller": (STAFF, NOBODY, NOBODY, NOBODY),
    "polling.pollerstats": (STAFF, NOBODY, NOBODY, NOBODY),
    "telemetry.onu": (STAFF, NOBODY, NOBODY, NOBODY),
    "telemetry.onuevent": (STAFF, NOBODY, NOBODY, NOBODY),
    "coordinator.quotatracker": (STAFF, NOBODY, NOBODY, NOBODY),
    "coordinator.quotaviolation": (STAFF, NOBODY, NOBODY, NOBODY),
    "coordinator.executionplan": (STAFF, NOBODY, NOBODY, NOBODY),
    "coordinator.coordinatorlog": (STAFF, NOBODY, NOBODY, NOBODY),
    "alerts.alert": (STAFF, NOBODY, NOBODY, NOBODY),
    "alerts.delivery": (STAFF, NOBODY, NOBODY, NOBODY),
    "alerts.rule": (STAFF, ENGINEER, ENGINEER, ENGINEER),
    "alerts.channel": (STAFF, ENGINEER, ENGINEER, ENGINEER),
    # Of users with fewer rights: see test_admin_users.py.
    "auth.user": (ADMIN, ADMIN, ADMIN, ADMIN),
    "auth.group": (ADMIN, SUPERUSER, SUPERUSER, SUPERUSER),
    "accounts.apitoken": (ADMIN, SUPERUSER, SUPERUSER, ADMIN),
    "accounts.failedlogin": (ADMIN, NOBODY, NOBODY, ADMIN),
}

ADMIN_PAGES = {
    "admin:index": form(STAFF),
    # It leads to the login, and refuses users who have logged in.
    "admin:login": form(NOBODY),
    "admin:logout": {"get": UNSUPPORTED, "post": ANYONE},
    "admin/login/": form(NOBODY),
    "admin/logout/": {"get": UNSUPPORTED, "post": ANYONE},
    "admin:search": form(STAFF),
    "admin:jsi18n": form(STAFF),
    "admin:app_list": form(STAFF),
    "admin:view_on_site": form(STAFF),
    # Needs parameters that name a field; without them nobody gets an answer.
    "admin:autocomplete": page(NOBODY),
    # Redirects to a page for all users, and to the login.
    "admin/password_change/": form(ANYONE),
    "admin:password_change": form(ANYONE),
    "admin:password_change_done": form(STAFF),
    "admin/(?P<url>.*)$": form(STAFF),
    "admin:auth_user_password_change": form(ADMIN),
    "admin:auth_user_end_sessions": form(ADMIN),
    "admin:auth_user_remove_two_factor": form(ADMIN),
    "admin:accounts_failedlogin_unlock": form(ADMIN),
    "admin:accounts_apitoken_revoke": form(ADMIN),
    "admin:inventory_olt_close_breaker": form(OPERATOR),
    "admin:jobs_workflow_run": {"get": UNSUPPORTED, "post": OPERATOR},
    "admin:jobs_workflow_apply_jobs": form(ENGINEER),
    "admin:jobs_snmpjob_propose_jobs": form(ENGINEER),
    "admin:alerts_channel_send_test": form(ENGINEER),
}


def of_admin_models():
    for label, (view, add, change, delete) in ADMIN_MODELS.items():
        name = "admin:" + label.replace(".", "_")
        yield f"{name}_changelist", form(view)
        yield f"{name}_history", form(view)
        yield f"{name}_add", form(add)
        yield f"{name}_change", {"get": view, "post": change}
        yield f"{name}_delete", form(delete)
        # Redirects to the page of the row.
        yield f"admin/{label.replace('.', '/')}/<path:object_id>/", form(STAFF)


TABLE = {**API, **PAGES, **ADMIN_PAGES, **dict(of_admin_models())}


def urls(resolver=None, route="", namespace=""):
    """Return each URL by its name, or by its route if it has none, with its pattern."""
    found = {}
    for each in (resolver or get_resolver()).url_patterns:
        whole = route + str(each.pattern)
        if isinstance(each, URLResolver):
            found |= urls(each, whole, namespace + (f"{each.namespace}:" if each.namespace else ""))
        else:
            found[namespace + each.name if each.name else whole] = each
    return found


def methods_of(pattern):
    """Return the methods that need a decision: those of a view of the API, and GET and POST of any other view."""
    view = getattr(pattern.callback, "cls", None)
    if view is None:
        return {"get", "post"}
    handlers = getattr(pattern.callback, "actions", None) or [
        name for name in view.http_method_names if hasattr(view, name)
    ]
    return set(handlers) & set(view.http_method_names) - {"options", "head"}


def test_every_url_has_a_decision():
    missing = {
        f"{name} {method.upper()}"
        for name, pattern in urls().items()
        for method in methods_of(pattern)
        if method not in TABLE.get(name, {})
    }

    assert missing == set(), "Add a row to a table of this file with the lowest role that may use the URL."


def test_every_decision_has_a_url():
    patterns = urls()
    stale = {
        f"{name} {method.upper()}"
        for name, methods in TABLE.items()
        for method in methods
        if name not in patterns or method not in methods_of(patterns[name])
    }

    assert stale == set(), "Remove these rows: there is no such URL or method."


def test_every_model_of_the_admin_has_a_decision():
    assert {model._meta.label_lower for model in admin.site._registry} == ADMIN_MODELS.keys()


# Rows and requests


def make_row(model):
    """Return a row of a model, made with as few values as the model needs."""
    model = model._meta.concrete_model
    if (known := model._default_manager.first()) is not None:
        return known
    values = {}
    for field in model._meta.concrete_fields:
        if field.primary_key or field.generated or field.has_default() or field.null:
            continue
        if isinstance(field, models.ForeignKey):
            values[field.name] = make_row(field.related_model)
        elif field.choices:
            values[field.name] = next(value for value, _label in field.flatchoices if value)
        elif isinstance(field, models.DateTimeField):
            values[field.name] = timezone.now()
        elif isinstance(field, models.IntegerField | models.FloatField | models.BooleanField):
            values[field.name] = 1
        elif not field.blank:
            values[field.name] = "127.0.0.1"
    return model._default_manager.create(**values)


@pytest.fixture
def rows(onu, execution):
    """One row of each model that a URL can name."""
    User.objects.create(username="row")
    Group.objects.exclude(name__in=Role).delete()
    Group.objects.create(name="Night shift")
    make_maintenance(onu.olt)
    found = {}
    for model in [
        *admin.site._registry,
        *(
            apps.get_model(label)
            for label in (
                "telemetry.onu",
                "telemetry.ponport",
                "telemetry.onunote",
                "inventory.question",
                "changes.change",
                "problems.problem",
                "maintenance.maintenance",
                "dashboard.savedview",
                "coordinator.forecast",
            )
        ),
    ]:
        found[model._meta.label_lower] = make_row(model).pk
    found["auth.user"] = User.objects.get(username="row").pk
    TwoFactor.begin(User.objects.get(username="row"))
    found["auth.group"] = Group.objects.get(name="Night shift").pk
    return found


# Model of the rows of each view set of the API, from its query set, and of each parameter of other URLs.
PARAMETERS = {
    "alert_id": "alerts.alert",
    "rule_id": "alerts.rule",
    "olt_id": "inventory.olt",
    "job_id": "jobs.snmpjob",
    "node_id": "jobs.workflownode",
    "user_id": "auth.user",
    "onu_id": "telemetry.onu",
    "problem_id": "problems.problem",
    "maintenance_id": "maintenance.maintenance",
    "token_id": "accounts.apitoken",
    "view_id": "dashboard.savedview",
    "forecast_id": "coordinator.forecast",
}


def path_of(name, pattern, rows):
    if pattern.name is None:
        return "/" + name.replace("<path:object_id>", "1").replace("(?P<url>.*)$", "nothing/")
    values = {}
    for parameter in pattern.pattern.regex.groupindex:
        if parameter in ("slot", "port"):
            values[parameter] = getattr(PonPort.objects.get(pk=rows["telemetry.ponport"]), parameter)
        elif parameter in PARAMETERS:
            values[parameter] = rows[PARAMETERS[parameter]]
        elif parameter == "pk":
            values[parameter] = rows[pattern.callback.cls.queryset.model._meta.label_lower]
        elif parameter in ("object_id", "id"):
            label = next(
                (label for label in ADMIN_MODELS if name.startswith("admin:" + label.replace(".", "_") + "_")), ""
            )
            values[parameter] = rows[label] if label else 1
        else:
            values[parameter] = {"app_label": "inventory", "content_type_id": 1, "format": "json"}[parameter]
    values.pop("format", None)
    # No engine runs here, so nobody would answer.
    query = "?wait=0" if name == "api-onu-read" else ""
    return reverse(name, kwargs=values) + query


class NoTemplates(BaseEngine):
    """Renders nothing: pages are drawn in other tests, and drawing takes most of the time."""

    app_dirname = "none"

    def __init__(self, params):
        super().__init__({name: value for name, value in params.items() if name != "OPTIONS"})

    def get_template(self, name):
        return self

    def render(self, context=None, request=None):
        return ""


@pytest.fixture
def people(rows):
    """A logged-in client of each level, and one with a read-only token of an admin."""

    def client_of(name, role=None, **flags):
        user = User.objects.create(username=name, **flags)
        if role:
            set_role(user, role)
        client = Client()
        client.force_login(user)
        return client

    clients = {ANYONE: Client(), USER: client_of("nobody")}
    clients |= {Level[role.name]: client_of(f"user {role}", role) for role in Role}
    clients[SUPERUSER] = client_of("root", is_superuser=True, is_staff=True)
    token = ApiToken(user=User.objects.get(username="user Admin"), name="x", is_read_only=True)
    return clients, Client(headers={"authorization": f"Token {token.issue()}"})


def is_refused(answer):
    to_login = answer.status_code == 302 and "/login/?next=" in answer["Location"]
    return to_login or answer.status_code in (401, 403)


def send(client, method, path):
    """Send a request and undo its effects, also those on the session."""
    session = client.cookies.get(settings.SESSION_COOKIE_NAME)
    key = session.value if session else None
    with transaction.atomic():
        answer = getattr(client, method)(path, content_type="application/json") if method != "get" else client.get(path)
        transaction.set_rollback(True)
    if key:
        client.cookies[settings.SESSION_COOKIE_NAME] = key
    return answer


def test_each_url_is_open_to_the_roles_of_the_table_and_to_no_others(rows, people, settings, caplog):
    # Thousands of refusals, some with a traceback.
    caplog.set_level(logging.CRITICAL)
    settings.TEMPLATES = [{"BACKEND": f"{__name__}.NoTemplates"}]
    # It makes every request pass through threads.
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "servestatic" not in name]
    clients, read_only = people
    wrong = []
    for name, pattern in urls().items():
        path = path_of(name, pattern, rows)
        for method, lowest in TABLE[name].items():
            if lowest is UNSUPPORTED:
                status = send(clients[SUPERUSER], method, path).status_code
                wrong += [f"{method.upper()} {path} is supported: {status}"] if status != 405 else []
                continue
            for level, client in clients.items():
                is_implied = name.startswith("admin") or lowest == ANYONE
                if is_implied and lowest < level < SUPERUSER:
                    # Such pages take long to build, and each role includes the one before it.
                    continue
                answer = send(client, method, path)
                if is_refused(answer) is not (level < lowest):
                    wrong.append(
                        f"{method.upper()} {path} ({name}) as {level.name}: {answer.status_code}, not {lowest.name}"
                    )
            if name in API:
                answer = send(read_only, method, path)
                if is_refused(answer) is not (lowest > ANYONE and (method != "get" or lowest > ADMIN)):
                    wrong.append(f"{method.upper()} {path} with a read-only token: {answer.status_code}")

    assert wrong == []


def test_fields_of_the_api_are_described_to_those_who_may_use_it_only(rows, people):
    clients, _token = people
    patterns = urls()
    for name, methods in API.items():
        if min(methods.values()) > USER:
            answer = send(clients[USER], "options", path_of(name, patterns[name], rows))

            assert is_refused(answer), name
