"""OLTs through the API."""

import pytest
from cast import SECRETS, T0, make_olt, make_onu

from facho.apps.inventory.models import Olt
from facho.brands import BRANDS

NEW = {"name": "OLT-OESTE-04", "brand": "huawei", "host": "127.0.0.4", "community": "public"}
NEW_V3 = NEW | {"version": "3", "v3_user": "facho"}


def test_an_olt_is_created_with_its_secret_inside(api):
    answer = api.post("/api/v1/olts/", NEW, format="json")

    assert answer.status_code == 201
    assert answer.data["has_community"] is True
    assert "community" not in answer.data
    assert Olt.objects.get().community.reveal() == "public"


def test_a_new_olt_has_been_asked_nothing_and_has_no_onus(api):
    olt = api.post("/api/v1/olts/", NEW, format="json").data

    assert (olt["state"], olt["port"], olt["version"], olt["enabled"]) == ("unknown", 161, "2c", True)
    assert (olt["onus_total"], olt["onus_online"], olt["last_read_at"]) == (0, 0, None)


@pytest.mark.parametrize(
    ("body", "field", "sentence"),
    [
        pytest.param(
            NEW | {"brand": "huawai"},
            "brand",
            f"Unknown brand “huawai”. Known brands: {', '.join(sorted(BRANDS))}.",
            id="unknown maker",
        ),
        pytest.param(
            NEW | {"community": ""}, "community", "SNMP v1 and v2c need a community.", id="an empty community"
        ),
        pytest.param(NEW | {"version": "4"}, "version", '"4" is not a valid choice.', id="unknown SNMP version"),
        pytest.param(
            NEW | {"port": 70000}, "port", "Ensure this value is less than or equal to 65535.", id="port out of range"
        ),
        pytest.param(
            NEW | {"max_in_flight": 0},
            "max_in_flight",
            "Ensure this value is greater than or equal to 1.",
            id="nothing in flight",
        ),
        pytest.param(NEW_V3 | {"v3_user": ""}, "v3_user", "SNMPv3 needs a user.", id="v3 without a user"),
        pytest.param(
            NEW_V3 | {"v3_auth": "SHA256", "v3_auth_key": "short"},
            "v3_auth_key",
            "SNMPv3 passwords must have at least 8 characters.",
            id="v3 with a short password",
        ),
        pytest.param(
            NEW_V3 | {"v3_priv": "AES128", "v3_priv_key": "long enough"},
            "v3_auth",
            "SNMPv3 privacy requires authentication.",
            id="v3 privacy alone",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(api, body, field, sentence):
    answer = api.post("/api/v1/olts/", body, format="json")

    assert answer.status_code == 400
    assert answer.data == {field: [sentence]}
    assert not Olt.objects.exists()


def test_a_name_is_given_once(api, central):
    answer = api.post("/api/v1/olts/", NEW | {"name": "OLT-CENTRAL-01"}, format="json")

    assert answer.data == {"name": ["OLT with this name already exists."]}


@pytest.mark.parametrize("method", ["patch", "put"])
def test_a_change_without_secrets_keeps_them(api, central, method):
    body = {"name": "OLT-CENTRAL-01", "brand": "huawei", "host": "127.0.0.1", "location": "Sur"}

    answer = getattr(api, method)(f"/api/v1/olts/{central.pk}/", body, format="json")

    central.refresh_from_db()
    assert answer.status_code == 200
    assert central.location == "Sur"
    assert {name: getattr(central, name).reveal() for name in SECRETS} == SECRETS


def test_a_secret_can_be_replaced_but_not_taken_away_where_it_is_needed(api, central):
    url = f"/api/v1/olts/{central.pk}/"

    replaced = api.patch(url, {"community": " with spaces "}, format="json")
    emptied = api.patch(url, {"community": ""}, format="json")

    central.refresh_from_db()
    assert (replaced.status_code, emptied.status_code) == (200, 400)
    assert central.community.reveal() == " with spaces "


def test_a_change_notifies_the_engine_and_keeps_its_columns(api, central, monkeypatch):
    """The engine writes between our read and our write: neither its news nor the revision may be put back."""
    original = Olt.full_clean

    def engine_writes_meanwhile(olt, *args, **kwargs):
        Olt.objects.filter(pk=olt.pk).update(reachability="slow", revision=41)
        return original(olt, *args, **kwargs)

    monkeypatch.setattr(Olt, "full_clean", engine_writes_meanwhile)

    answer = api.patch(f"/api/v1/olts/{central.pk}/", {"location": "Norte"}, format="json")

    central.refresh_from_db()
    assert (answer.data["location"], answer.data["reachability"]) == ("Norte", "slow")
    assert central.revision == 42


def test_what_the_engine_observed_cannot_be_set(api, central):
    body = {"reachability": "slow", "last_error": "x", "extra": {"a": 1}, "last_answer_at": "2025-06-01T10:00:00Z"}

    api.patch(f"/api/v1/olts/{central.pk}/", body, format="json")

    central.refresh_from_db()
    assert (central.reachability, central.last_error, central.extra) == ("reachable", "", {})
    assert central.last_answer_at is None


def test_the_brand_stays_while_jobs_of_it_are_applied(api, node):
    answer = api.patch(f"/api/v1/olts/{node.olt_id}/", {"brand": "zte_c300"}, format="json")

    assert answer.data == {
        "brand": [
            "Jobs of another brand are applied to this OLT. Remove them first, or use Replace OLT if the device was "
            "changed."
        ]
    }


@pytest.mark.parametrize(("action", "expected"), [("enable", "reachable"), ("disable", "disabled")])
def test_an_olt_is_enabled_and_disabled_by_its_own_action(api, central, action, expected):
    Olt.objects.update(enabled=action == "disable")

    answer = api.post(f"/api/v1/olts/{central.pk}/{action}/")

    assert answer.status_code == 202
    assert answer.data["state"] == expected


def test_an_olt_is_deleted_with_all_that_hangs_on_it(api, execution, onu):
    answer = api.delete(f"/api/v1/olts/{onu.olt_id}/")

    assert answer.status_code == 204
    assert not Olt.objects.exists()


def test_an_unknown_olt_is_404(api, db):
    assert api.get("/api/v1/olts/99/").status_code == 404


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", {"OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03"}, id="all of them"),
        pytest.param("brand=zte_c300", {"OLT-NORTE-02"}, id="by brand"),
        pytest.param("enabled=false", {"OLT-SUR-03"}, id="by what the admin said"),
        pytest.param("reachability=unreachable", {"OLT-SUR-03"}, id="by what was observed"),
        pytest.param("state=disabled", {"OLT-SUR-03"}, id="by state: disabled"),
        pytest.param("state=unreachable", set(), id="by state: a disabled OLT has no other"),
        pytest.param("state=slow", {"OLT-NORTE-02"}, id="by state: slow"),
        pytest.param("search=norte", {"OLT-NORTE-02"}, id="search a name"),
        pytest.param("search=127.0.0.3", {"OLT-SUR-03"}, id="search an address"),
        pytest.param("search=centro", {"OLT-CENTRAL-01"}, id="search a location"),
    ],
)
def test_olts_are_found(api, central, norte, sur, query, expected):
    sur.disable()

    answer = api.get(f"/api/v1/olts/?{query}")

    assert {olt["name"] for olt in answer.data["results"]} == expected


def test_an_unknown_state_is_refused(api, db):
    answer = api.get("/api/v1/olts/?state=tired")

    assert answer.status_code == 400
    assert answer.data == {"state": ["Select a valid choice. tired is not one of the available choices."]}


def test_onus_are_counted_and_the_age_of_the_data_told(api, central, norte):
    make_onu(central, 7)
    make_onu(central, 8, state="los", own_read_at=T0.replace(minute=5))

    busy, empty = api.get("/api/v1/olts/").data["results"]

    assert (busy["onus_total"], busy["onus_online"]) == (2, 1)
    assert busy["last_read_at"] == "2025-06-01T10:05:00Z"
    assert (empty["onus_total"], empty["onus_online"], empty["last_read_at"]) == (0, 0, None)


def test_order_by_the_age_of_the_data_has_those_without_any_last(api, central, norte, sur):
    make_onu(norte, 1, own_read_at=T0)
    make_onu(sur, 1, own_read_at=T0.replace(minute=5))

    rising = api.get("/api/v1/olts/?ordering=last_read_at").data["results"]
    falling = api.get("/api/v1/olts/?ordering=-last_read_at").data["results"]

    assert [olt["name"] for olt in rising] == ["OLT-NORTE-02", "OLT-SUR-03", "OLT-CENTRAL-01"]
    assert [olt["name"] for olt in falling] == ["OLT-SUR-03", "OLT-NORTE-02", "OLT-CENTRAL-01"]


def test_lists_come_in_pages_that_say_their_size(api, db):
    for number in range(3):
        make_olt(f"OLT-{number}")

    first = api.get("/api/v1/olts/?page_size=2").data
    second = api.get(first["next"]).data

    assert (first["count"], first["page_size"], first["previous"], len(first["results"])) == (3, 2, None, 2)
    assert (second["next"], len(second["results"])) == (None, 1)


def test_a_list_without_end_is_counted_so_far_and_no_further(api, db, monkeypatch):
    monkeypatch.setattr("facho.apps.inventory.pagination.MOST", 4)
    for number in range(7):
        make_olt(f"OLT-{number}")

    first = api.get("/api/v1/olts/?page_size=2").data
    second = api.get(first["next"]).data
    beyond = api.get("/api/v1/olts/?page_size=2&page=3")

    assert [(page["count"], page["is_counted"], len(page["results"])) for page in (first, second)] == [
        (4, False, 2)
    ] * 2
    assert second["next"] is None
    assert (beyond.status_code, "Filter it" in str(beyond.data)) == (404, True)
    assert api.get("/api/v1/olts/?search=OLT-1").data["is_counted"] is True


@pytest.mark.parametrize(
    ("wish", "size"),
    [
        pytest.param("", 50, id="none: fifty"),
        pytest.param("page_size=1000", 1000, id="a thousand"),
        pytest.param("page_size=100000", 1000, id="more than there may be: a thousand"),
    ],
)
def test_the_size_of_a_page_has_a_maximum(api, db, wish, size):
    assert api.get(f"/api/v1/olts/?{wish}").data["page_size"] == size


@pytest.mark.parametrize("size", ["0", "-1", "1.5", "many", "", "9" * 5000])
def test_a_page_size_that_is_no_size_is_refused(api, db, size):
    answer = api.get("/api/v1/olts/", {"page_size": size})

    assert (answer.status_code, answer.data) == (400, {"page_size": ["Write a number from 1 to 1000."]})


@pytest.mark.parametrize("many", [1, 20])
def test_a_page_of_olts_costs_the_same_however_many_there_are(api, db, django_assert_num_queries, many):
    for number in range(many):
        make_onu(make_olt(f"OLT-{number}", host=f"127.0.0.{number}"), 7)

    with django_assert_num_queries(4):
        api.get("/api/v1/olts/")
