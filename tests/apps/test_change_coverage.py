"""Every way to change something leaves a row in the record. A new endpoint or admin action needs a row here."""

import pytest
from alert_cast import make_alert, make_channel, make_delivery, make_rule
from cast import make_job, make_maintenance, make_olt, make_onu, make_port
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from rest_framework.schemas.generators import EndpointEnumerator

from facho.apps.accounts.models import ApiToken, FailedLogin, TwoFactor
from facho.apps.changes.capture import RECORDED
from facho.apps.changes.models import Change
from facho.apps.dashboard.models import SavedView
from facho.apps.inventory import asking
from facho.apps.inventory.models import Olt, Site, Tag
from facho.apps.telemetry.models import OnuNote
from problem_rows import make_problem

OLT, JOB, NODE = "inventory.olt", "jobs.snmpjob", "jobs.workflownode"
CHANNEL, RULE, ALERT, DELIVERY = "alerts.channel", "alerts.rule", "alerts.alert", "alerts.delivery"
SITE, TAG, VIEW = "inventory.site", "inventory.tag", "dashboard.savedview"
PROBLEM, PORT, NOTE = "problems.problem", "telemetry.ponport", "telemetry.onunote"
TOKEN, FORECAST, USER = "accounts.apitoken", "coordinator.forecast", "auth.user"

MAINTENANCE = "maintenance.maintenance"

SOON = {"starts_at": "2099-01-01T00:00Z", "ends_at": "2099-01-01T02:00Z"}
NEW_OLT = {"name": "OLT-NEW", "brand": "huawei", "host": "127.0.0.9", "community": "public"}
NEW_JOB = {"name": "New", "brand": "huawei", "kind": "table", "columns": ["rx_dbm"]}
NEW_VIEW = {"list": "onus", "name": "New", "is_shared": True}
NEW_RULE = {"name": "New", "kind": "olt_unreachable"}
NEW_CHANNEL = {
    "name": "New",
    "kind": "webhook",
    "url": "https://127.0.0.1/hook",
    "signing_secret": "sixteen characters",
}


class World:
    """A row of each table that can be changed."""

    def __init__(self, node, boss):
        self.olt, self.node, self.user = node.olt, node, boss
        self.job = make_job("Free")
        self.site, self.tag = Site.objects.create(name="Cusco"), Tag.objects.create(name="edge")
        self.port = make_port(self.olt)
        self.spare = make_olt("OLT-SUR-03", host="127.0.0.3")
        self.onu = make_onu(self.spare, 7)
        self.note = OnuNote.objects.create(onu=self.onu, text="No light", author=boss, author_name="boss")
        self.channel, self.rule = make_channel(), make_rule()
        self.rule.channels.set([self.channel])
        self.alert = make_alert(self.olt)
        self.delivery = make_delivery(self.channel, self.alert, status="FAILED")
        self.maintenance = make_maintenance(self.spare)
        self.problem = make_problem(self.olt)
        self.seen = make_problem(self.spare, acknowledged_at=timezone.now(), acknowledged_by=boss)
        self.view = SavedView.objects.create(owner=boss, list="onus", name="Weak", is_shared=True)
        self.token = ApiToken(user=boss, name="Grafana")
        self.token.issue()
        self.failed = FailedLogin.objects.create(
            username="boss", ip_address="192.0.2.7", attempt_time=timezone.now(), failures_since_start=5
        )
        ana = User.objects.create(username="ana")
        self.factor = TwoFactor.objects.create(user=ana, secret="x" * 32, confirmed_at=timezone.now())
        Olt.objects.filter(pk=self.olt.pk).update(breaker_opened_at=timezone.now(), enabled=True)

    def credentials(self):
        self.user.set_password("a-long-password")
        self.user.save()
        return {"username": "boss", "password": "a-long-password"}


@pytest.fixture
def world(node, boss, monkeypatch):
    # Nobody answers the question.
    monkeypatch.setattr(asking, "WAIT_SECONDS", 0)
    return World(node, boss)


