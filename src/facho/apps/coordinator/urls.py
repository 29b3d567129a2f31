"""URLs of quotas, violations, plans, the log and explanations."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from facho.apps.coordinator import api

router = SimpleRouter()
router.register("quotas", api.QuotaViewSet, basename="api-quota")
router.register("violations", api.ViolationViewSet, basename="api-violation")
router.register("plans", api.PlanViewSet, basename="api-plan")
router.register("logs", api.LogViewSet, basename="api-log")

urlpatterns = [
    path("nodes/<int:node_id>/explain/", api.ExplainView.as_view(), name="api-explain"),
    path("", include(router.urls)),
]
