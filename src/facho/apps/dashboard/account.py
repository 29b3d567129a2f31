"""Pages of a user's own account: API tokens and password."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from facho.apps.accounts.forms import OwnPasswordForm, OwnTokenForm
from facho.apps.accounts.models import ApiToken
from facho.apps.dashboard.views import View, show, with_policy


def account_page(view: View) -> View:
    """Turn a view into a page with a form: login required, not cached, with our policy."""
    return with_policy(never_cache(require_http_methods(["GET", "HEAD", "POST"])(login_required(view))))


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
    return show(request, "tokens.html", {"tokens": own, "form": form, "created": created})


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
    form = OwnPasswordForm(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        # Ends the other sessions of the user.
        update_session_auth_hash(request, form.save())
        messages.success(request, _("Your password was changed."))
        return redirect("dashboard:password")
    return show(request, "password.html", {"form": form})
