"""URLs of OLTs, sites, tags, brands and the API schema."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from facho.apps.inventory import api

# Its script is not in the page, which the policy of the headers forbids. It does not support OPTIONS and would fail.
docs = SpectacularSwaggerSplitView.as_view(url_name="api-schema", http_method_names=["get", "head"])

router = SimpleRouter()
router.register("olts", api.OltViewSet, basename="api-olt")
router.register("sites", api.SiteViewSet, basename="api-site")
router.register("tags", api.TagViewSet, basename="api-tag")
router.register("changes", api.ScopedChangeViewSet, basename="api-change")
router.register("questions", api.QuestionViewSet, basename="api-question")

urlpatterns = [
    path("brands/", api.BrandList.as_view(), name="api-brands"),
    path("brands/decoders/", api.DecoderList.as_view(), name="api-decoders"),
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs/", docs, name="api-docs"),
    path("", include(router.urls)),
]
