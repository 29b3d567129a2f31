"""URLs of alerts, rules and channels."""

from rest_framework.routers import SimpleRouter

from facho.alerts import api

router = SimpleRouter()
router.register("alerts", api.AlertViewSet, basename="api-alert")
router.register("alert-rules", api.RuleViewSet, basename="api-rule")
router.register("channels", api.ChannelViewSet, basename="api-channel")
router.register("deliveries", api.DeliveryViewSet, basename="api-delivery")

urlpatterns = router.urls
