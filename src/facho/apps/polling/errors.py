"""Errors of runs in the user's language.

The engine stores errors as English sentences. Common ones are recognised by their pattern and translated; others stay
in English.
"""

import re
from functools import cache

from django.utils.translation import get_language, gettext, gettext_noop

# Whole lines, and reasons within them. The order counts, because a later one may be part of an earlier pattern.
SENTENCES = (
    gettext_noop(
        "%(olt)s did not answer 1 request in %(seconds)s s. Check the address, the community and the OLT's "
        "SNMP access list."
    ),
    gettext_noop(
        "%(olt)s did not answer %(n)s requests in %(seconds)s s. Check the address, the community and the "
        "OLT's SNMP access list."
    ),
    gettext_noop("%(fields)s: %(reason)s before the first row"),
    gettext_noop("%(fields)s: %(reason)s after %(where)s, 1 row kept"),
    gettext_noop("%(fields)s: %(reason)s after %(where)s, %(n)s rows kept"),
    gettext_noop("%(fields)s: %(reason)s after %(where)s, the rest of the port was skipped"),
    gettext_noop("%(fields)s: %(reason)s with %(unread)s of %(wanted)s ONUs not read yet"),
    gettext_noop("%(fields)s of %(where)s: %(reason)s"),
    gettext_noop("and %(n)s more like these"),
    gettext_noop("%(host)s did not answer within %(seconds)s s"),
    gettext_noop("the name %(host)s could not be resolved"),
    gettext_noop("The name %(host)s could not be resolved. Check the name and the name server."),
    gettext_noop("OLT %(olt)s was disabled before the run started"),
    gettext_noop("OLT %(olt)s was deleted before the run started"),
    gettext_noop("the agent answered error %(n)s"),
    gettext_noop("the agent answered %(status)s"),
    gettext_noop("the time limit was reached"),
    gettext_noop("no usable answer"),
    gettext_noop("no answer"),
)

PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def in_words(error: str) -> str:
    """Return an error in the user's language, line by line."""
    if (get_language() or "en").startswith("en"):
        return error
    return "\n".join(map(_line, error.split("\n")))


def first_line(error: str) -> str:
    """Return the subject of an error, without the details."""
    return in_words(error.split("\n")[0])


def _line(line: str) -> str:
    for sentence, shape in _shapes():
        if found := shape.fullmatch(line):
            parts = found.groupdict()
            if "reason" in parts:
                parts["reason"] = _line(parts["reason"])
            return gettext(sentence) % parts
    return line


@cache
def _shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    shapes = []
    for sentence in SENTENCES:
        text, *rest = PLACEHOLDER.split(sentence)
        gaps = zip(rest[::2], rest[1::2], strict=True)
        pattern = re.escape(text) + "".join(f"(?P<{name}>.+?){re.escape(behind)}" for name, behind in gaps)
        shapes.append((sentence, re.compile(pattern)))
    return tuple(shapes)
