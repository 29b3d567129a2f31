"""The person, token or program that makes changes, during a request or a command."""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from django.db.models import TextChoices
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

# Name of the engine in the record.
ENGINE_NAME = "Facho"


class Interface(TextChoices):
    """The part of Facho through which a change was made."""

    PAGE = "page", _("page")
    ADMIN = "admin", _("admin")
    API = "api", "API"
    IMPORT = "import", _("import")
    CLI = "cli", _("command line")
    ENGINE = "engine", _("engine")


@dataclass(slots=True, eq=False)
class Actor:
    """The author of changes, and where they come from.

    One object per request, filled step by step: a session is read when its user is needed, and a token is checked
    inside the view.
    """

    through: str
    name: str = ""
    address: str = ""
    request_id: str = ""
    token: str = ""
    # A remark on all changes, such as the reason of a program.
    note: str = ""
    request: HttpRequest | None = None
    # Set by a login, when the request has no user yet.
    logged_in: Any = None
    # Linked rows before a change of a many-to-many field, between its two signals.
    links: dict[Any, dict[Any, list[str]]] = field(default_factory=dict)

    @property
    def user(self) -> Any:
        """Return the user of the request, or None."""
        user = self.logged_in or getattr(self.request, "user", None)
        return user if user is not None and user.is_authenticated else None

    @property
    def interface(self) -> str:
        """Return the interface. The buttons of our pages call the API with the session of the user."""
        is_button = self.through == Interface.API and not self.token and self.user is not None and not self.logged_in
        return Interface.PAGE if is_button else self.through


_current: ContextVar[Actor | None] = ContextVar("facho_actor", default=None)


def current() -> Actor | None:
    """Return the current actor; None in the engine, which changes rows all the time."""
    return _current.get()


@contextmanager
def acting(actor: Actor | None) -> Iterator[None]:
    """Record the changes made in a `with` block as those of this actor; without one, they are not recorded."""
    before = _current.set(actor)
    try:
        yield
    finally:
        _current.reset(before)


@contextmanager
def acting_through(interface: Interface) -> Iterator[None]:
    """Record the changes made in a `with` block as made through another interface by the same actor."""
    actor = current()
    if actor is None:
        yield
        return
    before, actor.through = actor.through, interface
    try:
        yield
    finally:
        actor.through = before


def use_token(name: str) -> None:
    """Add the token of a request to its actor."""
    if (actor := current()) is not None:
        actor.token = name


def command_line(note: str = "") -> Actor:
    """Return the user of the operating system who runs a command."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        # A container may run with a number that has no name.
        name = str(os.getuid())
    return Actor(Interface.CLI, name=name, note=note)


def engine() -> Actor:
    """Return the engine, for its changes to settings that people can change too."""
    return Actor(Interface.ENGINE, name=ENGINE_NAME)
