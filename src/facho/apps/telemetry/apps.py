from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TelemetryConfig(AppConfig):
    name = "facho.apps.telemetry"
    label = "telemetry"
    verbose_name = _("Telemetry")
