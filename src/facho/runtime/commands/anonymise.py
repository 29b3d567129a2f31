"""Anonymisation of recordings: removes people and devices, and keeps everything that decoding needs.

A value becomes another one of the same length and shape, and equal values stay equal. Each recording has a new key,
so that names cannot be found by trying.
"""

import hashlib
import re
import secrets
import string
from collections.abc import Callable, Iterable
from functools import lru_cache
from random import Random

from facho.adapters.snmp.snmprec import Record
from facho.engine.brand import Brand
from facho.engine.oid import Oid, pack, parse, unpack
from facho.engine.snmp import Tag

# sysContact, sysName and sysLocation: operator and place of the OLT.
SYSTEM_TEXTS = tuple(map(parse, ("1.3.6.1.2.1.1.4", "1.3.6.1.2.1.1.5", "1.3.6.1.2.1.1.6")))

# Fields that identify the customer, from Facho and from common profiles.
PRIVATE = frozenset({"serial", "mac", "name", "description", "loid", "password", "customer", "contract", "phone"})

# Letters and digits keep their class, so a hexadecimal number stays one.
CLASSES = (string.digits, "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ")
CLASS_OF = {char: alphabet for alphabet in CLASSES for char in alphabet}
# By the number of bytes in UTF-8.
STRANGE = {2: "ñ", 3: "你", 4: "😀"}
# Bytes of an unknown charset are replaced by two kinds: Cyrillic, and Chinese only.
CYRILLIC, CHINESE = 0xE9, 0xB0
CYRILLIC_BYTES = frozenset({0xA8, 0xB8, *range(0xC0, 0x100)})

HEX_SERIAL = re.compile(rb"[0-9A-Fa-f]{16}")
# From 192.0.2.0/24, reserved for documentation (RFC 5737).
NOBODYS_NET = bytes((192, 0, 2))

Change = Callable[[bytes], bytes]


class Anonymiser:
    """Changes the records of a device of one brand."""

    def __init__(self, brand: Brand, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(16) if key is None else key
        self._columns = [column.oid for column in brand.columns.values()]
        self._changes: dict[Oid, Change] = dict.fromkeys(SYSTEM_TEXTS, self.text)
        rules = {"serial": self.serial, "mac": self.mac}
        for column in brand.columns.values():
            if column.field in PRIVATE and not column.places:
                self._changes[column.oid] = rules.get(column.field, self.text)
        # Thousands of rows share an index, and columns share a prefix.
        self._index = lru_cache(maxsize=None)(self._change_index)

    def __call__(self, records: Iterable[Record]) -> list[Record]:
        return [self._change(record) for record in records]

    def _change(self, record: Record) -> Record:
        column = _longest(self._columns, record.oid)
        oid = record.oid if column is None else Oid(column + self._index(record.oid[len(column) :]))
        if not isinstance(record.value, bytes) or record.tag == Tag.OBJECT_IDENTIFIER:
            return Record(oid, record.tag, record.value)
        if record.tag == Tag.IP_ADDRESS:
            return Record(oid, record.tag, NOBODYS_NET + bytes([self._dice(record.value).randrange(1, 255)]))
        prefix = _longest(self._changes, record.oid)
        value = record.value if prefix is None else self._changes[prefix](record.value)
        return Record(oid, record.tag, value)

    def _change_index(self, suffix: bytes) -> bytes:
        """Return an index without the serial that it may contain: its length, then its characters."""
        arcs = unpack(suffix)
        is_text = len(arcs) > 6 and arcs[0] == len(arcs) - 1 and all(0x20 < arc < 0x7F for arc in arcs[1:])
        return pack((arcs[0], *self.serial(bytes(arcs[1:])))) if is_text else suffix

    def serial(self, value: bytes) -> bytes:
        """Return another serial of the same vendor: the first four letters or bytes are kept."""
        dice = self._dice(value)
        if len(value) == 8:
            return value[:4] + dice.randbytes(4)
        kept = 8 if HEX_SERIAL.fullmatch(value) else 4
        return value[:kept] + _reshape(value[kept:], dice)

    def mac(self, value: bytes) -> bytes:
        """Return another address of the same vendor: the first half is kept."""
        dice = self._dice(value)
        if len(value) == 6:
            return value[:3] + dice.randbytes(3)
        half = len(value) // 2
        return value[:half] + _reshape(value[half:], dice)

    def text(self, value: bytes) -> bytes:
        """Return a text with letters for letters and digits for digits, in the same charset."""
        return _reshape(value, self._dice(value))

    def _dice(self, value: bytes) -> Random:
        # Agents write the same serial in upper and lower case.
        return Random(hashlib.sha256(self._key + value.lower()).digest())


def _longest(prefixes: Iterable[Oid], oid: Oid) -> Oid | None:
    return max((prefix for prefix in prefixes if oid.startswith(prefix)), key=len, default=None)


def _reshape(value: bytes, dice: Random) -> bytes:
    try:
        chars = value.decode()
    except UnicodeDecodeError:
        return bytes(_strange_byte(byte, dice) for byte in value)
    return "".join(_ascii(char, dice) if char.isascii() else STRANGE[len(char.encode())] for char in chars).encode()


def _ascii(char: str, dice: Random) -> str:
    return dice.choice(CLASS_OF[char]) if char in CLASS_OF else char


def _strange_byte(byte: int, dice: Random) -> int:
    if byte < 0x80:
        return ord(_ascii(chr(byte), dice))
    return CYRILLIC if byte in CYRILLIC_BYTES else CHINESE
