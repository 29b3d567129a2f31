"""Decoders of raw SNMP values, and rules over a decoded row.

A decoder never raises: a missing value, a sentinel or an unexpected type is None. A rule returns a row, and only adds
derived values.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from facho.engine import oid
from facho.engine.brand import Decoder, Position
from facho.engine.oid import Oid
from facho.engine.snmp import Value

# Value of many agents for a missing measurement: the largest Integer32.
UNKNOWN = 2147483647
# No PON transceiver measures powers outside of these.
LOWEST_DBM, HIGHEST_DBM = -60.0, 20.0
# Some agents return optics in 16 bits: all ones for no value, and above this a negative number. C2.
NO_VALUE_16, HIGHEST_POSITIVE_16 = 65535, 30000

HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
# Three in a row, or two that do not touch an ASCII letter.
NOT_WESTERN = re.compile(rb"[\x80-\xff]{3}|(?<![A-Za-z])[\x80-\xff]{2}(?![A-Za-z])")
# Letters of the Russian alphabet in cp1251. Common Chinese in GBK nearly always has bytes besides these.
CYRILLIC_ONLY = re.compile(rb"[\xa8\xb8\xc0-\xff]+")
SERIAL_TEXT = re.compile(rb"([!-~]{4}):?([0-9A-Fa-f]{8})")
VENDOR = re.compile(rb"[!-~]{4}")
HEX_TEXT = re.compile(rb"[0-9A-Fa-f]{16}")
MAC_TEXT = re.compile(rb"[0-9A-Fa-f]{2}([:. -]?[0-9A-Fa-f]{2}){5}")
NUMBER = re.compile(rb"[+-]?\d+(\.\d+)?")
DATE_TEXT = re.compile(rb"(\d{4})[-/](\d{1,2})[-/](\d{1,2})[ T]+(\d{1,2}):(\d{2}):(\d{2})")
# Texts of agents for no value.
NO_WORD = frozenset({"", "n_a", "none", "null"})


def integer(value: Value) -> int | None:
    """Return the number of any SNMP integer type. Larger ones come from a broken answer."""
    return value if isinstance(value, int) and -(2**63) <= value < 2**64 else None


def counter(value: Value) -> int | None:
    """Return an octet or packet counter. Half of 64 bits takes 200 years at 10 Gbit/s: more is invalid."""
    number = integer(value)
    return number if number is not None and 0 <= number < 2**63 else None


def scaled(
    factor: float,
    offset: float = 0.0,
    *,
    none: Collection[int] = (UNKNOWN,),
    low: float = -math.inf,
    high: float = math.inf,
    digits: int = 3,
) -> Decoder:
    """Return a decoder for `raw * factor + offset`; values in `none` or beyond the bounds are no value.

    Without decimal digits it returns whole numbers.
    """

    def decode(value: Value) -> float | None:
        number = integer(value)
        if number is None or number in none:
            return None
        result = round(number * factor + offset, digits or None)
        return result if low <= result <= high else None

    return decode


def power(factor: float, offset: float = 0.0, *, none: Collection[int] = (UNKNOWN,)) -> Decoder:
    """Return a decoder for an optical power in dBm."""
    return scaled(factor, offset, none=none, low=LOWEST_DBM, high=HIGHEST_DBM)


def milliwatts(factor: float, *, none: Collection[int] = (UNKNOWN,)) -> Decoder:
    """Return a decoder for an optical power in milliwatts, `raw * factor`, to dBm."""

    def decode(value: Value) -> float | None:
        number = integer(value)
        power = 0.0 if number is None or number in none else number * factor
        if power <= 0:
            return None
        result = round(10 * math.log10(power), 2)
        return result if LOWEST_DBM <= result <= HIGHEST_DBM else None

    return decode


def signed_16(decode: Decoder) -> Decoder:
    """Return a decoder that reads the number as signed 16 bits before `decode`."""

    def signed(value: Value) -> float | None:
        number = integer(value)
        if number is None or number == NO_VALUE_16:
            return None
        result: float | None = decode(number - 65536 if HIGHEST_POSITIVE_16 < number < 65536 else number)
        return result

    return signed


def number_at(
    pattern: re.Pattern[str], factor: float = 1.0, offset: float = 0.0, *, low: float, high: float, digits: int = 3
) -> Decoder:
    """Return a decoder for the number in the first group of a pattern in a text."""

    def decode(value: Value) -> float | None:
        match = pattern.search(value.decode("latin-1")) if isinstance(value, bytes) else None
        try:
            number = float(match[1]) if match else math.nan
        except (TypeError, ValueError):
            return None
        # Bounds first: they also exclude NaN and numbers that are too large to round.
        result = number * factor + offset
        return round(result, digits or None) if low <= result <= high and math.isfinite(result) else None

    return decode


def place(pattern: re.Pattern[str]) -> Decoder:
    """Return a decoder for a text with the place of an ONU, by groups named shelf, slot, port and onu."""

    def decode(value: Value) -> Position | None:
        match = pattern.search(value.decode("latin-1")) if isinstance(value, bytes) else None
        if match is None:
            return None
        try:
            found = {name: int(number) for name, number in match.groupdict().items() if number is not None}
        except ValueError:
            return None
        if not {"port", "onu"} <= found.keys():
            return None
        return Position(found.get("shelf", 0), found.get("slot", 0), found["port"], found["onu"])

    return decode


def whole(*, none: Collection[int]) -> Decoder:
    """Return a decoder for a plain number, except for these values."""

    def decode(value: Value) -> int | None:
        number = integer(value)
        return None if number in none else number

    return decode


def choice(words: Mapping[int, str], other: str | None = None) -> Decoder:
    """Return a decoder for an enumeration; an unknown number gives `other`."""

    def decode(value: Value) -> str | None:
        number = integer(value)
        return None if number is None else words.get(number, other)

    return decode


def cause(words: Mapping[int, str], *, none: Collection[int] = ()) -> Decoder:
    """Return a decoder for down causes, which differ by firmware: an unknown one is kept as `code_N`."""

    def decode(value: Value) -> str | None:
        number = integer(value)
        return None if number is None or number in none else words.get(number, f"code_{number}")

    return decode


def text(value: Value) -> str | None:
    """Return what people wrote, without NULs and trailing blanks; None if nothing is left.

    The bytes say nothing about their encoding. What is not UTF-8 is guessed:

    1. bytes above ASCII that stand alone, or two beside an ASCII letter, are Western accents (latin-1);
    2. runs of nothing but Russian letters are cp1251;
    3. other runs are GBK if they can be, else cp1251, else latin-1, which always fits.
    """
    if not isinstance(value, bytes):
        return None
    raw = value.replace(b"\0", b"")
    for charset in ("utf-8", *_guesses(raw)):
        try:
            return raw.decode(charset).rstrip() or None
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1").rstrip() or None


def padded(padding: str) -> Decoder:
    """Return a decoder for a text that the device pads with a character."""

    def decode(value: Value) -> str | None:
        return (text(value) or "").rstrip(f"{padding} ") or None

    return decode


def _guesses(raw: bytes) -> tuple[str, ...]:
    if not NOT_WESTERN.search(raw):
        return ("latin-1",)
    if all(CYRILLIC_ONLY.fullmatch(run) for run in HIGH_BYTES.findall(raw)):
        return ("cp1251",)
    return ("gbk", "cp1251")


def serial(value: Value) -> str | None:
    """Return a GPON serial as text: four letters of the vendor and eight hex digits.

    It is eight raw octets, and must never be read as text: the last four may be printable, blank or zero. Serials
    already in text form, as 12 characters or 16 hex digits, are accepted too.
    """
    if not isinstance(value, bytes):
        return None
    if len(value) == 8:
        return _serial_of_octets(value)
    written = value.strip(b'\0 "')
    if match := SERIAL_TEXT.fullmatch(written):
        return match[1].decode() + match[2].decode().upper()
    if HEX_TEXT.fullmatch(written):
        return _serial_of_octets(bytes.fromhex(written.decode()))
    return None


def _serial_of_octets(octets: bytes) -> str | None:
    if not any(octets):
        return None
    vendor, number = octets[:4], octets[4:]
    is_readable = VENDOR.fullmatch(vendor)
    return (vendor.decode() if is_readable else vendor.hex().upper()) + number.hex().upper()


def date(value: Value) -> datetime | None:
    """Return a DateAndTime (RFC 2579) in UTC. Eight octets have no zone and are read as UTC."""
    if not isinstance(value, bytes) or len(value) not in (8, 11):
        return None
    month, day, hour, minute, second, tenths = value[2:8]
    year = int.from_bytes(value[:2], "big")
    try:
        # 60 is a leap second, which a datetime cannot represent.
        local = datetime(year, month, day, hour, minute, 59 if second == 60 else second, tenths * 100_000, tzinfo=UTC)
        return local - _zone(value[8:]) if len(value) > 8 else local
    except (ValueError, OverflowError):
        return None


def _zone(octets: bytes) -> timedelta:
    if not any(octets):
        return timedelta(0)
    sign, hours, minutes = octets
    if sign not in b"+-" or hours > 14 or minutes > 59:
        raise ValueError("not a time zone")
    offset = timedelta(hours=hours, minutes=minutes)
    return offset if sign == ord("+") else -offset


def date_text(value: Value) -> str | None:
    """Return a DateAndTime as ISO 8601 text, for `extra`, which holds only JSON."""
    moment = date(value)
    return moment.isoformat() if moment else None


def date_in_text(value: Value) -> datetime | None:
    """Return a date from text, as in `2024-12-23 10:34:15`. It has no zone and is read as UTC."""
    match = DATE_TEXT.search(value) if isinstance(value, bytes) else None
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def word(value: Value) -> str | None:
    """Return a text as one of our words: `Dying-Gasp` is `dying_gasp`; dashes and `N/A` are none."""
    written = re.sub(r"[^a-z0-9]+", "_", (text(value) or "").lower()).strip("_")
    return None if written in NO_WORD else written


def mac(value: Value) -> str | None:
    """Return a MAC address as `aa:bb:cc:dd:ee:ff`, from six octets or from text."""
    if not isinstance(value, bytes):
        return None
    octets = value
    if len(value) != 6:
        written = value.strip(b"\0 ")
        if not MAC_TEXT.fullmatch(written):
            return None
        octets = bytes.fromhex(re.sub(rb"[:. -]", b"", written).decode())
    return octets.hex(":") if any(octets) else None


def hexadecimal(value: Value) -> str | None:
    """Return octets as hex digits."""
    return value.hex() if isinstance(value, bytes) else None


def address(value: Value) -> str | None:
    """Return an IpAddress in dotted form."""
    return ".".join(map(str, value)) if isinstance(value, bytes) and len(value) == 4 else None


def object_identifier(value: Value) -> str | None:
    """Return an OID in dotted form."""
    if not isinstance(value, bytes):
        return None
    try:
        return oid.text(Oid(value))
    except ValueError:
        return None


def number_in_text(value: Value) -> float | None:
    """Return the first number in a text such as `-21.5 dBm`, or a number unchanged."""
    if isinstance(value, bytes):
        match = NUMBER.search(value)
        number = float(match[0]) if match else math.inf
        return number if math.isfinite(number) else None
    plain = integer(value)
    return None if plain is None else float(plain)


@dataclass(frozen=True, slots=True)
class RawDecoder:
    """A decoder of an admin's OID in a job. Its values are JSON."""

    name: str
    label: str
    decode: Decoder


