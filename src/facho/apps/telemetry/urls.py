"""ONUs and their events."""

from rest_framework.routers import SimpleRouter

from facho.apps.telemetry import api, pon_ports_api

router = SimpleRouter()
router.register("onus", api.OnuViewSet, basename="api-onu")
router.register("events", api.EventViewSet, basename="api-event")
router.register("ports", pon_ports_api.PonPortViewSet, basename="api-port")

urlpatterns = router.urls
