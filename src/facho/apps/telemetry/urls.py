"""ONUs, ports, and the search."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from facho.apps.telemetry import api, comparison_api, pon_ports_api

router = SimpleRouter()
router.register("onus", api.OnuViewSet, basename="api-onu")
router.register("events", api.EventViewSet, basename="api-event")
router.register("ports", pon_ports_api.PonPortViewSet, basename="api-port")

urlpatterns = [
    path("search/", api.SearchView.as_view(), name="api-search"),
    path("onus/<int:pk>/read/", api.read_onu, name="api-onu-read"),
    path("onus/<int:onu_id>/notes/", api.NOTES_OF_ONU, name="api-onu-notes"),
    path("notes/<int:pk>/", api.NOTE, name="api-note-detail"),
    path("olts/<int:olt_id>/compare/", comparison_api.ComparisonView.as_view(), name="api-olt-compare"),
    *router.urls,
]
