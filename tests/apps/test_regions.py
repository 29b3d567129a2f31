"""Numbers and dates in the format of the browser's region."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from cast import make_execution
from django.test import Client
from django.utils import timezone, translation

from facho.apps.inventory.formats import decimal, hour, moment, moment_and_zone, whole
from facho.apps.inventory.middleware import regional
from facho.apps.inventory.models import Olt
from facho.apps.inventory.resources import OltResource
from problem_rows import make_problem

AT = datetime(2026, 11, 8, 14, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("language", "accepted", "expected"),
    [
        pytest.param("es", ["es-pe", "es", "en"], "es-419", id="Peru"),
        pytest.param("es", ["es-419"], "es-419", id="Latin America"),
        pytest.param("es", ["es"], "es-419", id="Spanish without a region"),
        pytest.param("es", ["es-es", "es"], "es-es", id="Spain"),
        pytest.param("es", ["es", "es-ar"], "es-es", id="Argentina, named second"),
        pytest.param("es", ["en-us", "en", "es-es"], "es-419", id="Spanish chosen in a browser of the United States"),
        pytest.param("en", ["en-us", "en"], "en-us", id="United States"),
        pytest.param("en", ["en"], "en-us", id="English without a region"),
        pytest.param("en", [], "en-us", id="no language"),
        pytest.param("en", ["en-gb"], "en-gb", id="United Kingdom"),
        pytest.param("en", ["es-pe", "es"], "en-gb", id="English chosen in a browser of Peru"),
        pytest.param("en", ["zh-hans-cn"], "en-gb", id="a language with a script"),
    ],
)
def test_a_region_is_that_of_the_browser(language, accepted, expected):
    assert regional(language, accepted) == expected


@pytest.mark.parametrize(
    ("code", "power", "count", "time", "minute"),
    [
        pytest.param("en-us", "-1,021.50", "12,345", "Nov 8, 2026, 14:05:09", "Nov 8, 2026, 14:05", id="en-US"),
        pytest.param("en-gb", "-1,021.50", "12,345", "8 Nov 2026, 14:05:09", "8 Nov 2026, 14:05", id="en-GB"),
        pytest.param("es-419", "-1,021.50", "12,345", "8 nov 2026, 14:05:09", "8 nov 2026, 14:05", id="es-419"),
        pytest.param("es-es", "-1.021,50", "12.345", "8 nov 2026, 14:05:09", "8 nov 2026, 14:05", id="es-ES"),
    ],
)
def test_numbers_and_times_have_the_format_of_the_region(code, power, count, time, minute):
    with translation.override(code):
        assert decimal(-1021.5, 2) == power
        assert whole(12345) == count
        assert moment(AT) == time
        assert hour(AT) == minute


def test_a_time_names_the_zone_of_the_installation():
    with translation.override("en-gb"), timezone.override("America/Lima"):
        assert moment_and_zone(AT) == "8 Nov 2026, 09:05:09 -05"


@pytest.mark.parametrize(
    ("accepted", "power", "lang"),
    [
        pytest.param("es-PE,es;q=0.9", "-21.53", "es-419", id="Peru"),
        pytest.param("es-ES,es;q=0.9", "-21,53", "es-ES", id="Spain"),
        pytest.param("en-GB", "-21.53", "en-GB", id="United Kingdom"),
    ],
)
def test_pages_and_admin_show_a_power_in_the_same_format(boss, onu, accepted, power, lang):
    type(onu).objects.update(rx_dbm=-21.53)
    client = Client(headers={"accept-language": accepted})
    client.force_login(boss)

    for path in (f"/onus/{onu.pk}/", "/onus/", "/admin/telemetry/onu/"):
        page = client.get(path).content.decode()
        assert power in page, path
        # Scripts use the formats of this language.
        assert f'lang="{lang.lower()}"' in page.lower(), path


def test_a_comma_breaks_no_drawing(boss, node):
    """SVG needs a decimal point in every region."""
    make_execution(node)
    client = Client(headers={"accept-language": "es-ES"})
    client.force_login(boss)

    for path in ("/", "/olts/", f"/olts/{node.olt_id}/"):
        page = client.get(path).content.decode()
        assert not [part for part in page.split('"') if part.endswith("%") and "," in part and len(part) < 9]


def test_an_exported_file_is_the_same_in_every_region(central):
    files = set()
    for code in ("en-us", "es-es"):
        with translation.override(code):
            files.add(OltResource().export(Olt.objects.all()).csv)

    assert len(files) == 1


def test_the_admin_names_its_time_zone(boss, settings):
    client = Client()
    client.force_login(boss)

    with timezone.override("America/Lima"):
        settings.TIME_ZONE = "America/Lima"
        page = client.get("/admin/").content.decode()

    assert "America/Lima" in page


ZONES = [
    pytest.param("/problems/", "America/Lima", "09:05:09 -05", id="of the browser"),
    pytest.param("/problems/", "America%2FLima", "09:05:09 -05", id="as a script writes it"),
    pytest.param("/problems/", "", "14:05:09 UTC", id="without a script"),
    pytest.param("/problems/", "../../etc/passwd", "14:05:09 UTC", id="no zone"),
    pytest.param("/problems/", "America", "14:05:09 UTC", id="a folder of zones"),
]


@pytest.mark.parametrize(("path", "cookie", "expected"), ZONES)
def test_texts_of_pages_have_the_zone_of_the_browser(admin_page, central, path, cookie, expected):
    make_problem(central, evidence={"down": 1, "first": AT.isoformat(), "last": AT.isoformat(), "exact": True})
    admin_page.cookies["facho_zone"] = cookie

    assert expected in admin_page.get(path).content.decode()


def test_yesterday_is_that_of_the_user(admin_page, central):
    admin_page.cookies["facho_zone"] = "America/Lima"

    answer = admin_page.get(f"/olts/{central.pk}/compare/", follow=True)

    before = datetime.fromisoformat(answer.wsgi_request.GET["before"])
    assert before.astimezone(ZoneInfo("America/Lima")).hour == 22
