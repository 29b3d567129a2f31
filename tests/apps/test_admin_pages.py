"""Every page of the admin: that it opens, for whom, at what cost, and what it never shows."""

import re
from datetime import timedelta

import pytest
from alert_cast import make_alert, make_channel, make_delivery, make_rule
from cast import (
    SECRETS,
    T0,
    make_event,
    make_execution,
    make_job,
    make_olt,
    make_onu,
    make_plan,
    make_quota,
    make_violation,
)
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse

from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.apps.accounts.models import ApiToken
from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt, Site, Tag
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode
from facho.apps.polling.models import Execution, Poller, PollerStats
from facho.apps.telemetry.models import Onu, OnuEvent

MODELS = [model for model in admin.site._registry if model._meta.app_label not in ("auth", "accounts")]
ENGINES = [
    Execution,
    Poller,
    PollerStats,
    CoordinatorLog,
    QuotaTracker,
    QuotaViolation,
    ExecutionPlan,
    Onu,
    OnuEvent,
    Alert,
    Delivery,
]
PEOPLES = [Olt, Site, Tag, SnmpJob, Workflow, WorkflowNode, Rule, Channel]

each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
each_of_the_engine = pytest.mark.parametrize("model", ENGINES, ids=lambda model: model.__name__)


def page_of(model, page, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@pytest.fixture
def everything(execution, onu, sur, norte):
    """One row at least in every table that has a page."""
    Poller.objects.create(poller_id=3, updated_at=T0)
    PollerStats.objects.create(
        timestamp=T0,
        total_pollers=10,
        free_pollers=7,
        busy_pollers=3,
        busy_percentage=33.3,
        queue_size=0,
        delayed=0,
        is_saturated=False,
        total_tasks_completed=9,
        total_tasks_delayed=1,
    )
    CoordinatorLog.objects.create(olt=sur, event_type="OPEN", level="WARNING", message="No answer.", timestamp=T0)
    for make in (make_quota, make_violation, make_plan):
        make(execution.node)
    make_delivery(make_channel(), make_alert(sur))
    make_rule()
    make_event(onu)
    Site.objects.create(name="Centro")
    Tag.objects.create(name="core")
    SnmpJobOid.objects.create(job=SnmpJob.objects.first(), name="cpu", oid="1.3.6.1", decode="integer")


def test_every_table_is_of_the_engine_or_of_people():
    assert set(MODELS) == {*ENGINES, *PEOPLES}


@each_model
def test_the_list_opens(admin_page, everything, model):
    assert admin_page.get(page_of(model, "changelist")).status_code == 200


@each_model
def test_each_row_opens(admin_page, everything, model):
    assert admin_page.get(page_of(model, "change", model._default_manager.first().pk)).status_code == 200


@each_of_the_engine
def test_what_the_engine_owns_cannot_be_touched(admin_page, everything, model):
    row = model._default_manager.first()

    added = admin_page.get(page_of(model, "add"))
    changed = admin_page.post(page_of(model, "change", row.pk), {})
    deleted = admin_page.post(page_of(model, "delete", row.pk), {"post": "yes"})

    assert (added.status_code, changed.status_code, deleted.status_code) == (403, 403, 403)
    assert model._default_manager.filter(pk=row.pk).exists()


@each_model
def test_staff_without_permissions_see_nothing(everything, model):
    client = Client()
    client.force_login(User.objects.create(username="trainee", is_staff=True))

    assert client.get(page_of(model, "changelist")).status_code == 403


@each_model
def test_staff_who_may_view_can_look_and_not_change(everything, model):
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(looker)
    row = model._default_manager.first()

    looked = client.get(page_of(model, "change", row.pk))
    changed = client.post(page_of(model, "change", row.pk), {})

    assert (looked.status_code, changed.status_code) == (200, 403)


def test_the_menu_has_what_a_person_may_see(everything):
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename="view_onu"))
    client = Client()
    client.force_login(looker)

    page = client.get(reverse("admin:index")).content.decode()

    assert page_of(Onu, "changelist") in page
    assert page_of(Olt, "changelist") not in page


def test_the_menu_leads_to_every_table(admin_page):
    page = admin_page.get(reverse("admin:index")).content.decode()

    assert all(f'href="{page_of(model, "changelist")}"' in page for model in [*MODELS, User, ApiToken])


@each_model
def test_pages_load_nothing_from_elsewhere(admin_page, everything, model):
    row = model._default_manager.first()
    page = admin_page.get(page_of(model, "change", row.pk)).content.decode()

    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', page)

    assert loaded
    assert all(url.startswith("/") for url in loaded)
    assert all(finders.find(url.split("?")[0].removeprefix("/static/")) for url in loaded if url.startswith("/static/"))


def pages_that_could_show_secrets():
    yield "/admin/"
    for model in [*MODELS, User, ApiToken]:
        yield page_of(model, "changelist")
        for row in model._default_manager.all():
            for page in ("change", "history", "delete"):
                yield page_of(model, page, row.pk)
    for model in (Olt, SnmpJob):
        yield page_of(model, "add")


def test_no_page_shows_a_secret(admin_page, everything, central):
    """Neither in the clear, nor as it is stored."""
    hidden = [*SECRETS.values(), *(getattr(central, name).token for name in SECRETS)]

    pages = {url: admin_page.get(url).content.decode() for url in pages_that_could_show_secrets()}

    assert len(pages) > 40
    assert [url for url, page in pages.items() if any(secret in page for secret in hidden)] == []


def many_rows(many):
    for number in range(many):
        olt = make_olt(f"OLT-{number}")
        make_onu(olt, number)
        job = make_job(f"Job {number}")
        [node] = job.apply_to([olt])
        for minute in range(2):
            master = make_execution(node, T0 + timedelta(minutes=minute))
            make_execution(node, T0 + timedelta(hours=1, minutes=minute), master_execution=master)
        CoordinatorLog.objects.create(olt=olt, event_type="OPEN", level="INFO", message="x", timestamp=T0)
        for make in (make_quota, make_violation, make_plan):
            make(node)
        make_delivery(make_channel(f"channel {number}"), make_alert(olt))
        make_rule(f"rule {number}")
        Poller.objects.create(poller_id=number, updated_at=T0)


@each_model
def test_a_list_costs_the_same_however_long_it_is(admin_page, model, django_assert_max_num_queries):
    """Session and user, counts, rows, and the choices of the filters: a baseline, so that one a row shows at once."""
    many_rows(10)

    with django_assert_max_num_queries(10):
        admin_page.get(page_of(model, "changelist"))


def test_the_workflow_of_an_olt_costs_the_same_however_many_nodes_it_has(
    admin_page, central, django_assert_max_num_queries
):
    for number in range(10):
        make_job(f"Job {number}").apply_to([central])

    with django_assert_max_num_queries(10):
        admin_page.get(page_of(Workflow, "change", central.pk))


@pytest.mark.parametrize("page", ["admin:inventory_olt_add", "admin:alerts_rule_add"])
@pytest.mark.parametrize("query", ["site=Lima", "tags=a,b", "olts=x", "colour=red", "site=99999999999999999999"])
def test_nonsense_in_the_address_of_a_form_is_ignored(admin_page, db, page, query):
    assert admin_page.get(f"{reverse(page)}?{query}", follow=True).status_code == 200
