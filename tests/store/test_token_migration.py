"""A database of an earlier version: its tokens stay valid, and nothing of the old app is left."""

import pytest
from builders import T0
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from rest_framework.test import APIClient

from facho.apps.accounts.models import ApiToken
from facho.runtime.upgrade import without_idle_limit

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("accounts", "0001_api_tokens")]
LATEST = [("accounts", "0002_move_tokens")]
KEYS = {"noc": "9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b", "script": "0f" * 20}

# The table as rest_framework.authtoken made it.
TABLE = """
    CREATE TABLE authtoken_token (
        "key" varchar(40) NOT NULL PRIMARY KEY,
        "created" {moment} NOT NULL,
        "user_id" integer NOT NULL UNIQUE REFERENCES auth_user (id) DEFERRABLE INITIALLY DEFERRED
    )
"""


def migrate(target):
    with without_idle_limit():
        MigrationExecutor(connection).migrate(target)


def execute(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


@pytest.fixture
def old_database():
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes("accounts")
    migrate(BEFORE)
    execute(TABLE.format(moment="datetime" if connection.vendor == "sqlite" else "timestamp with time zone"))
    kind = ContentType.objects.create(app_label="authtoken", model="token")
    kind.permission_set.create(codename="view_token", name="Can view token")
    MigrationRecorder(connection).record_applied("authtoken", "0001_initial")
    yield
    migrate(latest)


def test_tokens_of_an_earlier_version_stay_valid(old_database):
    for name, key in KEYS.items():
        user = User.objects.create(username=name)
        stored = connection.ops.adapt_datetimefield_value(T0)
        execute('INSERT INTO authtoken_token ("key", "created", "user_id") VALUES (%s, %s, %s)', key, stored, user.pk)

    migrate(LATEST)

    tokens = {token.user.username: token for token in ApiToken.objects.select_related("user")}
    assert tokens.keys() == KEYS.keys()
    for name, token in tokens.items():
        assert (token.name, token.origin, token.created_at) == ("Migrated token", "migrated", T0)
        assert token.prefix == KEYS[name][:6]
        assert token.is_unlimited
        answer = APIClient().get("/api/v1/brands/", headers={"authorization": f"Token {KEYS[name]}"})
        assert answer.status_code == 200


def test_nothing_of_the_old_app_is_left(old_database):
    migrate(LATEST)

    assert "authtoken_token" not in connection.introspection.table_names()
    assert not ContentType.objects.filter(app_label="authtoken").exists()
    assert not MigrationRecorder(connection).migration_qs.filter(app="authtoken").exists()
