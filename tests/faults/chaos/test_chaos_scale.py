"""Whatever dies, hangs or is cut off: no OLT is asked by two, nothing stale is written, and no slot is lost."""

import os
import sys

import pytest
from chaos_story import Chaos
from chaos_verdict import from_postgres, summary, wrongs

pytestmark = pytest.mark.chaos

SEED = int(os.environ.get("CHAOS_SEED", "1"))
# Beyond the short story.
MINUTES = float(os.environ.get("CHAOS_MINUTES", "0"))


@pytest.mark.timeout(1200 + 60 * MINUTES)
def test_nothing_is_lost_doubled_or_asked_by_two_whatever_happens(tmp_path):
    with Chaos(tmp_path, SEED) as chaos:
        try:
            chaos.go_through_all()
            chaos.go_on_for(MINUTES)
            chaos.settle()
            evidence = from_postgres(chaos.stack.postgres.url, chaos.stack.fleet.log)
            found = [*chaos.wrongs(), *wrongs(evidence)]
            chaos.log(summary(evidence))
        finally:
            # Shown if it fails.
            sys.stdout.write("\n".join([f"seed {SEED}", *chaos.story, chaos.stack.logs()]))

    assert found == []
