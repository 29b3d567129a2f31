"""Events of ONUs in the API and on the pages."""

from datetime import timedelta

import pytest
from cast import T0, make_event, make_onu
from django.test import Client
from django.utils import translation

HOUR = timedelta(hours=1)


@pytest.fixture
def events(onu, central, norte):
    """A loss of signal on ONU 7 of the OLT, its recovery, and a move of another one on another OLT."""
    other = make_onu(norte, 8, slot=2, port=3)
    return [
        make_event(onu, T0),
        make_event(onu, T0 + HOUR, old="los", new="online", cause=""),
        make_event(other, T0 + 2 * HOUR, field="place", old="0/1/8", new="2/3/8", cause="moved"),
    ]


def ids(answer):
    assert answer.status_code == 200, answer.json()
    return [row["id"] for row in answer.json()["results"]]


def test_an_event_says_who_what_and_why(api, onu, events):
    row = api.get(f"/api/v1/events/{events[0].pk}/").json()

    assert row == {
        "id": events[0].pk,
        "at": "2025-06-01T10:00:00Z",
        "olt": onu.olt_id,
        "olt_name": "OLT-CENTRAL-01",
        "onu": onu.pk,
        "onu_name": onu.name,
        "onu_serial": onu.serial,
        "field": "state",
        "old": "online",
        "new": "los",
        "cause": "fiber cut",
    }


@pytest.mark.parametrize(
    ("narrowed", "found"),
    [
        pytest.param("", [2, 1, 0], id="all, the newest first"),
        pytest.param("olt={olt}", [1, 0], id="of an OLT"),
        pytest.param("onu={onu}", [1, 0], id="of an ONU"),
        pytest.param("slot=2&port=3", [2], id="of a port"),
        pytest.param("field=place", [2], id="of a field"),
        pytest.param("field=place&field=state", [2, 1, 0], id="of either"),
        pytest.param("after=2025-06-01T11:00:00Z&before=2025-06-01T12:00:00Z", [1], id="of an hour"),
        pytest.param("ordering=at", [0, 1, 2], id="the oldest first"),
        pytest.param("search=client-8", [2], id="by the name of the ONU"),
        pytest.param("page_size=1&page=3", [0], id="a page"),
    ],
)
def test_events_are_narrowed_and_ordered(api, onu, events, narrowed, found):
    answer = api.get(f"/api/v1/events/?{narrowed.format(olt=onu.olt_id, onu=onu.pk)}")

    assert ids(answer) == [events[number].pk for number in found]


def test_an_onu_has_its_own_events(api, onu, events):
    assert ids(api.get(f"/api/v1/onus/{onu.pk}/events/")) == [events[1].pk, events[0].pk]
    assert ids(api.get(f"/api/v1/onus/{onu.pk}/events/?before=2025-06-01T10:30:00Z")) == [events[0].pk]
    assert ids(api.get(f"/api/v1/onus/{onu.pk}/events/?ordering=at")) == [events[0].pk, events[1].pk]


@pytest.mark.parametrize("path", ["events/", "onus/{onu}/events/"])
@pytest.mark.parametrize(
    ("wrong", "name"),
    [("since=1", "since"), ("field=colour", "field"), ("ordering=cause", "ordering"), ("after=soon", "after")],
)
def test_what_makes_no_sense_is_refused(api, onu, path, wrong, name):
    answer = api.get(f"/api/v1/{path.format(onu=onu.pk)}?{wrong}")

    assert (answer.status_code, list(answer.json())) == (400, [name])


@pytest.mark.parametrize("pk", ["999999", "abc"])
def test_there_is_no_such_onu(api, onu, pk):
    assert api.get(f"/api/v1/onus/{pk}/events/").status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_events_are_read_only(api, events, method):
    assert getattr(api, method)(f"/api/v1/events/{events[0].pk}/").status_code == 405


def test_the_page_of_an_onu_shows_its_newest_events(reader, onu):
    page = Client()
    page.force_login(reader)
    for number in range(25):
        make_event(onu, T0 + number * HOUR, cause=f"cause-{number}.")

    shown = page.get(f"/onus/{onu.pk}/").content.decode()
    everything = page.get(f"/onus/{onu.pk}/events/").content.decode()

    assert [number for number in range(25) if f"cause-{number}." in shown] == list(range(5, 25))
    assert f'href="/onus/{onu.pk}/events/"' in shown
    assert all(f"cause-{number}." in everything for number in range(25))


def test_an_event_is_in_the_language_of_the_viewer(onu):
    gone = make_event(onu, field="presence", old="present", new="replaced", cause="replaced by HWTC00000009")

    with translation.override("es"):
        shown = [str(text) for text in (gone.get_field_display(), gone.old_text, gone.new_text, gone.cause_text)]

    assert shown == ["presencia", "presente", "reemplazada", "reemplazada por HWTC00000009"]
