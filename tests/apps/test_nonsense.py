"""Nonsense in addresses and forms of pages: a plain answer, never an internal error. The API has tests of its own."""

import logging
import sys

import pytest
from django.conf import settings as django_settings
from django.core.signals import got_request_exception
from django.db import transaction
from django.urls import NoReverseMatch, reverse

from apps.test_role_matrix import API, SUPERUSER, VIEWER, path_of, people, rows, send, urls

__all__ = ["people", "rows"]

HUGE = "9" * 40
# Unknown, too large for the database, no number, and what a database refuses in a text.
ODD_IDS = ["0", "999999", str(2**63), HUGE, "-1", "x", "%00", "1%2F2", "1;--", "\u00b2"]
ODD_VALUES = [
    HUGE,
    "-1",
    "\x00",
    "\u00b2",
    "0001-01-01",
    "9999-12-31",
    "2026-02-30T99:99",
    "9999-12-31T23:59:59",
    "[]",
    "'\"<x>",
    "a" * 3000,
    "%(x)s {x} %",
    "true,false",
    "1,2,x",
]
PARAMETERS = [
    "q", "sort", "page", "view", "columns", "olt", "slot", "port", "level", "event", "after", "before", "slot_after",
    "slot_before", "day_from", "day_to", "older_than", "object", "object_type", "user", "token", "field", "request_id",
    "tab", "state", "site", "tag", "brand", "kind", "follows", "enabled", "is_master", "role", "is_active", "node",
    "poller", "hours", "days", "from", "to", "at", "tv", "next", "status", "trigger", "o", "p", "all", "e", "_popup",
    "id", "pk", "timestamp_from_0", "timestamp_from_1", "timestamp_to_0", "least", "olt__id__exact", "below_dbm",
    "_changelist_filters", "_to_field", "back", "starts_at", "rx_min", "rx_max", "until", "a", "b", "minutes", "actor",
]  # fmt: skip
BODIES = [
    {},
    {name: ODD_VALUES[number % len(ODD_VALUES)] for number, name in enumerate(PARAMETERS)},
    {"action": "x", "id": HUGE, "failed": HUGE, "user": HUGE, "token": HUGE, "interval_seconds": HUGE, "name": "\x00"},
    {
        "action": "end",
        "interval_seconds": "-1",
        "own_interval_seconds": "\u00b2",
        "own_enabled": "x",
        "_selected_action": "x",
    },
    {
        "action": "revoke",
        "token": "1",
        "_selected_action": HUGE,
        "index": "x",
        "select_across": "x",
        "username": "\x00",
    },
    {"action": "delete_selected", "_selected_action": ["1", "x"], "host": "a" * 500, "port": HUGE, "query": "%zz"},
]


def pages():
    """Return the addresses of pages and of the admin."""
    return {name: pattern for name, pattern in urls().items() if name not in API and "logout" not in name}


@pytest.fixture
def plain(settings, caplog):
    # Thousands of refusals, some with a traceback.
    caplog.set_level(logging.CRITICAL)
    settings.MIDDLEWARE = [name for name in django_settings.MIDDLEWARE if "servestatic" not in name]


@pytest.fixture
def clients(people, plain):
    known, _token = people
    for client in known.values():
        client.raise_request_exception = False
    return known


@pytest.fixture
def errors():
    """Internal errors, with the exceptions that caused them."""
    found = []

    def remember(request, **_signal):
        found.append(f"{request.method} {request.get_full_path()[:100]}: {sys.exc_info()[1]!r:.200}")

    got_request_exception.connect(remember)
    yield found
    got_request_exception.disconnect(remember)


@pytest.mark.parametrize("level", [VIEWER, SUPERUSER], ids=["viewer", "superuser"])
def test_odd_parameters_of_pages_are_no_internal_error(rows, clients, errors, level):
    for name, pattern in pages().items():
        path = path_of(name, pattern, rows)
        for value in ODD_VALUES:
            clients[level].get(path, dict.fromkeys(PARAMETERS, value))

    assert errors == []


def test_odd_ids_in_addresses_are_no_internal_error(rows, clients, errors):
    for name, pattern in pages().items():
        names = list(pattern.pattern.regex.groupindex) if pattern.name else []
        for odd in ODD_IDS if names else ():
            path = path_of(name, pattern, rows)
            try:
                marked = reverse(name, kwargs=dict.fromkeys(names, 7))
            except NoReverseMatch:
                continue
            path = marked.replace("/7/", f"/{odd}/")
            for method in ("get", "post"):
                send(clients[SUPERUSER], method, path)

    assert errors == []


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_odd_forms_are_no_internal_error(rows, clients, errors, number):
    for name, pattern in pages().items():
        path = path_of(name, pattern, rows)
        post(clients[SUPERUSER], path, BODIES[number])

    assert errors == []


def post(client, path, body):
    """Send a form and undo its effects, also those on the session."""
    key = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    with transaction.atomic():
        client.post(path, body)
        transaction.set_rollback(True)
    client.cookies[django_settings.SESSION_COOKIE_NAME] = key