# Method and path: the row of the path, a body, and the change that must be recorded.
API = {
    ("POST", "auth/token/"): (None, lambda w: w.credentials(), ("login", USER)),
    ("POST", "tokens/"): (None, lambda w: {"name": "Script"}, ("created", TOKEN)),
    ("PATCH", "tokens/{pk}/"): ("token", lambda w: {"name": "Other"}, ("changed", TOKEN)),
    ("DELETE", "tokens/{pk}/"): ("token", None, ("revoked", TOKEN)),
    ("POST", "olts/"): (None, lambda w: NEW_OLT, ("created", OLT)),
    ("PUT", "olts/{pk}/"): ("olt", lambda w: NEW_OLT, ("changed", OLT)),
    ("PATCH", "olts/{pk}/"): ("olt", lambda w: {"location": "Lima"}, ("changed", OLT)),
    ("DELETE", "olts/{pk}/"): ("olt", None, ("deleted", OLT)),
    ("POST", "olts/bulk/"): (None, lambda w: {"action": "disable", "ids": [w.olt.pk]}, ("changed", OLT)),
    ("POST", "views/"): (None, lambda w: NEW_VIEW, ("created", VIEW)),
    ("PATCH", "views/{pk}/"): ("view", lambda w: {"name": "Other"}, ("changed", VIEW)),
    ("DELETE", "views/{pk}/"): ("view", None, ("deleted", VIEW)),
    ("POST", "olts/{pk}/close-breaker/"): ("olt", None, ("breaker_closed", OLT)),
    ("POST", "olts/{pk}/replace/"): ("olt", lambda w: {"host": w.olt.host}, ("created", "inventory.replacement")),
    ("POST", "olts/{pk}/disable/"): ("olt", None, ("changed", OLT)),
    ("POST", "olts/{pk}/enable/"): ("olt", "disabled", ("changed", OLT)),
    ("POST", "sites/"): (None, lambda w: {"name": "Lima"}, ("created", SITE)),
    ("PATCH", "sites/{pk}/"): ("site", lambda w: {"name": "Lima"}, ("changed", SITE)),
    ("DELETE", "sites/{pk}/"): ("site", None, ("deleted", SITE)),
    ("POST", "tags/"): (None, lambda w: {"name": "core"}, ("created", TAG)),
    ("PATCH", "tags/{pk}/"): ("tag", lambda w: {"name": "core"}, ("changed", TAG)),
    ("DELETE", "tags/{pk}/"): ("tag", None, ("deleted", TAG)),
    ("POST", "jobs/try/"): (
        None,
        lambda w: {"olt": w.olt.pk, "brand": "huawei", "kind": "table", "columns": ["rx_dbm"]},
        ("tried", OLT),
    ),
    ("POST", "jobs/"): (None, lambda w: NEW_JOB, ("created", JOB)),
    ("PUT", "jobs/{pk}/"): ("job", lambda w: NEW_JOB, ("changed", JOB)),
    ("PATCH", "jobs/{pk}/"): (
        "job",
        lambda w: {"oids": [{"name": "fan", "oid": "1.3.6.1.4.1.1", "decode": "integer"}]},
        ("created", "jobs.snmpjoboid"),
    ),
    ("DELETE", "jobs/{pk}/"): ("job", None, ("deleted", JOB)),
    ("POST", "jobs/{pk}/apply/"): ("job", lambda w: {"olts": [w.olt.pk]}, ("created", NODE)),
    ("POST", "nodes/"): (None, lambda w: {"olt": w.olt.pk, "job": w.job.pk}, ("created", NODE)),
    ("PATCH", "nodes/{pk}/"): ("node", lambda w: {"own_interval_seconds": 60}, ("changed", NODE)),
    ("DELETE", "nodes/{pk}/"): ("node", None, ("deleted", NODE)),
    ("POST", "nodes/bulk/"): (
        None,
        lambda w: {"action": "disable", "job": w.node.job.pk, "ids": [w.olt.pk]},
        ("changed", NODE),
    ),
    ("POST", "pollers/nodes/{node_id}/run/"): ("node", None, ("run_requested", NODE)),
    ("PATCH", "ports/{pk}/"): ("port", lambda w: {"own_capacity": 64}, ("changed", PORT)),
    ("POST", "onus/positions/"): (
        None,
        lambda w: {"positions": [{"onu": w.onu.pk, "latitude": -12.05, "longitude": -77.04}]},
        ("positions_set", OLT),
    ),
    ("POST", "onus/{pk}/read/"): ("onu", None, ("read", "telemetry.onu")),
    ("POST", "onus/{onu_id}/notes/"): ("onu", lambda w: {"text": "No power at home"}, ("created", NOTE)),
    ("PATCH", "notes/{pk}/"): ("note", lambda w: {"text": "Solved"}, ("changed", NOTE)),
    ("DELETE", "notes/{pk}/"): ("note", None, ("deleted", NOTE)),
    ("POST", "maintenance/"): (None, lambda w: {"olt": w.olt.pk, **SOON}, ("created", MAINTENANCE)),
    ("PATCH", "maintenance/{pk}/"): ("maintenance", lambda w: {"reason": "Firmware"}, ("changed", MAINTENANCE)),
    ("DELETE", "maintenance/{pk}/"): ("maintenance", None, ("changed", MAINTENANCE)),
    ("POST", "maintenance/{pk}/end/"): ("maintenance", None, ("changed", MAINTENANCE)),
    ("POST", "maintenance/{pk}/extend/"): ("maintenance", lambda w: {"minutes": 30}, ("changed", MAINTENANCE)),
    ("POST", "forecasts/"): (None, lambda w: {"hours": 2}, ("created", FORECAST)),
    ("POST", "alerts/{pk}/acknowledge/"): ("alert", None, ("acknowledged", ALERT)),
    ("POST", "problems/{pk}/acknowledge/"): ("problem", lambda w: {"comment": "On it."}, ("acknowledged", PROBLEM)),
    ("POST", "problems/{pk}/unacknowledge/"): ("seen", None, ("changed", PROBLEM)),
    ("POST", "problems/{pk}/assign/"): ("problem", lambda w: {"user": "boss"}, ("changed", PROBLEM)),
    ("POST", "problems/{pk}/snooze/"): ("problem", lambda w: {"until": "2099-01-01T00:00Z"}, ("changed", PROBLEM)),
    ("POST", "problems/{pk}/comment/"): ("problem", lambda w: {"comment": "Crew sent."}, ("changed", PROBLEM)),
    ("POST", "alert-rules/"): (None, lambda w: NEW_RULE, ("created", RULE)),
    ("PUT", "alert-rules/{pk}/"): ("rule", lambda w: NEW_RULE, ("changed", RULE)),
    ("PATCH", "alert-rules/{pk}/"): ("rule", lambda w: {"olts": [w.olt.pk]}, ("changed", RULE)),
    ("DELETE", "alert-rules/{pk}/"): ("rule", None, ("deleted", RULE)),
    ("POST", "alert-rules/{pk}/test/"): ("rule", None, ("test_requested", CHANNEL)),
    ("POST", "channels/"): (None, lambda w: NEW_CHANNEL, ("created", CHANNEL)),
    ("PUT", "channels/{pk}/"): ("channel", lambda w: NEW_CHANNEL, ("changed", CHANNEL)),
    ("PATCH", "channels/{pk}/"): ("channel", lambda w: {"enabled": False}, ("changed", CHANNEL)),
    ("DELETE", "channels/{pk}/"): ("channel", None, ("deleted", CHANNEL)),
    ("POST", "channels/{pk}/test/"): ("channel", None, ("test_requested", CHANNEL)),
    ("POST", "deliveries/{pk}/retry/"): ("delivery", None, ("sent_again", DELIVERY)),
}

