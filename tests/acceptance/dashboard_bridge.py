"""A browser on the dashboard without a server: its requests are answered by Django in this process.

So a test owns the rows, the news and the time, and nothing has to be waited
for but the page itself.
"""

import json
import mimetypes
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.contrib.staticfiles import finders
from django.db import connection, connections
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, Route

# A name that browsers trust without https.
SITE = "http://localhost"
DESK = {"width": 1440, "height": 900}


@cache
def find_static(name: str) -> Any:
    """Return the path of a static file: the search of all folders takes longer than the file."""
    return finders.find(name)


def content_of(answer: Any) -> bytes:
    """Return the body of a streamed answer."""

    async def read() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    return async_to_sync(read)()


class Bridge:
    """Serves one page from a Django client, with the news that the test gives."""

    def __init__(self, page: Page, client: Client) -> None:
        self.page = page
        self.client = client
        self.fetched: list[str] = []
        self.complaints: list[str] = []
        self.is_down = False
        self._news = ""
        # Playwright keeps a loop in this thread, beside which Django does not answer; it gets the test's connection.
        connection.inc_thread_sharing()
        rows = connections["default"]
        self._thread = ThreadPoolExecutor(1, initializer=lambda: connections.__setitem__("default", rows))
        page.on("console", lambda message: self._complain(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.route("**/*", self._answer)

    def publish(self, topic: str, payload: Mapping[str, Any]) -> None:
        """Let the next event stream bring this."""
        self._news += f"event: {topic}\ndata: {json.dumps(payload)}\n\n"

    def stop_timers(self) -> None:
        """Stop the timers of the page: time passes only when the test advances it."""
        now = timezone.now()
        self.page.clock.install(time=now - timedelta(seconds=1))
        self.page.clock.pause_at(now)

    def open(self, path: str) -> Page:
        self.page.goto(f"{SITE}{path}")
        return self.page

    def fetch(self, path: str) -> bytes:
        """Return a file that the page links to."""
        return self._thread.submit(lambda: content_of(self.client.get(path))).result()

    def close(self) -> None:
        self._thread.shutdown()
        connection.dec_thread_sharing()

    def _complain(self, kind: str, text: str) -> None:
        # A refusal (404, 409) is an answer like any other; that a browser notes it is not our complaint.
        is_refusal = text.startswith("Failed to load resource: the server responded")
        if kind in ("error", "warning") and not is_refusal and not self.is_down:
            self.complaints.append(text)

    def _answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        if f"{url.scheme}://{url.netloc}" != SITE:
            self.complaints.append(f"asked another site: {route.request.url}")
            route.abort()
        elif url.path.startswith("/static/"):
            self._static(route, url.path.removeprefix("/static/"))
        elif self.is_down:
            route.abort("connectionrefused")
        elif url.path == "/events/":
            # The stream ends when its news is told; the browser is to come again long after the test.
            route.fulfill(body=f"retry: 3600000\n\n{self._news}", content_type="text/event-stream")
        else:
            self._django(route, f"{url.path}?{url.query}" if url.query else url.path)

    def _static(self, route: Route, name: str) -> None:
        found = find_static(name)
        if found is None:
            self.complaints.append(f"no such file: {name}")
            route.fulfill(status=404)
            return
        route.fulfill(body=Path(found).read_bytes(), content_type=mimetypes.guess_type(name)[0] or "font/woff2")

    def _django(self, route: Route, path: str) -> None:
        self.fetched.append(path)
        request = route.request
        headers = {name: value for name, value in request.headers.items() if name in ("x-csrftoken", "accept")}
        kind = request.headers.get("content-type", "")
        sent = (request.method, path, request.post_data_buffer or b"", kind)
        answer = self._thread.submit(lambda: self.client.generic(*sent, headers=headers)).result()
        route.fulfill(status=answer.status_code, headers=dict(answer.items()), body=answer.content)
