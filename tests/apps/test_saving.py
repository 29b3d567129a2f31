"""Saving is all or nothing, at whichever statement the process is killed, and costs the same in a large fleet."""

import pytest
from cast import import_olts, make_job, make_olt
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from test_admin_olts import FORM

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode

pytestmark = pytest.mark.django_db

# A kill ends a real transaction, and not a savepoint of the test's own.
commits = pytest.mark.django_db(transaction=True)

NAMELESS = {"name": "OLT-SUR-03", "host": "127.0.0.3", "community": "public"}


class Killed(BaseException):
    """The process ends here. Not an `Exception`: nothing on the way may handle it."""


def kill_at(number):
    """Return a wrapper of statements that lets `number` of them through and kills the process at the next."""
    left = number

    def execute(run, sql, params, many, context):
        nonlocal left
        left -= 1
        if left == -1:
            raise Killed
        return run(sql, params, many, context)

    return execute


def killed_everywhere(work):
    """Do `work` again and again, killed one statement later each time, until it is done. Yields after each kill."""
    for number in range(200):
        try:
            with connection.execute_wrapper(kill_at(number)):
                work()
        except Killed:
            yield number
        else:
            return
    pytest.fail("it never ends")


def post_olt(api, admin_page):
    api.post("/api/v1/olts/", NAMELESS, format="json")


def add_in_admin(api, admin_page):
    admin_page.post(reverse("admin:inventory_olt_add"), FORM | {"brand": "", "community": "public"})


def import_two(api, admin_page):
    import_olts(admin_page, "name,host\nOLT-A,127.0.0.1\nOLT-B,127.0.0.2\n")


@commits
@pytest.mark.parametrize(
    ("add", "count"), [(post_olt, 1), (add_in_admin, 1), (import_two, 2)], ids=["API", "admin", "import"]
)
def test_an_olt_is_added_with_its_identification_or_not_at_all(api, admin_page, add, count):
    kills = 0
    for _ in killed_everywhere(lambda: add(api, admin_page)):
        kills += 1
        olts = set(Olt.objects.values_list("pk", flat=True))
        asked = WorkflowNode.objects.filter(job__kind="identify", run_requested_at__isnull=False)
        assert len(olts) in (0, count)
        assert set(asked.values_list("olt_id", flat=True)) == olts
        Olt.objects.all().delete()
        SnmpJob.objects.all().delete()

    assert kills > 5
    assert WorkflowNode.objects.filter(run_requested_at__isnull=False).count() == count


@commits
def test_a_brand_is_chosen_and_its_identification_ends_or_neither(api):
    page = f"/api/v1/olts/{make_olt('OLT-SUR-03', brand='').pk}/"
    for _ in killed_everywhere(lambda: api.patch(page, {"brand": "huawei"})):
        is_asked = WorkflowNode.objects.exists()
        assert is_asked == (Olt.objects.get().brand == "")

    assert (Olt.objects.get().brand, WorkflowNode.objects.count()) == ("huawei", 0)


def test_an_olt_is_disabled_and_its_requested_runs_are_dropped_or_neither(api, node):
    node.request_run()
    for _ in killed_everywhere(lambda: api.post(f"/api/v1/olts/{node.olt_id}/disable/")):
        is_wanted = WorkflowNode.objects.get(pk=node.pk).run_requested_at is not None
        assert Olt.objects.get().enabled == is_wanted
        if not is_wanted:
            node.olt.enable()
            node.request_run()

    assert not Olt.objects.get().enabled


@commits
@pytest.mark.parametrize("change", [{"own_priority": 7}, {"own_enabled": False}], ids=lambda each: next(iter(each)))
def test_a_node_is_changed_and_the_engine_notices_or_neither(api, node, change):
    before = Olt.objects.get().revision
    [(name, value)] = change.items()
    for _ in killed_everywhere(lambda: api.patch(f"/api/v1/nodes/{node.pk}/", change, format="json")):
        is_changed = getattr(WorkflowNode.objects.get(pk=node.pk), name) == value
        assert is_changed == (Olt.objects.get().revision > before)

    assert getattr(WorkflowNode.objects.get(pk=node.pk), name) == value


