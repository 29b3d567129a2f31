"""What fires on ports of OLTs, counted by the database: a hundred thousand ONUs are not read for it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from facho.apps.alerts.models import Rule
from facho.apps.telemetry.models import Onu
from facho.engine.alerts import Firing
from facho.store.alerts.world import Firings, World

# An ONU in one of these states has no light, or no electricity, or nobody knows which.
DARK = (Onu.State.LOS, Onu.State.OFFLINE, Onu.State.DYING_GASP)

# How many ONUs an alert names.
WORST_SHOWN = 5


def _present(onus: QuerySet[Onu], world: World) -> QuerySet[Onu]:
    """Return the ONUs that have a place and are not missing, on OLTs that are enabled."""
    placed = onus.filter(missing_since__isnull=True, slot__isnull=False, port__isnull=False)
    return placed.filter(olt__enabled=True)


def dark_ports(rules: Sequence[Rule], world: World) -> Firings:
    """First the ports with enough dark ONUs, by the index on states; then how many these ports have in all."""
    fewest = min(rule.setting("dark_onus") for rule in rules)
    counts = {state.value: Count("id", filter=Q(state=state)) for state in DARK}
    grouped = _present(Onu.objects.filter(state__in=DARK), world).order_by().values("olt_id", "slot", "port")
    ports = list(grouped.annotate(dark=Count("id"), **counts).filter(dark__gte=fewest))
    known = _known_onus({port["olt_id"] for port in ports}, world)
    firings: Firings = {}
    for rule in rules:
        least, share = rule.setting("dark_onus"), rule.setting("dark_percent") / 100
        firings[rule.pk] = [
            _of_port(rule, port, world, {"known": known[_place(port)], **_only(port, "dark", *counts)})
            for port in ports
            if port["dark"] >= max(least, share * known[_place(port)]) and world.watches(rule, port["olt_id"])
        ]
    return firings


def _known_onus(olt_ids: Collection[int], world: World) -> Mapping[tuple[int, int, int], int]:
    if not olt_ids:
        return {}
    rows = _present(Onu.objects.filter(olt_id__in=olt_ids), world).order_by().values("olt_id", "slot", "port")
    return {_place(row): row["known"] for row in rows.annotate(known=Count("id"))}


def low_power(rules: Sequence[Rule], world: World) -> Firings:
    """One alert a port, however many of its ONUs: what a splice or a splitter does, it does to all behind it."""
    highest = max(rule.setting("below_dbm") + rule.setting("hysteresis_db") for rule in rules)
    lit = _present(Onu.objects.filter(rx_dbm__lt=highest).exclude(state__in=DARK), world)
    counts = {}
    for rule in rules:
        below = rule.setting("below_dbm")
        counts[f"low_{rule.pk}"] = Count("id", filter=Q(rx_dbm__lt=below))
        counts[f"high_{rule.pk}"] = Count("id", filter=Q(rx_dbm__lt=below + rule.setting("hysteresis_db")))
    ports = list(lit.order_by().values("olt_id", "slot", "port").annotate(lowest=Min("rx_dbm"), **counts))
    chosen = {rule.pk: [port for port in ports if _is_low(rule, port, world)] for rule in rules}
    worst = _worst(lit, [port for some in chosen.values() for port in some])
    return {
        rule.pk: [
            _of_port(
                rule,
                port,
                world,
                {**_count(rule, port), "worst": worst[_place(port)]},
            )
            for port in sorted(chosen[rule.pk], key=lambda port: float(port["lowest"]))
        ]
        for rule in rules
    }


def _is_low(rule: Rule, port: Mapping[str, Any], world: World) -> bool:
    if not world.watches(rule, port["olt_id"]):
        return False
    # Once it is told, it takes a clear improvement to be over.
    column = "high" if world.is_open(rule, _port_key(port)) else "low"
    return bool(port[f"{column}_{rule.pk}"] >= rule.setting("low_onus"))


def _count(rule: Rule, port: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many ONUs are below what; within the hysteresis it is the end of that which they are below."""
    below = rule.setting("below_dbm")
    if port[f"low_{rule.pk}"]:
        return {"low": port[f"low_{rule.pk}"], "below": below}
    return {"low": port[f"high_{rule.pk}"], "below": below + rule.setting("hysteresis_db")}


def _worst(lit: QuerySet[Onu], ports: Iterable[Mapping[str, Any]]) -> Mapping[tuple[int, int, int], list[Any]]:
    """Return the ONUs with the least power of each of these ports."""
    places = {_place(port): list[Any]() for port in ports}
    if not places:
        return places
    rank = Window(RowNumber(), partition_by=[F("olt_id"), F("slot"), F("port")], order_by=[F("rx_dbm"), F("id")])
    rows = lit.filter(olt_id__in={olt_id for olt_id, _slot, _port in places}).annotate(rank=rank)
    columns = ["olt_id", "slot", "port", "onu", "index", "name", "rx_dbm"]
    for onu in rows.filter(rank__lte=WORST_SHOWN).order_by("rx_dbm", "id").only(*columns):
        if (shown := places.get((onu.olt_id, onu.slot or 0, onu.port or 0))) is not None:
            shown.append({"name": " ".join(filter(None, [onu.called, onu.name])), "rx_dbm": onu.rx_dbm})
    return places


def _of_port(rule: Rule, port: Mapping[str, Any], world: World, more: dict[str, Any]) -> Firing:
    params = {"olt": world.olts[port["olt_id"]]["name"], "place": f"{port['slot']}/{port['port']}", **more}
    return Firing(_port_key(port), rule.kind, params, port["olt_id"], port["slot"], port["port"])


def _port_key(port: Mapping[str, Any]) -> str:
    return f"port:{port['olt_id']}:{port['slot']}/{port['port']}"


def _place(port: Mapping[str, Any]) -> tuple[int, int, int]:
    return port["olt_id"], port["slot"], port["port"]


def _only(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}
