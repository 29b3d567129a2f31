"""Keys of SNMPv3 users, derived by the library `snmp` from passwords: slow, so once per user and in a thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from snmp.security.usm.auth import HmacSha, HmacSha224, HmacSha256, HmacSha384, HmacSha512
from snmp.security.usm.cisco.priv import CiscoAesCfb192, CiscoAesCfb256
from snmp.security.usm.eso.priv import EsoAesCfb192, EsoAesCfb256
from snmp.security.usm.priv import AesCfb128

from facho.engine.errors import Refused
from facho.engine.snmp import User

# Agents refuse a shorter password (RFC 3414, 11.2).
MIN_PASSWORD = 8
MAX_USER_NAME = 32
# Several passwords per user name, or several users per OLT, are rare.
MAX_USERS = 1000

# There are two ways to extend a key to 192 or 256 bits. AES192 and AES256 do it like net-snmp; the names with a C, as
# in net-snmp, like Cisco, for which the library needs some milliseconds per agent.
PRIVACY = {
    "AES128": AesCfb128,
    "AES192": EsoAesCfb192,
    "AES256": EsoAesCfb256,
    "AES192C": CiscoAesCfb192,
    "AES256C": CiscoAesCfb256,
}


class ReadyKey(bytes):
    """A key that was already derived from its password."""

    def __repr__(self) -> str:
        return "ReadyKey()"


def _takes_ready_keys(protocol: Any) -> Any:
    """Return the library's protocol, changed so that it does not derive a ready key again."""

    class Ready(protocol):
        @classmethod
        def computeKey(cls, secret: bytes) -> bytes:  # noqa: N802  # the library's name
            return secret if isinstance(secret, ReadyKey) else bytes(super().computeKey(secret))

        def __repr__(self) -> str:
            # The library would show the key.
            return f"{protocol.__name__}()"

    return Ready


AUTHENTICATION = {
    "SHA1": _takes_ready_keys(HmacSha),
    "SHA224": _takes_ready_keys(HmacSha224),
    "SHA256": _takes_ready_keys(HmacSha256),
    "SHA384": _takes_ready_keys(HmacSha384),
    "SHA512": _takes_ready_keys(HmacSha512),
}


@dataclass(frozen=True, slots=True)
class UserKeys:
    """Parameters of a user for the library. Nothing of it appears in a repr."""

    name: str
    settings: dict[str, Any] = field(repr=False)


class Keys:
    """Derives the keys of each user once, and caches them."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="snmp-keys")
        self._known: dict[User, UserKeys] = {}
        self._under_way: dict[User, asyncio.Future[UserKeys]] = {}

    async def of(self, user: User) -> UserKeys:
        """Return the keys; `Refused` if no agent could accept such a user."""
        known = self._known.get(user)
        if known is not None:
            return known
        check(user)
        work = self._under_way.get(user)
        if work is None:
            work = asyncio.get_running_loop().run_in_executor(self._thread, work_out, user)
            self._under_way[user] = work
            work.add_done_callback(lambda _: self._under_way.pop(user, None))
        # Others may wait for the same keys: a cancelled caller must not cancel them.
        keys = await asyncio.shield(work)
        if len(self._known) >= MAX_USERS:
            self._known.clear()
        self._known[user] = keys
        return keys

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def check(user: User) -> None:
    """Raise `Refused` with a message for invalid settings."""
    if not 0 < len(user.name.encode()) <= MAX_USER_NAME:
        raise Refused(f"an SNMPv3 user name has 1 to {MAX_USER_NAME} octets")
    if user.auth and user.auth not in AUTHENTICATION:
        raise Refused(f"{user.auth} is not a supported authentication protocol: use {', '.join(AUTHENTICATION)}")
    if user.priv and user.priv not in PRIVACY:
        raise Refused(f"{user.priv} is not a supported privacy protocol: use {', '.join(PRIVACY)}")
    if user.priv and not user.auth:
        raise Refused(f"user {user.name} has privacy but no authentication; SNMPv3 requires authentication for privacy")
    if user.auth and len(user.auth_key.encode()) < MIN_PASSWORD:
        raise Refused(f"the authentication password of user {user.name} has fewer than {MIN_PASSWORD} characters")
    if user.priv and len(user.priv_key.encode()) < MIN_PASSWORD:
        raise Refused(f"the privacy password of user {user.name} has fewer than {MIN_PASSWORD} characters")


def work_out(user: User) -> UserKeys:
    """Return the keys of a user. Takes tens of milliseconds."""
    settings: dict[str, Any] = {}
    if user.auth:
        protocol = AUTHENTICATION[user.auth]
        settings |= {"authProtocol": protocol, "authSecret": ReadyKey(protocol.computeKey(user.auth_key.encode()))}
        if user.priv:
            key = ReadyKey(protocol.computeKey(user.priv_key.encode()))
            settings |= {"privProtocol": PRIVACY[user.priv], "privSecret": key}
    return UserKeys(user.name, settings)
