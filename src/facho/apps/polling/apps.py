from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PollingConfig(AppConfig):
    name = "facho.apps.polling"
    label = "polling"
    verbose_name = _("Polling")
