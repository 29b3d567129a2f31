"""URLs of saved views and the map in API v1."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from facho.apps.dashboard import map_api, olt_life_api, saved_views

router = SimpleRouter()
router.register("views", saved_views.SavedViewSet, basename="api-view")

urlpatterns = [
    path("olts/<int:pk>/replace/", olt_life_api.ReplaceView.as_view(), name="api-olt-replace"),
    path("map/onus/", map_api.MapOnuView.as_view(), name="api-map-onus"),
    path("map/sites/", map_api.MapSiteView.as_view(), name="api-map-sites"),
    path("map/problems/", map_api.MapProblemView.as_view(), name="api-map-problems"),
    *router.urls,
]
