"""Login with a password of the LDAP directory, with django-auth-ldap. Imported only if FACHO_LDAP_URL is set."""

import logging
from typing import Any, NoReturn

import ldap
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.dispatch import receiver
from django.utils.translation import gettext as _
from django_auth_ldap.backend import LDAPBackend, ldap_error
from django_auth_ldap.config import LDAPGroupType, LDAPSearch, LDAPSettings

from facho.apps.accounts.external import Access, Person, admit, one_line
from facho.apps.accounts.models import ExternalIdentity

logger = logging.getLogger(__name__)

# Seconds to connect to the server, and for each answer.
PATIENCE = 5
# The rule of Active Directory for groups within groups. Other servers ignore it.
IN_CHAIN = "1.2.840.113556.1.4.1941"
# Permanent ids of OpenLDAP and others, and of Active Directory. A DN changes, and may one day be another person's.
IDS = ("entryUUID", "objectGUID")


class DirectoryUnavailable(ValidationError):
    """The directory cannot be asked. This is a message of the form, and no wrong password."""

    def __init__(self) -> None:
        super().__init__(
            _("The directory server cannot be reached. Local accounts still work. The log of Facho has the cause.")
        )


class Groups(LDAPGroupType):
    """Groups that name their members by DN or by uid."""

    FILTER = f"(|(member=%(dn)s)(uniqueMember=%(dn)s)(memberUid=%(uid)s)(member:{IN_CHAIN}:=%(dn)s))"

    def user_groups(self, ldap_user: Any, group_search: Any) -> Any:
        search = group_search.search_with_additional_term_string(self.FILTER)
        return search.execute(
            ldap_user.connection, {"dn": ldap_user.dn, "uid": first(ldap_user, "uid") or ldap_user.dn}
        )


class DirectoryBackend(LDAPBackend):
    """Finds users by search, checks the password by a bind, and gives the role of their groups."""

    @property
    def settings(self) -> LDAPSettings:
        config = settings.CONFIG
        return LDAPSettings(
            self.settings_prefix,
            {
                "SERVER_URI": config.ldap_url,
                "START_TLS": config.ldap_start_tls and config.ldap_url.startswith("ldap:"),
                "CONNECTION_OPTIONS": connection_options(),
                "BIND_DN": config.ldap_bind_dn,
                "BIND_PASSWORD": config.ldap_bind_password,
                "USER_SEARCH": LDAPSearch(
                    config.ldap_user_base, ldap.SCOPE_SUBTREE, config.ldap_user_filter, ["*", *IDS]
                ),
                "GROUP_SEARCH": LDAPSearch(config.ldap_group_base, ldap.SCOPE_SUBTREE, attrlist=["cn"]),
                "GROUP_TYPE": Groups(),
                # `admit` has stored the user.
                "ALWAYS_UPDATE_USER": False,
            },
        )

    def authenticate_ldap_user(self, ldap_user: Any, password: str) -> Any:
        try:
            return super().authenticate_ldap_user(ldap_user, password)
        except ValueError as error:
            # An option that python-ldap cannot set, such as a file of certificates that is missing or damaged.
            logger.warning("LDAP: the connection cannot be set up (%s). Check FACHO_LDAP_CA_FILE.", error)
            raise DirectoryUnavailable from error

    def get_or_build_user(self, username: str, ldap_user: Any) -> tuple[User, bool]:
        """Return the account of a person whose password was right."""
        config = settings.CONFIG
        names = ldap_user.group_names if config.ldap_group_base else ()
        person = Person(
            provider=ExternalIdentity.LDAP,
            subject=subject_of(ldap_user),
            username=one_line(username.lower()),
            email=first(ldap_user, "mail", 254),
            first_name=first(ldap_user, "givenName"),
            last_name=first(ldap_user, "sn"),
            groups=frozenset(name.lower() for name in names if isinstance(name, str)),
        )
        # Names in a directory do not depend on case.
        roles = {group.lower(): role for group, role in config.ldap_roles.items()}
        return admit(ldap_user._request, person, Access(roles, config.ldap_default_role)), False

    def get_user(self, user_id: int) -> Any:
        # That of the library also returns disabled users.
        return ModelBackend().get_user(user_id)

    def get_group_permissions(self, user: Any, obj: Any = None) -> set[str]:
        # Those of the role come from `LocalBackend`, as for every user.
        return set()


def connection_options() -> dict[int, Any]:
    options: dict[int, Any] = {ldap.OPT_NETWORK_TIMEOUT: PATIENCE, ldap.OPT_TIMEOUT: PATIENCE, ldap.OPT_REFERRALS: 0}
    options[ldap.OPT_X_TLS_REQUIRE_CERT] = ldap.OPT_X_TLS_DEMAND
    if settings.CONFIG.ldap_ca_file is not None:
        options[ldap.OPT_X_TLS_CACERTFILE] = str(settings.CONFIG.ldap_ca_file)
    # The last one: it applies the others.
    options[ldap.OPT_X_TLS_NEWCTX] = 0
    return options


def subject_of(ldap_user: Any) -> str:
    for name in IDS:
        for value in ldap_user.attrs.get(name, []):
            # The library returns bytes if they are not valid UTF-8.
            data = value if isinstance(value, bytes) else value.encode()
            return str(value) if name == "entryUUID" else data.hex()
    return str(ldap_user.dn)


def first(ldap_user: Any, attribute: str, length: int = 150) -> str:
    return one_line(next(iter(ldap_user.attrs.get(attribute, [])), ""), length)


@receiver(ldap_error)
def refuse(**_error: Any) -> NoReturn:
    """Report a directory that cannot be asked. The library has logged the error, and would report a wrong password."""
    raise DirectoryUnavailable
