"""An OLT whose maker nobody has named is asked itself; choosing the brand by hand ends the question."""

import pytest
from cast import make_job, make_olt
from django.contrib.messages import get_messages
from django.core.exceptions import ValidationError
from django.urls import reverse
from test_admin_olts import FORM

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode

pytestmark = pytest.mark.django_db


@pytest.fixture
def nameless(db):
    return make_olt("OLT-CENTRAL-01", brand="")


def questions():
    return WorkflowNode.objects.filter(job__kind="identify")


def test_an_olt_without_a_brand_is_asked_at_once_and_every_hour(nameless):
    node = questions().get()

    assert (node.olt, node.job.brand, node.interval_seconds, node.enabled) == (nameless, "", 3600, True)
    assert node.run_requested_at is not None
    assert node.why_not_runnable() is None


def test_saving_it_again_asks_no_second_time(nameless):
    WorkflowNode.objects.update(run_requested_at=None)

    nameless.location = "Centro"
    nameless.save()

    assert questions().get().run_requested_at is None


def test_all_olts_without_a_brand_share_one_job(nameless):
    make_olt("OLT-NORTE-02", brand="")

    assert SnmpJob.objects.count() == 1
    assert questions().count() == 2


def test_an_olt_with_a_brand_is_not_asked(db):
    make_olt("OLT-CENTRAL-01")

    assert not questions().exists()


def test_choosing_the_brand_by_hand_ends_the_question_and_tells_the_engine(nameless):
    before = Olt.objects.get().revision

    nameless.brand = "zte_c300"
    nameless.full_clean()
    nameless.save(update_fields=["brand"])

    assert not questions().exists()
    assert Olt.objects.get().revision > before


def test_changing_something_else_leaves_the_question_where_it_is(nameless):
    nameless.disable()

    assert questions().exists()


def test_a_brand_cannot_be_forgotten_while_its_jobs_are_applied(db):
    olt = make_olt("OLT-CENTRAL-01")
    make_job("Optical power").apply_to([olt])
    olt.brand = ""

    with pytest.raises(ValidationError, match="another brand"):
        olt.full_clean()


@pytest.mark.parametrize("brand", ["huawei", ""], ids=["of a brand", "a second one without"])
def test_nobody_can_make_another_identification(db, brand):
    job = SnmpJob(name="Mine", brand=brand, kind="identify")

    with pytest.raises(ValidationError, match="can be only one"):
        job.full_clean()


def test_a_job_of_another_kind_needs_a_brand(db):
    with pytest.raises(ValidationError, match="brand"):
        SnmpJob(name="Mine", brand="", kind="table").full_clean()


def test_its_interval_can_be_changed_like_any_other(nameless, api):
    job = SnmpJob.objects.get()

    answer = api.patch(f"/api/v1/jobs/{job.pk}/", {"interval_seconds": 600})

    assert answer.status_code == 200
    assert SnmpJob.objects.get().interval_seconds == 600


@pytest.mark.parametrize("body", [{}, {"brand": ""}], ids=["left out", "empty"])
def test_the_api_takes_an_olt_without_a_brand(api, db, body):
    answer = api.post("/api/v1/olts/", {"name": "OLT-SUR-03", "host": "127.0.0.3", "community": "public"} | body)

    assert answer.status_code == 201
    assert (answer.json()["brand"], answer.json()["brand_label"]) == ("", "not identified yet")
    assert questions().exists()


def test_the_admin_takes_an_olt_without_a_brand_and_says_what_happens(admin_page):
    answer = admin_page.post(reverse("admin:inventory_olt_add"), FORM | {"brand": "", "community": "public"})

    assert answer.status_code == 302
    assert "OLT-CENTRAL-01 is being identified." in [str(each) for each in get_messages(answer.wsgi_request)]
    assert questions().exists()


def test_the_form_of_a_job_does_not_offer_the_identification(admin_page):
    form = admin_page.get(reverse("admin:jobs_snmpjob_add")).context["adminform"].form

    assert "identify" not in dict(form.fields["kind"].choices)
    assert "table" in dict(form.fields["kind"].choices)


def test_the_page_of_the_identification_opens_and_saves(admin_page, nameless):
    job = SnmpJob.objects.get()
    page = reverse("admin:jobs_snmpjob_change", args=[job.pk])

    assert admin_page.get(page).status_code == 200
    answer = admin_page.post(
        page,
        {
            "name": job.name,
            "kind": "identify",
            "interval_seconds": "900",
            "priority": "95",
            "timeout_seconds": "60",
            "retries": "2",
            "retry_delay_seconds": "120",
            "enabled": "on",
            "olts": [nameless.pk],
            "oids-TOTAL_FORMS": "0",
            "oids-INITIAL_FORMS": "0",
        },
    )

    assert answer.status_code == 302
    assert SnmpJob.objects.get().interval_seconds == 900


def test_the_page_of_a_nameless_olt_says_that_it_is_asked(admin_page, nameless):
    page = admin_page.get(f"/olts/{nameless.pk}/").content.decode()

    assert "the OLT is being identified" in page
    assert "not identified yet" in page
    assert "Identification" in page


def test_an_experimental_brand_reports_it_wherever_it_is_chosen_or_shown(admin_page, api):
    olt = make_olt("OLT-SUR-03", brand="cdata_gpon")
    note = api.get(f"/api/v1/olts/{olt.pk}/").json()["brand_note"]
    brands = {each["id"]: each["experimental"] for each in api.get("/api/v1/brands/").json()["results"]}
    form = admin_page.get(reverse("admin:inventory_olt_add")).context["adminform"].form

    assert "is experimental" in note
    assert (brands["cdata_gpon"], brands["huawei"]) == (True, False)
    assert dict(form.fields["brand"].choices)["cdata_gpon"].endswith("(experimental)")
    assert note in admin_page.get(f"/olts/{olt.pk}/").content.decode()


def test_a_proved_brand_has_no_note(api, central):
    assert api.get(f"/api/v1/olts/{central.pk}/").json()["brand_note"] == ""
