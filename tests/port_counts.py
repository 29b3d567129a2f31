"""Counters of ports as a scan of the ONUs gives them, to compare with, and for ONUs that no run has written."""

from collections import Counter

from facho.apps.telemetry.models import COUNTERS, RX_WEAK, Onu, PonPort

DARK = ("offline", "los", "dying_gasp")


def scanned(**which):
    """Return the counters of each port, by its id."""
    found = {pk: Counter() for pk in PonPort.objects.filter(**which).values_list("pk", flat=True)}
    columns = ("pon_port", "state", "rx_dbm", "misses", "missing_since")
    onus = Onu.objects.filter(**which).exclude(pon_port=None)
    for port, state, rx, misses, missing_since in onus.values_list(*columns):
        is_present, is_weak = missing_since is None, rx is not None and rx < RX_WEAK and state not in DARK
        found[port]["total"] += 1
        found[port]["missing"] += not is_present
        found[port]["held"] += is_present and misses > 0
        found[port]["weak"] += is_present and is_weak
        found[port][state] += is_present
    return {port: {name: counts[name] for name in COUNTERS} for port, counts in found.items()}


def stored(**which):
    return {row.pop("pk"): row for row in PonPort.objects.filter(**which).values("pk", *COUNTERS)}


def recount(**which):
    """Give ONUs that were made without a port the row of their port, and count all, or only those of `olt`."""
    for onu in Onu.objects.filter(**which, pon_port=None):
        place = {"olt_id": onu.olt_id, "slot": onu.slot, "port": onu.port}
        port, _ = PonPort.objects.get_or_create(**place, defaults={"read_at": onu.own_read_at})
        if port.read_at is None or port.read_at < onu.own_read_at:
            PonPort.objects.filter(pk=port.pk).update(read_at=onu.own_read_at)
        Onu.objects.filter(pk=onu.pk).update(pon_port=port)
    for port, counts in scanned(**which).items():
        PonPort.objects.filter(pk=port).update(**counts)
