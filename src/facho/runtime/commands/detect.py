"""Which brand a command's OLT has: the one that was named, or the one that it turns out to be."""

import argparse

from facho import brands
from facho.engine.brand import Brand
from facho.engine.probe import Identity, identify
from facho.runtime.commands import profiles
from facho.runtime.commands.screen import ProgressLine, note
from facho.runtime.commands.session import Session
from facho.runtime.commands.status import CommandError


async def find_brand(session: Session, options: argparse.Namespace, progress: ProgressLine) -> tuple[Brand, Identity]:
    """Return the brand, and what the agent said of itself; nothing is asked where the brand was named."""
    named = profiles.chosen(options)
    if named is not None:
        return named, Identity(named)
    identity = await ask_identity(session, progress)
    if identity.brand is None:
        raise CommandError(f"{options.host}: {identity.remark} (--brand; `facho brands` lists them)")
    if identity.remark:
        note(f"{options.host}: {identity.remark}")
    return identity.brand, identity


async def ask_identity(session: Session, progress: ProgressLine) -> Identity:
    """Return what the agent turns out to be."""
    progress.show(f"{session.agent.host}: finding out its brand")
    try:
        return await identify(
            session.agent,
            snmp=session.snmp,
            clock=session.clock,
            deadline=session.deadline,
            candidates=brands.candidates,
            brands=tuple(brands.BRANDS.values()),
        )
    finally:
        progress.clear()
