"""Writes the pictures of the tutorial, in English and Spanish: `python3 dev.py screenshots`.

It starts the demo in a temporary directory, waits until its OLTs have been read, and takes a picture of each page that
the tutorial visits. Times and values differ from run to run: write them again when their pages have changed.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page, expect, sync_playwright

from facho.runtime.demo import PASSWORD, USER
from run import chromium

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
PORT = 8765
SITE = f"http://127.0.0.1:{PORT}"
LANGUAGES = {"en": "en-US", "es": "es-PE"}
ZONE = "America/Lima"
SCREEN = {"width": 1280, "height": 800}
# Limits for a page, and for the first readings or a forecast.
PAGE_SECONDS, MOST_SECONDS = 30, 300
# OLTs of the demo that answer.
REACHABLE = 5


def overview(page: Page) -> None:
    page.goto(f"{SITE}/")


def problem(page: Page) -> None:
    page.goto(f"{SITE}/problems/{cut(page)['id']}/")


def port(page: Page) -> None:
    found = cut(page)
    page.goto(f"{SITE}/olts/{found['olt']}/ports/{found['slot']}/{found['port']}/")


def customer(page: Page) -> None:
    found = cut(page)
    place = {name: found[name] for name in ("olt", "slot", "port")}
    page.goto(f"{SITE}/onus/{first(page, 'onus', **place, state='los')['id']}/?range=7d")
    # Charts come after the page.
    expect(page.locator("#power-chart path").first).to_be_attached()
    # Its values and the timeline, and the beginning of the charts.
    page.locator(".numbers").first.evaluate("element => scrollTo(0, element.offsetTop - 70)")


def late_job(page: Page) -> None:
    page.goto(f"{SITE}/problems/{first(page, 'problems', kind='quota_violated')['id']}/")


def forecast(page: Page) -> None:
    page.goto(f"{SITE}/forecast/")
    page.fill("[name=more_olts]", "20")
    page.locator("#question button").click()
    expect(page.locator("#answer:not([data-running])")).to_be_visible(timeout=MOST_SECONDS * 1000)


def bulk(page: Page) -> None:
    page.goto(f"{SITE}/olts/?q=OLT")
    page.locator("[data-tick-all]").check()
    page.select_option("#bulk-action", "change_job")
    page.locator("div:has(> label > #bulk-action) > button").click()
    page.fill("[name=interval]", "15")
    page.locator("#job-change button").click()
    expect(page.locator("#preview")).to_be_visible()


def ports(page: Page) -> None:
    page.goto(f"{SITE}/ports/?sort=-weak")


def compare(page: Page) -> None:
    found = cut(page)
    began = datetime.fromisoformat(found["since"])
    times = {"before": began - timedelta(hours=2), "after": min(began + timedelta(hours=1), datetime.now(UTC))}
    text = {name: f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for name, at in times.items()}
    page.goto(f"{SITE}/olts/{found['olt']}/compare/?{urlencode(text)}")


def tv(page: Page) -> None:
    page.goto(f"{SITE}/?tv")


STEPS: Mapping[str, Callable[[Page], None]] = {
    "overview": overview,
    "problem": problem,
    "port": port,
    "customer": customer,
    "late-job": late_job,
    "forecast": forecast,
    "bulk": bulk,
    "ports": ports,
    "compare": compare,
    "tv": tv,
}


def main(chosen: list[str]) -> None:
    program = chromium()
    if program is None:
        sys.exit("There is no Chromium. Install it: apt-get install chromium")
    PICTURES.mkdir(exist_ok=True)
    with demo(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for language, region in LANGUAGES.items():
            page = browser.new_page(viewport=SCREEN, locale=region, timezone_id=ZONE)
            page.set_default_timeout(PAGE_SECONDS * 1000)
            log_in(page)
            wait_until_read(page)
            for name in chosen or STEPS:
                STEPS[name](page)
                page.evaluate("document.fonts.ready")
                # Scripts draw charts and times.
                page.wait_for_function("document.readyState === 'complete'")
                page.screenshot(path=PICTURES / f"{name}.{language}.jpg", type="jpeg", quality=72)
                print(f"docs/pictures/{name}.{language}.jpg", flush=True)
            page.close()
        browser.close()


@contextmanager
def demo() -> Iterator[None]:
    """Run a demo during a `with`."""
    with tempfile.TemporaryDirectory(prefix="facho-pictures-") as folder:
        command = [sys.executable, "-m", "facho.runtime.cli", "demo", f"--port={PORT}", "--data", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            try:
                if process.stdout is None or not any(SITE in line for line in process.stdout):
                    sys.exit("The demo did not start. Run `python3 dev.py demo` to see why.")
                yield
            finally:
                process.terminate()


def log_in(page: Page) -> None:
    page.goto(f"{SITE}/login/")
    page.fill("[name=username]", USER)
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(f"{SITE}/")


def wait_until_read(page: Page) -> None:
    """Wait until all OLTs but the unreachable one have answered, and have been read again."""
    for _ in range(MOST_SECONDS):
        answered = [olt for olt in rows(page, "olts") if olt["reachability"] == "reachable"]
        if len(answered) >= REACHABLE and rows(page, "problems", kind="olt_down", state="open"):
            return
        page.wait_for_timeout(1000)
    sys.exit(f"The OLTs of the demo were not read within {MOST_SECONDS} s.")


def cut(page: Page) -> dict[str, Any]:
    """Return the fibre cut that the demo begins with: the oldest open one."""
    return first(page, "problems", kind="port_down", state="open", ordering="since")


def first(page: Page, path: str, **query: Any) -> dict[str, Any]:
    found = rows(page, path, **query)
    if not found:
        sys.exit(f"The demo has nothing at /api/v1/{path}/?{urlencode(query)}")
    return found[0]


def rows(page: Page, path: str, **query: Any) -> list[dict[str, Any]]:
    answer = page.request.get(f"{SITE}/api/v1/{path}/", params=query)
    if not answer.ok:
        sys.exit(f"/api/v1/{path}/?{urlencode(query)}: {answer.text()}")
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
