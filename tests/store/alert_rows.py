"""Channels, rules and OLTs for the tests of alerts, and a snapshot of an engine that is well."""

from datetime import timedelta

from builders import T0

import port_counts
from facho.alerts.models import Channel, Rule
from facho.apps.inventory.models import Olt
from facho.apps.polling import live
from facho.apps.telemetry.models import Onu

SECRET = "s3cret-of-this-channel"


def make_channel(name="NOC", **more):
    return Channel.objects.create(
        **{"name": name, "kind": "webhook", "url": "http://127.0.0.1:9/", "signing_secret": SECRET} | more
    )


def make_rule(kind="olt_unreachable", *, channels=(), olts=(), escalate_to=(), **more):
    rule = Rule(**{"name": f"rule {Rule.objects.count() + 1}", "kind": kind} | more)
    rule.full_clean()
    rule.save()
    Rule.objects.filter(pk=rule.pk).update(created_at=T0 - timedelta(days=1))
    rule.refresh_from_db()
    rule.channels.set(channels)
    rule.olts.set(olts)
    rule.escalation_channels.set(escalate_to)
    return rule


def make_olt(name="OLT-SUR-03", **more):
    return Olt.objects.create(**{"name": name, "brand": "huawei", "host": "127.0.0.1", "community": "public"} | more)


def make_onus(olt, count, *, port=1, first=1, **more):
    defaults = {"slot": 0, "port": port, "state": "online", "rx_dbm": -20.0, "first_seen_at": T0, "own_read_at": T0}
    Onu.objects.bulk_create(
        Onu(olt=olt, index=f"{port}.{number}", onu=number, name=f"client-{number}", **defaults | more)
        for number in range(first, first + count)
    )
    port_counts.recount(olt=olt)


def set_of(olt, **columns):
    """Change what the engine writes to an OLT, as it does: without its model."""
    Olt.objects.filter(pk=olt.pk).update(**columns)


def snapshot(now=T0, *, age=1.0, **stats):
    """Return what `live.snapshot` gives; `age` None if the engine has never spoken."""
    stale = age is None or age > live.STALE_AFTER.total_seconds()
    stats = {**live.EMPTY["stats"], **stats}
    queue = {"size": stats["queue_size"], "delayed": stats["delayed"], "next": []}
    return {**live.EMPTY, "stats": stats, "queue": queue, "age": age, "stale": stale}
