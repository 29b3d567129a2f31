"""ONUs and their events."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from facho.apps.telemetry import api

router = SimpleRouter()
router.register("onus", api.OnuViewSet, basename="api-onu")
router.register("events", api.EventViewSet, basename="api-event")

urlpatterns = [
    path("onus/<int:pk>/read/", api.read_onu, name="api-onu-read"),
    path("onus/<int:onu_id>/notes/", api.NOTES_OF_ONU, name="api-onu-notes"),
    path("notes/<int:pk>/", api.NOTE, name="api-note-detail"),
    *router.urls,
]
