"""Errors of runs in the language of the reader: what the engine says is known by its shape, the rest stays."""

import pytest
from cast import make_execution
from django.test import Client
from django.utils import translation

from facho.apps.polling.errors import SENTENCES, _shapes, first_line, in_words
from facho.engine.collect import messages as engine
from facho.engine.errors import BadAnswer, NoAnswer

SILENT = (
    "OLT-SUR-03 did not answer 3 requests in 15.0 s. Check the address, the community and the OLT's SNMP access list."
)

# Written by the engine's own functions, so that a change of their words shows here.
WRITTEN = {
    "silence": (SILENT, "OLT-SUR-03 no respondió a 3 consultas en 15.0 s. Revise la dirección"),
    "one request": (SILENT.replace("3 requests", "1 request"), "OLT-SUR-03 no respondió a 1 consulta en 15.0 s."),
    "a column that never began": (
        engine.describe_stops([engine.Stop("rx_dbm", engine.describe_failure(NoAnswer("no answer")))])[0],
        "potencia recibida (dBm): sin respuesta antes de la primera fila",
    ),
    "a column that stopped": (
        engine.describe_stops([engine.Stop("rx_dbm", engine.describe_failure(BadAnswer("noise")), "0/1/7", 1200)])[0],
        "potencia recibida (dBm): sin respuesta utilizable después de 0/1/7, 1,200 filas conservadas",
    ),
    "a column with one row": (
        engine.describe_stops([engine.Stop("rx_dbm", "the time limit was reached", "0/1/7", 1)])[0],
        "potencia recibida (dBm): se alcanzó el tiempo límite después de 0/1/7, 1 fila conservada",
    ),
    "a poisoned ONU": (
        engine.describe_gaps(
            [("rx_dbm", "ONU 0/1/7", engine.describe_status(5)), ("tx_dbm", "ONU 0/1/7", engine.describe_status(5))]
        )[0],
        "potencia recibida (dBm), potencia enviada (dBm) de ONU 0/1/7: el agente respondió genErr",
    ),
    "columns that stopped together": (
        engine.describe_stops([engine.Stop(name, "no answer", "ONU 1/6/3") for name in ("rx_dbm", "tx_dbm")])[0],
        "potencia recibida (dBm), potencia enviada (dBm): sin respuesta después de ONU 1/6/3",
    ),
    "many columns": (
        engine.describe_stops([engine.Stop(str(number), "no answer", "ONU 1/6/3") for number in range(5)])[0],
        "5 columnas: sin respuesta después de ONU 1/6/3",
    ),
    "many ONUs": (
        engine.describe_gaps([("rx_dbm", f"ONU 0/1/{number}", "no answer") for number in range(1200)])[0],
        "potencia recibida (dBm) de 1,200 ONUs, la primera ONU 0/1/0: sin respuesta",
    ),
    "an error without a name": (engine.describe_status(99), "el agente respondió el error 99"),
    "a port that was left out": (
        engine.describe_left([("state", "0/1/7", "no answer")])[0],
        "estado: sin respuesta después de 0/1/7, se omitió el resto del puerto",
    ),
    "ONUs that were not asked": (
        engine.describe_rest(["rx_dbm"], "the time limit was reached", 12, 1000),
        "potencia recibida (dBm): se alcanzó el tiempo límite con 12 de 1,000 ONUs sin leer",
    ),
    "many more": (engine.limited([f"line {n}" for n in range(30)])[-1], "y 10 más como estas"),
}


@pytest.mark.parametrize(("written", "said"), WRITTEN.values(), ids=WRITTEN)
def test_what_the_engine_says_is_said_again_in_spanish(written, said):
    with translation.override("es"):
        assert in_words(written).startswith(said)


@pytest.mark.parametrize("written", [written for written, _said in WRITTEN.values()], ids=WRITTEN)
def test_english_is_kept_with_labels_of_columns(written):
    labelled = written.replace("rx_dbm", "received power (dBm)").replace("tx_dbm", "sent power (dBm)")

    with translation.override("en"):
        assert in_words(written) == labelled


def test_numbers_are_in_the_format_of_the_region():
    written = engine.describe_rest(["state"], "the time limit was reached", 12, 1000)

    with translation.override("es-es"):
        assert in_words(SILENT).startswith("OLT-SUR-03 no respondió a 3 consultas en 15,0 s.")
        assert in_words(written).endswith("con 12 de 1.000 ONUs sin leer")


@pytest.mark.parametrize("error", ["", "Traceback: 7", "OLT-SUR-03: %(olt)s", "50 % was lost", "línea"])
def test_what_is_not_known_stays_as_it_is(error):
    with translation.override("es"):
        assert in_words(error) == error


def test_each_line_is_said_for_itself_and_the_first_can_be_had_alone():
    with translation.override("es"):
        assert in_words("no answer\nsomething new\nno usable answer") == (
            "sin respuesta\nsomething new\nsin respuesta utilizable"
        )
        assert first_line("no answer\nno usable answer") == "sin respuesta"


def test_no_shape_takes_what_a_later_one_says_better():
    values = {"olt": "OLT-SUR-03", "host": "10.0.0.7", "seconds": "5", "n": "7", "fields": "rx_dbm", "where": "0/1/7"}
    values |= {
        "reason": "no answer",
        "unread": "3",
        "wanted": "9",
        "status": "genErr",
        "address": "10.0.0.7",
        "longest": "255",
    }

    taken = {sentence: next(known for known, shape in _shapes() if shape.fullmatch(sentence % values))
             for sentence in SENTENCES}  # fmt: skip

    assert taken == {sentence: sentence for sentence in SENTENCES}


def test_a_spanish_page_tells_why_a_run_failed_in_spanish(boss, node):
    make_execution(node, status="FAILED", error=SILENT)
    client = Client(headers={"accept-language": "es"})
    client.force_login(boss)

    page = client.get(f"/nodes/{node.pk}/").content.decode()

    assert "no respondió a 3 consultas" in page
    assert "did not answer" not in page
