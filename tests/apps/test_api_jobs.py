"""Jobs through the API: what may be asked, chains, raw OIDs, and applying them to OLTs."""

import pytest
from cast import make_job, make_olt

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from facho.brands import BRANDS

NEW = {"name": "Distances", "brand": "huawei", "kind": "table", "columns": ["distance_m"], "interval_seconds": 600}
RAW = {"name": "cpu_load", "oid": "1.3.6.1.4.1.2011.2.6.7.1.1.2.1.5.0", "decode": "integer", "scalar": True}


def test_a_job_is_created_with_its_raw_oids(api, db):
    answer = api.post("/api/v1/jobs/", NEW | {"oids": [RAW]}, format="json")

    [oid] = SnmpJobOid.objects.values("name", "oid", "decode", "scalar")
    assert answer.status_code == 201
    assert answer.data["columns"] == ["distance_m"]
    assert oid == RAW
    assert (answer.data["olts"], answer.data["followers"], answer.data["priority"]) == ([], [], 40)


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        pytest.param(
            {"brand": "huawai"},
            "brand",
            f"Unknown brand “huawai”. Known brands: {', '.join(sorted(BRANDS))}.",
            id="unknown maker",
        ),
        pytest.param(
            {"interval_seconds": 0},
            "interval_seconds",
            "Ensure this value is greater than or equal to 10.",
            id="an interval of 0",
        ),
        pytest.param(
            {"interval_seconds": -5},
            "interval_seconds",
            "Ensure this value is greater than or equal to 10.",
            id="an interval below 0",
        ),
        pytest.param({"interval_seconds": "often"}, "interval_seconds", "A valid integer is required.", id="no number"),
        pytest.param({"kind": "guess"}, "kind", '"guess" is not a valid choice.', id="unknown type"),
        pytest.param({"priority": 101}, "priority", "Ensure this value is less than or equal to 100.", id="priority"),
        pytest.param(
            {"columns": "rx_dbm"},
            "columns",
            'Expected a list of items but got type "str".',
            id="columns that are no list",
        ),
        pytest.param({"follows": 99}, "follows", 'Invalid pk "99" - object does not exist.', id="follows nobody"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(api, db, wrong, field, sentence):
    answer = api.post("/api/v1/jobs/", NEW | wrong, format="json")

    assert answer.status_code == 400
    assert answer.data == {field: [sentence]}
    assert not SnmpJob.objects.exists()


def test_an_unknown_column_is_refused_with_those_there_are(api, db):
    answer = api.post("/api/v1/jobs/", NEW | {"columns": ["rx_dbm", "colour"]}, format="json")

    [sentence] = answer.data["columns"]
    assert answer.status_code == 400
    assert sentence.startswith("Huawei MA5600T / MA5800 has no column colour. It has: serial,")


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        pytest.param(
            {"oid": "1.3.six"},
            "oid",
            "'1.3.six' is not an OID: write numbers with dots between them, like 1.3.6.1.2.1.1.5.0",
            id="letters in an OID",
        ),
        pytest.param({"oid": "9.9.9"}, "oid", "no OID begins with 9.9", id="an OID out of the tree"),
        pytest.param({"oid": "1"}, "oid", "an OID has 2 to 128 numbers, not 1", id="too short an OID"),
        pytest.param(
            {"name": "CPU load"}, "name", "Lowercase letters, digits and _, beginning with a letter.", id="a bad name"
        ),
    ],
)
def test_a_malformed_raw_oid_is_refused_and_loses_nothing(api, db, wrong, field, sentence):
    answer = api.post("/api/v1/jobs/", NEW | {"oids": [RAW, RAW | {"name": "other"} | wrong]}, format="json")

    assert answer.status_code == 400
    assert answer.json() == {"oids": {"1": {field: [sentence]}}}
    assert not SnmpJob.objects.exists()


