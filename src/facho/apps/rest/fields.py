"""Model field that is encrypted in the database and never printed."""

from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.apps import apps
from django.conf import settings
from django.core.exceptions import FieldError
from django.db import models
from django.db.models.query_utils import DeferredAttribute


class WrongKeyError(Exception):
    """A secret in the database was encrypted with an unknown key."""

    def __init__(self) -> None:
        super().__init__(
            "A stored secret cannot be decrypted with the current keys. Add the key that encrypted it to "
            "FACHO_SECRET_KEYS, or restore secret.keys in the data directory."
        )


def cipher() -> MultiFernet:
    """Return the cipher of the current keys: the first encrypts, all decrypt."""
    return MultiFernet([Fernet(key) for key in settings.FACHO_SECRET_KEYS])


class Secret:
    """An encrypted text. It can be revealed, compared and tested for presence, and never prints itself."""

    __slots__ = ("_token",)

    def __init__(self, token: str) -> None:
        self._token = token

    @classmethod
    def of(cls, text: str) -> "Secret":
        return cls(cipher().encrypt(text.encode()).decode() if text else "")

    @property
    def token(self) -> str:
        return self._token

    def reveal(self) -> str:
        if not self._token:
            return ""
        try:
            return cipher().decrypt(self._token).decode()
        except InvalidToken:
            raise WrongKeyError from None

    def rotated(self) -> "Secret":
        """Return the same secret encrypted with the first key."""
        if not self._token:
            return self
        try:
            return Secret(cipher().rotate(self._token.encode()).decode())
        except InvalidToken:
            raise WrongKeyError from None

    def __bool__(self) -> bool:
        return bool(self._token)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return False
        try:
            return self.reveal() == other.reveal()
        except WrongKeyError:
            return self._token == other._token

    def __hash__(self) -> int:
        # Equal secrets have different ciphertexts.
        return hash(self.reveal())

    def __repr__(self) -> str:
        return "Secret(***)" if self._token else "Secret()"

    __str__ = __repr__


class SecretAttribute(DeferredAttribute):
    """Converts each assigned value to a `Secret`, so that no row holds plain text."""

    def __set__(self, instance: models.Model, value: Any) -> None:
        instance.__dict__[self.field.attname] = self.field.to_python(value)


class SecretField(models.TextField):  # type: ignore[type-arg]  # generic only in the stubs
    """Accepts a str or a `Secret`, returns a `Secret`. It cannot be searched, and is left out of dumps."""

    # The record of changes leaves out its values.
    is_secret = True

    descriptor_class = SecretAttribute

    def from_db_value(self, value: str | None, *_: Any) -> Secret:
        return Secret(value or "")

    def to_python(self, value: Any) -> Secret:
        return value if isinstance(value, Secret) else Secret.of(value or "")

    def get_prep_value(self, value: Any) -> str:
        return self.to_python(value).token

    def value_to_string(self, obj: models.Model) -> str:
        return ""

    def get_lookup(self, lookup_name: str) -> Any:
        raise FieldError(f"{self.name} is encrypted: it cannot be searched for")

    get_transform = get_lookup


def tables_with_secrets() -> list[tuple[type[models.Model], list[str]]]:
    """Return every table with secrets, and the names of those columns."""
    tables = [
        (model, [field.name for field in model._meta.concrete_fields if isinstance(field, SecretField)])
        for model in apps.get_models()
        if not model._meta.proxy
    ]
    return [(model, names) for model, names in tables if names]
