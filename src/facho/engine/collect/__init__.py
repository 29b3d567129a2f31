"""How the ONUs of one OLT are read: plan, requests, joining. `collect` is the way in.

The datum's way: `plan` names columns, `tables` walks them or `rows` asks for
them by index, `requester` is the only one who sends, `harvest` joins and
decodes, `coverage` says how much of it there is. `pace`, `timer`, `size` and
`learned` are how an agent is got to know. `replay` does all of that again from
the `memory` of the last run, as long as nothing but values changed.
"""

from facho.engine.collect.memory import Memories, Memory
from facho.engine.collect.progress import Progress
from facho.engine.collect.run import collect

__all__ = ["Memories", "Memory", "Progress", "collect"]
