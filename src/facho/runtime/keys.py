"""Rotation of the encryption keys of secrets."""

from cryptography.fernet import Fernet
from django.conf import settings
from django.db import transaction

from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.rest.fields import tables_with_secrets
from facho.runtime import config as facho_config
from facho.runtime.config import Config, ConfigError
from facho.runtime.lock import EngineLock


def rotate(config: Config) -> int:
    """Encrypt every secret with a new key, and return the number of OLTs, channels and users.

    With a key file, a new key is added at the front; the old ones stay, so that an older backup can still be
    decrypted. With FACHO_SECRET_KEYS, the admin has added the new key at the front.

    Raises `ConfigError` if Facho is running and the new key would be in the file, because running processes do not
    know it.
    """
    if not config.key_file.exists() or list(config.secret_keys) != config.key_file.read_text().split():
        return _encrypt_again()
    try:
        with EngineLock(config):
            keys = [Fernet.generate_key().decode(), *config.secret_keys]
            facho_config.write_keys(config.key_file, keys)
            settings.FACHO_SECRET_KEYS = keys
            return _encrypt_again()
    except ConfigError as error:
        raise ConfigError(
            "The keys were not changed because Facho is running with the current keys and could not read the "
            "new secrets. Stop Facho, run `facho rotate-keys` again, and start it. In scale-out mode, keys in "
            "FACHO_SECRET_KEYS can be changed without stopping: see docs/operations.md."
        ) from error


@transaction.atomic
def _encrypt_again() -> int:
    count = 0
    for model, names in tables_with_secrets():
        for row in model._default_manager.select_for_update():
            model._default_manager.filter(pk=row.pk).update(**{name: getattr(row, name).rotated() for name in names})
            count += 1
    record(Change.Action.KEYS_ROTATED)
    return count
