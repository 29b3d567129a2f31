"""Progress of a run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run: parts done (ports or ONUs), rows read, requests sent.

    `ports` is None while the total is unknown.
    """

    ports_done: int
    ports: int | None
    rows: int
    pdus: int
