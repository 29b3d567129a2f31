"""What the tests of a collection share."""

import pytest
from collect_fakes import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