def test_an_unknown_decoder_is_refused_with_those_there_are(api, db):
    answer = api.post("/api/v1/jobs/", NEW | {"oids": [RAW | {"decode": "magic"}]}, format="json")

    [sentence] = answer.data["oids"][0]["decode"]
    assert sentence.startswith("Unknown decoder “magic”. Known decoders: integer,")


def test_raw_oids_need_names_of_their_own(api, db):
    answer = api.post("/api/v1/jobs/", NEW | {"oids": [RAW, RAW]}, format="json")

    assert answer.data == {"oids": ["Each raw OID needs a unique name: cpu_load is repeated."]}


def test_raw_oids_are_replaced_by_name_and_stay_where_they_are_not_mentioned(api, power):
    kept = SnmpJobOid.objects.create(job=power, **RAW)
    SnmpJobOid.objects.create(job=power, **RAW | {"name": "gone"})
    url = f"/api/v1/jobs/{power.pk}/"

    api.patch(url, {"interval_seconds": 60}, format="json")
    untouched = power.oids.count()
    api.patch(url, {"oids": [RAW | {"decode": "tenths"}, RAW | {"name": "new"}]}, format="json")

    kept.refresh_from_db()
    assert untouched == 2
    assert kept.decode == "tenths"
    assert set(power.oids.values_list("name", flat=True)) == {"cpu_load", "new"}


@pytest.mark.parametrize(
    ("job", "follows", "sentence"),
    [
        pytest.param("Optical power", "Optical power", "A job cannot follow itself.", id="itself"),
        pytest.param(
            "Other",
            "Names",
            "Names already follows Optical power. Follow Optical power instead: a chain has only one master.",
            id="one that follows",
        ),
        pytest.param(
            "Optical power",
            "Other",
            "Other jobs follow this one, so it cannot follow another.",
            id="another, although it is followed",
        ),
        pytest.param("Other", "Of ZTE", "A job can only follow one of the same brand.", id="one of another brand"),
    ],
)
def test_a_chain_has_one_master_and_no_rings(api, names, job, follows, sentence):
    make_job("Other")
    make_job("Of ZTE", brand="zte_c300")
    jobs = {each.name: each for each in SnmpJob.objects.all()}

    answer = api.patch(f"/api/v1/jobs/{jobs[job].pk}/", {"follows": jobs[follows].pk}, format="json")

    assert answer.status_code == 400
    assert answer.data == {"follows": [sentence]}


def test_a_job_is_applied_to_olts_and_its_chain_comes_along(api, central, sur, power, names):
    answer = api.post(f"/api/v1/jobs/{power.pk}/apply/", {"olts": [central.pk, sur.pk]}, format="json")

    assert answer.status_code == 202
    assert [(node["olt_name"], node["job_name"], node["is_chained"]) for node in answer.data["nodes"]] == [
        ("OLT-CENTRAL-01", "Optical power", False),
        ("OLT-CENTRAL-01", "Names", True),
        ("OLT-SUR-03", "Optical power", False),
        ("OLT-SUR-03", "Names", True),
    ]


def test_applying_again_changes_nothing_that_is_there(api, node):
    WorkflowNode.objects.filter(pk=node.pk).update(own_priority=77)

    answer = api.post(f"/api/v1/jobs/{node.job_id}/apply/", {"olts": [node.olt_id]}, format="json")

    assert [each["id"] for each in answer.data["nodes"]] == [node.pk, node.chain.get().pk]
    assert answer.data["nodes"][0]["own_priority"] == 77


@pytest.mark.parametrize(
    ("olts", "field", "sentence"),
    [
        pytest.param([99], "olts", 'Invalid pk "99" - object does not exist.', id="an OLT that is not there"),
        pytest.param([], "olts", "This list may not be empty.", id="no OLT"),
    ],
)
def test_olts_to_apply_to_must_be_there(api, power, olts, field, sentence):
    answer = api.post(f"/api/v1/jobs/{power.pk}/apply/", {"olts": olts}, format="json")

    assert answer.status_code == 400
    assert answer.data == {field: [sentence]}


