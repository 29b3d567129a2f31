"""Number of random examples of a property test.

Every run draws new ones, so a normal run needs few. `dev.py test --long` draws ten times as many.
"""

import os

LONG_NAME = "FACHO_LONG_TESTS"


def examples(number: int) -> int:
    return number * 10 if os.environ.get(LONG_NAME) else number
