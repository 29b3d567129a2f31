"""What processes tell each other, acted upon. Another one may be of another version, and must not bring us down."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from facho.engine.ports import EventBus

logger = logging.getLogger(__name__)


async def act_on(bus: EventBus, topic: str, act: Callable[[Mapping[str, Any]], None]) -> None:
    """Act on each piece of news of a topic, for ever; one that cannot be understood is left out."""
    async for _, news in bus.subscribe([topic]):
        try:
            act(news)
        except (KeyError, TypeError, ValueError) as error:
            logger.warning("news of the topic %s was not understood: %r", topic, error)
