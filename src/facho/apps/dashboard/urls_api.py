"""URLs of saved views in API v1."""

from rest_framework.routers import SimpleRouter

from facho.apps.dashboard import saved_views

router = SimpleRouter()
router.register("views", saved_views.SavedViewSet, basename="api-view")

urlpatterns = router.urls
