"""Search: how texts are compared, and the OLTs that a search finds.

The rules are the same in every list, on every page and in the API. A row is found if it has each word, in any order.
Case, accents and punctuation do not matter. A word of one or two characters must start a word of the row.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import QuerySet

from facho.apps.inventory.models import Olt
from facho.apps.rest.filters import search_problem
from facho.engine.device import ip_address

# Between words of a text. A slash between two digits is a part of the word: see `JOINT`.
BETWEEN_WORDS = re.compile(r"[\W_]+")
SLASH = re.compile(r"(?<=[0-9])/(?=[0-9])")

# Instead of the slash of 1/9. An index of PostgreSQL has letters and digits only, and no name has these two letters
# between digits.
JOINT = "qz"

# The index has all sequences of so many characters. A shorter word is searched with the space before it.
SHORTEST = 3

# Groups of hex digits, as of a MAC: 00:11:22, 00-11-22, 0011.2233, 0011-2233, or six pairs with points. The last group
# may be incomplete. Numbers of an IP address are not such groups.
HEX_GROUPS = re.compile(
    r"[0-9a-f]{2}([:-][0-9a-f]{2})*[:-][0-9a-f]{1,2}|[0-9a-f]{4,8}([.:-][0-9a-f]{1,8})+|[0-9a-f]{2}(\.[0-9a-f]{2}){5}",
    re.IGNORECASE,
)
HEX_PAIRS = re.compile(r"(?<!\S)[0-9a-f]{2}( [0-9a-f]{2}){5,7}(?!\S)", re.IGNORECASE)
PREFIX = re.compile(r"^0x(?=[0-9a-f]{8})", re.IGNORECASE)
SERIAL = re.compile(r"[a-z]{4}[:-][0-9a-f]{1,8}", re.IGNORECASE)


def normal(text: str) -> str:
    """Return a text in the form in which texts are compared."""
    if text.isascii():
        text = text.lower()
    else:
        # Case folding may compose characters again, so decompose twice.
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        text = "".join(each for each in folded if not unicodedata.combining(each))
    return BETWEEN_WORDS.sub(" ", SLASH.sub(JOINT, text)).strip()


def has(text: str, spelling: str) -> bool:
    """Return whether a normal text has a spelling of a word."""
    return spelling in f" {text}"


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a search, as typed, and its spellings: a row has the word if its text has one of them."""

    typed: str
    spellings: tuple[str, ...]

    @classmethod
    def of(cls, typed: str) -> "Word":
        # A serial as snmpwalk and some command lines write it.
        text = normal(PREFIX.sub("", typed))
        is_whole = len(text) < SHORTEST or JOINT in text
        spellings = [f" {text}" if is_whole else text] if text else []
        if HEX_GROUPS.fullmatch(typed) or SERIAL.fullmatch(typed):
            spellings.append(text.replace(" ", ""))
        if (address := ip_address(typed)) and normal(address) not in spellings:
            spellings.append(normal(address))
        return cls(typed, tuple(spellings))


def words(text: str) -> list[Word]:
    """Return the words of a search. Without any, it finds nothing: see `is_empty`."""
    joined = HEX_PAIRS.sub(lambda pairs: pairs[0].replace(" ", ""), text)
    return [word for word in map(Word.of, joined.split()) if word.spellings]


def is_empty(text: str) -> bool:
    """Return whether a search is not a search: then each row is in the list."""
    return not text.strip()


@dataclass(frozen=True, slots=True)
class OltText:
    """Texts of an OLT: its names, with which a search of ONUs names it too, and all."""

    names: str
    all: str
    # Each of them alone names it, and no other OLT.
    complete: frozenset[str]

    def has(self, word: Word) -> bool:
        return any(has(self.all, spelling) for spelling in word.spellings)

    def is_named(self, word: Word) -> bool:
        return any(has(self.names, spelling) for spelling in word.spellings)


def olt_texts(olts: QuerySet[Olt]) -> Mapping[int, OltText]:
    """Return the texts of OLTs. There are so few that Python can compare them."""
    rows = olts.order_by().values_list("pk", "name", "host", "port", "addresses", "location", "site__name")
    texts = {}
    for pk, name, host, port, addresses, location, site in rows:
        named = [name, host, f"{host}:{port}", *addresses.split(), ip_address(host)]
        complete = [normal(each) for each in named]
        texts[pk] = OltText(
            " ".join(complete),
            " ".join([*complete, normal(location), normal(site or "")]),
            frozenset(filter(None, complete)),
        )
    return texts


def matching_olts(olts: QuerySet[Olt], text: str) -> QuerySet[Olt]:
    """Return the OLTs that a search finds, by name, address, location or site."""
    if is_empty(text):
        return olts
    if search_problem(text) or not (wanted := words(text)):
        return olts.none()
    found = [pk for pk, each in olt_texts(olts).items() if all(map(each.has, wanted))]
    return olts.filter(pk__in=found)
