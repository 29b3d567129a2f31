"""Input that no client should send is refused with a sentence: nested, long, repeated or unprintable."""

import json

import pytest
from cast import make_olt
from django.contrib import admin
from django.test import override_settings
from django.urls import reverse

from facho.apps.inventory.models import Olt
from facho.apps.rest.names import validate_name

OLT = {"name": "OLT-9", "host": "127.0.0.9", "community": "public"}
WORDS = " ".join(f"w{number}" for number in range(1500))
LISTS = ["olts", "onus", "jobs", "nodes", "executions", "events", "logs", "quotas", "alerts", "problems", "tokens"]


def said(answer):
    return json.dumps(answer.json(), ensure_ascii=False)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param("[" * 100_000, "nested deeper than 32 levels", id="100,000 open lists"),
        pytest.param('{"a":' * 33 + "1" + "}" * 33, "nested deeper than 32 levels", id="33 objects"),
        pytest.param('{"name": "a", "name": "b"}', "“name” occurs twice", id="the same key twice"),
        pytest.param('{"port": NaN}', "NaN is not a JSON number", id="NaN"),
        pytest.param('{"port": 1e999}', "A number is too large", id="infinity by exponent"),
        pytest.param('{"port": 1%s}' % ("0" * 5000), "A number is too large", id="5,000 digits"),
        pytest.param('{"name": "a\\u0000b"}', "contains a NUL", id="NUL"),
        pytest.param('{"extra": [{"\\ud800": 1}]}', "incomplete character", id="half a character in a key"),
        pytest.param('{"name": ', "not valid JSON", id="cut off"),
        pytest.param(b'{"name": "\xff"}', "not UTF-8", id="another encoding"),
    ],
)
def test_a_body_that_is_not_plain_json_is_refused(api, body, sentence):
    answer = api.post("/api/v1/olts/", body, content_type="application/json")

    assert answer.status_code == 400
    assert sentence in answer.json()["detail"]


def test_32_levels_are_read(api):
    body = '{"name":' + "[" * 31 + "]" * 31 + "}"

    answer = api.post("/api/v1/olts/", body, content_type="application/json")

    assert "name" in answer.json()


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=2048)
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_a_large_body_is_refused(api, kind):
    answer = api.post("/api/v1/olts/", b" " * 2049, content_type=kind)

    assert answer.status_code == 400
    assert answer.json()["detail"] == "The body is larger than 2 kB. Send less at a time."


PARTS = "".join(f'--b\r\nContent-Disposition: form-data; name="a{n}"\r\n\r\n1\r\n' for n in range(1001)) + "--b--\r\n"
FIELDS = "&".join(f"a{number}=1" for number in range(1001))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(FIELDS, "application/x-www-form-urlencoded", id="form"),
        pytest.param(PARTS, "multipart/form-data; boundary=b", id="parts"),
    ],
)
def test_a_form_with_too_many_fields_is_refused(api, body, kind):
    answer = api.post("/api/v1/olts/", body, content_type=kind)

    assert answer.status_code == 400
    assert answer.json()["detail"] == "The body has more than 1000 fields."


def test_too_many_parameters_are_refused_in_json(api):
    answer = api.get("/api/v1/olts/?" + "&".join(f"a{number}=1" for number in range(1001)))

    assert answer.status_code == 400
    assert "too many parameters" in answer.json()["detail"]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("search", [WORDS, "x" * 201], ids=["1,500 words", "201 characters"])
def test_a_long_search_is_refused(api, name, search):
    answer = api.get(f"/api/v1/{name}/", {"search": search})

    assert answer.status_code == 400
    assert answer.json() == {"search": ["Search for at most 10 words and 200 characters."]}


def test_ten_words_are_searched_for(api, central):
    answer = api.get("/api/v1/olts/", {"search": " ".join(["OLT"] * 10)})

    assert answer.json()["count"] == 1


