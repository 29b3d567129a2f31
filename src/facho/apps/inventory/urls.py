"""URLs of OLTs, brands and the API schema."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView
from rest_framework.routers import SimpleRouter

from facho.apps.inventory import api

# The page does not support OPTIONS and would fail.
docs = SpectacularSwaggerView.as_view(url_name="api-schema", http_method_names=["get", "head"])

router = SimpleRouter()
router.register("olts", api.OltViewSet, basename="api-olt")
router.register("questions", api.QuestionViewSet, basename="api-question")

urlpatterns = [
    path("brands/", api.BrandList.as_view(), name="api-brands"),
    path("brands/decoders/", api.DecoderList.as_view(), name="api-decoders"),
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs/", docs, name="api-docs"),
    path("", include(router.urls)),
]
