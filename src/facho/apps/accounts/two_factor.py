"""Rules of two-factor authentication."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from facho.apps.accounts.logins import lock_of, turn_of
from facho.apps.accounts.models import TwoFactor

# Key in the session of a user who has passed the first step of the login and not yet given the code.
PENDING = "login_pending"

# Seconds to enter the code.
CODE_WITHIN = 300


def ask_for_code(request: HttpRequest, user: Any, target: str) -> HttpResponseRedirect:
    """Lead a user who has passed the first step of the login to the second one."""
    request.session[PENDING] = {
        "user": user.pk,
        "backend": user.backend,
        "hash": user.get_session_auth_hash(),
        "until": timezone.now().timestamp() + CODE_WITHIN,
    }
    return redirect(reverse("login-code") + (f"?{urlencode({'next': target})}" if target else ""))


def is_required(user: Any) -> bool:
    """Return whether a user must have a second factor. Users of another login service have theirs there."""
    concerned = {"none": False, "staff": user.is_staff or user.is_superuser, "all": True}
    return bool(concerned[settings.FACHO_REQUIRE_TOTP] and user.has_usable_password())


def is_missing(user: Any) -> bool:
    """Return whether a logged-in user has to set up the second factor."""
    return user.is_authenticated and is_required(user) and TwoFactor.of(user) is None


def refusal(request: HttpRequest, factor: TwoFactor, code: str) -> ValidationError | None:
    """Use a code, and return the reason if it is not accepted. A wrong one is a failed login."""
    name = factor.user.get_username()
    with turn_of(request):
        if lock := lock_of(request, name):
            return lock.error
        if factor.accept(code):
            return None
        user_login_failed.send(sender=__name__, credentials={"username": name}, request=request)
        if lock := lock_of(request, name):
            return lock.error
    return ValidationError(
        _("This code is not valid. Enter the current code of the app, or a recovery code that was not used.")
    )
