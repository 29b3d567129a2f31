"""Collection from one OLT: plan, requests, joining. `collect` is the entry point.

Data path: `plan` names the columns, `tables` walks them or `get` reads them by index, `requester` sends, `join` joins
and decodes, `coverage` reports completeness. `flow` and `learned` adapt to the agent. `replay` repeats the last run
from its `memory` as long as only values change.
"""

from facho.engine.collect.progress import Progress
from facho.engine.collect.replay import Memories, Memory
from facho.engine.collect.run import collect

__all__ = ["Memories", "Memory", "Progress", "collect"]
