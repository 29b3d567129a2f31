"""How far a run is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: parts that are done (ports of a table, or ONUs), rows that were read, requests that were sent.

    `ports` is None as long as nobody can say how many there are.
    """

    ports_done: int
    ports: int | None
    rows: int
    pdus: int
