"""The OLT of a command: the options that name it, its agent, the SNMP session, and its brand."""

import argparse
import asyncio
import gc
import getpass
import math
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from facho import brands
from facho.adapters.clock import SystemClock
from facho.adapters.snmp.client import SnmpByVersion
from facho.brands.files import load_folder
from facho.brands.profile import BadProfile
from facho.engine.address import split_address
from facho.engine.brand import Brand
from facho.engine.detect.detect import Identity, identify
from facho.engine.errors import BadAddress, OltUnreachable, Refused, UnknownBrand
from facho.engine.snmp import Agent, Community, User, Version
from facho.runtime.commands.screen import STOPPED, UNREACHABLE, CommandError, ProgressBar, note
from facho.runtime.config import BRANDS_FOLDER, SETTINGS, ConfigError

DEFAULT_PORT = 161
COMMUNITY = "FACHO_COMMUNITY"
AUTH_KEY = "FACHO_AUTH_KEY"
PRIV_KEY = "FACHO_PRIV_KEY"

VERSIONS = {"1": Version.V1, "2c": Version.V2C, "3": Version.V3}
AUTHENTICATIONS = ("SHA1", "SHA224", "SHA256", "SHA384", "SHA512")
PRIVACIES = ("AES128", "AES192", "AES256")

Ask = Callable[[str], str]

STOPPED_EARLY = "stopped by Ctrl-C before the end"


def load(environ: Mapping[str, str] = os.environ) -> None:
    """Register the profiles of the data directory. Nothing is created."""
    try:
        folder = SETTINGS["data_dir"].value(environ) / BRANDS_FOLDER
        if folder.is_dir():
            brands.register(load_folder(folder).values())
    except (ConfigError, BadProfile, OSError) as error:
        raise CommandError(str(error)) from error


def chosen(options: argparse.Namespace) -> Brand | None:
    """Return the brand of `--brand`; None if it must be detected."""
    if options.brand is None:
        return None
    try:
        return brands.brand(options.brand)
    except UnknownBrand as error:
        raise CommandError(str(error)) from error


def add_arguments(parser: argparse.ArgumentParser, *, timeout: int) -> None:
    """Add the options of an OLT, and the time limit of the command."""
    parser.add_argument(
        "host",
        metavar="HOST[:PORT]",
        help=f"address of the OLT; [2001:db8::1]:161 for IPv6, port {DEFAULT_PORT} if none is given",
    )
    parser.add_argument("--brand", help="brand of the OLT (default: detected; see `facho brands`)")
    parser.add_argument(
        "--timeout",
        type=positive,
        default=timeout,
        metavar="SECONDS",
        help="time limit in seconds; prints the values read until then (default %(default)s)",
    )
    group = parser.add_argument_group("credentials")
    group.add_argument("--version", choices=VERSIONS, default="2c", help="SNMP version (default %(default)s)")
    group.add_argument(
        "--community", help=f"community for SNMP 1 and 2c (default: the environment variable {COMMUNITY}, or public)"
    )
    group.add_argument(
        "--user",
        help=f"user for SNMP 3; the passwords come from {AUTH_KEY} and {PRIV_KEY} of the environment, or from a prompt",
    )
    group.add_argument("--auth", choices=AUTHENTICATIONS, default="", help="authentication protocol of the user")
    group.add_argument("--priv", choices=PRIVACIES, default="", help="privacy protocol of the user")


def positive(text: str) -> float:
    """Return a number above 0, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def whole(least: int, most: float = math.inf, *, otherwise: str) -> Callable[[str], int]:
    """Return a reader of whole numbers for argparse. `otherwise` is the message for numbers beyond the limits."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(otherwise)
        return number

    return read


