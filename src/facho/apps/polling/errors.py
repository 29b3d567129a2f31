"""Errors of runs in the user's language.

The engine stores errors as English sentences with the keys of columns. Common ones are recognised by their pattern and
shown with labels and translated; others stay as they are.
"""

import re
from functools import cache

from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from facho.apps.inventory import labels
from facho.apps.inventory.formats import decimal
from facho.apps.inventory.models import NO_SECRET, NOT_ALLOWED

# Whole lines, and reasons within them. The order counts, because a later one may be part of an earlier pattern.
SENTENCES = (
    NO_SECRET,
    NOT_ALLOWED,
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
    gettext_noop("%(fields)s: %(reason)s after %(where)s"),
    gettext_noop("%(fields)s: %(reason)s with %(unread)s of %(wanted)s ONUs not read yet"),
    gettext_noop("%(fields)s of %(n)s ONUs, the first %(where)s: %(reason)s"),
    gettext_noop("%(fields)s of %(where)s: %(reason)s"),
    gettext_noop("%(fields)s: cut to %(longest)s characters for %(n)s ONUs"),
    gettext_noop("the OLT reports more than %(n)s ONUs; the others were left out"),
    gettext_noop("and %(n)s more like these"),
    gettext_noop("%(host)s did not answer within %(seconds)s s"),
    gettext_noop("the name %(host)s could not be resolved"),
    gettext_noop("The name %(host)s could not be resolved. Check the name and the name server."),
    gettext_noop("OLT %(olt)s was disabled before the run started"),
    gettext_noop("OLT %(olt)s was deleted before the run started"),
    gettext_noop("the agent answered error %(n)s"),
    gettext_noop("the agent answered %(status)s"),
    gettext_noop("the limit of %(n)s rows was reached"),
    gettext_noop("the time limit was reached"),
    gettext_noop("no usable answer"),
    gettext_noop("no answer"),
    gettext_noop("%(n)s columns"),
)

# Types of `engine/errors.py`.
TYPES = {
    "BadAnswer": _("unusable answer"),
    "DatabaseUnavailable": _("the database was unavailable"),
    "LeaseLost": _("the lease of the OLT was lost"),
    "NoAnswer": _("no answer"),
    "OltBusy": _("the OLT was busy"),
    "OltGone": _("the OLT was deleted or disabled"),
    "OltUnreachable": _("the OLT is unreachable"),
    "Refused": _("access denied"),
    "UnknownBrand": _("unknown brand"),
}

PLACEHOLDER = re.compile(r"%\((\w+)\)s")
NUMBERS = frozenset({"n", "seconds", "unread", "wanted"})


def in_words(error: str) -> str:
    """Return an error in the user's language, line by line."""
    return "\n".join(map(_line, error.split("\n")))


def first_line(error: str) -> str:
    """Return the subject of an error, without the details."""
    return in_words(error.split("\n")[0])


def _line(line: str) -> str:
    for sentence, shape in _shapes():
        if found := shape.fullmatch(line):
            parts = found.groupdict()
            return gettext(sentence) % {name: _part(name, text) for name, text in parts.items()}
    return line


def _part(name: str, text: str) -> str:
    if name == "reason":
        return _line(text)
    if name == "fields":
        return labels.columns(_line(text).split(", "))
    return _number(text) if name in NUMBERS else text


def _number(text: str) -> str:
    """Return a number of the engine in the format of the user's region."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return text
    return decimal(value, len(text.partition(".")[2]))


def error_type(name: str) -> str:
    """Return the label of a type of error. A type that is not expected is the name of its class."""
    return str(TYPES.get(name, name))


@cache
def _shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    shapes = []
    for sentence in SENTENCES:
        text, *rest = PLACEHOLDER.split(sentence)
        gaps = zip(rest[::2], rest[1::2], strict=True)
        pattern = re.escape(text) + "".join(f"(?P<{name}>.+?){re.escape(behind)}" for name, behind in gaps)
        shapes.append((sentence, re.compile(pattern)))
    return tuple(shapes)
