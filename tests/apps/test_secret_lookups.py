"""No secret can be guessed by filtering or sorting a list."""

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import FieldDoesNotExist, FieldError
from django.urls import get_resolver
from django.urls.resolvers import URLPattern
from django_filters import FilterSet

from facho.apps.accounts.models import RecoveryCode, UserSession
from facho.apps.rest.fields import tables_with_secrets

SECRETS = {(model, name) for model, names in tables_with_secrets() for name in names}


def leads_to_a_secret(model, lookup):
    """Return whether a lookup such as `olt__community__startswith` ends at a secret."""
    for part in lookup.lstrip("-=^@").split("__"):
        try:
            field = model._meta.get_field(part)
        except FieldDoesNotExist:
            # A transform, or the name of an annotation.
            return False
        if (model, field.name) in SECRETS:
            return True
        model = field.related_model or model
    return False


def views_of(patterns):
    for pattern in patterns:
        if not isinstance(pattern, URLPattern):
            yield from views_of(pattern.url_patterns)
        elif hasattr(pattern.callback, "cls"):
            yield pattern.callback.cls


def paths_to_secrets():
    """Yield each model with a lookup that reaches a secret, directly or through one relation."""
    for model in apps.get_models():
        for field in model._meta.get_fields():
            if (model, field.name) in SECRETS:
                yield model, field.name
            for other, name in SECRETS:
                if field.is_relation and field.related_model is other:
                    yield model, f"{field.name}__{name}"


PATHS = sorted(paths_to_secrets(), key=lambda each: (each[0].__name__, each[1]))


def test_all_secrets_are_covered():
    assert {"url", "community", "bot_token"} <= {name for _model, name in SECRETS}
    assert len(PATHS) > len(SECRETS)


@pytest.mark.parametrize(("model", "path"), PATHS, ids=lambda each: getattr(each, "__name__", each))
def test_a_secret_cannot_be_searched_for(model, path):
    for lookup in ("", "__startswith", "__gt", "__regex", "__isnull"):
        with pytest.raises(FieldError, match="encrypted"):
            str(model._default_manager.filter(**{f"{path}{lookup}": "s"}).query)


def test_no_list_of_the_admin_searches_filters_or_sorts_by_a_secret():
    for model, page in admin.site._registry.items():
        filters = [each[0] if isinstance(each, tuple) else each for each in page.list_filter]
        columns = [*page.search_fields, *(page.ordering or ()), *page.list_display, *filters]
        assert [name for name in columns if isinstance(name, str) and leads_to_a_secret(model, name)] == [], page


def test_no_list_of_the_api_searches_filters_or_sorts_by_a_secret():
    views = {view for view in views_of(get_resolver().url_patterns) if hasattr(view, "queryset")}
    assert len(views) > 10
    for view in views:
        filters: type[FilterSet] | None = getattr(view, "filterset_class", None)
        names = [each.field_name for each in filters.base_filters.values()] if filters else []
        names += [*getattr(view, "search_fields", ()), *getattr(view, "ordering_fields", ())]
        assert view.queryset is None or not any(leads_to_a_secret(view.queryset.model, name) for name in names), view


@pytest.mark.parametrize("query", ["url__startswith=https", "url=x", "rules__channels__bot_token__gt=1"])
def test_the_list_of_channels_takes_no_such_filter(admin_page, query):
    answer = admin_page.get(f"/admin/alerts/channel/?{query}")

    # Django shows the whole list, or refuses.
    assert (answer.status_code, answer.get("Location")) in [(302, "/admin/alerts/channel/?e=1"), (400, None)]


# Columns that are no encrypted fields, and give access to an account all the same.
KEYS = {(UserSession, "session_key"), (UserSession, "session_data"), (User, "password"), (RecoveryCode, "code_hash")}


def paths_to_keys(model, most_relations=2):
    """Yield the lookups that lead from a model to one of these columns."""
    for field in model._meta.get_fields():
        if (model, field.name) in KEYS:
            yield field.name
        if field.is_relation and field.related_model is not None and most_relations:
            for path in paths_to_keys(field.related_model, most_relations - 1):
                yield f"{field.name}__{path}"


@pytest.mark.parametrize("page", admin.site._registry.values(), ids=str)
def test_no_list_of_the_admin_takes_a_filter_by_a_key(page, rf):
    # Django accepts a filter by the primary key of another table, such as the key of a session.
    paths = [f"{path}{lookup}" for path in paths_to_keys(page.model) for lookup in ("", "__startswith", "__gt")]
    assert [path for path in paths if page.lookup_allowed(path, "a", rf.get("/"))] == []
