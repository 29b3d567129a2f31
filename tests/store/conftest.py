"""What the tests of the store share."""

from real_database import make_thread  # noqa: F401 - a fixture
