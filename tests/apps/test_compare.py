"""Before and after of an OLT: the page, the API and its files."""

import csv
import io
import json
from datetime import timedelta

import openpyxl
import pytest
from cast import T0, make_event, make_olt, make_onu
from django.urls import reverse
from django.utils import timezone

from facho.apps.telemetry.history import RAW, start_of_day
from facho.apps.telemetry.models import HistoryDay, HistoryRun, PonPort
from facho.store.history import append, close

HOUR = timedelta(hours=1)
BEFORE, AFTER = T0, T0 + 8 * HOUR


def address(olt, **query):
    return reverse("api-olt-compare", args=[olt.pk]), {"before": BEFORE.isoformat(), "after": AFTER.isoformat()} | query


def read(olt, at, cells):
    """Store a run: state and power by ONU."""
    ids = [onu.pk for onu in cells]
    states, powers = zip(*cells.values(), strict=True)
    append(olt.pk, at, ids, {"state": list(states), "rx_dbm": list(powers)})


@pytest.fixture
def network(central):
    """An OLT before and after a night: what happened to each ONU is its name."""
    first = T0 - 48 * HOUR
    make = {
        "healthy": {},
        "dark": {"state": "los", "down_cause": "los"},
        "weaker": {"port": 2},
        "moved": {"port": 2},
        "gone": {"missing_since": T0 + HOUR},
        "new": {"first_seen_at": T0 + HOUR},
        "back": {},
        "unread": {},
        "old": {"missing_since": T0 + HOUR, "place_taken": True, "onu": 30},
        "successor": {"first_seen_at": T0 + HOUR, "onu": 30, "index": "1.30"},
    }
    onus = {
        name: make_onu(central, number, **{"first_seen_at": first, "name": name} | more)
        for number, (name, more) in enumerate(make.items(), 1)
    }
    event = {"field": "presence", "old": "present", "cause": "not found by discoveries"}
    make_event(onus["gone"], T0 + HOUR, **event, new="missing")
    make_event(onus["old"], T0 + HOUR, **event, new="replaced")
    make_event(onus["new"], T0 + HOUR, **event | {"old": "", "new": "present"})
    make_event(onus["moved"], T0 + HOUR, field="place", old="0/1/40", new="0/1/41", cause="moved")
    make_event(onus["moved"], T0 + 2 * HOUR, field="place", old="0/1/41", new="0/2/4", cause="moved")
    # Later than the period: it says nothing about it.
    make_event(onus["healthy"], AFTER + HOUR, field="presence", old="present", new="missing")
    make_event(onus["dark"], AFTER + HOUR, field="down_cause", old="dying_gasp", new="los")
    onus["healthy"].missing_since = AFTER + HOUR
    onus["healthy"].save()
    present = [onu for name, onu in onus.items() if name not in ("new", "successor")]
    read(central, BEFORE - HOUR / 2, dict.fromkeys(present, ("online", -20.0)) | {onus["back"]: ("los", None)})
    after = {onu: ("online", -20.2) for onu in onus.values() if onu not in (onus["gone"], onus["old"])}
    after |= {onus["dark"]: ("dying_gasp", None), onus["weaker"]: ("online", -23.5)}
    del after[onus["unread"]]
    read(central, AFTER - HOUR / 2, after)
    # Both times are within it, and not at its ends.
    read(central, AFTER + HOUR, dict.fromkeys(onus.values(), ("los", None)))
    return onus


@pytest.fixture(params=["open", "closed"])
def history(request, network, central):
    """The same history in runs, and in chunks."""
    if request.param == "closed":
        close(RAW, central.pk, start_of_day(T0))
    assert HistoryRun.objects.exists() is (request.param == "open")
    return network


def test_each_onu_has_what_happened_to_it(api, central, history):
    answer = api.get(*address(central)).json()

    assert {each["name"]: each["kinds"] for each in answer["onus"]} == {
        "dark": ["dark"],
        "gone": ["gone"],
        "weaker": ["weaker"],
        "unread": ["unread"],
        "successor": ["replaced"],
        "moved": ["moved"],
        "back": ["back"],
        "new": ["new"],
    }
    assert (answer["total"], answer["unchanged"], answer["kinds"]["dark"]) == (9, 1, 1)
    assert [each["port"] for each in answer["ports"]] == ["0/1", "0/2"]
    assert answer["ports"][1]["kinds"]["weaker"] == 1
    assert answer["before_read_at"] == "2025-06-01T09:30:00Z"


