"""axe-core on every page of the role matrix: the dashboard in light and dark, the admin with its forms, the login."""

from datetime import timedelta
from pathlib import Path

import axe_playwright_python
import pytest
from dashboard_bridge import SITE
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from apps.cast import (
    make_event,
    make_execution,
    make_job,
    make_maintenance,
    make_olt,
    make_onu,
    make_plan,
    make_quota,
    make_violation,
)
from apps.forecast_answers import ANSWER, QUESTION
from apps.test_role_matrix import ADMIN_MODELS, ADMIN_PAGES, NOBODY, PAGES, make_row, path_of, urls
from facho.apps.accounts.models import ApiToken
from facho.apps.coordinator.models import Forecast
from facho.apps.telemetry.models import OnuPosition, PonPort
from facho.engine.quota.quota import hour_of
from history_rows import add_reading
from problem_rows import make_problem

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")

# URLs of the matrix that are no pages.
NO_PAGES = {
    "oidc-login", "oidc-callback", "set_language", "dashboard:onu-history", "dashboard:onu-values",
    "dashboard:olt-values", "dashboard:events", "dashboard:onus-csv",
    "dashboard:port-history", "dashboard:suggestions", "dashboard:onus-xlsx", "dashboard:olts-csv", "admin:jsi18n",
    "dashboard:map-template-csv", "dashboard:map-template-xlsx",
    "dashboard:olts-xlsx", "dashboard:executions-csv", "dashboard:executions-xlsx", "dashboard:log-csv",
    "dashboard:log-xlsx",
    "admin:view_on_site", "admin:search", "admin/(?P<url>.*)$", "admin/password_change/", "admin:password_change",
    "dashboard:olt-template", "dashboard:olt-settings-file",
    # Dialogs: parts of other pages.
    "admin:auth_user_end_sessions", "admin:auth_user_remove_two_factor", "admin:accounts_failedlogin_unlock",
    "admin:accounts_apitoken_revoke", "admin:inventory_olt_close_breaker", "admin:jobs_workflow_apply_jobs",
    "admin:jobs_snmpjob_propose_jobs", "admin:alerts_channel_send_test",
}  # fmt: skip

# What Facho cannot change: rules of a page as a whole, and elements.
UNFOLD_RULES = {
    "landmark-one-main": "The frame of Unfold has no main element.",
    "region": "So its content is in no landmark.",
    "landmark-unique": "Its menu is a nav in a nav, and a scrolled region of the same name.",
    "empty-table-header": "Its columns of buttons have no title.",
}
FOREIGN_PARTS = [
    # Select2: a search field without a label, and a name by an element that is empty.
    ".select2-container",
    # Django's two lists of permissions.
    ".selector",
]

# Parts of pages that are seen later: name, path, and a script that shows them.
HIDDEN = [
    ("the pollers", "/", "document.querySelector('.pool').open = true"),
    ("the setup menu", "/glossary/", "document.getElementById('setup-menu').open = true"),
    ("an explained word", "/jobs/", "document.querySelector('.term-word').focus()"),
    ("TV mode", "/?tv", "for (const each of document.querySelectorAll('.tv-panel')) each.hidden = false"),
]

# Best practices too; the contrast of the dark colours needs no other rule.
RUN = """
async ({ exclude, disabled, isDark }) => {
  // An icon is a ligature of a font: without it, axe takes the icon for text.
  await Promise.allSettled([...document.fonts].map((font) => font.load()));
  const rules = Object.fromEntries(disabled.map((id) => [id, { enabled: false }]));
  const only = isDark ? { runOnly: ["color-contrast"] } : { rules };
  const found = await axe.run({ exclude }, { ...only, preload: false, resultTypes: ["violations"] });
  const named = ({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target}: ${failureSummary}`);
  return found.violations.flatMap(named);
}
"""


@pytest.fixture
def rows(bridge):
    """Something on every page, and the id of a row of each model."""
    now = timezone.now()
    olt = make_olt("OLT-CENTRAL-01", location="Centro", reachability="unreachable", last_error="No answer in 5 s.")
    power = make_job("Optical power")
    make_job("Names", columns=["name"], follows=power)
    [node] = power.apply_to([olt])
    port = PonPort.objects.create(olt=olt, slot=0, port=1, read_at=now)
    for number, state in enumerate(("online", "los", "online", "auth_failed"), 1):
        onu = make_onu(olt, number, state=state, rx_dbm=-17.0 - 3 * number, pon_port=port)
        for hours, dbm in ((30, -20.0), (1, -17.0 - 3 * number)):
            add_reading(onu, now - timedelta(hours=hours), state="online" if hours > 1 else state, rx_dbm=dbm)
        make_event(onu, now)
        OnuPosition.at(onu.pk, olt.pk, -12.0 - number / 10, -77.0).save()
    master = make_execution(node, now - timedelta(minutes=3), status="FAILED", error="No answer in 5 s.")
    make_execution(node.chain.get(), now - timedelta(minutes=3), master_execution=master)
    make_quota(node, hour_of(now), completed=1, failed=3)
    make_violation(node, hour_of(now))
    make_plan(node, hour_of(now))
    ApiToken(user=User.objects.get(username="boss"), name="Grafana").issue()
    found = {model._meta.label_lower: make_row(model).pk for model in admin.site._registry}
    found |= {"telemetry.ponport": port.pk, "problems.problem": make_problem(olt).pk}
    found["maintenance.maintenance"] = make_maintenance(olt, reason="Fans").pk
    found["coordinator.forecast"] = Forecast.objects.create(params=QUESTION, status="DONE", result=ANSWER).pk
    found["auth.user"] = User.objects.create(username="row").pk
    found["auth.group"] = Group.objects.create(name="Night shift").pk
    return found


