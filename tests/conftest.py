"""What every test shares: an installation of its own, made before Django reads its settings, and servers."""

import atexit
import os
import shutil
import tempfile

import django
import pytest
from django.conf import settings as django_settings
from hypothesis import settings
from servestatic.middleware import ServeStaticMiddleware

from examples import examples
from facho.runtime.garbage import collect_rarely
from server_victoria import LaunchedVictoria
from servers import LaunchedPostgres, LaunchedRedis, NoServerError, postgres, redis

# A busy machine is no reason to fail. Every run tries other examples, in CI too: one that fails is printed with the
# decorator that reproduces it, and is kept as a test of its own.
settings.register_profile("facho", deadline=None, derandomize=False, print_blob=True, max_examples=examples(50))
settings.load_profile("facho")

os.environ["FACHO_DATA_DIR"] = tempfile.mkdtemp(prefix="facho-tests-")
atexit.register(shutil.rmtree, os.environ["FACHO_DATA_DIR"], ignore_errors=True)
os.environ["FACHO_SECRET_KEYS"] = "dGVzdHMgb25seTogMzIgYnl0ZXMgb2Ygbm8gc2VjcmU="
os.environ["DJANGO_SETTINGS_MODULE"] = "facho.runtime.settings"
django.setup()
# As in every process of Facho: migrations take a third less.
collect_rarely()
# A good hash is expensive by intention, and hundreds of tests log in.
django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# A test is one transaction, and on a busy machine it may be idle for longer than the 5 s of an installation.
if "options" in django_settings.DATABASES["default"].get("OPTIONS", {}):
    django_settings.DATABASES["default"]["OPTIONS"]["options"] = "-c idle_in_transaction_session_timeout=60000"

# Each test has clients of its own, and each of them would look at all static files again.
_list_files, _files = ServeStaticMiddleware.add_files_from_finders, {}


def _list_files_once(middleware):
    if not _files:
        _list_files(middleware)
        _files.update(middleware.files)
    middleware.files.update(_files)


ServeStaticMiddleware.add_files_from_finders = _list_files_once

# Who asks for one of these waits for migrations or for a server.
SLOW_FIXTURES = {"django_db_setup", "redis_url", "postgres_url", "own_redis", "own_postgres", "victoria"}


def pytest_collection_modifyitems(items):
    """Count each test with a database or a server as slow, and mark those with a database."""
    for item in items:
        has_database = item.get_closest_marker("django_db") or "django_db_setup" in item.fixturenames
        if has_database or not SLOW_FIXTURES.isdisjoint(item.fixturenames):
            item.add_marker(pytest.mark.slow)
        # The in-memory adapter of a contract may share fixtures with the one of the database.
        if has_database and "[memory" not in item.name:
            item.add_marker(pytest.mark.database)


@pytest.fixture(scope="session")
def redis_url():
    """A Redis that all tests share: use names of your own in it."""
    with redis() as server:
        yield server.url or without(server.reason)


@pytest.fixture(scope="session")
def postgres_url():
    """A PostgreSQL that all tests share: make a database of your own on it, as `servers.database_of_its_own` does."""
    with postgres() as server:
        yield server.url or without(server.reason)


@pytest.fixture
def own_redis():
    """A Redis for one test, which may stop, kill, pause and start it."""
    yield from launched(LaunchedRedis)


@pytest.fixture
def own_postgres():
    """A PostgreSQL for one test, which may stop, kill, pause and start it: what it committed is there again."""
    yield from launched(lambda: LaunchedPostgres(durable=True))


@pytest.fixture
def victoria():
    """A VictoriaMetrics for one test, which may kill it: what it wrote is there again."""
    yield from launched(LaunchedVictoria)


def launched(launch):
    try:
        server = launch()
    except NoServerError as error:
        without(str(error))
    with server:
        yield server


def without(reason):
    """A person may go on without a server; what CI says must not depend on what happens to be installed."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
