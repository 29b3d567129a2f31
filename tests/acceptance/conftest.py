"""Whole installations, started once a module: they cost seconds."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dashboard_bridge import DESK, Bridge
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from installation import MAKE_USER, Installation, embedded
from playwright.sync_api import Browser, expect, sync_playwright
from scaled import Servers, prepared
from simulated import Fleet

# Other tests use the first one.
FIRST_REDIS_DATABASE = 8
# What a browser is to show is there at once, or on a machine that does ten other things after a while.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps a loop in this thread, and Django would refuse to read rows beside it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def bridge(browser: Browser, db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    """A browser of an admin, on a page without news. No clock goes on by itself, here or there."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    client = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    client.force_login(User.objects.create(username="boss", is_staff=True, is_superuser=True))
    context = browser.new_context(viewport=DESK, timezone_id="America/Lima", locale="en-GB")
    bridge = Bridge(context.new_page(), client)
    bridge.page.clock.set_fixed_time(now)
    yield bridge
    context.close()
    bridge.close()
    assert bridge.complaints == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A demonstration as the README starts it, on a port of its own."""
    data = tmp_path_factory.mktemp("demo")
    installation = Installation(data, "demo", f"--data={data}").start()
    yield installation
    assert installation.stop() == 0


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path / "pdus.jsonl")
    yield fleet
    fleet.close()


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of an empty installation with a user: made once, for migrations take seconds."""
    data = tmp_path_factory.mktemp("blank") / "data"
    installation = Installation(data, "run")
    installation.manage("migrate")
    installation.manage("shell", "-c", MAKE_USER)
    return data


@pytest.fixture(scope="session")
def servers(postgres_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The same for roles. Each process of pytest has a part of Redis of its own: no worker finds another's messages."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    messages_url = urlsplit(redis_url)._replace(path=f"/{FIRST_REDIS_DATABASE + number}").geturl()
    with prepared(postgres_url, messages_url, tmp_path_factory.mktemp("roles")) as servers:
        yield servers


@pytest.fixture
def facho(tmp_path: Path, blank: Path) -> Iterator[Installation]:
    """An empty installation with a user, in one process."""
    with embedded(blank, tmp_path / "data") as installation:
        yield installation
