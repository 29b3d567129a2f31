"""An installation in which no table is empty, for moving it. As a program it fills the database of its environment."""

import secrets
from contextlib import contextmanager
from datetime import UTC, datetime, time, timedelta
from urllib.parse import urlsplit

import django
import psycopg
from django.apps import apps
from django.db import models, transaction
from psycopg import sql

ROWS = 3
NOW = datetime.now(UTC).replace(microsecond=123456)

# Where anything at all would not do, by table and column: what the row of a number has there.
SPECIAL = {
    ("onu_data", "name"): lambda number: f'Señora "Ñandú"\t{number}\nOLT \\N',
    ("onu_data", "own_read_at"): lambda number: None if number == 0 else NOW - timedelta(days=number),
    ("snmp_jobs", "interval_seconds"): lambda number: 300 + number,
    ("snmp_job_hosts", "own_interval_seconds"): lambda number: 300 + number,
    ("snmp_job_hosts", "next_run_at"): lambda number: None if number else NOW,
    ("snmp_executions", "status"): lambda number: "SUCCESS",
    # Of one thing, with an end after its start.
    **{("maintenance", column): lambda _number: None for column in ("site_id", "tag_id", "slot", "port")},
    ("maintenance", "olt_id"): lambda number: nth(apps.get_model("inventory", "Olt"), number),
    ("maintenance", "ends_at"): lambda number: NOW + timedelta(days=number + 1),
    ("quota_tracker", "quota_required"): lambda number: 4 * (number + 1),
}


def fill():
    """Make some rows in every table, those that others refer to first."""
    from facho.runtime.migrate_to import tables

    with transaction.atomic():
        for model in tables():
            have = model._base_manager.count()
            for number in range(have, ROWS):
                model._base_manager.bulk_create([model(**values(model, number))])
        executions = apps.get_model("polling", "Execution").objects
        # A row may refer to one that comes behind it.
        executions.filter(pk=executions.earliest("pk").pk).update(master_execution=executions.latest("pk").pk)


def values(model, number):
    fields = [
        field
        for field in model._meta.concrete_fields
        if not isinstance(field, models.AutoField | models.GeneratedField)
    ]
    return {field.attname: value(field, number) for field in fields}


def value(field, number):
    """Return something that tells rows and columns apart; every third row has nothing where it may."""
    special = SPECIAL.get((field.model._meta.db_table, field.column))
    if special is not None:
        return special(number)
    if field.null and number == ROWS - 1:
        return None
    if isinstance(field, models.ForeignKey):
        return nth(field.related_model, number)
    return made(field, number)


def nth(model, number):
    """Return the key of a row that is there; of its own table there may be none yet."""
    keys = list(model._base_manager.order_by("pk").values_list("pk", flat=True)[: number + 1])
    return keys[-1] if keys else None


def made(field, number):
    if field.choices:
        return next(key for key, _ in field.flatchoices)
    kinds = {
        models.JSONField: {"ñ": [1, None, 2.5, "\\"], "n": number},
        models.BinaryField: bytes([number, 0, 255]) * (number + 1),
        models.BooleanField: number % 2 == 0,
        models.FloatField: -21.53 - number / 7,
        models.IntegerField: number + 1,
        models.DateTimeField: NOW - timedelta(days=number, microseconds=number),
        models.TimeField: time(22, number),
        models.GenericIPAddressField: f"192.0.2.{number + 1}",
        models.TextField: f"{field.name} {number} ñ",
        models.CharField: f"{field.name[:8]}{number}"[: field.max_length],
    }
    return next(value for kind, value in kinds.items() if isinstance(field, kind))


def filled_tables():
    return [model._meta.db_table for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]


@contextmanager
def copy_of(url):
    """Make a database that is the same as another to which nobody is connected, and drop it afterwards."""
    there = urlsplit(url)
    name, template = (sql.Identifier(each) for each in (f"facho_{secrets.token_hex(6)}", there.path[1:]))
    server = there._replace(path="/postgres").geturl()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, template))
    try:
        yield there._replace(path=f"/{name._obj[0]}").geturl()
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


if __name__ == "__main__":
    django.setup()
    fill()
