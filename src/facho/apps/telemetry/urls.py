"""ONUs and their events."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from facho.apps.telemetry import api, comparison_api

router = SimpleRouter()
router.register("onus", api.OnuViewSet, basename="api-onu")
router.register("events", api.EventViewSet, basename="api-event")

urlpatterns = [
    path("olts/<int:olt_id>/compare/", comparison_api.ComparisonView.as_view(), name="api-olt-compare"),
    *router.urls,
]
