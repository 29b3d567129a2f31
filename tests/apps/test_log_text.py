"""What a row of the log says: in the reader's language, and as it was written where that cannot be had."""

import pytest
from cast import T0
from django.utils import timezone, translation

from facho.apps.coordinator import text
from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.coordinator.text import sentence
from facho.engine.events import Event
from facho.engine.model import Cause

LOST = {
    "olt": "OLT-CENTRAL-01",
    "task": "Optical power",
    "slots": 3,
    "slot": "2025-06-01T10:00:00+00:00",
    "cause": "olt_busy",
}


def entry(event_type="SLOTS_LOST", details=LOST):
    return CoordinatorLog(event_type=event_type, level="INFO", message="as it was", details=details, timestamp=T0)


def translated(monkeypatch, **sentences):
    """Let the catalogue have these sentences, by the name of their event."""
    catalogue = {Event[name].sentence: text for name, text in sentences.items()}
    monkeypatch.setattr(text, "ngettext", lambda one, many, n: catalogue.get(many, many))


def test_a_sentence_is_filled_with_its_details():
    said = sentence(entry())

    assert said == (
        "OLT-CENTRAL-01: Optical power missed 3 slots, the first at Jun 1, 2025, 10:00:00 UTC (the OLT was busy)"
    )


def test_a_sentence_is_in_the_language_of_the_reader(monkeypatch):
    translated(monkeypatch, SLOTS_LOST="%(task)s de %(olt)s perdió %(slots)d turnos desde %(slot)s (%(cause)s)")

    with translation.override("es"):
        said = sentence(entry())

    assert (
        said
        == "Potencia óptica de OLT-CENTRAL-01 perdió 3 turnos desde 1 jun 2025, 10:00:00 UTC (la OLT estaba ocupada)"
    )


@pytest.mark.parametrize(
    ("language", "slots", "said"),
    [
        pytest.param("en", 1, "missed 1 slot, at Jun 1, 2025, 10:00:00 UTC", id="one"),
        pytest.param("en", 2, "missed 2 slots, the first at Jun 1, 2025, 10:00:00 UTC", id="two"),
        pytest.param("es", 1, "perdió 1 turno, el del 1 jun 2025, 10:00:00 UTC", id="one in Spanish"),
        pytest.param("es", 2, "perdió 2 turnos, el primero el del 1 jun 2025, 10:00:00 UTC", id="two in Spanish"),
    ],
)
def test_a_sentence_counts_as_people_do(language, slots, said):
    with translation.override(language):
        assert said in sentence(entry(details=LOST | {"slots": slots}))


@pytest.mark.parametrize(
    ("language", "said"),
    [
        pytest.param("en", "alert Silence: OLT-SUR-03 does not answer", id="English"),
        pytest.param("es", "alerta Silence: OLT-SUR-03 no responde", id="Spanish"),
    ],
)
def test_a_detail_that_is_a_sentence_is_in_the_language_of_the_reader_too(language, said):
    subject = {"subject": "OLT-SUR-03 does not answer", "subject_es": "OLT-SUR-03 no responde"}

    with translation.override(language):
        assert sentence(entry("ALERT_RAISED", {"rule": "Silence", **subject})) == said


def test_a_time_is_in_the_zone_of_the_reader():
    with timezone.override("America/Lima"):
        said = sentence(entry())

    assert "the first at Jun 1, 2025, 05:00:00 -05" in said


def test_numbers_are_written_as_the_event_wants_them():
    assert sentence(entry("POOL_SATURATED", {"busy": 81.666})) == (
        "the pollers were busy 82 % of the last minute: more pollers are needed"
    )


def test_an_event_without_details_says_its_sentence():
    assert sentence(entry("ENGINE_STOPPED", {})) == "the engine is stopping"


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.value)
def test_every_cause_is_said_in_words(cause):
    assert f"({cause.value})" not in sentence(entry(details=LOST | {"cause": cause.value}))


@pytest.mark.parametrize("severity", ["LOW", "MEDIUM", "HIGH", "CRITICAL"])
def test_every_severity_is_said_in_words(severity):
    details = LOST | {"completed": 2, "required": 4, "hour": LOST["slot"], "severity": severity}

    said = sentence(entry("QUOTA_VIOLATED", details))

    assert said.endswith(f"completed 2 of 4 runs in the hour from Jun 1, 2025, 10:00:00 UTC ({severity.lower()})")


@pytest.mark.parametrize(
    ("event_type", "details"),
    [
        pytest.param("NODES_SCHEDULED", {}, id="an event of an earlier version"),
        pytest.param("SLOTS_LOST", {}, id="a row of before there were details"),
        pytest.param("SLOTS_LOST", {"olt": "OLT-CENTRAL-01"}, id="a detail is missing"),
        pytest.param("SLOTS_LOST", LOST | {"slots": "three"}, id="a detail that is no number"),
        pytest.param("SLOTS_LOST", LOST | {"cause": ["olt_busy"]}, id="a list for a word"),
        pytest.param("SLOTS_LOST", None, id="nothing for details"),
        pytest.param("SLOTS_LOST", ["OLT-CENTRAL-01"], id="a list for details"),
    ],
)
def test_an_entry_that_cannot_be_translated_is_shown_as_stored(event_type, details):
    assert sentence(entry(event_type, details)) == "as it was"


def test_a_translation_that_wants_more_than_there_is_is_not_used(monkeypatch):
    translated(monkeypatch, SLOTS_LOST="%(olt)s: %(nobody)s")

    assert sentence(entry()) == "as it was"


@pytest.mark.parametrize(
    ("details", "said"),
    [
        pytest.param({"cause": "a cause of tomorrow"}, "(a cause of tomorrow)", id="a cause that we do not know"),
        pytest.param({"slot": "soon"}, "the first at soon", id="a time that is none"),
        pytest.param({"slot": None}, "the first at None", id="no time"),
    ],
)
def test_a_word_that_is_not_ours_stays_as_it_is(details, said):
    assert said in sentence(entry(details=LOST | details))


@pytest.mark.parametrize("event", Event, ids=lambda event: event.name)
def test_every_event_fits_its_column_and_can_be_said(event):
    row = entry(event.name, dict.fromkeys(event.names, 7))

    said = sentence(row)

    assert len(event.name) <= CoordinatorLog._meta.get_field("event_type").max_length
    assert said != "as it was"
