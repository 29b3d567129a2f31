from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CoordinatorConfig(AppConfig):
    name = "facho.apps.coordinator"
    label = "coordinator"
    verbose_name = _("Coordinator")
