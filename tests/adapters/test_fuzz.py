"""Damaged and random input from devices and files: it is read or refused, and nothing else happens.

The number of cases is that of `FACHO_FUZZ_CASES`, all tests together; `dev.py test --long` tries a million.
"""

import asyncio
import os
import random
import sys
from contextlib import suppress

import pytest
from test_snmp_fuzz import ANSWERS, PDUS, REQUESTS, read_whatever_it_is

from examples import LONG_NAME
from facho.adapters.snmp.snmprec import BadRecording, parse_records
from facho.adapters.snmp.usm import Name, UsmSession
from facho.adapters.snmp.usm_keys import work_out
from facho.brands import BRANDS
from facho.brands.decode import RAW_DECODERS
from facho.brands.files import load_file
from facho.brands.profile import BadProfile
from facho.engine import oid as oids
from facho.engine.oid import pack, unpack
from facho.engine.snmp import User

from snmp.pdu import GetRequestPDU  # isort: skip

# A million cases take minutes.
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(3600)]

CASES = int(os.environ.get("FACHO_FUZZ_CASES") or (1_000_000 if os.environ.get(LONG_NAME) else 2_500))
TEXTS = [b"", b"-21.5 dBm", b"0/1/7", b"HWTC12345678", b"\x07\xe8\x0c\x17\x0a\x22\x0f\x00", b"N/A", b"\xc3\xb1\xff"]
INTEGERS = [0, -1, 1, 65535, 2**31 - 1, -(2**31), 2**32 - 1, 2**63, 2**64 - 1]
PROFILE = """\
id: acme
label: Acme
index: {arcs: [slot, port, onu]}
columns:
  serial: {oid: 1.3.6.1.4.1.9999.1.1, decode: serial}
  rx_dbm: {oid: 1.3.6.1.4.1.9999.1.2, decode: power, factor: 0.01, optical: true}
"""


def cases(share):
    """Return the random numbers of a test, which differ in every run; the seed is printed if it fails."""
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    return [chance] * max(1, round(CASES * share))


def damaged(chance, data):
    """Return bytes with up to six changes: replaced, inserted, removed, repeated or cut."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(changed))
        if chance.random() < 0.1:
            changed[at:at] = changed[at : at + chance.randint(0, 40)]
        else:
            changed[at : at + chance.randint(0, 4)] = chance.randbytes(chance.randint(0, 4))
    return bytes(changed[: chance.randint(0, len(changed))] if chance.random() < 0.05 else changed)


def test_damaged_packets():
    corpus = [*ANSWERS, *REQUESTS, *PDUS]
    for chance in cases(0.5):
        read_whatever_it_is(damaged(chance, chance.choice(corpus)))


async def test_damaged_packets_of_version_3():
    sent = []
    session = UsmSession("127.0.0.1", work_out(User("noc")), sent.append)
    handle = session.ask(GetRequestPDU(Name(oids.parse("1.3.6.1.2.1.1.3.0"))), 5.0)
    await asyncio.sleep(0)
    assert sent

    for chance in cases(0.05):
        session.hear(damaged(chance, chance.choice(sent)))

    session.fail("the test is over")
    with suppress(Exception):
        await handle.future


def value_of(chance):
    kind = chance.random()
    if kind < 0.4:
        return chance.choice(INTEGERS) + chance.randint(-2, 2)
    if kind < 0.8:
        return damaged(chance, chance.choice(TEXTS))
    return chance.choice([None, chance.randbytes(chance.randint(0, 300)), chance.getrandbits(70)])


def test_any_value_in_any_decoder():
    decoders = [each.decode for each in RAW_DECODERS.values()]
    decoders += [column.decode for brand in BRANDS.values() for column in brand.columns.values()]
    for chance in cases(0.25):
        chance.choice(decoders)(value_of(chance))


def test_any_index_in_any_layout():
    spaces = [column.space for brand in BRANDS.values() for column in brand.columns.values()]
    for chance in cases(0.15):
        arcs = tuple(
            chance.choice([chance.getrandbits(7), chance.getrandbits(32)]) for _ in range(chance.randint(0, 12))
        )
        with suppress(ValueError):
            arcs = unpack(damaged(chance, pack(arcs)))
        space = chance.choice(spaces)
        with suppress(ValueError):
            place = space.decode(arcs)
            if place is not None:
                assert space.decode(space.encode(place)) == place


RECORDING = (
    b"1.3.6.1.2.1.1.1.0|4|Huawei\n1.3.6.1.2.1.1.3.0|67|12345\n1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1\n1.3.6.1.9.1|4x|00ff\n"
)


def test_damaged_recordings():
    for chance in cases(0.04):
        with suppress(BadRecording):
            parse_records(damaged(chance, RECORDING).split(b"\n"))


def test_damaged_profiles(tmp_path):
    path = tmp_path / "acme.yaml"
    for chance in cases(0.01):
        path.write_bytes(damaged(chance, PROFILE.encode()))
        with suppress(BadProfile):
            load_file(path)


@pytest.mark.parametrize("character", ["[", "{a: "])
def test_a_profile_that_is_nested_too_deeply_is_refused(tmp_path, character):
    path = tmp_path / "acme.yaml"
    path.write_text(character * 20_000)

    with pytest.raises(BadProfile):
        load_file(path)