def test_an_onu_is_shown_as_it_was_at_both_times(api, central, network):
    onus = {each["name"]: each for each in api.get(*address(central)).json()["onus"]}

    weaker = onus["weaker"]
    assert (weaker["before"]["power"], weaker["after"]["power"], weaker["step"]) == (-20.0, -23.5, -3.5)
    assert weaker["before"]["state_at"] == "2025-06-01T09:30:00Z"
    assert (onus["moved"]["before"]["place"], onus["moved"]["after"]["place"]) == ("0/1/40", "0/2/4")
    assert (onus["dark"]["cause"], onus["dark"]["after"]["state"]) == ("dying_gasp", "dying_gasp")
    assert (onus["gone"]["after"], onus["new"]["before"]) == (None, None)
    assert onus["successor"]["before"]["onu"] == network["old"].pk


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({"port": "0/2"}, ["weaker", "moved"], id="of a port"),
        pytest.param({"port": "0/2", "kind": "moved"}, ["moved"], id="of a kind"),
        pytest.param({"kind": ["dark", "new"]}, ["dark", "new"], id="of two kinds"),
        pytest.param({"threshold": "4", "port": "0/2"}, ["moved"], id="with a higher threshold"),
        pytest.param({"kind": ["dark", "new", "gone"], "sort": "name"}, ["dark", "gone", "new"], id="by name"),
        pytest.param({"kind": ["dark", "moved", "gone"], "sort": "place"}, ["dark", "gone", "moved"], id="by place"),
        pytest.param({"kind": ["moved", "weaker"], "sort": "step"}, ["weaker", "moved"], id="by change of power"),
    ],
)
def test_differences_are_narrowed_and_sorted(api, central, network, query, expected):
    answer = api.get(*address(central, **query))

    assert [each["name"] for each in answer.json()["onus"]] == expected


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"before": ""}, "before", id="no time"),
        pytest.param({"before": "yesterday"}, "before", id="no time at all"),
        pytest.param({"before": AFTER.isoformat()}, "before", id="the same time twice"),
        pytest.param({"before": "0001-01-01T00:00:00Z"}, "before", id="a time before all calendars"),
        pytest.param({"port": "nine"}, "port", id="no port"),
        pytest.param({"threshold": "0"}, "threshold", id="no threshold"),
        pytest.param({"kind": "worse"}, "kind", id="an unknown kind"),
        pytest.param({"since": "1"}, "since", id="an unknown parameter"),
    ],
)
def test_invalid_parameters_are_refused(api, central, query, field):
    answer = api.get(*address(central, **query))

    assert (answer.status_code, list(answer.json())) == (400, [field])


def test_a_time_in_the_future_is_now(api, central, network):
    answer = api.get(*address(central, after=(timezone.now() + HOUR).isoformat())).json()

    assert answer["after"] == timezone.now().isoformat().replace("+00:00", "Z")


def test_an_olt_that_measures_only_its_own_side_is_compared_by_that(api, central):
    onu = make_onu(central, 1, rx_dbm=None, olt_rx_dbm=-25.0, first_seen_at=T0 - 48 * HOUR)
    for at, power in ((BEFORE, -22.0), (AFTER, -25.0)):
        append(central.pk, at, [onu.pk], {"state": ["online"], "olt_rx_dbm": [power]})

    answer = api.get(*address(central)).json()

    assert (answer["power"], answer["onus"][0]["step"]) == ("olt_rx_dbm", -3.0)


def rows_of(answer):
    if answer["Content-Type"].startswith("text/csv"):
        return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    headers, *rows = openpyxl.load_workbook(io.BytesIO(answer.content)).active.iter_rows(values_only=True)
    return [dict(zip(headers, row, strict=True)) for row in rows]


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_a_file_has_exactly_the_listed_differences(api, central, network, form):
    network["dark"].name = "=cmd()"
    network["dark"].save()

    answer = api.get(*address(central, kind=["dark", "weaker"], format=form))

    dark, weaker = rows_of(answer)
    assert answer["Content-Disposition"].endswith(f'.{form}"')
    assert (dark["name"], dark["kinds"], dark["state_after"], dark["cause"]) == (
        "'=cmd()", "dark", "dying_gasp", "dying_gasp",
    )  # fmt: skip
    assert [float(weaker[name]) for name in ("power_before", "power_after", "step")] == [-20.0, -23.5, -3.5]
    assert weaker["state_at_before"] == "2025-06-01T09:30:00+00:00"


def test_a_file_with_an_invalid_parameter_is_an_error(api, central):
    answer = api.get(*address(central, format="csv", port="nine"))

    assert (answer.status_code, json.loads(answer.content)) == (400, {"port": ["Write slot and port, such as 1/9."]})


def page(client, olt, **query):
    query = {"before": BEFORE.isoformat(), "after": AFTER.isoformat()} | query
    return client.get(reverse("dashboard:compare", args=[olt.pk]), query)


