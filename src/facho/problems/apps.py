from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ProblemsConfig(AppConfig):
    name = "facho.problems"
    label = "problems"
    verbose_name = _("Problems")
