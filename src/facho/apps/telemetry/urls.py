"""ONUs."""

from rest_framework.routers import SimpleRouter

from facho.apps.telemetry import api

router = SimpleRouter()
router.register("onus", api.OnuViewSet, basename="api-onu")

urlpatterns = router.urls