def test_the_page_sums_up_first_and_shows_the_worst_first(admin_page, central, network):
    answer = page(admin_page, central)

    text = answer.content.decode()
    assert (
        "9 ONUs: 1 unchanged, 1 went down, 1 is no longer found, 1 lost at least 1 dB, 1 not comparable, 1 replaced, "
        "1 moved, 1 came back, 1 new." in text
    )
    assert [row["onu"].name for row in answer.context["rows"]][:3] == ["dark", "gone", "weaker"]
    assert [port for port, _tally, _phrases in answer.context["troubled"]] == ["0/1", "0/2"]


def test_the_page_exports_what_it_shows(admin_page, central, network):
    answer = page(admin_page, central, kind="dark", threshold="2", port="0/1", page="1")

    assert [form for form, _link in answer.context["exports"]] == ["CSV", "XLSX"]
    for form, link in answer.context["exports"]:
        file = admin_page.get(reverse("dashboard:compare", args=[central.pk]) + link)
        [row] = rows_of(file)
        shown = (row["ONU"], row["Change"], row["State before"], row["State after"], row["Down cause"])
        assert shown == ("dark", "went down", "online", "power lost", "power lost"), form
        assert "facho-compare-olt-central-01-" in file["Content-Disposition"]


def test_a_file_of_the_page_has_both_places_of_an_onu_that_moved(admin_page, central, network):
    [row] = rows_of(page(admin_page, central, kind="moved", file="csv"))

    assert row["Place"] == "0/1/40 → 0/2/4"


def test_a_page_without_times_leads_to_one_with_both(admin_page, central):
    answer = admin_page.get(reverse("dashboard:compare", args=[central.pk]), {"port": "0/1"}, follow=True)

    [(target, status)] = answer.redirect_chain
    assert status == 302
    assert "before=" in target
    assert "after=" in target
    assert answer.context["port"] == "0/1"


def test_the_ports_of_the_olt_can_be_chosen(admin_page, central):
    PonPort.objects.create(olt=central, slot=0, port=1)
    PonPort.objects.create(olt=central, slot=None, port=None)

    assert "<option selected>0/1</option>" in page(admin_page, central, port="0/1").content.decode()


def test_empty_fields_of_the_form_mean_nothing(admin_page, central, network):
    answer = page(admin_page, central, port="", threshold="")

    assert answer.context["overall"].total == 9


def test_a_page_with_an_invalid_time_shows_the_error(admin_page, central):
    answer = page(admin_page, central, before="yesterday")

    assert answer.status_code == 200
    assert len(answer.context["errors"]) == 1


def test_old_readings_are_shown_with_their_age(admin_page, central, network):
    answer = page(admin_page, central, before=(BEFORE + 5 * HOUR).isoformat(), after=(BEFORE + 6 * HOUR).isoformat())

    text = answer.content.decode()
    assert "At Jun 1, 2025, 15:00:00 UTC the last readings were 5 h old." in text
    assert "read 5 h before" in text


def test_a_time_without_readings_leads_to_the_nearest_ones(admin_page, central, network):
    answer = page(admin_page, central, before=(BEFORE - 40 * HOUR).isoformat())

    [(said, nearest)] = answer.context["notes"]
    assert said == "No ONU was read in the 24 hours before May 30, 2025, 18:00:00 UTC."
    assert nearest == [("before", BEFORE - HOUR / 2)]


def test_a_time_with_daily_values_only_is_explained(admin_page, central, network):
    day = start_of_day(BEFORE - 40 * HOUR)
    HistoryDay.objects.create(olt=central, at=day, data=b"")

    [(said, _nearest)] = page(admin_page, central, before=(BEFORE - 40 * HOUR).isoformat()).context["notes"]

    assert said.endswith("Only the daily minimum, mean and maximum of that day are kept.")


def test_another_olt_has_no_part_in_it(api, central, network):
    other = make_olt("OLT-OTHER", host="127.0.0.9")

    assert api.get(*address(other)).json()["total"] == 0


@pytest.mark.parametrize(
    ("hour", "expected"),
    [
        pytest.param(3, [(22, 3), (22, 6)], id="at night: the night before"),
        pytest.param(9, [(22, 9), (22, 6)], id="in the morning: the night that is over"),
    ],
)
def test_presets_are_in_the_zone_of_the_installation(settings, hour, expected):
    from facho.apps.dashboard.compare import presets

    settings.TIME_ZONE = "America/Lima"
    now = T0.replace(hour=(hour + 5) % 24)

    with timezone.override("America/Lima"):
        periods = [(timezone.localtime(since), timezone.localtime(until)) for _, _, since, until in presets(now)]

    assert [(since.hour, until.hour) for since, until in periods[:2]] == expected
    assert all(since < until <= now for since, until in periods)
