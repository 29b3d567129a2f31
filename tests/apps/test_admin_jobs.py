"""Jobs, workflows and nodes in the admin: where a job runs, what a node has of its own, and running one now."""

import pytest
from cast import T0, make_job, make_olt
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from facho.apps.inventory import labels
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from facho.brands import BRANDS

NO_OIDS = {"oids-TOTAL_FORMS": "0", "oids-INITIAL_FORMS": "0"}
FORM = {
    "name": "Optical power",
    "kind": "table",
    "columns": ["rx_dbm"],
    "follows": "",
    "enabled": "on",
    "interval_seconds": "300",
    "priority": "40",
    "timeout_seconds": "300",
    "retries": "2",
    "retry_delay_seconds": "120",
    **NO_OIDS,
}
ADD = reverse("admin:jobs_snmpjob_add")


def change(job):
    return reverse("admin:jobs_snmpjob_change", args=[job.pk])


def errors(answer):
    return answer.context["adminform"].form.errors


def sentences(answer):
    return [str(message) for message in get_messages(answer.wsgi_request)]


def test_a_job_is_added_with_columns_and_oids_and_applied_at_once(admin_page, central, norte):
    oid = {"name": "cpu", "oid": "1.3.6.1.2.1.1.5.0", "decode": "text", "scalar": "on"}
    oids = {"oids-TOTAL_FORMS": "1", "oids-INITIAL_FORMS": "0"} | {f"oids-0-{key}": oid[key] for key in oid}

    answer = admin_page.post(ADD, FORM | {"brand": "huawei", "olts": [central.pk]} | oids)

    job = SnmpJob.objects.get()
    assert answer.status_code == 302
    assert job.columns == ["rx_dbm"]
    assert list(job.oids.values_list("name", "decode", "scalar")) == [("cpu", "text", True)]
    assert job.olt_ids() == [central.pk]


