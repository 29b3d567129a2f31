"""Import and export of OLTs. Secrets are never written or read."""

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from import_export.resources import ModelResource

from facho.apps.inventory.changes import one_at_a_time
from facho.apps.inventory.forms import SECRETS
from facho.apps.inventory.models import Olt, resolve_hosts


class OltResource(ModelResource):
    """An OLT is identified by its name. Each row passes the checks of a form."""

    def __init__(self, community: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._community = community

    class Meta:
        model = Olt
        import_id_fields = ["name"]
        fields = [
            "name",
            "brand",
            "host",
            "port",
            "location",
            "enabled",
            "version",
            "max_in_flight",
            "max_pdus_per_second",
        ]
        export_order = fields
        clean_model_instances = True
        skip_unchanged = True

    def import_data(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        # All names at once, and before the transaction, so that no DNS lookup holds the database lock.
        if "host" in (dataset.headers or ()):
            resolve_hosts([str(host) for host in dataset["host"]])
        with one_at_a_time():
            return super().import_data(dataset, *args, **kwargs)

    def before_import(self, dataset: Any, **kwargs: Any) -> None:
        secret = [name for name in SECRETS if name in (dataset.headers or ())]
        if secret:
            raise ValidationError(
                _("Remove the column %(names)s: files must not contain secrets. Write the community in the form.")
                % {"names": ", ".join(secret)}
            )

    def import_instance(self, instance: Olt, row: Any, **kwargs: Any) -> None:
        super().import_instance(instance, row, **kwargs)
        if instance._state.adding:
            instance.community = self._community
