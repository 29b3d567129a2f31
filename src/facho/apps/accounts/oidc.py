"""Login at an OpenID Connect provider, with mozilla-django-oidc. Imported only if FACHO_OIDC_ISSUER is set.

The library keeps state, nonce and PKCE in the session, and exchanges the code. Added here: the discovery document, the
checks of issuer, audience and algorithm, which the library leaves out, and accounts by issuer and subject.
"""

import logging
from typing import Any

import jwt
import requests
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from facho.apps.accounts.external import Access, LoginRefused, Person, admit, one_line
from facho.apps.accounts.models import TwoFactor
from facho.apps.accounts.two_factor import ask_for_code

logger = logging.getLogger(__name__)

# Seconds to connect to the provider, and for each answer.
PATIENCE = 5
# Seconds to keep the discovery document. Keys are read at each login.
KEEP_METADATA = 3600
# Difference between the clocks of both servers, in seconds.
CLOCK_SKEW = 60
# None with a shared secret: they would also accept tokens signed with the client secret.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
ENDPOINTS = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
}


def metadata() -> dict[str, Any]:
    """Return the discovery document of the provider. It is read at the first login, so Facho starts without it."""
    found: Any = cache.get_or_set(f"oidc:{settings.CONFIG.oidc_issuer}", _discover, KEEP_METADATA)
    return dict(found)


def _discover() -> dict[str, Any]:
    issuer = settings.CONFIG.oidc_issuer.rstrip("/")
    answer = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=PATIENCE)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    if not isinstance(found, dict) or str(found.get("issuer")).rstrip("/") != issuer:
        raise SuspiciousOperation("the discovery document is of another issuer; correct FACHO_OIDC_ISSUER")
    missing = [name for name in ENDPOINTS.values() if name not in found]
    if missing:
        raise SuspiciousOperation(f"the discovery document has no {', '.join(missing)}")
    return found


def end_session_url() -> str | None:
    """Return the page of the provider that ends its session, if it has one and is known already."""
    found = cache.get(f"oidc:{settings.CONFIG.oidc_issuer}") or {}
    url = found.get("end_session_endpoint")
    return f"{url}?{urlencode({'client_id': settings.CONFIG.oidc_client_id})}" if url else None


class Options:
    """Gives the classes of the library their settings."""

    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        if attr in ENDPOINTS:
            return metadata()[ENDPOINTS[attr]]
        config = settings.CONFIG
        values = {
            "OIDC_RP_CLIENT_ID": config.oidc_client_id,
            "OIDC_RP_CLIENT_SECRET": config.oidc_client_secret,
            "OIDC_RP_SCOPES": config.oidc_scopes,
            # `OidcBackend.verify_token` decides.
            "OIDC_RP_SIGN_ALGO": ALGORITHMS[0],
            "OIDC_USE_PKCE": True,
            "OIDC_TIMEOUT": PATIENCE,
            "OIDC_AUTHENTICATION_CALLBACK_URL": "oidc-callback",
            "LOGIN_REDIRECT_URL": settings.LOGIN_REDIRECT_URL,
        }
        return values[attr] if attr in values else args[0]