def test_columns_are_offered_by_brand(admin_page, power):
    known = admin_page.get(change(power)).context["adminform"].form.fields["columns"].choices
    new = dict(admin_page.get(ADD).context["adminform"].form.fields["columns"].choices)

    assert [name for name, _ in known] == list(BRANDS["huawei"].columns)
    others = {name for brand in BRANDS.values() if brand.id != "huawei" for name in brand.columns}
    alone = next(name for name in BRANDS["huawei"].columns if name not in others)
    assert new[alone] == f"{labels.column(alone)} (Huawei MA5600T / MA5800)"
    assert new["rx_dbm"].startswith("received power (dBm) (Huawei MA5600T / MA5800, ZTE C300 / C320, ")
    assert new["rx_dbm"].endswith(" more)")


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        pytest.param(
            {"interval_seconds": "0"},
            "interval_seconds",
            "Ensure this value is greater than or equal to 10.",
            id="an interval of 0",
        ),
        pytest.param(
            {"columns": ["colour"]},
            "columns",
            "Select a valid choice. colour is not one of the available choices.",
            id="unknown column",
        ),
        pytest.param(
            {"brand": "huawai"},
            "brand",
            "Select a valid choice. huawai is not one of the available choices.",
            id="unknown maker",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(admin_page, db, wrong, field, sentence):
    answer = admin_page.post(ADD, FORM | {"brand": "huawei"} | wrong)

    assert errors(answer)[field] == [sentence]
    assert not SnmpJob.objects.exists()


def test_a_column_of_another_brand_is_refused(admin_page, db):
    answer = admin_page.post(ADD, FORM | {"brand": "zte_c300", "columns": ["bias_ma"]})

    [sentence] = errors(answer)["columns"]
    assert sentence.startswith("ZTE C300 / C320 has no column bias_ma. It has:")


def test_a_malformed_oid_is_refused_and_loses_nothing(admin_page, power):
    oid = {"name": "cpu", "oid": "1.3.six", "decode": "text"}
    oids = {"oids-TOTAL_FORMS": "1", "oids-INITIAL_FORMS": "0"} | {f"oids-0-{key}": oid[key] for key in oid}

    answer = admin_page.post(change(power), FORM | {"interval_seconds": "60"} | oids)

    power.refresh_from_db()
    [inline] = answer.context["inline_admin_formsets"]
    assert inline.formset.errors == [
        {"oid": ["'1.3.six' is not an OID: write numbers with dots between them, like 1.3.6.1.2.1.1.5.0"]}
    ]
    assert power.interval_seconds == 300
    assert not SnmpJobOid.objects.exists()


def test_a_job_is_not_offered_itself_or_other_brands_to_follow(admin_page, power, names):
    other = make_job("Other")
    make_job("Of ZTE", brand="zte_c300")

    offered = admin_page.get(change(power)).context["adminform"].form.fields["follows"].queryset

    assert list(offered) == [other]


def test_choosing_another_olt_applies_the_job_there(admin_page, node, sur):
    answer = admin_page.post(change(node.job), FORM | {"olts": [node.olt_id, sur.pk]})

    assert answer.status_code == 302
    assert WorkflowNode.objects.filter(olt=sur).count() == 2
    assert WorkflowNode.objects.filter(pk=node.pk).exists()


def test_taking_an_olt_away_needs_a_tick(admin_page, node):
    answer = admin_page.post(change(node.job), FORM | {"olts": []})

    assert errors(answer) == {"confirm_removal": ["This removes the job from OLT-CENTRAL-01. Tick the box to confirm."]}
    assert WorkflowNode.objects.filter(pk=node.pk).exists()


def test_with_a_tick_the_nodes_go_and_the_engine_is_told(admin_page, node):
    before = Olt.objects.get().revision

    admin_page.post(change(node.job), FORM | {"olts": [], "confirm_removal": "on"})

    assert not WorkflowNode.objects.exists()
    assert Olt.objects.get().revision > before


def test_an_olt_that_somebody_else_added_meanwhile_is_not_taken_away_by_accident(admin_page, node, sur):
    page = admin_page.get(change(node.job))
    seen = page.context["adminform"].form.initial["olts"]
    node.job.apply_to([sur])

    answer = admin_page.post(change(node.job), FORM | {"olts": list(seen)})

    assert errors(answer) == {"confirm_removal": ["This removes the job from OLT-SUR-03. Tick the box to confirm."]}


def test_a_new_job_is_not_applied_to_olts_of_another_brand(admin_page, norte):
    answer = admin_page.post(ADD, FORM | {"brand": "huawei", "olts": [norte.pk]})

    assert errors(answer) == {"olts": ["Of another brand: OLT-NORTE-02."]}


def test_a_chained_job_is_where_its_master_is(admin_page, chained, sur):
    follower = chained.job
    form = FORM | {"name": "Names", "columns": ["name"], "follows": follower.follows_id}

    changed = admin_page.post(change(follower), form | {"olts": [sur.pk]})
    added = admin_page.post(ADD, form | {"name": "New", "brand": "huawei", "olts": [sur.pk]})

    assert changed.status_code == 302
    assert follower.olt_ids() == [chained.olt_id]
    assert errors(added) == {
        "olts": ["A job that follows another one is applied to the same OLTs. Do not choose OLTs here."]
    }


def test_a_job_that_begins_to_follow_another_goes_where_that_one_is(admin_page, node, sur):
    job = make_job("Other")
    job.apply_to([sur])

    admin_page.post(change(job), FORM | {"name": "Other", "follows": node.job_id, "olts": [sur.pk]})

    assert list(job.nodes.values_list("olt", "master")) == [(node.olt_id, node.pk)]


def test_the_usual_jobs_of_a_brand_are_proposed_once(admin_page, db):
    url = reverse("admin:jobs_snmpjob_propose_jobs")

    asked = admin_page.get(url)
    answers = [admin_page.post(url, {"brand": "huawei", "_form_submitted": "on"}) for _ in "12"]

    assert b"Propose jobs" in asked.content
    assert all(answer.headers["HX-Redirect"] == reverse("admin:jobs_snmpjob_changelist") for answer in answers)
    assert sorted(SnmpJob.objects.values_list("name", flat=True)) == sorted(
        template.name for template in BRANDS["huawei"].templates
    )


# Workflows


def workflow(olt):
    return reverse("admin:jobs_workflow_change", args=[olt.pk])


def nodes_form(*nodes, **changes):
    form = {"nodes-TOTAL_FORMS": str(len(nodes)), "nodes-INITIAL_FORMS": str(len(nodes))}
    for position, node in enumerate(nodes):
        own = {
            "id": node.pk,
            "olt": node.olt_id,
            "own_interval_seconds": "",
            "own_priority": "",
            "own_enabled": "unknown",
        }
        form |= {f"nodes-{position}-{name}": value for name, value in (own | changes.get(f"n{position}", {})).items()}
    return form


def test_a_workflow_shows_each_master_with_its_chain_behind_it(admin_page, node, chained):
    [other] = make_job("Another").apply_to([node.olt])

    [inline] = admin_page.get(workflow(node.olt)).context["inline_admin_formsets"]

    assert [form.instance for form in inline.formset.forms] == [node, chained, other]


def test_a_workflow_and_the_api_show_a_chain_in_the_order_in_which_it_runs(admin_page, api, node, chained):
    urgent = make_job("State", columns=["state"], follows=node.job, priority=70).nodes.get()

    [inline] = admin_page.get(workflow(node.olt)).context["inline_admin_formsets"]
    applied = api.post(f"/api/v1/jobs/{node.job_id}/apply/", {"olts": [node.olt_id]}, format="json").json()["nodes"]

    assert [form.instance for form in inline.formset.forms] == [node, urgent, chained]
    assert [each["id"] for each in applied] == [node.pk, urgent.pk, chained.pk]


def test_nodes_get_settings_of_their_own_and_lose_them(admin_page, node, chained):
    own = {"own_interval_seconds": "60", "own_priority": "90", "own_enabled": "false"}

    admin_page.post(workflow(node.olt), nodes_form(node, chained, n0=own))
    node.refresh_from_db()
    changed = (node.interval_seconds, node.priority, node.enabled)
    admin_page.post(workflow(node.olt), nodes_form(node, chained))
    node.refresh_from_db()

    assert changed == (60, 90, False)
    assert (node.own_interval_seconds, node.own_priority, node.own_enabled) == (None, None, None)


def test_a_change_of_a_node_leaves_its_schedule_to_the_engine(admin_page, node, chained, monkeypatch):
    original = WorkflowNode.full_clean

    def engine_writes_meanwhile(row, *args, **kwargs):
        WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=T0)
        return original(row, *args, **kwargs)

    monkeypatch.setattr(WorkflowNode, "full_clean", engine_writes_meanwhile)

    admin_page.post(workflow(node.olt), nodes_form(node, chained, n0={"own_priority": "90"}))

    node.refresh_from_db()
    assert (node.own_priority, node.next_run_at) == (90, T0)