def pages():
    """Return the names of the URLs that show a page. A history of the admin is a redirect to the record of changes."""
    forms = {}
    for label, (view, add, change, _delete) in ADMIN_MODELS.items():
        name = "admin:" + label.replace(".", "_")
        forms |= {f"{name}_changelist": view, f"{name}_change": view}
        # The form to add a row is that to change it, but for those that can only be added.
        forms[f"{name}_add"] = add if change > add else NOBODY
    # The same page for all models.
    forms["admin:inventory_tag_delete"] = ADMIN_MODELS["inventory.tag"][3]
    tables = {name: methods["get"] for name, methods in {**PAGES, **ADMIN_PAGES}.items()} | forms
    return [name for name, level in tables.items() if level not in (None, NOBODY) and name not in NO_PAGES]


def violations(page, name, *, is_dark=False):
    page.emulate_media(color_scheme="dark" if is_dark else "light")
    is_unfold = name.startswith("admin")
    found = page.evaluate(
        RUN,
        {
            "exclude": FOREIGN_PARTS if is_unfold else [],
            "disabled": list(UNFOLD_RULES) if is_unfold else [],
            "isDark": is_dark,
        },
    )
    return [f"{name}{' (dark)' if is_dark else ''}: {each}" for each in found]


# 70 pages, half a second each on an idle machine.
@pytest.mark.timeout(900)
def test_no_page_violates_a_rule_of_axe(bridge, rows):
    day_ago = timezone.now() - timedelta(days=1)
    queries = {
        "dashboard:compare": f"?before={day_ago:%Y-%m-%dT%H:%MZ}&after={timezone.now():%Y-%m-%dT%H:%MZ}",
        "dashboard:alert-rule": "?days=30",
    }
    patterns, page, found = urls(), bridge.page, []
    page.add_init_script(path=AXE)

    for name in pages():
        if name == "login":
            continue
        answer = page.goto(f"{SITE}{path_of(name, patterns[name], rows)}{queries.get(name, '')}")
        assert answer.status == 200, name
        found += violations(page, name)
        if not name.startswith("admin"):
            found += violations(page, name, is_dark=True)
    for name, path, show in HIDDEN:
        bridge.open(path).evaluate(show)
        found += violations(page, name) + violations(page, name, is_dark=True)
    bridge.client = Client()
    bridge.open("/login/")
    found += violations(page, "login") + violations(page, "login", is_dark=True)

    assert found == []


# Leave out what a required field needs, and let the server find it.
SUBMIT_EMPTY = """
async (button) => {
  const form = button.form;
  form.noValidate = true;
  for (const field of form.querySelectorAll("input, textarea, select")) {
    if (["hidden", "submit", "button"].includes(field.type)) continue;
    if (["checkbox", "radio"].includes(field.type)) field.checked = false;
    else field.value = "";
  }
  // A form that is saved is of no interest.
  const answer = await fetch(form.action, { method: "post", body: new FormData(form), redirect: "manual" });
  if (answer.ok) setTimeout(() => form.requestSubmit(button));
  return answer.ok;
}
"""
ERRORS = ".errorlist, .field-errors, [aria-invalid=true], .text-red-600"


def forms():
    """Return the names of the URLs whose page is a form."""
    return ["dashboard:new-olt", "dashboard:password"] + [
        name for name in pages() if name.startswith("admin:") and name.endswith(("_add", "_change"))
    ]


@pytest.mark.timeout(600)
def test_no_form_with_errors_violates_a_rule_of_axe(bridge, rows):
    patterns, page, found, with_errors = urls(), bridge.page, [], []
    page.add_init_script(path=AXE)

    for name in forms():
        page.goto(f"{SITE}{path_of(name, patterns[name], rows)}")
        button = page.locator("[name=_save], main form [type=submit]").first
        if button.count() and button.evaluate(SUBMIT_EMPTY):
            page.wait_for_selector(ERRORS)
            with_errors.append(name)
            found += violations(page, name)

    assert found == []
    assert len(with_errors) > 10, with_errors
