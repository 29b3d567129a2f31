"""URLs of forecasts."""

from rest_framework.routers import SimpleRouter

from facho.apps.coordinator.forecasts import ForecastViewSet

router = SimpleRouter()
router.register("forecasts", ForecastViewSet, basename="api-forecast")

urlpatterns = router.urls
