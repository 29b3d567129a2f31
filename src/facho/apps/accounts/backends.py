"""Login with a password that Facho keeps."""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User


class LocalBackend(ModelBackend):
    """Local accounts. With FACHO_LOCAL_LOGIN=false only superusers, so that a broken login server locks nobody out.

    The scope is read with the user, so that it costs no query. It is named by its relation, because inventory depends
    on accounts.
    """

    def user_can_authenticate(self, user: object) -> bool:
        is_allowed = settings.CONFIG.local_login or bool(getattr(user, "is_superuser", False))
        return is_allowed and super().user_can_authenticate(user)  # type: ignore[arg-type]  # a user

    def get_user(self, user_id: Any) -> User | None:
        user = User._default_manager.select_related("scope").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None

    async def aget_user(self, user_id: Any) -> User | None:
        user = await User._default_manager.select_related("scope").filter(pk=user_id).afirst()
        return user if user is not None and self.user_can_authenticate(user) else None
