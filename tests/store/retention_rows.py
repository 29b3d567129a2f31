"""What the tests of the retention share: rows that are too old, a clock, and a sweep of them."""

from datetime import timedelta

from builders import T0

from contracts.worlds import Inline, done
from facho.apps.telemetry.models import HistoryRun
from facho.engine.chunks import pack_run
from facho.store.retention import Sweep, rules

DAY = timedelta(days=1)
RULES = rules(logs=7, executions=30, history=90, daily=730, changes=730)


class Watch:
    """A clock that goes on by so much each time somebody looks at it, and writes down how long others slept."""

    def __init__(self, step=0.0):
        self.step = step
        self.at = 0.0
        self.slept = []

    def monotonic(self):
        self.at += self.step
        return self.at

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.at += seconds


def sweep(now=T0, *, clock=None, thread=None, only=None):
    chosen = [rule for rule in RULES if only in (None, rule.label)]
    done(Sweep(thread=thread or Inline(), clock=clock or Watch(), rules=chosen).run(now))


def make_history(onu, ages):
    data = pack_run([onu.pk], {"rx_dbm": [-20.0]})
    HistoryRun.objects.bulk_create(HistoryRun(olt_id=onu.olt_id, at=T0 - age, data=data) for age in ages)
