"""Decoders by their names in profiles, with their options."""

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from facho.brands import section
from facho.brands.decode import (
    HIGHEST_DBM,
    LOWEST_DBM,
    UNKNOWN,
    address,
    cause,
    choice,
    counter,
    date,
    date_in_text,
    hexadecimal,
    mac,
    milliwatts,
    number_at,
    object_identifier,
    padded,
    place,
    scaled,
    serial,
    signed_16,
    text,
    word,
)
from facho.brands.section import REQUIRED, Section
from facho.engine.brand import Decoder

Builder = Callable[[Section], Decoder | None]

# A scale beyond these is an error, and overflows 64-bit values.
SMALLEST, LARGEST = 1e-12, 1e12

# Fields that hold a time. Others are stored as JSON, which has no times.
TIMES = frozenset({"last_up", "last_down"})


def _plain(decode: Decoder) -> Builder:
    return lambda options: decode


def _none(options: Section) -> tuple[int, ...]:
    given: tuple[int, ...] = options.take("none", section.list_of(section.whole), ())
    return (*given, UNKNOWN)


def _number(options: Section, low: float = -math.inf, high: float = math.inf) -> Decoder:
    factor = options.take("scale", _scale, 1)
    offset = options.take("add", _sum, 0)
    low = options.take("low", section.number, low)
    high = options.take("high", section.number, high)
    digits = options.take("digits", _digits, 3)
    none = _none(options)
    is_signed = options.take("signed_16", section.flag, False)
    pattern = options.take("regex", _with_one_group, None)
    if pattern is not None:
        for key in ("none", "signed_16"):
            if key in options:
                options.complain(
                    key, "it only applies to whole numbers and cannot be combined with regex; use low and high"
                )
        return number_at(pattern, factor, offset, low=low, high=high, digits=digits)
    decode = scaled(factor, offset, none=none, low=low, high=high, digits=digits)
    return signed_16(decode) if is_signed else decode


def _scale(value: Any) -> float:
    factor = section.number(value)
    if not SMALLEST <= abs(factor) <= LARGEST:
        raise ValueError(f"{value!r} is not a valid factor; write one such as 0.01")
    return factor


def _sum(value: Any) -> float:
    summand = section.number(value)
    if abs(summand) > LARGEST:
        raise ValueError(f"{value!r} is too large to add")
    return summand


def _digits(value: Any) -> int:
    digits = section.whole(value)
    if not 0 <= digits <= 9:
        raise ValueError(f"{value!r} should be from 0 to 9")
    return digits


def _with_one_group(value: Any) -> re.Pattern[str]:
    pattern = section.pattern(value)
    if pattern.groups != 1:
        raise ValueError(f"{value!r} should have one pair of brackets, around the number")
    return pattern


def _power(options: Section) -> Decoder:
    return _number(options, LOWEST_DBM, HIGHEST_DBM)


def _text(options: Section) -> Decoder:
    padding = options.take("padding", section.text, "")
    return padded(padding) if padding else text


def _milliwatts(options: Section) -> Decoder:
    return milliwatts(options.take("scale", _scale, 1), none=_none(options))


def _choice(options: Section) -> Decoder:
    words = options.take("words", section.words, REQUIRED) or {}
    return choice(words, options.take("other", section.text, None))


def _cause(options: Section) -> Decoder:
    words = options.take("words", section.words, REQUIRED) or {}
    return cause(words, none=options.take("none", section.list_of(section.whole), ()))


def _place(options: Section) -> Decoder | None:
    pattern = options.take("regex", section.pattern, REQUIRED)
    if pattern is None:
        return None
    names = set(pattern.groupindex)
    if not {"port", "onu"} <= names <= {"shelf", "slot", "port", "onu"}:
        options.complain(
            "regex", "it should have groups named (?P<port>...) and (?P<onu>...), and may have shelf and slot"
        )
    return place(pattern)


def _as_text(decode: Decoder) -> Decoder:
    def iso(value: Any) -> str | None:
        moment = decode(value)
        return moment.isoformat() if moment else None

    return iso


DECODERS: Mapping[str, Builder] = MappingProxyType(
    {
        "text": _text,
        "word": _plain(word),
        "serial": _plain(serial),
        "mac": _plain(mac),
        "ip": _plain(address),
        "hex": _plain(hexadecimal),
        "oid": _plain(object_identifier),
        "date": _plain(date),
        "date_in_text": _plain(date_in_text),
        "counter": _plain(counter),
        "number": _number,
        "power": _power,
        "milliwatts": _milliwatts,
        "choice": _choice,
        "cause": _cause,
        "place": _place,
    }
)


def decoder(field: str, options: Section) -> Decoder | None:
    """Return the decoder named by `read`, with the other options; None, with a problem, if there is none."""
    name = options.take("read", section.text, REQUIRED)
    if name is None:
        return None
    if name not in DECODERS:
        options.complain("read", f"{name!r} is not a decoder; the decoders are {', '.join(DECODERS)}")
        return None
    decode = DECODERS[name](options)
    is_date = name in ("date", "date_in_text")
    if field in TIMES and not is_date:
        options.complain("read", f"{field} is a time: read it as date or date_in_text")
    return _as_text(decode) if decode and is_date and field not in TIMES else decode