def test_an_interval_of_0_is_refused(admin_page, node, chained):
    answer = admin_page.post(workflow(node.olt), nodes_form(node, chained, n0={"own_interval_seconds": "0"}))

    [inline] = answer.context["inline_admin_formsets"]
    assert inline.formset.errors[0] == {"own_interval_seconds": ["Ensure this value is greater than or equal to 10."]}


def test_a_chained_node_takes_no_interval_of_its_own(admin_page, node, chained):
    admin_page.post(workflow(node.olt), nodes_form(node, chained, n1={"own_interval_seconds": "60"}))

    chained.refresh_from_db()
    assert chained.own_interval_seconds is None


def test_a_chained_node_does_not_go_alone(admin_page, node, chained):
    answer = admin_page.post(workflow(node.olt), nodes_form(node, chained, n1={"DELETE": "on"}))

    [inline] = answer.context["inline_admin_formsets"]
    assert inline.formset.non_form_errors() == [
        "Names @ OLT-CENTRAL-01 runs after another node. Delete that node, or disable this one."
    ]
    assert WorkflowNode.objects.count() == 2


@pytest.mark.parametrize("also_the_link", [True, False], ids=["both marked", "only the master marked"])
def test_a_master_goes_with_its_chain(admin_page, node, chained, also_the_link):
    marked = {"n0": {"DELETE": "on"}} | ({"n1": {"DELETE": "on"}} if also_the_link else {})

    admin_page.post(workflow(node.olt), nodes_form(node, chained, **marked))

    assert not WorkflowNode.objects.exists()


def run(node):
    return reverse("admin:jobs_workflow_run", args=[node.olt_id, node.pk])


def test_a_node_is_run_now_by_its_button(admin_page, node):
    page = admin_page.get(workflow(node.olt)).content.decode()
    answer = admin_page.post(run(node))

    node.refresh_from_db()
    assert f'formaction="{run(node)}"' in page
    assert node.run_requested_at is not None
    assert sentences(answer) == ["Optical power @ OLT-CENTRAL-01 runs as soon as its OLT is free."]


def test_asking_twice_is_told_so(admin_page, node):
    WorkflowNode.objects.update(run_requested_at=T0)

    answer = admin_page.post(run(node))

    assert sentences(answer) == [
        "A run of Optical power @ OLT-CENTRAL-01 was already requested and has not started yet."
    ]


