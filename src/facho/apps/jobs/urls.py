"""URLs of jobs and nodes."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from facho.apps.jobs import api

router = SimpleRouter()
router.register("jobs", api.JobViewSet, basename="api-job")
router.register("nodes", api.NodeViewSet, basename="api-node")

urlpatterns = [
    # Before the routes of the view set, which would read "try" as an id.
    path("jobs/try/", api.try_job, name="api-job-try"),
    *router.urls,
]