class OidcBackend(Options, OIDCAuthenticationBackend):
    """Finds the account of the person that the provider vouched for."""

    def __init__(self) -> None:
        # Django creates a backend for each check of a permission. So the provider is not asked here.
        pass

    def authenticate(self, request: HttpRequest, nonce: str, code_verifier: str) -> User | None:
        """Exchange the code of a request. Django skips this backend for names and passwords: the arguments differ."""
        super().__init__()
        user: User | None = super().authenticate(request, nonce=nonce, code_verifier=code_verifier)
        return user

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """Return the claims of an ID token: signed by the provider, for us, for this login, and not over."""
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self.retrieve_matching_jwk(token),
                algorithms=ALGORITHMS,
                audience=self.OIDC_RP_CLIENT_ID,
                issuer=metadata()["issuer"],
                leeway=CLOCK_SKEW,
                options={"require": ["iss", "aud", "exp", "iat", "sub"]},
            )
        except (jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
            raise SuspiciousOperation(f"the ID token is not valid: {error}") from error
        if claims.get("nonce") != kwargs["nonce"]:
            raise SuspiciousOperation("the ID token is of another login")
        if claims.get("azp", self.OIDC_RP_CLIENT_ID) != self.OIDC_RP_CLIENT_ID:
            raise SuspiciousOperation("the ID token was issued to another program")
        return claims

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        details: Any = self.get_userinfo(access_token, id_token, payload)
        if not isinstance(details, dict) or details.get("sub") != payload["sub"]:
            logger.warning("OIDC: login failed: the user information is of another person than the ID token")
            # The library would turn a SuspiciousOperation into a wrong password.
            raise LoginRefused(not_completed())
        access = Access(settings.CONFIG.oidc_roles, settings.CONFIG.oidc_default_role)
        return admit(self.request, described({**details, **payload}), access)

    def get_user(self, user_id: int) -> Any:
        # That of the library also returns disabled users.
        return ModelBackend.get_user(self, user_id)


def described(claims: dict[str, Any]) -> Person:
    """Return the person in verified claims. An address that the provider has not verified is not used at all."""
    # Some providers send a text.
    is_verified = str(claims.get("email_verified", "")).lower()
    if is_verified == "false":
        claims = {name: value for name, value in claims.items() if name != "email"}
    groups = claims.get(settings.CONFIG.oidc_groups_claim)
    if settings.CONFIG.oidc_groups_claim == "email" and is_verified != "true":
        groups = None
    names = groups if isinstance(groups, list) else [groups]
    return Person(
        provider=metadata()["issuer"],
        subject=claims["sub"],
        username=one_line(claims.get("preferred_username")) or one_line(claims.get("email")) or claims["sub"],
        email=one_line(claims.get("email"), 254),
        first_name=one_line(claims.get("given_name")),
        last_name=one_line(claims.get("family_name")),
        groups=frozenset(name for name in names if isinstance(name, str)),
    )


def not_completed() -> str:
    return _("The login could not be completed. Try again. If it fails again, tell an admin: the log has the cause.")


def back_to_login(request: HttpRequest, error: Exception) -> HttpResponse:
    """Return to the login page with the reason in a sentence. The log has the cause."""
    if isinstance(error, LoginRefused):
        sentence = error.message
    else:
        logger.warning("OIDC: login failed: %s", error)
        sentence = not_completed()
    if isinstance(error, requests.ConnectionError | requests.Timeout):
        sentence = _("The login server %(label)s cannot be reached. Try again later, or use a local account.") % {
            "label": settings.CONFIG.oidc_label
        }
    messages.error(request, sentence)
    return redirect("login")


class Start(Options, OIDCAuthenticationRequestView):
    """Sends the browser to the provider."""

    def __init__(self, **kwargs: Any) -> None:
        # The library asks for the endpoint here, where an error has no answer.
        pass

    def get(self, request: HttpRequest) -> HttpResponse:
        try:
            super().__init__()
            answer: HttpResponse = super().get(request)
        except (requests.RequestException, SuspiciousOperation) as error:
            return back_to_login(request, error)
        return answer


class Callback(Options, OIDCAuthenticationCallbackView):
    """Receives the browser back from the provider."""

    def get(self, request: HttpRequest) -> HttpResponse:
        try:
            answer: HttpResponse = super().get(request)
        except (requests.RequestException, SuspiciousOperation, LoginRefused) as error:
            return back_to_login(request, error)
        return answer

    def login_success(self) -> HttpResponse:
        """Log the person in. Who has set up a code in Facho enters it, whatever the provider has asked for."""
        if TwoFactor.of(self.user) is None:
            answer: HttpResponse = super().login_success()
            return answer
        target = self.request.session.get("oidc_login_next") or ""
        return ask_for_code(self.request, self.user, target)

    def login_failure(self) -> HttpResponse:
        """Answer to a login without a code, or that was not started in this browser."""
        if "error" in self.request.GET:
            sentence = _("%(label)s refused the login, or you cancelled it.") % {"label": settings.CONFIG.oidc_label}
        else:
            sentence = _("This login was not started here, or is too old. Try again.")
        messages.error(self.request, sentence)
        return redirect("login")
