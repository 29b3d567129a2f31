"""Middleware."""

from collections.abc import Iterable
from datetime import UTC
from functools import cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import timezone, translation
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation.trans_real import parse_accept_lang_header

# Territories where Spanish has a decimal comma; elsewhere in Latin America it is a point.
DECIMAL_COMMA = frozenset({"ar", "bo", "br", "cl", "co", "cr", "ec", "es", "py", "uy", "ve"})
# Territories where English has the month before the day.
MONTH_FIRST = frozenset({"ca", "ph", "pr", "us"})

# Name of the browser's time zone, as `theme.js` writes it.
ZONE_COOKIE = "facho_zone"


def regional(language: str, accepted: Iterable[str]) -> str:
    """Return a language with the region of its formats: see `regions`.

    The language may be another than the browser's, because the user can choose it. The region is the browser's: the
    territory of the first accepted language that names one.
    """
    territories = (part for code in accepted for part in code.lower().split("-")[1:] if len(part) == 2)
    territory = next(territories, "")
    if language == "es":
        return "es-es" if territory in DECIMAL_COMMA else "es-419"
    return "en-us" if not territory or territory in MONTH_FIRST else "en-gb"


class Region(LocaleMiddleware):
    """Sets the language, as Django does, and the region of its numbers and dates."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        accepted = parse_accept_lang_header(request.headers.get("Accept-Language", ""))
        code = regional(translation.get_language(), (code for code, _quality in accepted))
        translation.activate(code)
        request.LANGUAGE_CODE = code


class Zone(MiddlewareMixin):
    """Uses UTC in the API, the zone of the installation in the admin, and that of the browser on the other pages.

    A script of the pages stores the zone of the browser in a cookie. So times that the server writes, such as those of
    a file, are those of the page, and "yesterday 22:00" is the user's.
    """

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith("/api/"):
            timezone.activate(UTC)
            return
        name = unquote(request.COOKIES.get(ZONE_COOKIE, ""))
        if name in _zones() and not request.path_info.startswith("/admin/"):
            timezone.activate(ZoneInfo(name))
        else:
            # The thread may have served the API before.
            timezone.deactivate()

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        timezone.deactivate()
        return response


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
