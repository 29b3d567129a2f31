"""Rotation of the keys that secrets are encrypted with."""

from cryptography.fernet import Fernet
from django.conf import settings
from django.db import transaction

from facho.apps.inventory.fields import tables_with_secrets
from facho.runtime import config as facho_config
from facho.runtime.config import Config


def rotate(config: Config) -> int:
    """Encrypt every secret with a new key and return how many OLTs and channels that concerned.

    With keys in the file, a new one is made and put first; the old ones stay
    behind it, so that a backup from before can still be read. With keys in
    FACHO_SECRET_KEYS the new one is the first of those, put there by a person.
    """
    if config.key_file.exists() and list(config.secret_keys) == config.key_file.read_text().split():
        keys = [Fernet.generate_key().decode(), *config.secret_keys]
        facho_config.write_keys(config.key_file, keys)
        settings.FACHO_SECRET_KEYS = keys
    return _encrypt_again()


@transaction.atomic
def _encrypt_again() -> int:
    count = 0
    for model, names in tables_with_secrets():
        for row in model._default_manager.select_for_update():
            model._default_manager.filter(pk=row.pk).update(**{name: getattr(row, name).rotated() for name in names})
            count += 1
    return count
