"""Raw OIDs: units, history and charts."""

from datetime import timedelta

import pytest
from builders import MIN, T0
from cast import make_job, make_onu

from contracts.worlds import RunDesk
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, SnmpJobOid
from facho.apps.telemetry.history import OLT_ITSELF, series, series_of
from facho.apps.telemetry.models import HistoryChunk, Onu
from facho.engine.model import JobKind, RawOid, Reading
from facho.store import history

pytestmark = pytest.mark.django_db

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LONG_NAME = "temperature_of_the_board_" + 35 * "x"
OIDS = (
    RawOid("bias", b"\x2b\x06", "hundredths"),
    RawOid("firmware", b"\x2b\x07", "text"),
    RawOid(LONG_NAME, b"\x2b\x08", "integer", scalar=True),
    RawOid("chassis", b"\x2b\x09", "text", scalar=True),
)


class Desk(RunDesk):
    def __init__(self):
        super().__init__("Own values", JobKind.TABLE)
        self.now = T0

    def read(self, *values, **scalars):
        self.now += 5 * MIN
        rows = [
            Reading(f"1.{number}", 0, 1, number, {"bias": value, "firmware": f"v{value}"})
            for number, value in enumerate(values, 1)
        ]
        result = self.result(*rows, now=self.now, scalars=scalars)
        object.__setattr__(result.node, "oids", OIDS)
        self.deliver(result)
        self.start()


@pytest.fixture
def desk(db):
    return Desk()


def of_onu(number, field="oid.bias", step=None):
    pk = Onu.objects.get(onu=number).pk
    return [row[field] for row in series(pk, [field], T0, T0 + 2 * DAY, step)]


def of_olt(field, step=None):
    olt = Olt.objects.get(name="OLT-CENTRAL-01")
    return [row[field] for row in series_of(olt.pk, OLT_ITSELF, [field], T0, T0 + 2 * DAY, step)]


@pytest.mark.parametrize("is_closed", [False, True], ids=["open day", "closed day"])
def test_numbers_of_onus_and_of_the_olt_have_a_history_and_texts_have_none(desk, is_closed):
    desk.read(1.25, 7.5, **{LONG_NAME: 41, "chassis": "A1"})
    desk.read(1.5, None, **{LONG_NAME: 43, "chassis": "A1"})
    if is_closed:
        history.close(history.RAW, desk.world.olt_id, history.start_of_day(T0))
        assert HistoryChunk.objects.filter(field=f"oid.{LONG_NAME}").exists()

    assert of_onu(1) == [1.25, 1.5]
    assert of_onu(2) == [7.5, None]
    assert of_olt(f"oid.{LONG_NAME}") == [41, 43]
    assert of_olt(f"oid.{LONG_NAME}", DAY) == [{"min": 41, "mean": 42, "max": 43}]
    assert (of_onu(1, "oid.firmware"), of_olt("oid.chassis")) == ([], [])


def test_a_column_of_the_brand_is_not_stored_twice(desk):
    desk.read(1.25)

    assert of_onu(1, "rx_dbm") == []


@pytest.fixture
def job(central):
    job = make_job("Own values", columns=[])
    SnmpJobOid.objects.create(job=job, name="bias", oid="1.3.6.1.4.1.2011.5", decode="hundredths", unit="mA")
    SnmpJobOid.objects.create(
        job=job, name="board", oid="1.3.6.1.4.1.2011.6.0", decode="integer", unit="°C", scalar=True
    )
    job.apply_to([central])
    return job


def test_the_unit_is_shown_with_the_value(admin_page, central, job):
    onu = make_onu(central, 1, extra={"bias": 12.5})
    Olt.objects.filter(pk=central.pk).update(extra={"board": 41})

    of_onu = admin_page.get(f"/onus/{onu.pk}/").content.decode()
    of_olt = admin_page.get(f"/olts/{central.pk}/").content.decode()

    assert "12.5 mA" in of_onu
    assert 'data-unit="mA"' in of_onu
    assert "41 °C" in of_olt
    assert 'data-unit="°C"' in of_olt


def test_an_olt_without_raw_oids_has_no_empty_charts(admin_page, central, onu):
    assert "raw-values" not in admin_page.get(f"/onus/{onu.pk}/").content.decode()
    assert admin_page.get(f"/olts/{central.pk}/values/").json()["series"] == {}


def test_the_chart_of_an_olt_has_its_points(admin_page, central, job, monkeypatch):
    now = T0 + HOUR
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    history.append(central.pk, T0, [OLT_ITSELF], {"oid.board": [41]})

    shown = admin_page.get(f"/olts/{central.pk}/values/").json()

    assert shown["series"] == {"board": [[T0.timestamp() * 1000, 41.0]]}


def test_the_unit_is_a_field_of_the_api(api, central, job):
    oids = api.get(f"/api/v1/jobs/{job.pk}/").data["oids"]
    assert [each["unit"] for each in oids] == ["mA", "°C"]

    kept = [{name: each[name] for name in ("name", "oid", "decode")} for each in oids]
    answer = api.patch(f"/api/v1/jobs/{job.pk}/", {"oids": [{**kept[0], "unit": "A"}]}, format="json")

    assert answer.status_code == 200, answer.data
    assert list(SnmpJob.objects.get(pk=job.pk).oids.values_list("name", "unit")) == [("bias", "A")]


def test_the_api_returns_the_history_of_a_raw_oid(api, desk):
    desk.read(1.25)
    path = f"/api/v1/onus/{Onu.objects.get().pk}/history/?from={T0:%Y-%m-%dT%H:%M:%SZ}&field="

    assert [row["oid.bias"] for row in api.get(path + "oid.bias").data["results"]] == [1.25]
    assert api.get(path + "oid.bias&step=1h").data["results"][0]["oid.bias"]["mean"] == 1.25
    assert api.get(path + "oid.Bias").status_code == 400
