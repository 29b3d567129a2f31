"""URL configuration."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from facho.apps.dashboard.login import admin_login
from facho.apps.dashboard.single_sign_on import Logout

urlpatterns = [
    # One login for everybody, and one page for everybody's own password.
    path("admin/login/", admin_login),
    path("admin/logout/", Logout.as_view()),
    path("admin/password_change/", RedirectView.as_view(pattern_name="dashboard:password")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("facho.apps.accounts.urls")),
    path("api/v1/", include("facho.apps.inventory.urls")),
    path("api/v1/", include("facho.apps.maintenance.urls")),
    path("api/v1/", include("facho.apps.jobs.urls")),
    path("api/v1/", include("facho.apps.polling.urls")),
    path("api/v1/", include("facho.apps.telemetry.urls")),
    path("api/v1/", include("facho.apps.coordinator.urls")),
    path("api/v1/", include("facho.apps.coordinator.urls_forecasts")),
    path("api/v1/", include("facho.alerts.urls")),
    path("api/v1/", include("facho.problems.urls")),
    path("api/v1/", include("facho.apps.dashboard.urls_api")),
    path("", include("facho.apps.dashboard.urls")),
]

handler400 = "facho.apps.inventory.errors.bad_request"
handler404 = "facho.apps.inventory.errors.not_found"
handler500 = "facho.apps.inventory.errors.server_error"
