"""What every brand must have, how one is found, and that its job templates fit together."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from facho.brands import BRANDS, brand, detect, huawei, zte
from facho.brands.huawei import HUAWEI
from facho.brands.zte import ZTE_C300
from facho.engine.brand import ONU_FIELDS, ONU_STATES
from facho.engine.errors import UnknownBrand
from facho.engine.model import JobKind
from facho.engine.oid import parse

each_brand = pytest.mark.parametrize("profile", BRANDS.values(), ids=BRANDS)

# Fields that only one maker has. They are kept in `extra`.
EXTRA_FIELDS = {
    "bias_ma",
    "config_state",
    "equipment_id",
    "hardware",
    "last_dying_gasp",
    "match_state",
    "vendor",
}


def test_brands_are_known_by_their_ids():
    assert dict(BRANDS) == {"huawei": HUAWEI, "zte_c300": ZTE_C300}
    assert brand("huawei") is HUAWEI


def test_an_unknown_brand_is_refused_with_the_ones_there_are():
    with pytest.raises(UnknownBrand, match=re.escape("there is no brand 'huawai'; known are huawei, zte_c300")):
        brand("huawai")


@pytest.mark.parametrize(
    ("sys_object_id", "sys_descr", "expected"),
    [
        pytest.param("1.3.6.1.4.1.2011.2.123", "Huawei Integrated Access Software", HUAWEI, id="MA5603T"),
        pytest.param("1.3.6.1.4.1.2011.2.248", "", HUAWEI, id="MA5608T by its object id alone"),
        pytest.param("1.3.6.1.4.1.8072.3.2.10", "Huawei Integrated Access Software", HUAWEI, id="by its description"),
        pytest.param("1.3.6.1.4.1.3902.1082.1001.320.2.1", "C320 Version V2.1.0 Software", ZTE_C300, id="C320"),
        pytest.param("1.3.6.1.4.1.3902.1015.300.3.1", "", ZTE_C300, id="C300 with old firmware"),
        pytest.param(
            "1.3.6.1.4.1.8072.3.2.10",
            "C300 Version V2.1.0, Copyright (c) by ZTE Corporation",
            ZTE_C300,
            id="C300 by text",
        ),
        pytest.param("1.3.6.1.4.1.3902.1082.1001.600.1.1", "C600, by ZTE Corporation", None, id="C600: another tree"),
        pytest.param("1.3.6.1.4.1.20112.2.1", "", None, id="a number that only begins alike"),
        pytest.param("1.3.6.1.4.1.9.1.1", "Cisco IOS", None, id="another maker"),
    ],
)
def test_a_device_is_known_by_what_it_says_of_itself(sys_object_id, sys_descr, expected):
    assert detect(parse(sys_object_id), sys_descr) is expected


def test_of_two_brands_whose_object_ids_fit_the_more_exact_one_is_taken(monkeypatch):
    exact = replace(ZTE_C300, id="exact", sys_object_ids=(parse("1.3.6.1.4.1.2011.2.99"),))
    monkeypatch.setattr("facho.brands.BRANDS", {"huawei": HUAWEI, "exact": exact})

    assert detect(parse("1.3.6.1.4.1.2011.2.99.1"), "") is exact
    assert detect(parse("1.3.6.1.4.1.2011.2.98.1"), "") is HUAWEI


@each_brand
def test_columns_stand_under_the_field_they_fill(profile):
    assert {name: column.field for name, column in profile.columns.items()} == {name: name for name in profile.columns}


@each_brand
def test_columns_fill_fields_that_an_onu_has_or_extra_ones(profile):
    assert set(profile.columns) <= {*ONU_FIELDS, *EXTRA_FIELDS}


def test_a_field_is_either_of_every_onu_or_extra():
    assert not EXTRA_FIELDS & set(ONU_FIELDS)


@each_brand
def test_no_two_columns_have_the_same_oid(profile):
    assert len({column.oid for column in profile.columns.values()}) == len(profile.columns)


@each_brand
def test_what_an_onu_is_asked_for_most_is_there(profile):
    assert {"serial", "name", "admin_state", "state", "rx_dbm", "tx_dbm", "olt_rx_dbm", "distance_m"} <= set(
        profile.columns
    )


@each_brand
def test_a_discovery_goes_by_a_cheap_column_of_the_space_that_names_onus(profile):
    columns = [profile.columns[name] for name in profile.discovery]

    assert columns[0].space is profile.space
    assert not any(column.optical for column in columns)


@pytest.mark.parametrize("module", [huawei, zte], ids=["huawei", "zte"])
def test_states_are_words_that_everybody_knows(module):
    words = {*module.STATES.values(), *getattr(module, "STATE_BY_CAUSE", {}).values()}

    assert words <= set(ONU_STATES)


@each_brand
def test_a_state_is_read_with_what_explains_it(profile):
    needed = profile.with_needed(["name", "state", "admin_state"])

    assert needed[:2] == ("name", "state")
    assert "admin_state" in needed
    assert len(set(needed)) == len(needed)


@each_brand
def test_what_a_column_needs_is_a_column_and_needs_nothing_further(profile):
    for column in profile.columns.values():
        once = profile.with_needed([column.field])
        assert set(profile.with_needed(once)) == set(once)


def test_a_huawei_state_is_read_with_its_cause():
    assert HUAWEI.with_needed(["state"]) == ("state", "admin_state", "down_cause")


def test_a_name_that_is_no_column_is_left_for_others_to_refuse():
    assert HUAWEI.with_needed(["colour", "name"]) == ("colour", "name")


@each_brand
def test_an_agent_is_never_asked_for_nothing(profile):
    assert profile.manners.max_repetitions >= 1
    assert profile.manners.rows_per_get >= 1


@each_brand
def test_templates_ask_for_columns_of_the_brand_and_for_all_they_need(profile):
    for template in profile.templates:
        columns = template.columns or profile.discovery
        assert set(profile.with_needed(columns)) == set(columns), template.name


@each_brand
def test_a_template_that_follows_another_goes_at_its_pace_and_a_chain_has_one_master(profile):
    by_name = {template.name: template for template in profile.templates}
    chained = [template for template in profile.templates if template.follows]

    assert len(by_name) == len(profile.templates)
    assert chained
    for template in chained:
        assert by_name[template.follows].follows is None
        assert by_name[template.follows].interval == template.interval


@each_brand
def test_a_run_of_a_template_ends_before_the_next_one_begins(profile):
    assert all(template.timeout <= template.interval for template in profile.templates)


@each_brand
def test_discovery_comes_first(profile):
    first = max(profile.templates, key=lambda template: template.priority)

    assert (first.kind, first.priority, first.interval) == (JobKind.DISCOVERY, 90, timedelta(minutes=15))


@pytest.mark.parametrize(
    ("profile", "floor"), [(HUAWEI, timedelta(minutes=30)), (ZTE_C300, timedelta(hours=1))], ids=["huawei", "zte"]
)
def test_what_is_dear_is_asked_for_seldom(profile, floor):
    dear = [job for job in profile.templates if any(profile.columns[name].optical for name in job.columns)]

    assert dear
    assert all(job.interval >= floor for job in dear)
    assert not any(job.follows for job in dear)
