"""Messages through Apprise, which knows more than a hundred services by their URLs.

Apprise is an optional dependency, because most installations do not need its 14 MB and six other packages. It is loaded
when it is used.
"""

import importlib.util
import logging
import re
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import BoundedSemaphore, Thread
from typing import Any
from urllib.parse import unquote

from facho.alerts.channels import TIMEOUT, plain
from facho.alerts.channels.destinations import guarded
from facho.alerts.channels.http import MOST_SAID, TOO_MANY_REQUESTS, redacted
from facho.alerts.rules import AlertSeverity, Message, News
from facho.engine.errors import DeliveryFailed

INSTALL = "pip install 'facho[apprise]'"

# Calls at once, including those that did not end within their time limit.
MOST_CALLS = 16
_calls = BoundedSemaphore(MOST_CALLS)

# Nearly any part of an Apprise URL can be a secret.
SHORTEST_SECRET = 4

# Status of a service, as Apprise reports it.
STATUS = re.compile(r"\berror=(\d{3})\b")

TYPES = {AlertSeverity.INFO: "info", AlertSeverity.WARNING: "warning", AlertSeverity.CRITICAL: "failure"}

# They log addresses, headers and contents of requests. Warnings of Apprise itself are needed for the error text.
for _name in ("oauthlib", "requests_oauthlib", "urllib3"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)
logging.getLogger("apprise").setLevel(logging.WARNING)
logging.getLogger("apprise").propagate = False
logging.getLogger("apprise").addHandler(logging.NullHandler())


def is_installed() -> bool:
    return importlib.util.find_spec("apprise") is not None


def service_of(url: str) -> Any | None:
    """Return Apprise's service for a URL; None if it is not valid.

    A URL with a file, such as a template, is not valid: users of the admin must not read files of the server.
    """
    import apprise

    asset = apprise.AppriseAsset(
        app_id="Facho",
        # In our thread, with our time limit.
        async_mode=False,
        service_timeout=0,
        storage_mode=apprise.PersistentStoreMode.MEMORY,
    )
    service = apprise.Apprise.instantiate(url, asset=asset)
    if service is None:
        return None
    if any(isinstance(each, apprise.AppriseAttachment) and len(each) for each in vars(service).values()):
        return None
    # A URL could ask for it.
    service.redirects = False
    if service.overflow_mode is apprise.OverflowMode.UPSTREAM:
        # A service refuses a text that is too long.
        service.overflow_mode = apprise.OverflowMode.TRUNCATE
    return service


@dataclass(frozen=True, slots=True)
class Apprise:
    """Sends to the service of a URL. The URL is the secret."""

    url: str = field(repr=False)
    timeout: float = TIMEOUT

    def send(self, message: Message) -> int | None:
        if not is_installed():
            raise DeliveryFailed(f"Apprise is not installed. Install it with: {INSTALL}", is_temporary=True)
        if not _calls.acquire(blocking=False):
            raise DeliveryFailed(f"{MOST_CALLS} earlier calls of Apprise have not ended", is_temporary=True)
        ended: Future[None] = Future()
        # A daemon thread, because a call cannot be stopped and must not delay the end of the process.
        Thread(target=self._run, args=(message, ended), name="apprise", daemon=True).start()
        try:
            ended.result(self.timeout)
        except TimeoutError:
            sentence = f"the service did not answer within {self.timeout:g} s"
            raise DeliveryFailed(sentence, is_temporary=True) from None
        return None

    def _run(self, message: Message, ended: "Future[None]") -> None:
        try:
            with guarded():
                self._notify(message)
        except DeliveryFailed as error:
            ended.set_exception(error)
        except Exception as error:
            # A plugin can raise anything, and its text may contain the URL.
            ended.set_exception(DeliveryFailed(f"Apprise failed with {type(error).__name__}", is_temporary=True))
        else:
            ended.set_result(None)
        finally:
            _calls.release()

    def _notify(self, message: Message) -> None:
        import apprise

        service = service_of(self.url)
        if service is None:
            raise DeliveryFailed("Apprise does not accept the URL. Write it again", is_temporary=False)
        # Services without titles get the subject as the first line.
        room = service.body_maxlen - (0 if service.title_maxlen else len(message.subject) + 2)
        result = apprise.Apprise(service).notify(
            title=message.subject,
            body=plain(replace(message, subject=""), room),
            notify_type="success" if message.news is News.RECOVERED else TYPES[message.severity],
            body_format=apprise.NotifyFormat.TEXT,
        )
        if not result:
            said = " ".join(entry.message for entry in result.logs())
            found = STATUS.search(said)
            code = int(found[1]) if found else None
            _scheme, _colon, secret = self.url.partition(":")
            words = redacted(said, [secret, unquote(secret)], SHORTEST_SECRET)[:MOST_SAID]
            raise DeliveryFailed(
                f"{service.service_name} did not accept the message" + (f": {words}" if words else ""),
                is_temporary=code is None or code == TOO_MANY_REQUESTS or code >= 500,
                code=code,
            )