@pytest.mark.parametrize(
    "model",
    [model for model, page in admin.site._registry.items() if page.search_fields],
    ids=lambda each: each.__name__,
)
def test_every_list_of_the_admin_refuses_a_long_search(admin_page, model):
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")

    answer = admin_page.get(path, {"q": WORDS})

    assert answer.status_code == 200
    assert [str(each) for each in answer.context["messages"]] == ["Search for at most 10 words and 200 characters."]


@pytest.mark.parametrize("page", ["olts", "onus"])
def test_the_pages_say_that_a_search_is_too_long(admin_page, central, page):
    answer = admin_page.get(reverse(f"dashboard:{page}"), {"q": WORDS})

    assert "Search for at most 10 words and 200 characters." in answer.content.decode()


def test_a_long_ordering_is_refused(api):
    answer = api.get("/api/v1/olts/", {"ordering": ",".join(["name"] * 2000)})

    assert answer.status_code == 400
    assert answer.json() == {"ordering": ["Order by at most 10 fields."]}


def test_a_parameter_that_is_repeated_too_often_is_refused(api):
    answer = api.get("/api/v1/onus/?" + "&".join(["state=online"] * 101))

    assert answer.status_code == 400
    assert answer.json() == {"state": ["Give this parameter at most 100 times."]}


UNPRINTABLE = [
    pytest.param("\n", id="line end"),
    pytest.param("\x1b", id="escape"),
    pytest.param("\x9b", id="C1"),
    pytest.param("\u202e", id="right-to-left override"),
    pytest.param("\u2066", id="isolate"),
]


@pytest.mark.parametrize("character", UNPRINTABLE)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("olts", OLT, id="OLT"),
        pytest.param("jobs", {"brand": "huawei", "kind": "table", "columns": ["rx_dbm"]}, id="job"),
        pytest.param("alert-rules", {"kind": "olt_unreachable"}, id="rule"),
        pytest.param("channels", {"kind": "slack", "slack_url": "https://127.0.0.1/x"}, id="channel"),
        pytest.param("tokens", {}, id="token"),
    ],
)
def test_a_name_with_a_control_character_is_refused(api, path, body, character):
    answer = api.post(f"/api/v1/{path}/", body | {"name": f"a{character}b"}, format="json")

    assert answer.status_code == 400
    assert list(answer.json()) == ["name"]
    assert "one line of plain text" in said(answer)


@pytest.mark.parametrize("name", ["OLT Ñuñoa 01", "机房", "Ольга", "a\u00a0b", "👩‍🔧"])
def test_names_in_any_language_are_accepted(name):
    validate_name(name)


def test_blanks_around_a_name_are_removed(api):
    answer = api.post("/api/v1/olts/", OLT | {"name": "  OLT-9 \n"}, format="json")

    assert answer.json()["name"] == "OLT-9"


@pytest.mark.parametrize("field", ["community", "v3_auth_key", "v3_priv_key"])
def test_a_long_secret_is_refused(api, field):
    answer = api.post("/api/v1/olts/", OLT | {field: "x" * 90_000}, format="json")

    assert answer.status_code == 400
    assert answer.json() == {field: ["Ensure this field has no more than 255 characters."]}


def test_a_secret_is_counted_in_bytes(api):
    answer = api.post("/api/v1/olts/", OLT | {"community": "ñ" * 128}, format="json")

    assert answer.json() == {"community": ["Write at most 255 bytes."]}


def test_a_long_secret_of_before_is_kept(api):
    olt = make_olt("OLT-9", community="x" * 300)

    answer = api.patch(f"/api/v1/olts/{olt.pk}/", {"location": "Sur"}, format="json")

    assert answer.status_code == 200
    assert Olt.objects.get().community.reveal() == "x" * 300


def test_a_nul_in_a_search_is_refused_by_the_name_of_the_parameter(api, db):
    answer = api.get("/api/v1/olts/?search=%00")

    assert (answer.status_code, answer.json()) == (400, {"search": ["Null characters are not allowed."]})
