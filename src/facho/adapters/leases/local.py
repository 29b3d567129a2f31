"""Leases of devices within one process."""

import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from facho.engine.errors import OltBusy
from facho.engine.model import Lease


class LocalLeases:
    """At most one holder per device. No expiry is needed, because holders die with the process."""

    def __init__(self, first_token: int | None = None) -> None:
        # Tokens keep growing across restarts, without a file.
        self._tokens = itertools.count(time.time_ns() if first_token is None else first_token)
        self._held: dict[str, Lease] = {}

    @asynccontextmanager
    async def hold(self, olt_id: int, holder: str, *, device: str) -> AsyncIterator[Lease]:
        if device in self._held:
            raise OltBusy(f"{device} is held by {self._held[device].holder}")
        lease = self._held[device] = Lease(olt_id, holder, next(self._tokens), device)
        try:
            yield lease
        finally:
            del self._held[device]

    def is_valid(self, lease: Lease) -> bool:
        return self._held.get(lease.device) is lease
