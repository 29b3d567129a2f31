"""ONUs, their events, and the search."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from facho.apps.telemetry import api, pon_ports_api

router = SimpleRouter()
router.register("onus", api.OnuViewSet, basename="api-onu")
router.register("events", api.EventViewSet, basename="api-event")
router.register("ports", pon_ports_api.PonPortViewSet, basename="api-port")

urlpatterns = [path("search/", api.SearchView.as_view(), name="api-search"), *router.urls]
