"""Decoders by their names in profiles, with their options."""

import math
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
    offset = options.take("add", section.number, 0)
    if abs(offset) > LARGEST:
        options.complain("add", f"{options.peek('add')!r} is too large to add")
    low = options.take("low", section.number, low)
    high = options.take("high", section.number, high)
    digits = options.take("digits", section.whole, 3)
    if not 0 <= digits <= 9:
        options.complain("digits", f"{options.peek('digits')!r} should be from 0 to 9")
    none = _none(options)
    is_signed = options.take("signed_16", section.flag, False)
    pattern = options.take("regex", section.pattern, None)
    if pattern is not None:
        if pattern.groups != 1:
            options.complain("regex", f"{options.peek('regex')!r} should have one pair of brackets, around the number")
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


def _text(options: Section) -> Decoder:
    padding = options.take("padding", section.text, "")
    return padded(padding) if padding else text


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
        "power": lambda options: _number(options, LOWEST_DBM, HIGHEST_DBM),
        "milliwatts": lambda options: milliwatts(options.take("scale", _scale, 1), none=_none(options)),
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
    if decode is None or not is_date or field in TIMES:
        return decode

    def iso(value: Any) -> str | None:
        moment = decode(value)
        return moment.isoformat() if moment else None

    return iso
