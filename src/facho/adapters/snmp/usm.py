"""SNMP v3, on the library `snmp`, which does all of the security.

Keys, signatures, ciphers, engine ids and time windows are the library's. Deriving keys from passwords is slow, so it
runs in a thread; no other step blocks.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from snmp.pdu import GetBulkRequestPDU, GetNextRequestPDU, GetRequestPDU
from snmp.requests import Timeout
from snmp.v3.manager import (
    AuthenticationFailure,
    PrivacyFailure,
    RequestError,
    TimeWindowFailure,
    UnknownUserName,
    UnsupportedSecurityLevel,
)

from facho.adapters.snmp.udp import Address, Names, Sockets
from facho.adapters.snmp.usm_keys import Keys
from facho.adapters.snmp.usm_session import LATE, Name, UsmSession
from facho.engine.errors import BadAnswer, NoAnswer, Refused
from facho.engine.oid import Oid
from facho.engine.snmp import Agent, Answer, SendByTask, User, Version

logger = logging.getLogger(__name__)

REFUSED = "rejected user {user}"
REFUSALS = {
    AuthenticationFailure: "rejected the authentication of user {user}: check its authentication protocol and password",
    PrivacyFailure: "cannot decrypt the requests of user {user}: check its privacy protocol and password",
    UnknownUserName: "does not know user {user}",
    UnsupportedSecurityLevel: "does not allow this security level for user {user}: check authentication and privacy",
    TimeWindowFailure: "rejected the time of our requests; the device may need a new engine id",
}


class UsmSnmp(SendByTask):
    """Queries v3 agents.

    A message that is unsigned, old or of another request is dropped, and the request keeps waiting. After the
    time-out the error separates no answer (`NoAnswer`), unacceptable messages (`BadAnswer`) and denied access
    (`Refused`). A report of denied access can be forged, so it is also raised only after the time-out.

    The first request to an agent costs one more message, by which the library discovers its engine id.
    """

    def __init__(self, *, names: Names | None = None) -> None:
        self._names = names or Names()
        self._sockets = Sockets(self._receive)
        self._keys = Keys()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sessions: dict[Address, dict[User, UsmSession]] = {}
        self._closed = False
        # Dropped datagrams, by reason.
        self.dropped: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        return sum(session.in_flight for sessions in self._sessions.values() for session in sessions.values())

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._ask(agent, GetRequestPDU(*map(Name, oids)), timeout)

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._ask(agent, GetNextRequestPDU(*map(Name, oids)), timeout)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        # The library refuses more non-repeaters than names; to an agent they mean all names (RFC 3416, 4.2.3).
        first = min(non_repeaters, len(oids))
        pdu = GetBulkRequestPDU(*map(Name, oids), nonRepeaters=first, maxRepetitions=max_repetitions)
        return await self._ask(agent, pdu, timeout)

    async def close(self) -> None:
        """Fail all requests in flight, and later ones, with `NoAnswer`."""
        self._closed = True
        for sessions in self._sessions.values():
            for session in sessions.values():
                session.fail("Facho stopped before the agent answered")
        self._sessions.clear()
        self._sockets.close()
        self._keys.close()

    async def _ask(self, agent: Agent, pdu: Any, timeout: float) -> Answer:
        session = await self._session(agent, timeout)
        refusals = session.refusals
        handle = session.ask(pdu, timeout)
        try:
            answer: Answer = await handle.future
        except Timeout:
            count = session.refusals - refusals
            if not count:
                raise NoAnswer(f"{agent.host} did not answer within {timeout:g} s") from None
            raise BadAnswer(f"{agent.host} sent {count} invalid messages; the last one: {session.refusal}") from None
        except RequestError as error:
            sentence = REFUSALS.get(type(error), REFUSED).format(user=session.user)
            raise Refused(f"{agent.host} {sentence}") from error
        finally:
            # After a cancellation the library would keep the request forever.
            handle.onDeactivate()
        return answer

    async def _session(self, agent: Agent, timeout: float) -> UsmSession:
        """Return the session with the agent in its current configuration."""
        if agent.version != Version.V3 or not isinstance(agent.credentials, User):
            raise ValueError(f"{agent.host} is not an agent of SNMPv3 with a user")
        user = agent.credentials
        self._refuse_if_closed(agent)
        keys = await self._keys.of(user)
        peer = await self._names.find(agent.target or agent.host, agent.port, timeout=timeout)
        self._refuse_if_closed(agent)
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._sessions.clear()
            self._loop = loop
        sessions = self._sessions.setdefault(peer.address, {})
        if user not in sessions:
            sessions[user] = UsmSession(agent.host, keys, lambda data: self._sockets.send(data, peer, loop))
        return sessions[user]

    def _refuse_if_closed(self, agent: Agent) -> None:
        if self._closed:
            raise NoAnswer(f"Facho stopped before it sent the request to {agent.host}")

    def _receive(self, data: bytes, sender: Address) -> bool:
        """Pass a message to its session. More may always follow: discoveries and reports."""
        sessions = [session for session in self._sessions.get(sender, {}).values() if session.in_flight]
        if not sessions:
            self.dropped["nobody there was asked"] += 1
            return True
        try:
            # More than one only if an agent is queried as several users.
            reasons = [session.hear(data) for session in sessions]
        except Exception:
            # Bytes from outside must never stop the reading, whatever they do in the library.
            logger.exception("%s: a message of %d bytes could not be handled", sender[0], len(data))
            reasons = ["it cannot be read"]
        if None not in reasons:
            reason = str(reasons[-1])
            self.dropped[reason] += 1
            for session in sessions if reason != LATE else ():
                session.refusals += 1
                session.refusal = reason
        return True
