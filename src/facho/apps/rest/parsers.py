"""Bodies of requests, with limits on size and depth. Text that no database accepts is refused."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent, TooManyFilesSent
from django.http import QueryDict
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import FormParser, JSONParser, MultiPartParser

# Levels of lists and objects in each other. The API itself needs five.
MOST_LEVELS = 32
# More digits than any number of the API has. Python refuses more than 4,300 with a message for programmers.
MOST_DIGITS = 100

# NUL, and halves of characters.
NOT_TEXT = re.compile("[\\x00\\ud800-\\udfff]")


class LimitedJSONParser(JSONParser):
    """JSON as in its standard: no NaN or infinity, and no key twice in an object."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        try:
            value = json.loads(
                _read(stream).decode(),
                object_pairs_hook=_object,
                parse_constant=_constant,
                parse_float=_float,
                parse_int=_integer,
            )
        except UnicodeDecodeError:
            raise ParseError(_("The body is not UTF-8.")) from None
        except RecursionError:
            raise _too_deep() from None
        except ValueError as error:
            raise ParseError(_("The body is not valid JSON: %(error)s.") % {"error": error}) from None
        _check(value)
        return value


class LimitedFormParser(FormParser):
    """Fields of a form."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        try:
            fields = QueryDict(_read(stream), encoding="utf-8")
        except TooManyFieldsSent:
            raise _too_many_fields() from None
        _check(dict(fields.lists()))
        return fields


class LimitedMultiPartParser(MultiPartParser):
    """Fields of a form, each in its own part. Django limits their size."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        try:
            parsed: Any = super().parse(stream, media_type, parser_context)
        except (TooManyFieldsSent, TooManyFilesSent):
            raise _too_many_fields() from None
        _check(dict(parsed.data.lists()))
        return parsed


def _read(stream: Any) -> bytes:
    # Not by its length in the header, which may be missing.
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    body: bytes = stream.read(most + 1)
    if len(body) > most:
        raise ParseError(too_large())
    return body


def too_large() -> str:
    """Return the refusal of a body that is too large."""
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1024
    return _("The body is larger than %(most)d kB. Send less at a time.") % {"most": most}


def _too_many_fields() -> ParseError:
    most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    return ParseError(_("The body has more than %(most)d fields.") % {"most": most})


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ParseError(_("The key “%(name)s” occurs twice in an object.") % {"name": twice[:100]})
    return found


def _constant(word: str) -> float:
    raise ParseError(_("%(word)s is not a JSON number.") % {"word": word})


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ParseError(_("A number is too large."))
    return number


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ParseError(_("A number is too large."))
    return int(digits)


def _check(value: Any) -> None:
    """Refuse nested values beyond the limit, and texts that cannot be stored."""
    level: list[Any] = [value]
    depth = 0
    while level:
        if any(isinstance(each, str) and NOT_TEXT.search(each) for each in level):
            raise ParseError(_("A text contains a NUL or an incomplete character. Remove it."))
        nested = [each for each in level if isinstance(each, dict | list)]
        depth += bool(nested)
        if depth > MOST_LEVELS:
            raise _too_deep()
        level = [part for each in nested for part in _parts(each)]


def _parts(value: Any) -> Iterable[Any]:
    return [*value.keys(), *value.values()] if isinstance(value, dict) else value


def _too_deep() -> ParseError:
    return ParseError(_("The body is nested deeper than %(most)d levels.") % {"most": MOST_LEVELS})
