"""Asking a simulated agent without a socket between."""

from collections.abc import Callable

import pytest

from facho.adapters.snmp.codec import PduType, decode_answer, prepare
from facho.engine.oid import parse
from facho.engine.snmp import Answer, Version
from facho.simulator.agent import SimulatedAgent
from facho.simulator.fleet import OltSpec, build

# A Sunday in November 2026, at noon.
NOON = 1794744000.0
REQUEST_ID = 0x01020304

Ask = Callable[..., Answer | None]


@pytest.fixture
def now() -> float:
    return NOON


@pytest.fixture(scope="session")
def central():
    """OLT-CENTRAL-01: a Huawei that is well."""
    return build(OltSpec("OLT-CENTRAL-01", "huawei", onus=300, seed=11))


@pytest.fixture(scope="session")
def norte():
    """OLT-NORTE-02: a ZTE."""
    return build(OltSpec("OLT-NORTE-02", "zte_c300", onus=300, seed=12))


@pytest.fixture
def ask() -> Ask:
    """Return a function that asks an agent once and reads its answer; None is silence."""

    def ask(
        agent: SimulatedAgent,
        kind: str,
        *oids: str | bytes,
        non_repeaters: int = 0,
        repetitions: int = 0,
        version: Version = Version.V2C,
        community: bytes = b"public",
        now: float = NOON,
    ) -> Answer | None:
        names = [parse(oid) if isinstance(oid, str) else oid for oid in oids]
        request = prepare(version, community, PduType[kind], names, non_repeaters, repetitions)
        datagram = agent.serve(request.datagram(REQUEST_ID), now).payload
        if datagram is None:
            return None
        request_id, its_community, its_version, answer = decode_answer(datagram)
        assert (request_id, its_community, its_version) == (REQUEST_ID, community, version)
        return answer

    return ask
