from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "facho.apps.accounts"
    label = "accounts"
    verbose_name = _("Access")

    def ready(self) -> None:
        from facho.apps.accounts import schema as schema  # registers the description of the authentication
        from facho.apps.accounts.roles import sync_groups

        # For each app, after the handler of django.contrib.auth has created its permissions.
        post_migrate.connect(sync_groups, dispatch_uid="facho.apps.accounts.sync_groups")
