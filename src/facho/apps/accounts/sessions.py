"""Sessions in our own table: Django's session engine with the columns of `UserSession`."""

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db


class SessionStore(db.SessionStore):
    """A session, and its row once it was loaded."""

    row: Any = None

    @classmethod
    def get_model_class(cls) -> Any:
        from facho.apps.accounts.models import UserSession

        return UserSession

    def _get_session_from_db(self) -> Any:
        self.row = super()._get_session_from_db()  # type: ignore[misc]  # not in the stubs
        return self.row

    async def _aget_session_from_db(self) -> Any:
        self.row = await super()._aget_session_from_db()  # type: ignore[misc]  # not in the stubs
        return self.row

    def create_model_instance(self, data: Any) -> Any:
        row: Any = super().create_model_instance(data)
        row.user_id = data.get(SESSION_KEY)
        row.set_expiry()
        return row