def agent_of(options: argparse.Namespace, environ: Mapping[str, str] = os.environ, ask: Ask | None = None) -> Agent:
    """Return the agent of the options; `CommandError` if they conflict."""
    try:
        host, port = split_address(options.host)
    except BadAddress as error:
        raise CommandError(str(error)) from error
    port = port or DEFAULT_PORT
    version = VERSIONS[options.version]
    if version is Version.V3:
        return Agent(host, port, version, _user(options, environ, ask or _prompt))
    if options.user:
        raise CommandError("--user is for SNMP 3: add --version 3, or remove --user")
    community = options.community if options.community is not None else environ.get(COMMUNITY) or "public"
    return Agent(host, port, version, Community(community))


def _user(options: argparse.Namespace, environ: Mapping[str, str], ask: Ask) -> User:
    if not options.user:
        raise CommandError("SNMP 3 needs a user: add --user")
    if options.community is not None:
        raise CommandError("SNMP 3 has no community: remove --community")
    if options.priv and not options.auth:
        raise CommandError("SNMP 3 privacy requires authentication: add --auth")
    auth_key = (environ.get(AUTH_KEY) or ask("Authentication password: ")) if options.auth else ""
    priv_key = (environ.get(PRIV_KEY) or ask("Privacy password: ")) if options.priv else ""
    return User(options.user, options.auth, auth_key, options.priv, priv_key)


def _prompt(question: str) -> str:
    if not sys.stdin.isatty():
        raise CommandError(f"a password is needed, and there is no terminal to type it: set {AUTH_KEY} and {PRIV_KEY}")
    return getpass.getpass(question)


class OltSession:
    """SNMP access of a command.

    Ctrl-C or SIGTERM closes only the socket: the command sees an agent that no longer answers, and ends with the
    values so far. A second Ctrl-C ends the command at once.
    """

    def __init__(self, agent: Agent, timeout: float) -> None:
        self.agent = agent
        self.snmp = SnmpByVersion()
        self.clock = SystemClock()
        self.deadline = self.clock.now() + timedelta(seconds=timeout)
        self.is_stopped = False
        self._closing: asyncio.Task[None] | None = None

    def stop(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        self.is_stopped = True
        self._closing = loop.create_task(self.snmp.close())

    async def run(self, work: Callable[["OltSession"], Awaitable[int]]) -> int:
        """Return the status of the work, or STOPPED."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        try:
            status = await work(self)
        except (OltUnreachable, Refused) as error:
            if not self.is_stopped:
                raise CommandError(str(error), UNREACHABLE) from error
            raise CommandError(STOPPED_EARLY, STOPPED) from error
        finally:
            await self.snmp.close()
        return STOPPED if self.is_stopped else status


def run(agent: Agent, timeout: float, work: Callable[[OltSession], Awaitable[int]]) -> int:
    """Run a command on the event loop, and return its status."""

    async def main() -> int:
        return await OltSession(agent, timeout).run(work)

    # A command keeps nearly all objects until its end: garbage collection would take a tenth of its time.
    gc.freeze()
    gc.set_threshold(200_000)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main())


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest available event loop."""
    try:
        import uvloop
    except ImportError:
        # Not available on this system; the standard loop is slower.
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


async def find_brand(session: OltSession, options: argparse.Namespace, progress: ProgressBar) -> tuple[Brand, Identity]:
    """Return the brand and the identity of the agent; no request is sent if the brand was given."""
    named = chosen(options)
    if named is not None:
        return named, Identity(named)
    identity = await ask_identity(session, progress)
    if identity.brand is None:
        raise CommandError(f"{options.host}: {identity.remark} (--brand; `facho brands` lists them)")
    if identity.remark:
        note(f"{options.host}: {identity.remark}")
    return identity.brand, identity


async def ask_identity(session: OltSession, progress: ProgressBar) -> Identity:
    """Return the identity of the agent."""
    with progress:
        progress.show(f"{session.agent.host}: detecting the brand")
        return await identify(
            session.agent,
            snmp=session.snmp,
            clock=session.clock,
            deadline=session.deadline,
            candidates=brands.candidates,
            brands=tuple(brands.BRANDS.values()),
        )
