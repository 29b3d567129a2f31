"""Both adapters against net-snmp's agent, where it is installed: what two of our own programs agree on may be wrong."""

import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from facho.adapters.snmp.client import SnmpByVersion
from facho.engine import oid as oids
from facho.engine.errors import NoAnswer, Refused
from facho.engine.snmp import Agent, Community, Missing, Tag, User, Version

SNMPD = shutil.which("snmpd") or shutil.which("snmpd", path="/usr/sbin")
pytestmark = pytest.mark.skipif(SNMPD is None, reason="net-snmp's snmpd is not installed")

SYSTEM = oids.parse("1.3.6.1.2.1.1")
SYS_NAME = oids.parse("1.3.6.1.2.1.1.5.0")
SYS_LOCATION = oids.parse("1.3.6.1.2.1.1.6.0")
SYS_OBJECT_ID = oids.parse("1.3.6.1.2.1.1.2.0")
SYS_UP_TIME = oids.parse("1.3.6.1.2.1.1.3.0")
AUTHENTICATION = {"SHA1": "SHA", "SHA224": "SHA-224", "SHA256": "SHA-256", "SHA384": "SHA-384", "SHA512": "SHA-512"}
PRIVACY = {"AES128": "AES", "AES192": "AES-192", "AES256": "AES-256"}
SOON = 10.0
# snmpd reports some errors only by silence; those take this long.
BRIEF = 0.6

USERS = [User("nobody1")]
USERS += [User(f"u{auth}", auth, "s3cret-signature") for auth in AUTHENTICATION]
USERS += [
    User(f"u{auth}{priv}", auth, "s3cret-signature", priv, "s3cret-cipher")
    for auth in AUTHENTICATION
    for priv in PRIVACY
]


def settings(port: int) -> str:
    """A configuration with all users, readable by each at its own level."""
    lines = [f"agentaddress udp:127.0.0.1:{port}", "sysName OLT-CENTRAL-01", "sysLocation Lima", "rocommunity public"]
    for user in USERS:
        create = f"createUser {user.name}"
        if user.auth:
            create += f' {AUTHENTICATION[user.auth]} "{user.auth_key}"'
        if user.priv:
            create += f' {PRIVACY[user.priv]} "{user.priv_key}"'
        level = "authpriv" if user.priv else "authnopriv" if user.auth else "noauth"
        lines += [create, f"rouser {user.name} {level}"]
    return "\n".join(lines) + "\n"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def snmpd(tmp_path_factory):
    """A running snmpd: its port, and the file it logs to."""
    folder: Path = tmp_path_factory.mktemp("snmpd")
    port = free_port()
    (folder / "snmpd.conf").write_text(settings(port))
    command = [
        SNMPD,
        "-f",
        "-Lf",
        str(folder / "log"),
        "-C",
        "-c",
        str(folder / "snmpd.conf"),
        "-p",
        str(folder / "pid"),
    ]
    process = subprocess.Popen(command, env={"SNMP_PERSISTENT_DIR": str(folder), "MIBS": ""})
    yield port, folder / "log"
    process.terminate()
    process.wait()


@pytest.fixture
async def snmp():
    adapter = SnmpByVersion()
    yield adapter
    await adapter.close()


@pytest.fixture
async def community(snmp, snmpd):
    """The agent as v2c knows it, once it is up."""
    agent = Agent("127.0.0.1", snmpd[0], Version.V2C, Community("public"))
    for _ in range(100):
        try:
            await snmp.get(agent, [SYS_NAME], timeout=0.1)
        except NoAnswer:
            continue
        return agent
    raise AssertionError("snmpd did not come up")


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS, ids=lambda user: f"{user.auth or 'no auth'} {user.priv or 'no priv'}")
async def test_v3_reads_from_snmpd_with_every_protocol(snmp, community, snmpd, user):
    if user.priv in {"AES192", "AES256"} and "unknown privProtocol" in snmpd[1].read_text():
        pytest.skip("this snmpd was built without AES-192 and AES-256")
    agent = replace(community, version=Version.V3, credentials=user)

    answer = await snmp.get(agent, [SYS_NAME, SYS_OBJECT_ID, SYS_UP_TIME], timeout=SOON)

    assert answer.values[0] == b"OLT-CENTRAL-01"
    assert answer.tags == bytes([Tag.OCTET_STRING, Tag.OBJECT_IDENTIFIER, Tag.TIME_TICKS])


@pytest.mark.parametrize(
    ("version", "credentials"),
    [
        pytest.param(Version.V2C, Community("public"), id="v2c"),
        pytest.param(Version.V3, USERS[-1], id="v3"),
    ],
)
async def test_all_three_requests_are_understood(snmp, community, version, credentials):
    agent = replace(community, version=version, credentials=credentials)

    exact = await snmp.get(agent, [SYS_NAME, oids.parse("1.3.6.1.2.1.1.5.1"), oids.parse("1.3.6.1.2.99")], timeout=SOON)
    following = await snmp.get_next(agent, [SYS_NAME], timeout=SOON)
    bulk = await snmp.get_bulk(agent, [SYSTEM, SYS_NAME], non_repeaters=1, max_repetitions=3, timeout=SOON)

    assert exact.values == [b"OLT-CENTRAL-01", Missing.NO_SUCH_INSTANCE, Missing.NO_SUCH_OBJECT]
    assert list(following) == [(SYS_LOCATION, b"Lima")]
    assert len(bulk) == 4
    assert bulk.oids[1] == SYS_LOCATION


async def test_v1_surfaces_no_such_name(snmp, community):
    agent = replace(community, version=Version.V1)

    answer = await snmp.get(agent, [SYS_NAME, oids.parse("1.3.6.1.2.1.1.5.1")], timeout=SOON)

    assert (answer.error_status, answer.error_index) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({"name": "stranger"}, "does not know user stranger", id="an unknown user"),
        pytest.param({"auth_key": "an0ther-s3cret"}, "rejected the authentication", id="another password"),
        pytest.param({"auth": "SHA1"}, "rejected the authentication", id="another hash"),
    ],
)
async def test_snmpd_refuses_who_it_does_not_know(snmp, community, change, sentence):
    agent = replace(community, version=Version.V3, credentials=replace(USERS[-1], **change))

    with pytest.raises(Refused, match=sentence):
        await snmp.get(agent, [SYS_NAME], timeout=BRIEF)
