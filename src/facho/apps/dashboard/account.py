"""Pages of a user's own account: API tokens, password, sessions and two-factor authentication."""

from typing import Any

import segno
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from facho.apps.accounts.forms import ConfirmForm, FirstCodeForm, OwnPasswordForm, OwnTokenForm
from facho.apps.accounts.models import ApiToken, ExternalIdentity, TwoFactor, UserSession
from facho.apps.accounts.two_factor import is_required
from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.dashboard.views import View, show


def account_page(view: View) -> View:
    """Turn a view into a page with a form: login required, not cached."""
    return never_cache(require_http_methods(["GET", "HEAD", "POST"])(login_required(view)))


@account_page
def tokens(request: HttpRequest) -> HttpResponse:
    """Show the user's tokens, and create one. Its key is in the answer to the form only."""
    user: Any = request.user
    form = OwnTokenForm(user, request.POST or None)
    created = None
    if request.method == "POST" and form.is_valid():
        token = form.save(commit=False)
        created = {"name": token.name, "key": token.issue()}
        form = OwnTokenForm(user)
    own = ApiToken.objects.filter(user=user).select_related("role")
    return show(request, "tokens.html", {"tab": "tokens", "tokens": own, "form": form, "created": created})


@require_POST
@login_required
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user.pk)
    token.revoke()
    messages.success(request, _("“%(token)s” was revoked.") % {"token": token.name})
    return redirect("dashboard:tokens")


@sensitive_post_parameters()
@account_page
def password(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    if refusal := ExternalIdentity.password_refusal(user):
        return show(request, "password.html", {"tab": "password", "refusal": refusal})
    form = OwnPasswordForm(request, request.POST or None)
    if request.method == "POST" and form.is_valid():
        update_session_auth_hash(request, form.save())
        other_sessions(request).delete()
        messages.success(request, _("Your password was changed."))
        return redirect("dashboard:password")
    return show(request, "password.html", {"tab": "password", "form": form})


def other_sessions(request: HttpRequest) -> QuerySet[UserSession]:
    return UserSession.of(request.user).exclude(pk=request.session.session_key)


@account_page
def sessions(request: HttpRequest) -> HttpResponse:
    own = UserSession.of(request.user)
    return show(
        request,
        "sessions.html",
        {"tab": "sessions", "sessions": own, "current": request.session.session_key},
    )


@require_POST
@login_required
def end_sessions(request: HttpRequest) -> HttpResponse:
    """End one of the user's sessions, or all but this one."""
    user: Any = request.user
    wanted = request.POST.get("session")
    # Lists and forms have a hash of the key, because the key opens the session.
    keys = [each.pk for each in other_sessions(request) if wanted in (None, each.reference)]
    with transaction.atomic():
        UserSession.objects.filter(pk__in=keys).delete()
        if keys:
            record(Change.Action.SESSIONS_ENDED, user)
    ended = ngettext("%(number)d session was ended.", "%(number)d sessions were ended.", len(keys))
    messages.success(request, ended % {"number": len(keys)})
    return redirect("dashboard:sessions")


@sensitive_post_parameters()
@account_page
def two_factor(request: HttpRequest) -> HttpResponse:
    """Show and change the user's second factor. Recovery codes are in the answer to a form only."""
    user: Any = request.user
    factor = TwoFactor.objects.filter(user=user).first()
    context: dict[str, Any] = {"tab": "two-factor", "is_required": is_required(user), "factor": factor}
    if refusal := ExternalIdentity.second_factor_refusal(user):
        context["refusal"] = refusal
    elif factor is None:
        if request.method == "POST":
            TwoFactor.begin(user)
            return redirect("dashboard:two-factor")
    elif factor.confirmed_at is None:
        return _confirm_factor(request, factor, context)
    else:
        form = ConfirmForm(request, request.POST or None)
        if request.method == "POST" and form.is_valid():
            if "turn_off" in request.POST:
                factor.turn_off()
                messages.success(request, _("Two-factor authentication is off."))
                return redirect("dashboard:two-factor")
            context["codes"] = factor.renew_recovery_codes()
            form = ConfirmForm(request)
        context["form"] = form
    return show(request, "two_factor.html", context)


def _confirm_factor(request: HttpRequest, factor: TwoFactor, context: dict[str, Any]) -> HttpResponse:
    """Show the secret of an authenticator app until its first code is entered."""
    form = FirstCodeForm(request.POST or None)
    if request.method == "POST" and "cancel" in request.POST:
        factor.turn_off()
        return redirect("dashboard:two-factor")
    if request.method == "POST" and form.is_valid():
        if codes := factor.confirm(form.cleaned_data["code"]):
            factor.refresh_from_db()
            return show(request, "two_factor.html", {**context, "form": ConfirmForm(request), "codes": codes})
        form.add_error("code", _("This code is not valid. Check that the clock of the phone is right."))
    image = segno.make(factor.uri).svg_inline(scale=5, border=4, light="#fff")
    # Made by the library from our own text.
    picture = mark_safe(image)  # noqa: S308
    return show(request, "two_factor.html", {**context, "form": form, "picture": picture, "secret": factor.secret})
