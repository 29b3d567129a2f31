"""What decoding an answer costs, beside a pass that only splits it into TLVs. Run it; it is not a test.

python tests/bench/bench_snmp_codec.py
"""

import sys
import timeit
from collections.abc import Callable

from facho.adapters.snmp import codec
from facho.engine import oid as oids
from facho.engine.snmp import Tag, Version

RX_POWER = "1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4.4194304000"
SERIAL = "1.3.6.1.4.1.2011.6.128.1.1.2.43.1.3.4194304000"
OCTETS = "1.3.6.1.4.1.2011.6.128.1.1.4.23.1.3.4194304000"
ROUNDS = 2000


def split(data: bytes) -> int:
    """Split a message into the TLVs of its variables and nothing more."""
    at = data.index(b"\x30\x82", 4) + 4
    count = 0
    while at < len(data):
        name = at + 2
        value = name + 2 + data[name + 1]
        data[name:value]
        data[value : value + 2 + data[value + 1]]
        at += 2 + data[at + 1]
        count += 1
    return count


def answer_of(rows: int) -> tuple[codec.Prepared, bytes]:
    """Return a GET for power, serial and counter of some ONUs, and its answer."""
    names = [oids.parse(f"{column}.{onu}") for onu in range(rows) for column in (RX_POWER, SERIAL, OCTETS)]
    prepared = codec.prepare(Version.V2C, b"public", codec.PduType.GET, names)
    request = codec.decode_request(prepared.datagram(codec.MIN_REQUEST_ID))
    values = [(Tag.INTEGER, -2153), (Tag.OCTET_STRING, b"HWTC}F0\xc3"), (Tag.COUNTER64, 2**40 + 7)]
    varbinds = [(name, *values[i % 3]) for i, name in enumerate(names)]
    return prepared, codec.encode_response(request, 0, 0, varbinds)


def best(work: Callable[[], object], values: int) -> float:
    """Return microseconds a value, the best of several tries."""
    return min(timeit.repeat(work, number=ROUNDS, repeat=7)) / ROUNDS / values * 1e6


def main() -> None:
    prepared, data = answer_of(13)
    values = len(prepared.expected)
    plain = best(lambda: split(data), values)
    cases = {
        "split into TLVs": plain,
        "decode, names unknown": best(lambda: codec.decode_answer(data), values),
        "decode, names expected": best(lambda: codec.decode_answer(data, prepared.expected), values),
        "patch a prepared request": best(lambda: prepared.datagram(0x01234567), values),
    }
    sys.stdout.write(f"an answer of {len(data)} bytes with {values} values\n")
    for name, cost in cases.items():
        sys.stdout.write(f"{name:<26}{cost:8.3f} us a value {cost / plain:6.2f} x split\n")


if __name__ == "__main__":
    main()
