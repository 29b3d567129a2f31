"""How the ONUs of one OLT are read: plan, requests, joining. `collect` is the way in.

The datum's way: `plan` names columns, `tables` walks them or `rows` asks for
them by index, `requester` is the only one who sends, `harvest` joins and
decodes, `coverage` says how much of it there is. `pace`, `timer`, `size` and
`learned` are how an agent is got to know.
"""

from facho.engine.collect.run import Progress, collect

__all__ = ["Progress", "collect"]