RAW_DECODERS: Mapping[str, RawDecoder] = MappingProxyType(
    {
        each.name: each
        for each in (
            RawDecoder("integer", "Whole number", integer),
            RawDecoder("tenths", "Number in tenths (÷ 10)", scaled(0.1)),
            RawDecoder("hundredths", "Number in hundredths (÷ 100)", scaled(0.01)),
            RawDecoder("thousandths", "Number in thousandths (÷ 1000)", scaled(0.001)),
            RawDecoder("number", "Number inside a text", number_in_text),
            RawDecoder("counter", "Counter", counter),
            RawDecoder("truth", "Yes or no (1 = yes, 2 = no)", choice({1: "yes", 2: "no"})),
            RawDecoder("seconds", "Time ticks, as seconds", scaled(0.01, none=())),
            RawDecoder("text", "Text", text),
            RawDecoder("hex", "Octets, as hex digits", hexadecimal),
            RawDecoder("mac", "MAC address", mac),
            RawDecoder("ip", "IP address", address),
            RawDecoder("serial", "GPON serial", serial),
            RawDecoder("date", "Date and time", date_text),
            RawDecoder("oid", "Object identifier", object_identifier),
        )
    }
)


Row = dict[str, Any]
Rule = Callable[[Row], Row]

# Values that only a reachable ONU has.
OPTICS = ("rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "voltage_v", "bias_ma")
# States in which it may answer. For an unknown state, measured values are kept.
ANSWERING = frozenset({"online", "degraded", "unknown", None})
# States that are themselves the down cause.
TELLING = frozenset({"los", "dying_gasp", "auth_failed"})


def disabled_by_admin(row: Row) -> Row:
    """Mark an ONU as disabled if the admin switched it off."""
    is_off = row.get("state") == "offline" and row.get("admin_state") == "disabled"
    return {**row, "state": "disabled"} if is_off else row


def no_optics_when_off(row: Row) -> Row:
    """Drop the measurements of an ONU that is off: an agent may return old ones or placeholders."""
    return _without(OPTICS, row)


def cause_from_state(row: Row) -> Row:
    """Set the down cause from the state if there is no column for it."""
    if row.get("down_cause") is not None or row.get("state") not in TELLING:
        return row
    return {**row, "down_cause": row["state"]}


def no_slot(row: Row) -> Row:
    """Clear the slot of a device without slots; otherwise it would be 0."""
    return {**row, "slot": None}


def null_when_off(fields: Collection[str]) -> Rule:
    """Return a rule that drops these values of an ONU that is off, because the agent returns zeros."""

    def rule(row: Row) -> Row:
        return _without(fields, row)

    return rule


def state_by_cause(states: Mapping[str, str]) -> Rule:
    """Return a rule that refines the state offline by the down cause."""

    def rule(row: Row) -> Row:
        if row.get("state") != "offline":
            return row
        return {**row, "state": states.get(row.get("down_cause") or "", "offline")}

    return rule


def chain(rules: Sequence[Rule]) -> Rule | None:
    """Return one rule that applies all in order, or None if there are none."""

    def rule(row: Row) -> Row:
        for each in rules:
            row = each(row)
        return row

    return rule if rules else None


def _without(fields: Collection[str], row: Row) -> Row:
    if row.get("state") in ANSWERING:
        return row
    return {name: None if name in fields else value for name, value in row.items()}


# Rules that a profile can name.
RULES: Mapping[str, Rule] = MappingProxyType(
    {each.__name__: each for each in (disabled_by_admin, no_optics_when_off, cause_from_state, no_slot)}
)
