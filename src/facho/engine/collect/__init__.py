"""How the ONUs of one OLT are read: plan, requests, joining. `collect` is the way in.

The datum's way: `plan` names columns, `tables` walks them or `rows` asks for
them by index, `requester` is the only one who sends, `harvest` joins and decodes.
"""

from facho.engine.collect.run import collect

__all__ = ["collect"]
