"""Raw OIDs of the jobs on an OLT, with the units of their values."""

from dataclasses import dataclass

from facho.apps.jobs.models import SnmpJobOid
from facho.engine.chunks import RAW_OID

# Decoders whose values are numbers, so that they have a history.
NUMERIC = ("integer", "tenths", "hundredths", "thousandths", "number", "counter", "seconds")


@dataclass(frozen=True, slots=True)
class RawValue:
    """A raw OID as pages show it."""

    name: str
    unit: str
    is_number: bool

    @property
    def field(self) -> str:
        """Return its name in the history."""
        return RAW_OID + self.name


def raw_values(olt_id: int, *, scalar: bool) -> list[RawValue]:
    """Return the raw OIDs of the ONUs of an OLT, or of the OLT itself, by name. Two jobs may have the same name."""
    rows = SnmpJobOid.objects.filter(job__nodes__olt=olt_id, scalar=scalar).order_by("name", "-id")
    found = {
        name: RawValue(name, unit, decode in NUMERIC)
        for name, unit, decode in rows.values_list("name", "unit", "decode")
    }
    return list(found.values())
