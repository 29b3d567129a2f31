"""The record instead of the admin's own history."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode


class RecordedAdmin:
    """An admin page without a log of its own: the record of changes has more, and has changes of the API too."""

    model: type[Model]

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Do nothing."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Do nothing."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Do nothing."""

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show the record of this object."""
        page: Any = self
        if not page.has_view_or_change_permission(request, page.get_object(request, object_id)):
            raise PermissionDenied
        model = self.model._meta.concrete_model or self.model
        query = urlencode({"object_type": model._meta.label_lower, "object": object_id})
        return redirect(f"{reverse('dashboard:changes')}?{query}")