# These return something and change nothing.
QUESTIONS = {("POST", "alert-rules/{pk}/try/")}

# Admin page and action: the chosen row, and the change that must be recorded.
ADMIN_ACTIONS = {
    ("accounts.ApiToken", "revoke"): ("token", ("revoked", TOKEN)),
    ("accounts.FailedLogin", "unlock_selected"): ("failed", ("unlocked", USER)),
    ("accounts.FailedLogin", "unlock"): ("failed", ("unlocked", USER)),
    ("auth.User", "end_sessions"): ("user", ("sessions_ended", USER)),
    ("auth.User", "remove_two_factor"): ("factor", ("two_factor_off", USER)),
    ("inventory.Olt", "enable_chosen"): ("disabled olt", ("changed", OLT)),
    ("inventory.Olt", "disable_chosen"): ("olt", ("changed", OLT)),
    ("inventory.Olt", "close_breakers"): ("olt", ("breaker_closed", OLT)),
    ("inventory.Olt", "close_breaker"): ("olt", ("breaker_closed", OLT)),
    ("jobs.Workflow", "apply_usual"): ("spare", ("created", NODE)),
    ("jobs.Workflow", "apply_jobs"): ("olt", ("created", NODE)),
    ("jobs.WorkflowNode", "run_chosen"): ("node", ("run_requested", NODE)),
    ("jobs.SnmpJob", "enable_chosen"): ("disabled job", ("changed", JOB)),
    ("jobs.SnmpJob", "disable_chosen"): ("job", ("changed", JOB)),
    ("jobs.SnmpJob", "propose_jobs"): (None, ("created", JOB)),
    ("alerts.Alert", "acknowledge_chosen"): ("alert", ("acknowledged", ALERT)),
    ("alerts.Delivery", "retry_chosen"): ("delivery", ("sent_again", DELIVERY)),
    ("alerts.Channel", "enable_chosen"): ("disabled channel", ("changed", CHANNEL)),
    ("alerts.Channel", "disable_chosen"): ("channel", ("changed", CHANNEL)),
    ("alerts.Channel", "send_test"): ("channel", ("test_requested", CHANNEL)),
    ("alerts.Rule", "enable_chosen"): ("disabled rule", ("changed", RULE)),
    ("alerts.Rule", "disable_chosen"): ("rule", ("changed", RULE)),
}

