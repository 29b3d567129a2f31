"""Jobs and nodes."""

from rest_framework.routers import SimpleRouter

from facho.apps.jobs import api

router = SimpleRouter()
router.register("jobs", api.JobViewSet, basename="api-job")
router.register("nodes", api.NodeViewSet, basename="api-node")

urlpatterns = router.urls
