"""A user with a scope sees nothing of other OLTs: in no page, list, detail, file, counter or event."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from alert_cast import make_alert, make_channel, make_delivery, make_rule
from cast import (
    T0,
    import_olts,
    make_event,
    make_execution,
    make_job,
    make_maintenance,
    make_olt,
    make_onu,
    make_plan,
    make_port,
    make_quota,
    make_violation,
)
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone

from facho.alerts.models import Channel, Delivery, Rule
from facho.apps.accounts.models import ApiToken, FailedLogin
from facho.apps.coordinator.models import CoordinatorLog, Forecast
from facho.apps.dashboard.stream import news
from facho.apps.inventory.admin_tools import ScopedAdmin
from facho.apps.inventory.models import Olt, Question, Scope, Site, Tag
from facho.apps.inventory.scopes import FleetView, ScopedView, restrict, visible_ids, visible_olts
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling import live
from facho.apps.polling.models import ExecutionAttempt, Poller
from facho.apps.telemetry.models import Onu, OnuNote
from facho.engine.model import QuestionKind
from facho.engine.quota.quota import hour_of
from history_rows import add_reading
from problem_rows import make_problem

# Words that are only in rows of the hidden OLT.
HIDDEN = ("OLT-OCULTA", "10.66.66.66", "OCUL0000", "cliente-oculto", "sitio-oculto", "etiqueta-oculta")


@pytest.fixture
def engineer(db: None) -> User:
    """A user with every permission, without a scope."""
    user = User.objects.create(username="engineer", is_staff=True)
    user.user_permissions.set(Permission.objects.all())
    return user


@pytest.fixture
def lima(engineer: User) -> Scope:
    """The scope of the engineer: the site Lima, or the tag core."""
    scope = Scope.objects.create(user=engineer)
    scope.sites.set([Site.objects.create(name="Lima")])
    scope.tags.set([Tag.objects.create(name="core")])
    return scope


@pytest.fixture
def seen(lima: Scope) -> Olt:
    return make_olt("OLT-LIMA-01", host="10.1.1.1", site=lima.sites.get())


@pytest.fixture
def hidden(lima: Scope) -> Olt:
    olt = make_olt("OLT-OCULTA", host="10.66.66.66", site=Site.objects.create(name="sitio-oculto"))
    olt.tags.set([Tag.objects.create(name="etiqueta-oculta")])
    return olt


@pytest.fixture
def both(seen: Olt, hidden: Olt, engineer: User) -> Iterator[dict[str, tuple[int, int]]]:
    """Rows of everything on both OLTs. The ids of each kind: of the visible OLT, and of the hidden one."""
    ids: dict[str, tuple[int, int]] = {"olt": (seen.pk, hidden.pk), "workflow": (seen.pk, hidden.pk)}
    power, own = make_job("Optical power"), make_job("Hidden job")
    make_job("Names", columns=["name"], follows=power)
    names, channel = ("LIMA0000", "OCUL0000"), make_channel()
    rows = [_fill(olt, power, name, channel, engineer) for olt, name in zip((seen, hidden), names, strict=True)]
    own.apply_to([hidden])
    ids |= {name: (rows[0][name], rows[1][name]) for name in rows[0]}
    ids["site"] = (seen.site_id, hidden.site_id)
    ids["tag"] = (Tag.objects.get(name="core").pk, hidden.tags.get().pk)
    Forecast.objects.create(params={"hours": 1}, status="DONE", result={"olts": [hidden.name]})
    live.attach(_Bus(_snapshot(rows, (seen, hidden))))
    yield ids
    live.attach(None)


def _fill(olt, job, serial, channel, user):
    now = timezone.now()
    [node] = job.apply_to([olt])
    node.blank_runs = {"rx_dbm": 50}
    node.save()
    client = "cliente-oculto" if olt.name == "OLT-OCULTA" else "client"
    onus = [
        make_onu(olt, n, serial=f"{serial}{n}", name=f"{client}-{n}", rx_dbm=-30.0, state=state)
        for n, state in enumerate(("online", "los", "online"), 1)
    ]
    add_reading(onus[0], now - timedelta(minutes=5), state="online", rx_dbm=-30.0)
    master = make_execution(node, now - timedelta(minutes=3), status="FAILED", error=f"{olt.name} is silent.")
    link = make_execution(node.chain.get(), now - timedelta(minutes=3), master_execution=master)
    ExecutionAttempt.objects.create(execution=link, number=1, status="FAILED", started_at=T0, error=olt.name)
    alert, rule = make_alert(olt), make_rule(f"Rule of {olt.name}")
    rule.olts.set([olt])
    rule.settle_olts()
    Poller.objects.create(
        poller_id=olt.pk, status="BUSY", current_olt_id=olt.pk, current_node_id=node.pk, updated_at=now
    )
    log = CoordinatorLog.objects.create(
        olt=olt, event_type="BREAKER_OPENED", level="WARNING", message=olt.name, details={"olt": olt.name}, timestamp=T0
    )
    port = make_port(olt, 0, 1, online=2, los=1)
    return {
        "ponport": port.pk,
        "place": (olt.pk, port.slot, port.port),
        "workflownode": node.pk,
        "onu": onus[0].pk,
        "onuevent": make_event(onus[0], now, cause=f"{serial}9").pk,
        "execution": master.pk,
        "quotatracker": make_quota(node, hour_of(now), completed=1, failed=3).pk,
        "quotaviolation": make_violation(node, hour_of(now)).pk,
        "executionplan": make_plan(node, hour_of(now)).pk,
        "coordinatorlog": log.pk,
        "alert": alert.pk,
        "problem": make_problem(olt, evidence={"error": f"{olt.name} is silent"}, kind="olt_down").pk,
        "rule": rule.pk,
        "delivery": make_delivery(channel, alert).pk,
        "note": OnuNote.objects.create(onu=onus[0], text=f"{client} called", author_name="noc").pk,
        "maintenance": make_maintenance(olt, reason=f"{client} complains").pk,
        "question": Question.ask(olt, QuestionKind.TRY_JOB, {}, user).pk,
    }


def _snapshot(rows, olts):
    named = [
        {"olt_id": olt.pk, "olt": olt.name, "node_id": row["workflownode"], "node": "Optical power"}
        for row, olt in zip(rows, olts, strict=True)
    ]
    at = timezone.now().isoformat()
    pollers = [
        {
            **each, "id": each["olt_id"], "status": "BUSY", "link": 1, "links": 1, "busy_since": at, "seconds": 1.0,
            "current_execution_id": 7, "active_executions": [{"id": 7, "node_id": 1, "node": "x", "status": "RUNNING"}],
            "busy_time": 1.0, "total_time": 1.0, "tasks_completed": 1, "tasks_delayed": 0, "created_at": at,
            "updated_at": at, "worker": "", "host": "",
        }
        for each in named
    ]  # fmt: skip
    queued = [
        {**each, "slot": at, "late": 0.0, "priority": 40, "trigger": "schedule", "links": 1, "attempt": 1,
         "waiting_for": None}
        for each in named
    ]  # fmt: skip
    queue = {"size": 2, "delayed": 0, "is_overload": False, "next": queued}
    return {**live.EMPTY, "at": at, "pollers": pollers, "queue": queue}


class _Bus:
    """Brings one snapshot, and a notification of each OLT."""

    def __init__(self, snapshot):
        self.snapshot = snapshot

    def latest(self, topic):
        return self.snapshot if topic == "snapshot" else None

    async def subscribe(self, topics):
        yield "snapshot", self.snapshot
        for each in self.snapshot["queue"]["next"]:
            yield "execution", {"id": each["node_id"], "olt_id": each["olt_id"], "status": "SUCCESS"}
            yield "readings", {"olt_id": each["olt_id"], "node_id": each["node_id"], "count": 3}


@pytest.fixture
def scoped(engineer: User) -> Client:
    client = Client()
    client.force_login(engineer)
    return client


@pytest.fixture
def free(db: None) -> Client:
    """A browser of a user with the same permissions, and no scope."""
    user = User.objects.create(username="free", is_staff=True)
    user.user_permissions.set(Permission.objects.all())
    client = Client()
    client.force_login(user)
    return client


# Pages without OLTs, or that end the session.
ELSEWHERE = {"logout", "login", "admin:logout", "admin:login", "set_language", "admin:view_on_site", "dashboard:events"}
# Users, tokens, sessions and failed logins.
OF_ACCOUNTS = ("admin:accounts_", "admin:auth_", "api-token", "api-apitoken", "dashboard:revoke", "dashboard:end")
OF_ACCOUNTS += ("dashboard:user", "dashboard:act-on-user")
# Tested with the record of changes.
ELSEWHERE |= {"api-change-detail"}
# Other names of rows in addresses.
BY_NAME = {
    "api-node": "workflownode",
    "api-event": "onuevent",
    "api-quota": "quotatracker",
    "api-violation": "quotaviolation",
    "api-plan": "executionplan",
    "api-log": "coordinatorlog",
    "api-run-node": "workflownode",
    "api-explain": "workflownode",
    "dashboard:node": "workflownode",
    "api-port": "ponport",
    "dashboard:port": "place",
    "dashboard:compare": "olt",
    "api-view": "savedview",
    "dashboard:saved-view": "savedview",
}
# Rows that all users share.
SHARED = {"snmpjob", "job", "channel", "pollerstats", "poller", "forecast", "savedview"}


def routes(patterns=None, namespace="") -> Iterator[tuple[str, list[str]]]:
    """Return the name and the arguments of each address."""
    for each in get_resolver().url_patterns if patterns is None else patterns:
        if not isinstance(each, URLPattern):
            inner = f"{each.namespace}:" if each.namespace else namespace
            yield from routes(each.url_patterns, inner)
        elif each.name:
            arguments = [*each.pattern.regex.groupindex]
            if "format" not in arguments:
                yield f"{namespace}{each.name}", arguments


def kind_of(name: str, kinds) -> str | None:
    """Return the kind of the row in an address."""
    for start, kind in sorted(BY_NAME.items(), key=lambda item: -len(item[0])):
        if name.startswith(start):
            return kind
    parts = name.removeprefix("admin:").removeprefix("dashboard:").removeprefix("api-").replace("-", "_").split("_")
    return next((part for part in parts if part in kinds or part in SHARED), None)


def arguments_of(row) -> list:
    """Return the arguments of an address: an id, or the parts of a place."""
    return [*row] if isinstance(row, tuple) else [row]


def leaks(answer) -> list[str]:
    text = answer.content.decode("utf-8", "replace") if not answer.streaming else ""
    return [word for word in HIDDEN if word in text]


def test_no_list_and_no_page_shows_a_hidden_olt(scoped, free, both):
    shown_to_free, leaking, broken = set(), {}, {}
    for name in sorted({name for name, arguments in routes() if not arguments} - ELSEWHERE):
        path = reverse(name)
        answer = scoped.get(path)
        if answer.status_code >= 500:
            broken[name] = answer.status_code
        if found := leaks(answer):
            leaking[name] = found
        if leaks(free.get(path)):
            shown_to_free.add(name)

    assert (leaking, broken) == ({}, {})
    # Without a scope these show it, so the rows are there.
    assert shown_to_free >= {
        "dashboard:overview", "dashboard:problems", "dashboard:olts", "dashboard:onus", "dashboard:executions",
        "dashboard:ports", "api-port-list",
        "api-olt-list", "api-site-list", "api-tag-list", "api-onu-list", "api-onu-summary", "api-event-list",
        "api-job-list", "api-node-list", "api-execution-list", "api-quota-list", "api-violation-list", "api-plan-list",
        "api-log-list", "api-alert-list", "api-problem-list", "api-rule-list", "api-pollers", "api-queue",
        "api-forecast-list",
        "admin:inventory_olt_changelist", "admin:inventory_site_changelist", "admin:telemetry_onu_changelist",
        "admin:telemetry_onuevent_changelist", "admin:jobs_workflow_changelist", "admin:jobs_workflownode_changelist",
        "admin:jobs_snmpjob_add", "admin:polling_execution_changelist", "admin:polling_poller_changelist",
        "admin:coordinator_quotatracker_changelist", "admin:coordinator_quotaviolation_changelist",
        "admin:coordinator_executionplan_changelist", "admin:coordinator_coordinatorlog_changelist",
        "admin:alerts_alert_changelist", "admin:alerts_rule_changelist", "admin:alerts_rule_add",
        "admin:alerts_delivery_changelist",
    }  # fmt: skip


def test_no_address_of_a_hidden_row_is_found(scoped, free, both):
    unknown, found, missing, leaking = [], {}, {}, {}
    for name, arguments in routes():
        if not arguments or name in ELSEWHERE or name.startswith(OF_ACCOUNTS):
            continue
        # A list of pages, and dialogs without content: `test_no_action_reaches_a_hidden_row` confirms them.
        if name in ("admin:app_list", "admin:jobs_workflow_run") or name.endswith(("_close_breaker", "_apply_jobs")):
            continue
        kind = kind_of(name, both)
        if kind is None:
            unknown.append(name)
        if kind is None or kind in SHARED:
            continue
        mine, others = both[kind]
        answer = scoped.get(reverse(name, args=arguments_of(others)))
        if answer.status_code in (200, 202):
            found[name] = answer.status_code
        if leaks(answer):
            leaking[name] = leaks(answer)
        if scoped.get(reverse(name, args=arguments_of(mine))).status_code in (404, 500):
            missing[name] = reverse(name, args=arguments_of(mine))

    assert (unknown, found, missing, leaking) == ([], {}, {}, {})


def test_every_api_view_of_olts_is_scoped():
    """A view set of rows with an OLT says how it obeys the scope."""
    plain = {"RuleViewSet"}
    forgotten = set()
    for view in {each.callback.cls for each in _patterns() if hasattr(each.callback, "cls")}:
        queryset = getattr(view, "queryset", None)
        if queryset is not None and _has_olt(queryset.model) and not issubclass(view, ScopedView | FleetView):
            forgotten.add(view.__name__)

    assert forgotten == plain


def test_every_admin_page_of_olts_is_scoped():
    plain = {"RuleAdmin"}
    forgotten = {
        type(page).__name__
        for model, page in admin.site._registry.items()
        if _has_olt(model) and not (isinstance(page, ScopedAdmin) and page.olt_path)
    }

    assert forgotten == plain


def _patterns(patterns=None):
    for each in get_resolver().url_patterns if patterns is None else patterns:
        yield from [each] if isinstance(each, URLPattern) else _patterns(each.url_patterns)


def _has_olt(model):
    own = [field.related_model for field in model._meta.get_fields() if field.is_relation and not field.auto_created]
    return issubclass(model, Olt) or any(isinstance(each, type) and issubclass(each, Olt) for each in own)


def test_a_search_and_an_order_find_nothing_hidden(scoped, both):
    paths = "olts onus executions nodes quotas violations plans logs alerts ports problems"
    for path in paths.split():
        for word in ("OCUL", "oculto"):
            answer = scoped.get(f"/api/v1/{path}/", {"search": word})
            if answer.status_code == 200:
                assert answer.json()["count"] == 0, path
    assert scoped.get("/api/v1/olts/", {"ordering": "-onus_total"}).json()["count"] == 1
    assert "cliente-oculto" not in scoped.get("/onus/?q=oculto&sort=rx_dbm").content.decode()
    assert "OLT-OCULTA" not in scoped.get("/olts/?q=oculta").content.decode()


@pytest.mark.parametrize("path", ["onus", "ports", "executions", "nodes", "quotas", "violations", "plans"])
def test_a_filter_by_a_hidden_olt_is_like_one_by_an_unknown_olt(scoped, both, path):
    hidden = scoped.get(f"/api/v1/{path}/", {"olt": both["olt"][1]})
    unknown = scoped.get(f"/api/v1/{path}/", {"olt": 999})

    assert (hidden.status_code, hidden.json()) == (unknown.status_code, unknown.json())


def test_counters_are_of_visible_olts(scoped, free, both, seen):
    assert scoped.get("/api/v1/onus/summary/").json()["total"] == 3
    assert free.get("/api/v1/onus/summary/").json()["total"] == 6
    shown = scoped.get("/").context
    assert (len(shown["network"].tiles), shown["network"].onus.total, shown["outcomes"]["total"]) == (1, 3, 2)
    assert [each.olt_id for each in shown["hour"].worst] == [seen.pk]
    assert sum(shown["violations"].by_severity.values()) == 1
    assert {onu.olt_id for onu in [*shown["weakest"], *shown["dark"]]} == {seen.pk}
    [job] = scoped.get("/api/v1/jobs/", {"search": "Optical"}).json()["results"]
    assert [each["id"] for each in job["olts"]] == [seen.pk]
    assert scoped.get("/api/v1/jobs/", {"olt": both["olt"][1]}).json()["count"] == 0
    jobs = scoped.get(reverse("admin:jobs_snmpjob_changelist")).context["cl"].result_list
    assert {job.name: job.olt_count for job in jobs} == {"Hidden job": 0, "Names": 1, "Optical power": 1}
    assert {each["name"]: each["olts_total"] for each in scoped.get("/api/v1/sites/").json()["results"]} == {"Lima": 1}


def test_the_numbers_of_the_pool_stay_and_names_do_not(scoped, both, seen):
    queue = scoped.get("/api/v1/pollers/queue/").json()
    pollers = scoped.get("/api/v1/pollers/").json()["pollers"]

    assert (queue["size"], [each["olt"] for each in queue["next"]]) == (2, ["OLT-LIMA-01", "another OLT"])
    assert [each["olt_id"] for each in queue["next"]] == [seen.pk, None]
    assert [(each["status"], each["olt"]) for each in pollers] == [("BUSY", "OLT-LIMA-01"), ("BUSY", "another OLT")]
    assert (pollers[1]["current_node_id"], pollers[1]["active_executions"]) == (None, [])


async def test_live_events_are_of_visible_olts():
    olts = [Olt(pk=1, name="A"), Olt(pk=2, name="OLT-OCULTA")]
    snapshot = _snapshot([{"workflownode": 7}, {"workflownode": 8}], olts)

    stream = [item async for item in news(_Bus(snapshot), ids={1}, hidden="another OLT")]

    assert "OLT-OCULTA" not in "".join(stream)
    payloads = [json.loads(item.partition("data: ")[2]) for item in stream if "data: " in item]
    assert [each["olt"] for each in payloads[0]["pollers"]] == ["A", "another OLT"]
    assert [each["olt_id"] for each in payloads[1:]] == [1, 1]


def test_no_action_reaches_a_hidden_row(scoped, both, hidden):
    olt, node = both["olt"][1], both["workflownode"][1]
    api = "/api/v1"
    posts = [
        f"{api}/olts/{olt}/enable/", f"{api}/olts/{olt}/disable/", f"{api}/olts/{olt}/close-breaker/",
        f"/olts/{olt}/settings/test/", f"/olts/{olt}/replace/", f"/olts/{olt}/replace/test/", f"/olts/{olt}/delete/",
        f"{api}/pollers/nodes/{node}/run/", f"{api}/alerts/{both['alert'][1]}/acknowledge/",
        f"{api}/deliveries/{both['delivery'][1]}/retry/", f"{api}/problems/{both['problem'][1]}/unacknowledge/",
        f"/problems/{both['problem'][1]}/act/",
        reverse("admin:jobs_workflow_run", args=[olt, node]),
    ]  # fmt: skip
    assert {path: scoped.post(path).status_code for path in posts} == dict.fromkeys(posts, 404)
    for path in (f"{api}/olts/{olt}/", f"{api}/nodes/{node}/", f"{api}/alert-rules/{both['rule'][1]}/"):
        assert scoped.delete(path).status_code == 404
        assert scoped.patch(path, {}, content_type="application/json").status_code == 404
    assert scoped.patch(f"{api}/ports/{both['ponport'][1]}/", {}, content_type="application/json").status_code == 404
    capacity = reverse("dashboard:port-capacity", args=both["place"][1])
    assert scoped.post(capacity, {"capacity": "5"}).status_code == 404
    dialog = {"_form_submitted": "1", "jobs": [SnmpJob.objects.get(name="Optical power").pk]}
    for name in ("admin:inventory_olt_close_breaker", "admin:jobs_workflow_apply_jobs"):
        assert scoped.post(reverse(name, args=[olt]), dialog).status_code in (200, 404)
    for name in ("inventory_olt", "jobs_workflow", "jobs_workflownode"):
        action = {"action": "disable_chosen", "_selected_action": [olt, node], "index": 0, "confirmed": "1"}
        scoped.post(reverse(f"admin:{name}_changelist"), action)
    hidden.refresh_from_db()
    assert hidden.enabled
    assert not WorkflowNode.objects.filter(olt=hidden, run_requested_at__isnull=False).exists()


def send(client, path, body, method="post"):
    return getattr(client, method)(path, body, content_type="application/json")


def test_a_job_is_applied_and_tried_on_visible_olts_only(scoped, both):
    job = SnmpJob.objects.get(name="Optical power")
    trial = {"olt": both["olt"][1], "brand": "huawei", "kind": "table", "columns": ["rx_dbm"]}

    for path, body in (
        (f"/api/v1/jobs/{job.pk}/apply/", {"olts": [both["olt"][1]]}),
        ("/api/v1/nodes/", {"olt": both["olt"][1], "job": job.pk}),
        ("/api/v1/jobs/try/", trial),
    ):
        answer = send(scoped, path, body)
        assert (answer.status_code, "does not exist" in answer.content.decode()) == (400, True), path


def test_a_job_that_hidden_olts_use_is_not_changed(scoped, both, engineer):
    shared, own = SnmpJob.objects.get(name="Optical power"), make_job("Mine")
    said = "Optical power is applied to OLTs outside your scope, so you cannot change it."

    changed = send(scoped, f"/api/v1/jobs/{shared.pk}/", {"interval_seconds": 600}, "patch")
    chained = send(
        scoped,
        "/api/v1/jobs/",
        {"name": "More", "brand": "huawei", "kind": "table", "columns": ["tx_dbm"], "follows": shared.pk},
    )
    deleted = scoped.delete(f"/api/v1/jobs/{shared.pk}/?followers=delete")
    scoped.post(
        reverse("admin:jobs_snmpjob_changelist"),
        {"action": "disable_chosen", "_selected_action": [shared.pk, own.pk], "confirmed": "1"},
    )

    assert [answer.status_code for answer in (changed, chained, deleted)] == [403, 403, 403]
    assert changed.json() == {"detail": said}
    assert {job.name: job.enabled for job in SnmpJob.objects.filter(pk__in=[shared.pk, own.pk])} == {
        "Optical power": True,
        "Mine": False,
    }
    page = scoped.get(reverse("admin:jobs_snmpjob_change", args=[shared.pk])).content.decode()
    assert "OLT-LIMA-01" in page
    assert 'name="_save"' not in page


def test_a_rule_is_about_visible_olts(scoped, both):
    rule = {"name": "Mine", "kind": "olt_unreachable"}

    refused = [
        send(scoped, "/api/v1/alert-rules/", rule | more)
        for more in ({}, {"olts": [both["olt"][1]]}, {"kind": "pool_saturated", "olts": [both["olt"][0]]})
    ]
    accepted = send(scoped, "/api/v1/alert-rules/", rule | {"olts": [both["olt"][0]]})

    assert [answer.status_code for answer in refused] == [400, 400, 400]
    assert refused[0].json() == {"olts": ["Choose OLTs of your scope. A rule without OLTs watches all of them."]}
    assert accepted.status_code == 201


def test_forecasts_and_accounts_need_a_user_without_a_scope(scoped, free, both):
    said = "This concerns all OLTs. It needs a user without a scope."

    assert send(scoped, "/api/v1/forecasts/", {"hours": 1}).json() == {"detail": said}
    for page in (reverse("dashboard:forecast"), reverse("dashboard:forecast-answer", args=[Forecast.objects.get().pk])):
        assert (scoped.get(page).status_code, free.get(page).status_code) == (403, 200)
        assert said in scoped.get(page).content.decode()
    assert scoped.get(reverse("admin:auth_user_changelist")).status_code == 403
    assert scoped.get(reverse("admin:auth_user_add")).status_code == 403
    for name in ("auth_user", "auth_group", "accounts_apitoken", "accounts_failedlogin"):
        page = reverse(f"admin:{name}_changelist")
        assert (scoped.get(page).status_code, free.get(page).status_code) == (403, 200)


def test_tokens_and_locks_of_others_are_not_ended_with_a_scope(scoped, admin_page, both):
    token = ApiToken(user=User.objects.get(username="boss"), name="script")
    token.issue()
    failed = FailedLogin.objects.create(username="boss", ip_address="192.0.2.7", failures_since_start=5)
    dialog = {"_form_submitted": "1"}

    for name, row in (("accounts_apitoken_revoke", token), ("accounts_failedlogin_unlock", failed)):
        assert scoped.post(reverse(f"admin:{name}", args=[row.pk]), dialog).status_code == 403

    assert ApiToken.objects.valid().count() == 1
    assert FailedLogin.objects.exists()
    assert admin_page.post(reverse("admin:accounts_failedlogin_unlock", args=[failed.pk]), dialog).status_code == 200


@pytest.fixture
def channels(both) -> tuple[Channel, Channel]:
    """A channel of a rule about the visible OLT, and one that the hidden OLT uses too."""
    own, shared = make_channel("Own"), make_channel("Shared")
    seen_rule, hidden_rule = (Rule.objects.get(pk=pk) for pk in both["rule"])
    seen_rule.channels.set([own, shared])
    hidden_rule.channels.set([shared])
    return own, shared


def test_a_channel_that_alerts_of_hidden_olts_escalate_to_is_not_changed(scoped, both, channels):
    own, _shared = channels
    Rule.objects.get(pk=both["rule"][1]).escalation_channels.set([own])

    assert send(scoped, f"/api/v1/channels/{own.pk}/", {"enabled": False}, "patch").status_code == 403


def test_a_channel_of_hidden_olts_is_not_changed(scoped, free, channels):
    """With another destination, its user would get the alerts of all OLTs."""
    own, shared = channels
    said = "Shared sends alerts of OLTs outside your scope, so you cannot change it."
    page = reverse("admin:alerts_channel_change", args=[shared.pk])

    for path, method in (("", "patch"), ("", "put"), ("", "delete"), ("test/", "post")):
        body = {"name": "x", "kind": "webhook", "url": "https://127.0.0.1/x", "signing_secret": "x" * 16}
        answer = send(scoped, f"/api/v1/channels/{shared.pk}/{path}", body if method != "post" else {}, method)
        assert (answer.status_code, answer.json()) == (403, {"detail": said}), method
    assert scoped.post(page, {"name": "x"}).status_code == 403
    assert 'name="_save"' not in scoped.get(page).content.decode()
    assert (
        scoped.post(reverse("admin:alerts_channel_send_test", args=[shared.pk]), {"_form_submitted": "1"}).status_code
        == 403
    )
    for action in ("disable_chosen", "delete_selected"):
        chosen = {"action": action, "_selected_action": [own.pk, shared.pk], "post": "yes", "confirmed": "1"}
        scoped.post(reverse("admin:alerts_channel_changelist"), chosen)

    shared.refresh_from_db()
    assert (shared.name, shared.enabled) == ("Shared", True)
    assert not Delivery.objects.filter(news="test").exists()
    own.refresh_from_db()
    assert not own.enabled
    assert send(scoped, f"/api/v1/channels/{own.pk}/", {"enabled": True}, "patch").status_code == 200
    assert send(free, f"/api/v1/channels/{shared.pk}/", {"enabled": False}, "patch").status_code == 200


NEW = {"name": "OLT-NUEVA", "brand": "huawei", "host": "10.1.1.9", "community": "public"}


@pytest.mark.parametrize(
    ("place", "status"),
    [
        pytest.param({}, 400, id="neither"),
        pytest.param({"site": "lima"}, 201, id="a site of the scope"),
        pytest.param({"tags": ["Core"]}, 201, id="a tag of the scope"),
        pytest.param({"site": "sitio-oculto"}, 400, id="another site"),
        pytest.param({"tags": ["etiqueta-oculta"]}, 400, id="another tag"),
    ],
)
def test_a_new_olt_has_a_place_of_the_scope(scoped, seen, hidden, place, status):
    answer = send(scoped, "/api/v1/olts/", NEW | place)

    assert answer.status_code == status, answer.content
    if status == 201:
        assert answer.json()["site"] == ("Lima" if "site" in place else None)
        assert answer.json()["tags"] == (["core"] if "tags" in place else [])
    if not place:
        said = "Give the OLT a site or tag of your scope. Sites: Lima. Tags: core."
        assert answer.json() == {"non_field_errors": [said]}


def test_an_olt_does_not_leave_the_scope(scoped, seen):
    path = f"/api/v1/olts/{seen.pk}/"

    out = send(scoped, path, {"site": None}, "patch")
    over = send(scoped, path, {"site": None, "tags": ["core"]}, "patch")

    assert (out.status_code, over.status_code) == (400, 200)
    seen.refresh_from_db()
    assert (seen.site, [*seen.tags.values_list("name", flat=True)]) == (None, ["core"])


def test_the_form_of_an_olt_obeys_the_scope(scoped, both, seen, hidden):
    path = reverse("admin:inventory_olt_change", args=[seen.pk])
    form = {
        "name": seen.name, "brand": "huawei", "host": "10.1.1.1", "port": 161, "enabled": "on", "version": "2c",
        "location": "here",
    }  # fmt: skip

    nowhere = scoped.post(path, form)
    elsewhere = scoped.post(path, form | {"site": hidden.site_id})
    taken = scoped.post(path, form | {"site": seen.site_id, "host": hidden.host})
    saved = scoped.post(path, form | {"site": seen.site_id, "tags": [both["tag"][0]]})

    assert "Give the OLT a site or tag of your scope." in nowhere.content.decode()
    assert "Select a valid choice" in elsewhere.content.decode()
    assert "An OLT outside your scope already has this device." in taken.content.decode()
    assert "OLT-OCULTA" not in taken.content.decode()
    assert saved.status_code == 302
    seen.refresh_from_db()
    assert (seen.location, seen.tags.get().name) == ("here", "core")


def test_a_file_does_not_change_hidden_olts_or_leave_the_scope(scoped, both, hidden):
    head = "name,brand,host,site,tags\n"

    rows = {
        "OLT-OCULTA,huawei,10.1.1.8,Lima,": "already exists",
        "OLT-NUEVA,huawei,10.1.1.8,,": "Give the OLT a site or tag of your scope.",
        "OLT-NUEVA,huawei,10.1.1.8,Lima,new": "does not exist, or is outside your scope",
    }
    for row, said in rows.items():
        assert said in import_olts(scoped, head + row).content.decode()
    assert import_olts(scoped, f"{head}OLT-NUEVA,huawei,10.1.1.8,LIMA,core").status_code == 302

    hidden.refresh_from_db()
    assert hidden.host == "10.66.66.66"
    assert Olt.objects.get(name="OLT-NUEVA").site.name == "Lima"


def test_an_export_has_visible_olts_with_site_and_tags(scoped, both, seen):
    seen.tags.add(both["tag"][0])

    answer = scoped.get(reverse("dashboard:olt-settings-file"))

    text = answer.content.decode()
    assert "OLT-LIMA-01" in text
    assert "Lima" in text
    assert "core" in text
    assert leaks(answer) == []


def test_an_importer_who_may_add_tags_creates_them(free, db):
    assert import_olts(free, 'name,brand,host,site,tags\nA,huawei,10.1.1.8,Puno,"Core, vip,core"').status_code == 302

    assert (Olt.objects.get().site.name, [*Olt.objects.get().tags.values_list("name", flat=True)]) == (
        "Puno",
        ["core", "vip"],
    )


@pytest.mark.parametrize("field", ["site", "tags"])
def test_autocompletes_offer_visible_sites_and_tags(scoped, both, field):
    path = reverse("admin:autocomplete")

    answer = scoped.get(path, {"app_label": "inventory", "model_name": "olt", "field_name": field})

    assert [each["text"] for each in answer.json()["results"]] == ["Lima" if field == "site" else "core"]


def test_a_shared_device_is_not_named(scoped, both, seen, hidden):
    Olt.objects.update(device="10.66.66.1:161")

    page = scoped.get(f"/olts/{seen.pk}/")
    admin_page = scoped.get(reverse("admin:inventory_olt_change", args=[seen.pk]))

    assert scoped.get(f"/api/v1/olts/{seen.pk}/").json()["shares_device_with"] == []
    for answer in (page, admin_page):
        assert "an OLT outside your scope" in answer.content.decode()
        assert leaks(answer) == []


def test_a_token_has_the_scope_of_its_user(client, both, engineer):
    key = ApiToken(user=engineer, name="script").issue()

    answer = client.get("/api/v1/olts/", headers={"Authorization": f"Token {key}"})

    assert [each["name"] for each in answer.json()["results"]] == ["OLT-LIMA-01"]


def test_a_scope_is_the_union_of_its_sites_and_tags(lima, engineer, seen, hidden):
    tagged = make_olt("OLT-TAGGED", host="10.1.1.2")
    tagged.tags.set(lima.tags.all())
    seen.tags.set(lima.tags.all())

    assert visible_ids(engineer) == {seen.pk, tagged.pk}
    assert visible_ids(User(is_superuser=True)) is None
    assert set(visible_olts(User.objects.create(username="other"))) == {seen, tagged, hidden}


def test_a_scope_that_lost_its_sites_shows_nothing(lima, engineer, seen):
    Olt.objects.update(site=None)
    Site.objects.all().delete()
    Tag.objects.all().delete()

    assert list(restrict(Onu.objects.all(), engineer)) == []
    assert visible_ids(engineer) == frozenset()


def test_a_user_without_a_scope_pays_nothing(free, both, django_assert_num_queries):
    """The scope is read with the user: there are only queries of the session, the user and two of permissions."""
    # The first request stores the address and browser of the session.
    free.get("/api/v1/pollers/")
    with django_assert_num_queries(4):
        free.get("/api/v1/pollers/")


SCOPE = {"scope-TOTAL_FORMS": 1, "scope-INITIAL_FORMS": 0, "scope-MIN_NUM_FORMS": 0, "scope-MAX_NUM_FORMS": 1}


def user_form(client, user, **more):
    path = reverse("admin:auth_user_change", args=[user.pk])
    form = client.get(path).context["adminform"].form
    values = {name: form.initial.get(name) for name in ("username", "first_name", "last_name", "email")}
    values |= {"is_active": "on", "date_joined_0": "2025-01-01", "date_joined_1": "10:00:00"}
    return client.post(path, values | SCOPE | more)


def test_the_user_form_sets_and_removes_a_scope(admin_page, reader, db):
    site = Site.objects.create(name="Lima")

    assert user_form(admin_page, reader, **{"scope-0-sites": [site.pk]}).status_code == 302
    scope = Scope.objects.get(user=reader)
    assert [*scope.sites.all()] == [site]

    known = {"scope-INITIAL_FORMS": 1, "scope-0-id": scope.pk, "scope-0-user": reader.pk}
    assert user_form(admin_page, reader, **known).status_code == 302
    assert not Scope.objects.filter(user=reader).exists()

    # Nothing chosen, nothing stored.
    user_form(admin_page, reader)
    assert not Scope.objects.exists()


def test_a_superuser_has_no_scope(admin_page, reader, db):
    site = Site.objects.create(name="Lima")

    answer = user_form(admin_page, reader, **{"scope-0-sites": [site.pk], "is_superuser": "on"})

    assert "A superuser sees all OLTs." in answer.content.decode()
    assert not Scope.objects.exists()


def test_a_user_does_not_set_their_own_scope(free, lima):
    user = User.objects.get(username="free")

    page = free.get(reverse("admin:auth_user_change", args=[user.pk])).content.decode()

    assert 'name="scope-0-sites"' not in page


def test_a_site_has_a_name_of_one_line(api):
    answer = api.post("/api/v1/sites/", {"name": "Lima\x1b[31m"}, format="json")

    assert (answer.status_code, list(answer.json())) == (400, ["name"])
