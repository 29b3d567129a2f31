"""Writes the figures into docs/performance.md and docs/performance.es.md."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import report
from cases import Row
from stored import Stored

from facho import __version__

SPANISH_WORDS = {
    "target": "objetivo",
    "measured": "medido",
    "limit": "límite",
    "met": "cumplido",
    "NOT met": "NO cumplido",
    "not measured": "sin medir",
    "mode": "modo",
    "CPU/value": "CPU/valor",
    "servers": "servidores",
    "values/s": "valores/s",
    "most values/s": "máx. valores/s",
    "late, 99 %": "atraso, 99 %",
    "memory": "memoria",
    "OLTs": "OLT",
    "ONUs each": "ONU en cada una",
    "interval": "intervalo",
    "load": "carga",
    "load at most values/s": "carga a máx. valores/s",
    "failed runs": "ejecuciones fallidas",
    "history: bytes/reading": "historial: bytes/lectura",
    "history: bytes/value": "historial: bytes/valor",
    "all tables: bytes/value": "todas las tablas: bytes/valor",
    "case": "caso",
    "collector": "recolector",
    "wall": "tiempo real",
    "requests": "solicitudes",
    "runs": "repeticiones",
    "date": "fecha",
    "cores": "núcleos",
    "other programs": "otros programas",
}


def write(folder: Path, rows: Sequence[Row], stored: Sequence[Stored]) -> None:
    """Replace the figures on the page in both languages; its text is written by hand."""
    tables = {
        "targets": report.target_table(report.verdicts(rows, stored)),
        "stored": report.stored_table(stored),
        "loads": report.load_table(stored),
        "sizes": report.size_table(stored),
        "collection": report.collection_table(rows),
        "origin": origin(stored),
    }
    for name, words in (("performance.md", {}), ("performance.es.md", SPANISH_WORDS)):
        page = (folder / name).read_text()
        for block, table in tables.items():
            filled = f"<!-- bench: {block} -->\n{report.markdown(translated(table, words))}\n<!-- end -->"
            page = re.sub(
                rf"<!-- bench: {block} -->.*?<!-- end -->", lambda _, text=filled: text, page, flags=re.DOTALL
            )
        (folder / name).write_text(page)


def translated(table: report.Table, words: Mapping[str, str]) -> report.Table:
    head, cells = table
    return [words.get(cell, cell) for cell in head], [[words.get(cell, cell) for cell in line] for line in cells]


def origin(stored: Sequence[Stored]) -> report.Table:
    """Return when and where the figures were measured, with the versions that they depend on."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = models[0].partition(":")[2].strip() if models else platform.machine()
    versions = {name: number for each in stored for name, number in each.versions.items()}
    facts = {
        "Facho": __version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cores": f"{os.cpu_count()} × {processor}",
        "Python": platform.python_version(),
        **versions,
    }
    return list(facts), [list(facts.values())]