@commits
def test_a_run_is_requested_and_the_engine_notices_or_neither(api, node):
    before = Olt.objects.get().revision
    for _ in killed_everywhere(lambda: api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")):
        is_wanted = WorkflowNode.objects.get(pk=node.pk).run_requested_at is not None
        assert is_wanted == (Olt.objects.get().revision > before)


def test_a_run_of_a_node_that_the_engine_has_deleted_is_not_an_error(node):
    WorkflowNode.objects.filter(pk=node.pk).delete()

    assert node.request_run() is False
    assert node.run_requested_at is None


def test_the_api_says_that_a_node_changed_between_reading_and_requesting(api, node):
    def delete_before_update(run, sql, params, many, context):
        if sql.startswith("UPDATE") and "run_requested_at" in sql:
            with connection.cursor() as cursor:
                cursor.cursor.execute("UPDATE olts SET enabled = false")
        return run(sql, params, many, context)

    with connection.execute_wrapper(delete_before_update):
        answer = api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")

    assert answer.status_code == 409
    assert "has just started, or it was disabled or deleted" in answer.json()["detail"]


# Costs


@pytest.fixture
def jobs(db):
    """Two masters, one with two followers."""
    discovery = make_job("Discovery", kind="discovery", columns=[])
    power = make_job("Optical power")
    make_job("Names", columns=["name"], follows=power)
    make_job("State", columns=["state"], follows=power)
    return [discovery, power]


def fleet(jobs, count, brand="huawei"):
    Olt.objects.bulk_create(
        Olt(name=f"OLT-{number}", brand=brand, host=f"10.0.{number // 250}.{number % 250}", community="public")
        for number in range(count)
    )
    WorkflowNode.settle_identification(Olt.objects.all())
    for job in jobs:
        job.apply_to(Olt.objects.all())


def queries_of(work):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        work()
    return len(captured)


def add_one(api, jobs):
    """Add an OLT by the API, with a node of each job."""
    olt = api.post("/api/v1/olts/", {**NAMELESS, "brand": "huawei"}, format="json").json()["id"]
    for job in jobs:
        answer = api.post(f"/api/v1/jobs/{job.pk}/apply/", {"olts": [olt]}, format="json")
        assert answer.status_code == 202
    assert WorkflowNode.objects.filter(olt=olt).count() == 4
    assert WorkflowNode.objects.filter(olt=olt, master__isnull=False, master__olt=olt).count() == 2
    Olt.objects.get(pk=olt).delete()


def test_adding_an_olt_takes_as_many_queries_among_1000_as_among_10(api, jobs):
    fleet(jobs, 10)
    few = queries_of(lambda: add_one(api, jobs))
    Olt.objects.all().delete()
    fleet(jobs, 1000)
    revisions = dict(Olt.objects.values_list("pk", "revision"))

    many = queries_of(lambda: add_one(api, jobs))

    assert many == few
    assert dict(Olt.objects.values_list("pk", "revision")) == revisions


def test_adding_an_olt_without_a_brand_takes_as_many_queries_among_1000_as_among_10(api):
    def add():
        olt = api.post("/api/v1/olts/", NAMELESS, format="json").json()["id"]
        Olt.objects.get(pk=olt).delete()

    fleet([], 10, brand="")
    few = queries_of(add)
    Olt.objects.all().delete()
    fleet([], 1000, brand="")

    assert queries_of(add) == few


def test_a_job_is_applied_to_1000_olts_in_few_queries(jobs):
    fleet([], 1000)
    olts = list(Olt.objects.all())

    # SQLite takes some hundred rows at a time.
    assert queries_of(lambda: jobs[1].apply_to(olts)) < 50
    assert WorkflowNode.objects.count() == 3000


def test_a_follower_is_added_to_1000_olts_in_few_queries(jobs):
    fleet(jobs, 1000)

    assert queries_of(lambda: make_job("Distance", columns=["distance_m"], follows=jobs[1])) < 50
    assert WorkflowNode.objects.filter(job__name="Distance", master__job=jobs[1]).count() == 1000


def test_applying_a_job_again_changes_nothing(jobs):
    fleet(jobs, 3)
    before = list(WorkflowNode.objects.order_by("pk").values())

    jobs[1].apply_to(Olt.objects.all())

    assert list(WorkflowNode.objects.order_by("pk").values()) == before
