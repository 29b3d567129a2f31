"""Texts of devices and users: control characters, and length."""

import re

# Control characters, which move the cursor or end a line; marks that reverse the direction of the text after them;
# and halves of characters, which no file or database accepts.
CONTROL = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\ud800-\\udfff]"
)


SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


# Characters of a text of an ONU. A longer one is cut.
LONGEST_TEXT = 255
# Marks a text that was cut.
CUT = "…"


def shortened(text: str, longest: int) -> str:
    """Return a text of at most this length; one that was cut ends with a mark."""
    return text if len(text) <= longest else text[: longest - len(CUT)] + CUT


def escape(text: str) -> str:
    """Return a text that is safe in a terminal and in a line of a log, with the escapes of JSON: ESC is `\\u001b`."""
    return CONTROL.sub(lambda found: SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}", text)


def escape_lines(text: str) -> str:
    """Return a text of several lines in that form; its line ends are kept."""
    return "\n".join(map(escape, text.split("\n")))