def test_a_node_of_a_disabled_olt_says_why_it_does_not_run(admin_page, node):
    node.olt.disable()

    answer = admin_page.post(run(node))

    node.refresh_from_db()
    assert sentences(answer) == ["OLT-CENTRAL-01 is disabled. Enable it first."]
    assert node.run_requested_at is None


def test_a_link_in_a_mail_runs_nothing(admin_page, node):
    answer = admin_page.get(run(node))

    node.refresh_from_db()
    assert answer.status_code == 405
    assert node.run_requested_at is None


def test_running_needs_its_permission(node):
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename="view_workflow"))
    client = Client()
    client.force_login(looker)

    assert client.post(run(node)).status_code == 403


def test_a_node_of_another_olt_is_not_found(admin_page, node, sur):
    assert admin_page.post(reverse("admin:jobs_workflow_run", args=[sur.pk, node.pk])).status_code == 404


def test_jobs_of_its_brand_are_applied_to_an_olt(admin_page, central, power, names):
    make_job("Of ZTE", brand="zte_c300")
    url = reverse("admin:jobs_workflow_apply_jobs", args=[central.pk])

    asked = admin_page.get(url).content.decode()
    answer = admin_page.post(url, {"jobs": [power.pk], "_form_submitted": "on"})

    assert "Optical power" in asked
    assert not any(name in asked for name in ("Names", "Of ZTE"))
    assert answer.headers["HX-Redirect"] == workflow(central)
    assert WorkflowNode.objects.filter(olt=central).count() == 2


def test_when_all_jobs_are_applied_the_dialog_reports_it(admin_page, node):
    asked = admin_page.get(reverse("admin:jobs_workflow_apply_jobs", args=[node.olt_id])).content.decode()

    assert "There are none: all jobs of this brand are already applied." in asked


# All nodes


def test_chosen_nodes_are_run_now(admin_page, node, sur):
    [mute] = make_job("Other").apply_to([sur])
    sur.disable()

    answer = admin_page.post(
        reverse("admin:jobs_workflownode_changelist"),
        {"action": "run_chosen", "_selected_action": [node.pk, mute.pk]},
    )

    node.refresh_from_db()
    assert node.run_requested_at is not None
    assert sorted(sentences(answer)) == [
        "OLT-SUR-03 is disabled. Enable it first.",
        "Optical power @ OLT-CENTRAL-01 runs as soon as its OLT is free.",
    ]


def test_a_link_of_a_chain_has_no_delete_of_its_own(admin_page, node, chained):
    master = admin_page.post(reverse("admin:jobs_workflownode_delete", args=[node.pk]), {})
    link = admin_page.post(reverse("admin:jobs_workflownode_delete", args=[chained.pk]), {"post": "yes"})

    assert (master.status_code, link.status_code) == (200, 302)
    assert sentences(link) == ["Names @ OLT-CENTRAL-01 is deleted together with the node that it follows."]
    assert WorkflowNode.objects.count() == 2


def test_jobs_are_disabled_by_their_action_and_the_engine_told(admin_page, node):
    before = Olt.objects.get().revision

    admin_page.post(
        reverse("admin:jobs_snmpjob_changelist"),
        {"action": "disable_chosen", "_selected_action": [node.job_id], "confirmed": "1"},
    )

    node = WorkflowNode.objects.get(pk=node.pk)
    assert not node.enabled
    assert Olt.objects.get().revision > before


def test_a_job_is_deleted_with_its_nodes(admin_page, node):
    make_olt("OLT-OTHER")

    page = reverse("admin:jobs_snmpjob_delete", args=[node.job_id])
    admin_page.post(page, {"post": "yes", "followers": "delete"})

    assert not SnmpJob.objects.exists()
    assert not WorkflowNode.objects.exists()


def test_the_usual_jobs_are_applied_to_many_olts_at_once(admin_page, central, norte):
    make_olt("OLT-SUR-03", brand="")
    chosen = {"action": "apply_usual", "_selected_action": list(Olt.objects.values_list("pk", flat=True))}

    answer = admin_page.post(reverse("admin:jobs_workflow_changelist"), chosen, follow=True)

    page = answer.content.decode()
    assert "OLT-SUR-03 has no known brand, so there are no default jobs for it." in page
    assert "applied to 1 OLT." in page
    for olt in (central, norte):
        templates = {template.name for template in BRANDS[olt.brand].templates}
        assert set(olt.nodes.values_list("job__name", flat=True)) == templates
