"""What a node asks, before anything is sent."""

from dataclasses import replace

import pytest
from collect_fakes import COLUMNS, TABLE, make_brand, make_node

from facho.engine.collect.plan import groups, make_plan
from facho.engine.model import JobKind, RawOid
from facho.engine.oid import parse

RAW = RawOid("vlan", parse(f"{TABLE}.9"), "number")
UPTIME = RawOid("uptime", parse("1.3.6.1.2.1.1.3.0"), "number", scalar=True)


def plan_of(node):
    return make_plan(node, make_brand(), {"number": int})


def fields(columns):
    return [column.field for column in columns]


def test_a_discovery_without_columns_reads_what_the_brand_says():
    plan = plan_of(make_node(JobKind.DISCOVERY))

    assert fields(plan.columns) == ["serial", "state"]
    assert plan.anchor is COLUMNS["serial"]


def test_a_discovery_always_reads_the_column_that_says_which_onus_exist():
    plan = plan_of(make_node(JobKind.DISCOVERY, "rx_dbm", "name"))

    assert fields(plan.columns) == ["serial", "rx_dbm", "name"]
    assert plan.anchor is COLUMNS["serial"]


@pytest.mark.parametrize("kind", [JobKind.GET, JobKind.WALK, JobKind.TABLE])
def test_any_other_job_without_columns_has_nothing_to_ask(kind):
    plan = plan_of(make_node(kind))

    assert (plan.columns, plan.scalars) == ((), ())
    assert plan.problems == ("Optical power: the job has no columns and no OIDs, so there is nothing to read",)
    assert plan.anchor is None


def test_raw_oids_are_columns_of_the_brands_space_or_scalars():
    plan = plan_of(make_node(JobKind.TABLE, oids=(RAW, UPTIME)))

    assert [(column.field, column.oid, column.space) for column in plan.columns] == [
        ("vlan", RAW.oid, make_brand().space)
    ]
    assert [(scalar.name, scalar.oid) for scalar in plan.scalars] == [("uptime", UPTIME.oid)]
    assert plan.problems == ()


def test_what_nobody_has_is_named_and_the_rest_is_asked():
    raw = RawOid("vlan", RAW.oid, "roman")

    plan = plan_of(make_node(JobKind.TABLE, "colour", "name", oids=(raw,)))

    assert fields(plan.columns) == ["name"]
    assert plan.problems == (
        "colour: Acme has no column of that name",
        "vlan: unknown decoder 'roman'",
    )


def test_a_column_brings_the_ones_it_needs():
    columns = COLUMNS | {"state": replace(COLUMNS["state"], needs=("distance_m",))}

    plan = make_plan(make_node(JobKind.TABLE, "state", "name"), make_brand(columns=columns), {})

    assert fields(plan.columns) == ["state", "distance_m", "name"]


def test_a_column_named_twice_is_read_once():
    assert fields(plan_of(make_node(JobKind.TABLE, "name", "name")).columns) == ["name"]


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.DISCOVERY])
def test_columns_share_a_request_if_they_share_a_space_and_a_price(kind):
    node = make_node(kind, "serial", "rx_dbm", "name", "tx_dbm", oids=(RAW,))

    together = groups(plan_of(node).columns, kind)

    assert [fields(group) for group in together] == [["serial", "name", "vlan"], ["rx_dbm", "tx_dbm"]]


def test_a_walk_has_one_column_at_a_time_in_the_order_of_the_job():
    together = groups(plan_of(make_node(JobKind.WALK, "rx_dbm", "serial", "name")).columns, JobKind.WALK)

    assert [fields(group) for group in together] == [["rx_dbm"], ["serial"], ["name"]]
