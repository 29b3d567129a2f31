"""URLs of problems."""

from rest_framework.routers import SimpleRouter

from facho.problems import api

router = SimpleRouter()
router.register("problems", api.ProblemViewSet, basename="api-problem")

urlpatterns = router.urls
