"""Roles of scale-out."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from facho.engine.ports import EventBus

logger = logging.getLogger(__name__)


async def act_on(bus: EventBus, topic: str, act: Callable[[Mapping[str, Any]], None]) -> None:
    """Handle each notification of a topic, forever.

    Invalid ones are skipped: a process of another version must not crash this one.
    """
    async for _, news in bus.subscribe([topic]):
        try:
            act(news)
        except (KeyError, TypeError, ValueError) as error:
            logger.warning("invalid message on topic %s: %r", topic, error)
