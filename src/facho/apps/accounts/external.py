"""People of an OIDC provider or of the LDAP directory: their account and their role in Facho."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from facho.apps.accounts.models import ExternalIdentity
from facho.apps.accounts.roles import Role, role_of, set_role

logger = logging.getLogger(__name__)


class LoginRefused(ValidationError):
    """The login server vouched for a person, but Facho does not let them in.

    As a ValidationError, it is a message of the login form and of the API, and not counted as a wrong password.
    """


def one_line(value: object, length: int = 150) -> str:
    """Return a text of a login server as it can be stored: in one line, not too long, and empty if it is no text."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return "".join(character for character in text if character.isprintable())[:length]


@dataclass(frozen=True, slots=True)
class Person:
    """A person as described by a login server at this login. Texts are made by `one_line`."""

    provider: str
    subject: str
    username: str
    email: str
    first_name: str
    last_name: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Access:
    """Role of each group, and of people in none of them: empty if they are refused."""

    roles: Mapping[str, str]
    default: str

    def role(self, groups: frozenset[str]) -> Role | None:
        """Return the highest role of these groups."""
        names = {self.roles[group] for group in groups & self.roles.keys()} or {self.default}
        return next((role for role in reversed(Role) if role in names), None)


def admit(request: HttpRequest | None, person: Person, access: Access) -> User:
    """Return the account of a person, with the role that their groups give today. Create it at the first login."""
    try:
        user = _admit(person, access)
    except IntegrityError:
        # Another login of the same person, or of the same name, was stored a moment ago.
        user = _admit(person, access)
    if user is not None and user.is_active:
        return user
    logger.warning("login of %s refused: %s", person.username, "no group has a role" if user is None else "disabled")
    user_login_failed.send(LoginRefused, credentials={"username": person.username}, request=request)
    if user is not None:
        raise LoginRefused(_("Your account in Facho is disabled. Ask an admin to enable it."))
    raise LoginRefused(
        _(
            "You have no role in Facho: none of your groups has one. Ask an admin to add you to a group that may use "
            "Facho."
        )
    )


@transaction.atomic
def _admit(person: Person, access: Access) -> User | None:
    role = access.role(person.groups)
    identity = (
        ExternalIdentity.objects.select_related("user").filter(provider=person.provider, subject=person.subject).first()
    )
    if identity is None:
        return _create(person, role) if role is not None else None
    user = identity.user
    described = {"email": person.email, "first_name": person.first_name, "last_name": person.last_name}
    changed = {name: value for name, value in described.items() if getattr(user, name) != value}
    if changed:
        for name, value in changed.items():
            setattr(user, name, value)
        user.save(update_fields=list(changed))
    # Without a mapping, admins choose the role after the first login.
    if access.roles and role_of(user) is not role:
        set_role(user, role)
    return user if role is not None else None


def _create(person: Person, role: Role) -> User:
    user = User(
        username=free_username(person.username),
        email=person.email,
        first_name=person.first_name,
        last_name=person.last_name,
    )
    user.set_unusable_password()
    user.save()
    ExternalIdentity.objects.create(user=user, provider=person.provider, subject=person.subject)
    set_role(user, role)
    return user


def free_username(wanted: str) -> str:
    """Return a valid user name that is not in use. An existing account is never taken over by its name."""
    start = re.sub(r"[^\w.@+-]+", "-", User.normalize_username(wanted)).strip("-")[:140] or "user"
    taken = {
        name.lower() for name in User.objects.filter(username__istartswith=start).values_list("username", flat=True)
    }
    if start.lower() not in taken:
        return start
    return next(name for number in range(2, len(taken) + 3) if (name := f"{start}-{number}").lower() not in taken)
