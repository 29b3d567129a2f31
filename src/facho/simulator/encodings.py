"""Common encodings of serials, MACs, texts, times and powers."""

from datetime import UTC, datetime

from facho.simulator.life import Onu

# One in this many ONUs has no name.
NAMELESS_ONE_IN = 10


def in_charset(onu: Onu, text: str) -> bytes:
    """Return a text in the charset of this ONU's operator tool."""
    return text.encode(onu.charset, "replace")


def has_name(onu: Onu) -> bool:
    """Return whether this ONU has a name. Only some vendors allow none."""
    return onu.number % NAMELESS_ONE_IN != NAMELESS_ONE_IN - 1


def serial_text(onu: Onu, between: str = "") -> str:
    """Return a serial as text: four letters and eight digits."""
    return onu.serial[:4].decode("ascii") + between + onu.serial[4:].hex().upper()


def time_text(moment: float | None, between: str = "-", never: bytes = b"--") -> bytes:
    """Return a time in UTC as text, such as 2026-11-15 11:00:00."""
    if moment is None:
        return never
    return datetime.fromtimestamp(moment, UTC).strftime(f"%Y{between}%m{between}%d %H:%M:%S").encode()


def milliwatts(dbm: float) -> float:
    return float(10 ** (dbm / 10))
