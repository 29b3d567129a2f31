"""The login: name and password, then a code if the user has two-factor authentication."""

from typing import Any

from django.conf import settings
from django.contrib.auth import load_backend, login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, RedirectURLMixin, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.generic import FormView

from facho.apps.accounts.forms import LoginCodeForm, LoginForm
from facho.apps.accounts.models import TwoFactor
from facho.apps.accounts.two_factor import PENDING, ask_for_code


def locked(response: HttpResponse, form: Form) -> HttpResponse:
    """Answer to a locked user with the status of a limit, and its time."""
    for error in (error for errors in form.errors.as_data().values() for error in errors if error.code == "locked"):
        response.status_code = 429
        response["Retry-After"] = str((error.params or {})["seconds"])
    return response


class Login(LoginView):
    """Name and password."""

    form_class = LoginForm
    template_name = "dashboard/login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        config, is_wanted = settings.CONFIG, "local" in self.request.GET or self.request.method == "POST"
        return super().get_context_data(
            **kwargs,
            # Set by the scripts of a page that was open when its session ended.
            has_ended="ended" in self.request.GET,
            has_form=config.local_login or config.ldap_url or is_wanted,
            oidc_label=config.oidc_label if config.oidc_issuer else "",
        )

    def form_valid(self, form: Any) -> HttpResponse:
        user: Any = form.get_user()
        if TwoFactor.of(user) is None:
            return super().form_valid(form)
        return ask_for_code(self.request, user, self.get_redirect_url())

    def form_invalid(self, form: Any) -> HttpResponse:
        return locked(super().form_invalid(form), form)


@method_decorator([sensitive_post_parameters(), never_cache], name="dispatch")
class LoginCode(RedirectURLMixin, FormView):  # type: ignore[type-arg]  # generic only in the stubs
    """The second step: a code of the authenticator app, or a recovery code."""

    template_name = "dashboard/login_code.html"
    next_page = "/"
    user: Any
    factor: TwoFactor

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user = pending_user(request)
        factor = None if user is None else TwoFactor.of(user)
        if user is None or factor is None:
            return redirect_to_login(self.get_success_url())
        self.user, self.factor = user, factor
        return super().dispatch(request, *args, **kwargs)

    def get_form(self, form_class: Any = None) -> LoginCodeForm:
        return LoginCodeForm(self.request, self.factor, self.request.POST if self.request.method == "POST" else None)

    def form_valid(self, form: Any) -> HttpResponse:
        login(self.request, self.user, backend=self.request.session.pop(PENDING)["backend"])
        return super().form_valid(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        return locked(super().form_invalid(form), form)


def pending_user(request: HttpRequest) -> User | None:
    """Return the user who has passed the first step a short time ago, if it is still valid."""
    pending = request.session.get(PENDING)
    if pending is None or pending["until"] < timezone.now().timestamp():
        return None
    user: Any = load_backend(pending["backend"]).get_user(pending["user"])
    return user if user and constant_time_compare(user.get_session_auth_hash(), pending["hash"]) else None


def admin_login(request: HttpRequest) -> HttpResponse:
    """Lead from the admin to the login. A user who has logged in may not use the admin."""
    if request.user.is_authenticated:
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
