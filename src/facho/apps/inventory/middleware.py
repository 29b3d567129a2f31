"""Middleware."""

from collections.abc import Iterable
from datetime import UTC

from django.http import HttpRequest, HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import timezone, translation
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation.trans_real import parse_accept_lang_header

# Territories where Spanish has a decimal comma; elsewhere in Latin America it is a point.
DECIMAL_COMMA = frozenset({"ar", "bo", "br", "cl", "co", "cr", "ec", "es", "py", "uy", "ve"})
# Territories where English has the month before the day.
MONTH_FIRST = frozenset({"ca", "ph", "pr", "us"})


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


class UtcApi(MiddlewareMixin):
    """Uses UTC in the API. Pages use the zone of the installation."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith("/api/"):
            timezone.activate(UTC)
        else:
            # The thread may have served the API before.
            timezone.deactivate()

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        timezone.deactivate()
        return response