def test_a_job_is_not_applied_to_olts_of_another_brand(api, power, central, norte):
    answer = api.post(f"/api/v1/jobs/{power.pk}/apply/", {"olts": [central.pk, norte.pk]}, format="json")

    assert answer.status_code == 400
    assert answer.data == {
        "non_field_errors": ["Optical power is for Huawei MA5600T / MA5800; OLT-NORTE-02 has another brand."]
    }
    assert not WorkflowNode.objects.exists()


def test_a_chained_job_is_not_applied_alone(api, names, central):
    answer = api.post(f"/api/v1/jobs/{names.pk}/apply/", {"olts": [central.pk]}, format="json")

    assert answer.data == {
        "non_field_errors": ["Names follows Optical power: apply Optical power, and Names is included."]
    }


def test_a_job_that_starts_to_follow_is_shown_with_the_nodes_it_got(api, node):
    answer = api.post("/api/v1/jobs/", NEW | {"follows": node.job_id}, format="json")

    assert [olt["name"] for olt in answer.data["olts"]] == ["OLT-CENTRAL-01"]


def test_a_change_of_the_job_reaches_the_engine_and_keeps_what_nodes_have_of_their_own(api, node):
    WorkflowNode.objects.filter(pk=node.pk).update(own_interval_seconds=60)
    before = Olt.objects.get().revision

    api.patch(f"/api/v1/jobs/{node.job_id}/", {"interval_seconds": 900, "priority": 90}, format="json")

    changed = api.get(f"/api/v1/nodes/{node.pk}/").data
    assert Olt.objects.get().revision > before
    assert (changed["interval_seconds"], changed["priority"]) == (60, 90)


def test_the_brand_stays_while_the_job_is_applied_or_followed(api, node, sur):
    followed = make_job("Followed")
    make_job("Follower", follows=followed)

    applied = api.patch(f"/api/v1/jobs/{node.job_id}/", {"brand": "zte_c300"}, format="json")
    chained = api.patch(f"/api/v1/jobs/{followed.pk}/", {"brand": "zte_c300"}, format="json")

    assert applied.data == {"brand": ["This job is applied to OLTs of another brand. Remove it from them first."]}
    assert chained.data == {
        "brand": ["Jobs of another brand follow this one. Change them to follow another job first."]
    }


def test_a_deleted_job_takes_its_nodes_with_it_and_tells_the_engine(api, node):
    before = Olt.objects.get().revision

    answer = api.delete(f"/api/v1/jobs/{node.job_id}/?followers=delete")

    assert answer.status_code == 204
    assert not WorkflowNode.objects.exists()
    assert Olt.objects.get().revision > before


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("brand=zte_c300", ["States"], id="by brand"),
        pytest.param("kind=walk", ["States"], id="by type"),
        pytest.param("is_master=false", ["Names"], id="those that follow"),
        pytest.param("olt={olt}", ["Names", "Optical power"], id="by the OLT they are applied to"),
        pytest.param("search=power", ["Optical power"], id="by name"),
        pytest.param("ordering=-name", ["States", "Optical power", "Names"], id="in the order asked for"),
    ],
)
def test_jobs_are_found(api, node, query, expected):
    make_job("States", brand="zte_c300", kind="walk")

    answer = api.get(f"/api/v1/jobs/?{query.format(olt=node.olt_id)}")

    names = [job["name"] for job in answer.data["results"]]
    assert names == expected if "ordering" in query else sorted(names) == expected


@pytest.mark.parametrize("many", [1, 20])
def test_a_page_of_jobs_costs_the_same_however_many_there_are(api, db, django_assert_num_queries, many):
    for number in range(many):
        job = make_job(f"Job {number}")
        SnmpJobOid.objects.create(job=job, **RAW)
        job.apply_to([make_olt(f"OLT-{number}")])

    # Count, jobs, raw OIDs, followers, nodes with their OLTs.
    with django_assert_num_queries(5):
        api.get("/api/v1/jobs/")
