"""URLs of the login and of API tokens."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from facho.apps.accounts import api

router = SimpleRouter()
router.register("tokens", api.ApiTokenViewSet, basename="api-apitoken")

urlpatterns = [
    path("auth/token/", api.TokenLogin.as_view(), name="api-token"),
    path("", include(router.urls)),
]