# Tables that nobody edits, or whose changes are recorded by their own actions.
NOT_RECORDED = {
    "admin.LogEntry": "not used any more",
    "alerts.Alert": "made by the engine; an acknowledgement is an action",
    "alerts.Delivery": "made by the engine; test and retry are actions",
    "problems.Problem": "made by the engine; what people do about it is an action",
    "problems.ProblemEntry": "the history of a problem; each action of a person is recorded too",
    "auth.Permission": "made by migrations",
    "changes.Change": "the record itself",
    "maintenance.MaintenanceWindow": "made by the engine; to end or extend it is a change of its maintenance",
    "contenttypes.ContentType": "made by migrations",
    "dashboard.SavedView": "recorded while it is shared",
    "inventory.Question": "a trial of a job is an action",
    "accounts.UserSession": "logins and logouts are actions",
    "accounts.TwoFactor": "turning it on and off are actions",
    "accounts.RecoveryCode": "part of the second factor",
    "axes.AccessAttempt": "failed logins are actions, and so is unlocking",
    "axes.AccessAttemptExpiration": "failed logins are actions",
    "axes.AccessFailureLog": "not used",
    "axes.AccessLog": "not used",
}
APPS_OF_THE_ENGINE = {"polling", "telemetry", "coordinator"}


def test_each_write_of_the_api_is_in_the_table():
    writes = {
        (method, path.removeprefix("/api/v1/"))
        for path, method, _view in EndpointEnumerator().get_api_endpoints()
        if method not in ("GET", "HEAD", "OPTIONS")
    }
    assert writes == API.keys() | QUESTIONS


@pytest.mark.parametrize("endpoint", API, ids=" ".join)
def test_each_write_of_the_api_is_recorded(api, world, endpoint):
    (method, path), (name, body, expected) = endpoint, API[endpoint]
    if body == "disabled":
        Olt.objects.update(enabled=False)
        body = None
    for parameter in ("{pk}", "{node_id}", "{onu_id}"):
        path = path.replace(parameter, str(getattr(world, name).pk) if name else "")
    before = set(Change.objects.values_list("pk", flat=True))

    answer = getattr(api, method.lower())(f"/api/v1/{path}", body(world) if body else None, format="json")

    assert answer.status_code < 300, answer.content
    made = list(Change.objects.exclude(pk__in=before))
    assert expected in {(change.action, change.object_type) for change in made}
    assert {change.actor for change in made} == {"boss"}
    assert {change.request_id for change in made} == {answer["X-Request-ID"]}


def admin_actions():
    lists = ("actions_list", "actions_row", "actions_detail", "actions_submit_line")
    return {
        (model._meta.label, name)
        for model, page in admin.site._registry.items()
        for name in [*(page.actions or ()), *(each for kind in lists for each in getattr(page, kind, ()))]
    }


def test_each_action_of_the_admin_is_in_the_table():
    assert admin_actions() == set(ADMIN_ACTIONS)


@pytest.mark.parametrize("each", ADMIN_ACTIONS, ids=" ".join)
def test_each_action_of_the_admin_is_recorded(admin_page, world, each):
    (label, action), (name, expected) = each, ADMIN_ACTIONS[each]
    page = admin.site._registry[apps.get_model(label)]
    row = getattr(world, name.removeprefix("disabled ")) if name else None
    if name and name.startswith("disabled"):
        type(row).objects.filter(pk=row.pk).update(enabled=False)
    prefix = f"admin:{label.lower().replace('.', '_')}"
    if action in (page.actions or ()):
        url, form = f"{prefix}_changelist", {"action": action, "_selected_action": [row.pk], "confirmed": "1"}
        answer = admin_page.post(reverse(url), form)
    else:
        form = {"_form_submitted": "on", "brand": "huawei", "jobs": [world.job.pk]}
        answer = admin_page.post(reverse(f"{prefix}_{action}", args=[row.pk] if row else []), form)

    assert answer.status_code in (200, 302)
    made = list(Change.objects.filter(action=expected[0], object_type=expected[1]))
    assert made
    assert {(change.actor, change.interface) for change in made} == {("boss", "admin")}
    assert not LogEntry.objects.exists()


def test_each_table_is_recorded_or_needs_no_record():
    ours = {model._meta.label for model in apps.get_models() if not model._meta.proxy}
    others = {label for label in ours - set(RECORDED) if label.partition(".")[0] not in APPS_OF_THE_ENGINE}
    assert others == set(NOT_RECORDED)


@pytest.mark.parametrize("name", ["job", "channel", "rule"])
def test_a_row_that_is_deleted_in_the_admin_is_recorded_with_its_values(admin_page, world, name):
    row = getattr(world, name)
    page = f"admin:{row._meta.label_lower.replace('.', '_')}_delete"

    assert admin_page.post(reverse(page, args=[row.pk]), {"post": "yes"}).status_code == 302

    change = Change.objects.get(action="deleted", object_type=row._meta.label_lower)
    assert (change.object_id, change.object_name) == (row.pk, row.name)
    assert change.fields["name"] == [row.name, None]
