"""URLs of maintenance."""

from rest_framework.routers import SimpleRouter

from facho.apps.maintenance import api

router = SimpleRouter()
router.register("maintenance", api.MaintenanceViewSet, basename="api-maintenance")

urlpatterns = router.urls
