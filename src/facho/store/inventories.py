"""The inventories of the OLTs that this process polls, kept between runs so that nothing is read back."""

from collections import OrderedDict

from facho.engine.model import KnownOnu
from facho.store import bulk
from facho.store.inventory import Inventory

# ONUs that are kept in memory, at most: about 1 kB each.
MOST_ONUS = 2_000_000


class Inventories:
    """Inventories by OLT, the least recently used first.

    One is valid as long as the database has the version that it was left with:
    each result with readings raises `olts.inventory_version`, in every process.
    The lease of the OLT keeps two runs from using one inventory at the same time.
    """

    def __init__(self, most_onus: int = MOST_ONUS) -> None:
        self._most_onus = most_onus
        self._kept: OrderedDict[int, Inventory] = OrderedDict()

    def get(self, olt_id: int, version: int) -> Inventory:
        """Return the inventory of an OLT whose version was read just now; from the database if it is not held."""
        inventory = self._kept.get(olt_id)
        if inventory is None or inventory.version != version:
            inventory = self._kept[olt_id] = Inventory.load(olt_id)
            inventory.version = version
            self._make_room()
        self._kept.move_to_end(olt_id)
        return inventory

    def known(self, olt_id: int) -> list[KnownOnu]:
        """Return the ONUs of an OLT that can be polled."""
        found = bulk.fetch("SELECT inventory_version FROM olts WHERE id = %s", olt_id)
        return self.get(olt_id, found[0][0]).known() if found else []

    def drop(self, olt_id: int) -> None:
        """Forget an inventory that may differ from the database: a transaction failed."""
        self._kept.pop(olt_id, None)

    def _make_room(self) -> None:
        held = sum(len(each.ids) for each in self._kept.values())
        while held > self._most_onus and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            held -= len(dropped.ids)
