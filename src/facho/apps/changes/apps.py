from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ChangesConfig(AppConfig):
    name = "facho.apps.changes"
    label = "changes"
    verbose_name = _("Changes")

    def ready(self) -> None:
        from facho.apps.changes import capture
        from facho.apps.changes import logins as logins  # connects the signals of logins

        capture.watch_models()
