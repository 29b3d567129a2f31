"""ONUs and their events."""

from rest_framework.routers import SimpleRouter

from facho.apps.telemetry import api

router = SimpleRouter()
router.register("onus", api.OnuViewSet, basename="api-onu")
router.register("events", api.EventViewSet, basename="api-event")

urlpatterns = router.urls
