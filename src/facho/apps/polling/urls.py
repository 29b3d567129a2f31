"""URLs of pollers and executions."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from facho.apps.polling import api

router = SimpleRouter()
router.register("executions", api.ExecutionViewSet, basename="api-execution")

urlpatterns = [
    path("pollers/", api.PollersView.as_view(), name="api-pollers"),
    path("pollers/queue/", api.QueueView.as_view(), name="api-queue"),
    path("pollers/stats/", api.StatsView.as_view(), name="api-stats"),
    path("pollers/stats/history/", api.StatsHistoryView.as_view(), name="api-stats-history"),
    path("olts/<int:olt_id>/stats/", api.OltStatsView.as_view(), name="api-olt-stats"),
    path("pollers/nodes/<int:node_id>/run/", api.RunNodeView.as_view(), name="api-run-node"),
    path("", include(router.urls)),
]
