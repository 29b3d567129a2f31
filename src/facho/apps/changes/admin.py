"""The record instead of the admin's own history; and ids in addresses and forms that are no ids."""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext

# Longer ones are too large for the database.
ID = re.compile(r"[0-9]{1,18}", re.ASCII)

# Pages of Django, which leads from an unknown id to the index, with a message.
OF_DJANGO = ("_change", "_delete", "_history")


def _known_ids_only(view: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a view of an action into one that finds nothing if its id is no id. The database would raise an error."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if not ID.fullmatch(str(kwargs.get("object_id", ""))):
            raise Http404
        return view(request, *args, **kwargs)

    return checked


class RecordedAdmin:
    """An admin page without a log of its own: the record of changes has more, and has changes of the API too."""

    model: type[Model]

    def get_urls(self) -> list[Any]:
        parent: Any = super()
        urls: list[Any] = parent.get_urls()
        for each in urls:
            if "object_id" in each.pattern.regex.groupindex and each.name and not each.name.endswith(OF_DJANGO):
                each.callback = _known_ids_only(each.callback)
        return urls

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Refuse an action on rows that are no ids; the list is then shown again."""
        if not all(map(ID.fullmatch, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            messages.error(request, gettext("Choose rows of this list."))
            return None
        parent: Any = super()
        return parent.response_action(request, *args, **kwargs)

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
