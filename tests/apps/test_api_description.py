"""What the API says of itself: brands, decoders, the schema and its page."""

import re
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.db import connection
from django.test import Client

from facho.brands import BRANDS
from facho.brands.decode import RAW_DECODERS

# How large a number may be follows from the database; the schema is that of the default one.
of_the_default_database = pytest.mark.skipif(connection.vendor != "sqlite", reason="the limits of numbers are SQLite's")
SCHEMA = Path(__file__).parents[2] / "docs" / "openapi.yaml"


def parsed(text):
    # The parser in Python takes seconds for it.
    return yaml.load(text, Loader=yaml.CSafeLoader)


@cache
def schema():
    return parsed(SCHEMA.read_text())


def test_brands_say_which_columns_a_job_can_name(reader_api):
    answer = reader_api.get("/api/v1/brands/").json()

    huawei = answer["results"][0]
    columns = {column["field"]: column["optical"] for column in huawei["columns"]}
    assert [brand["id"] for brand in answer["results"]] == list(BRANDS)
    assert answer["count"] == len(BRANDS)
    assert huawei["label"] == "Huawei MA5600T / MA5800"
    assert (columns["rx_dbm"], columns["name"]) == (True, False)


def test_decoders_say_how_a_raw_oid_can_be_read(reader_api):
    answer = reader_api.get("/api/v1/brands/decoders/").json()

    assert [decoder["name"] for decoder in answer["results"]] == list(RAW_DECODERS)


@of_the_default_database
def test_the_schema_in_the_repository_is_current():
    """If this fails: python -m django spectacular --file docs/openapi.yaml."""
    current = StringIO()

    call_command("spectacular", validate=True, fail_on_warn=True, stdout=current)

    assert current.getvalue().strip() == SCHEMA.read_text().strip()


@of_the_default_database
def test_the_schema_is_served_as_it_is_in_the_repository(db):
    served = parsed(Client().get("/api/v1/schema/").content)

    assert served == schema()


def empty_parameters():
    """Yield each parameter of a list, and whether it may be empty according to the schema."""
    for path, operations in schema()["paths"].items():
        parameters = operations["get"].get("parameters", ()) if "get" in operations and "{" not in path else ()
        for parameter in () if any(each.get("required") for each in parameters) else parameters:
            yield path, parameter["name"], parameter.get("allowEmptyValue", False)


def test_the_schema_describes_which_parameters_may_be_empty(api, db):
    expected = list(empty_parameters())

    answered = [(path, name, api.get(f"{path}?{name}=").status_code == 200) for path, name, _may_be_empty in expected]

    assert len(expected) > 100
    assert answered == expected


@pytest.mark.parametrize(
    "path",
    ["/auth/token/", "/pollers/", "/pollers/queue/", "/pollers/stats/", "/pollers/nodes/{node_id}/run/", "/olts/"],
)
def test_the_schema_describes_what_people_come_for(path):
    assert f"/api/v1{path}" in schema()["paths"]


def test_the_page_of_the_schema_loads_nothing_from_elsewhere(db):
    page = Client().get("/api/v1/docs/").content.decode()

    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    sources.remove("/api/v1/docs/?script=")
    assert len(sources) >= 3
    assert all(source.startswith("/static/") and finders.find(source.removeprefix("/static/")) for source in sources)
    assert not re.findall(r"https?://(?!testserver)", page)
