from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "facho.apps.accounts"
    label = "accounts"
    verbose_name = _("Access")

    def ready(self) -> None:
        from facho.apps.accounts import schema as schema  # registers the description of the authentication
