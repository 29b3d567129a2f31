"""What every brand must have, how one is found, and that its job templates fit together."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from facho.brands import BRANDS, BUILT_IN, PROFILE_IDS, PROFILES, brand, candidates, huawei, register, zte
from facho.brands.huawei import HUAWEI
from facho.brands.profile import BadProfile
from facho.brands.zte import ZTE_C300
from facho.engine.brand import ONU_FIELDS, ONU_STATES
from facho.engine.errors import UnknownBrand
from facho.engine.model import JobKind
from facho.engine.oid import parse

each_brand = pytest.mark.parametrize("profile", BRANDS.values(), ids=BRANDS)

# What places an ONU whose index does not.
PLACING = {"place", "slot", "port", "onu"}

# Fields that only one maker has. They are kept in `extra`.
EXTRA_FIELDS = {
    "bias_ma",
    "clei",
    "config_state",
    "connected_s",
    "equipment_id",
    "firmware",
    "hardware",
    "last_dying_gasp",
    "loid",
    "match_state",
    "registered_s",
    "uptime_s",
    "vendor",
}


@pytest.fixture
def own_brands():
    """Let a test register brands, and forget them again."""
    yield register
    register(())


def own(brand_id, **changes):
    return replace(HUAWEI, id=brand_id, **changes)


def test_brands_are_known_by_their_ids():
    assert {brand_id: each.id for brand_id, each in BRANDS.items()} == {each: each for each in BRANDS}
    assert set(BRANDS) == {"huawei", "zte_c300", *PROFILE_IDS}
    assert brand("huawei") is HUAWEI


def test_every_profile_that_ships_is_a_brand():
    assert {path.stem for path in PROFILES.glob("*.yaml")} == set(PROFILE_IDS)


def test_an_unknown_brand_is_refused_with_the_ones_there_are():
    with pytest.raises(
        UnknownBrand, match=re.escape("there is no brand 'huawai'; known brands: bdcom_gpon, calix_axos,")
    ):
        brand("huawai")


def test_uncertain_brands_report_it():
    assert {each.id for each in BRANDS.values() if each.experimental} == {"cdata_gpon", "cdata_epon", "cdata_fd11"}


def test_brands_of_an_admin_stand_beside_the_built_in_ones_until_others_do(own_brands):
    own_brands([own("acme"), own("bcme")])
    assert brand("acme").id == "acme"
    assert list(BRANDS)[-2:] == ["acme", "bcme"]

    own_brands([own("ccme")])
    assert set(BRANDS) == {*BUILT_IN, "ccme"}


def test_no_brand_of_an_admin_takes_the_place_of_a_built_in_one_or_of_another(own_brands):
    own_brands([own("acme")])

    with pytest.raises(BadProfile) as caught:
        own_brands([own("huawei", label="Mine"), own("bcme"), own("bcme")])

    assert caught.value.problems == (
        "id: huawei is built in and cannot be replaced; use another id.",
        "id: two profiles are called bcme.",
    )
    assert set(BRANDS) == {*BUILT_IN, "acme"}
    assert brand("huawei") is HUAWEI


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
        pytest.param("1.3.6.1.4.1.3902.1082.1001.999.1.1", "C900, by ZTE Corporation", None, id="no ZTE that we know"),
        pytest.param("1.3.6.1.4.1.20112.2.1", "", None, id="a number that only begins alike"),
        pytest.param("1.3.6.1.4.1.9.1.1", "Cisco IOS", None, id="another maker"),
    ],
)
def test_a_device_is_known_by_what_it_says_of_itself(sys_object_id, sys_descr, expected):
    assert next(iter(candidates(parse(sys_object_id), sys_descr)), None) is expected


@pytest.mark.parametrize(
    ("sys_object_id", "sys_descr", "ids"),
    [
        pytest.param("3902.1082.1001.320.2.1", "C320 Version V2.1.0", ["zte_c300"], id="C320"),
        pytest.param("3902.1082.1001.600.1.1", "", ["zte_c600"], id="C600"),
        pytest.param("3902.1082.1001.620.1.1", "", ["zte_c600"], id="C620"),
        pytest.param("8072.3.2.10", "C650 V1.2, (c) by ZTE Corporation", ["zte_c600"], id="C650 by text"),
        pytest.param("41112.1.5", "EdgeOS v4.4.2", ["ubiquiti"], id="UFiber"),
        pytest.param("4413", "UISP Fiber OLT XGS", ["ubiquiti"], id="UISP by its text"),
        pytest.param("4413", "FASTPATH Switching", [], id="another device with the same chip"),
        pytest.param("3320.1.390.0", "BDCOM(tm) GP3600-16B Software", ["bdcom_gpon"], id="BDCOM GPON"),
        pytest.param("37950.1.1.5.10.14.1", "V1600D", ["vsol_epon"], id="V-SOL"),
        pytest.param("5875.800.1001.11", "AN5516-01", ["fiberhome"], id="FiberHome"),
        pytest.param("8072.3.2.10", "AN5116-06B", [], id="FiberHome with another index"),
        pytest.param("637.61.1", "", ["nokia_isam"], id="Nokia"),
        pytest.param("6321.1.2.4", "", ["calix_axos"], id="Calix AXOS"),
        pytest.param("6321.1.2.3.4", "", [], id="Calix E5"),
        pytest.param("17409", "", ["cdata_gpon", "cdata_epon", "cdata_fd11"], id="C-Data: the probes decide, in order"),
    ],
)
def test_a_device_may_be_of_several_brands_that_are_tried_in_order(sys_object_id, sys_descr, ids):
    found = candidates(parse(f"1.3.6.1.4.1.{sys_object_id}"), sys_descr)

    assert [each.id for each in found] == ids


def test_of_brands_that_fit_the_most_exact_comes_first(own_brands):
    oid = parse("1.3.6.1.4.1.2011.2.99")
    only_text = own("only_text", sys_object_ids=(), sys_descr=re.compile("ACME"))
    shorter_and_text = own(
        "shorter_and_text", sys_object_ids=(parse("1.3.6.1.4.1.2011"),), sys_descr=re.compile("ACME")
    )
    longest = own("longest", sys_object_ids=(oid, parse("1.3.6.1.4.1")), sys_descr=None)
    longest_and_text = own("longest_and_text", sys_object_ids=(oid,), sys_descr=re.compile("ACME"))
    own_brands([only_text, shorter_and_text, longest, longest_and_text])

    found = candidates(parse("1.3.6.1.4.1.2011.2.99.1"), "ACME 8")

    assert [each.id for each in found] == ["longest_and_text", "longest", "huawei", "shorter_and_text", "only_text"]


def test_an_admins_own_brand_is_tried_before_a_built_in_one_that_fits_as_well(own_brands):
    own_brands([own("mine")])

    found = candidates(parse("1.3.6.1.4.1.2011.2.123"), "Huawei Integrated Access Software")

    assert [each.id for each in found] == ["mine", "huawei"]


@each_brand
def test_a_brand_can_be_told_from_others_by_a_probe_of_its_own(profile):
    assert profile.probe is not None
    assert [each.id for each in BRANDS.values() if each.probe == profile.probe] == [profile.id]


@each_brand
def test_columns_stand_under_the_field_they_fill(profile):
    assert {name: column.field for name, column in profile.columns.items()} == {name: name for name in profile.columns}


@each_brand
def test_columns_fill_fields_that_an_onu_has_or_extra_ones(profile):
    assert set(profile.columns) <= {*ONU_FIELDS, *EXTRA_FIELDS, *PLACING}


@each_brand
def test_only_the_column_that_is_called_so_places_onus(profile):
    assert {name for name, column in profile.columns.items() if column.places} <= {"place"}


def test_a_field_is_either_of_every_onu_or_extra():
    assert not EXTRA_FIELDS & set(ONU_FIELDS)


@each_brand
def test_no_two_columns_have_the_same_oid(profile):
    assert len({column.oid for column in profile.columns.values()}) == len(profile.columns)


@each_brand
def test_what_an_onu_is_asked_for_most_is_there(profile):
    assert {"name", "state", "rx_dbm", "tx_dbm"} <= set(profile.columns)


@each_brand
def test_power_is_dear_and_what_is_known_of_the_olt_itself_is_not(profile):
    dear = {name for name, column in profile.columns.items() if column.optical}

    assert {name for name in profile.columns if name.endswith("_dbm")} <= dear
    assert dear <= {"rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "voltage_v", "bias_ma"}


@each_brand
def test_every_column_of_the_optics_has_the_same_floor(profile):
    floors = {column.floor for column in profile.columns.values() if column.optical}

    assert len(floors) == 1
    assert {column.floor for column in profile.columns.values() if not column.optical} == {None}


@each_brand
def test_a_discovery_goes_by_a_cheap_column_of_the_space_that_names_onus(profile):
    columns = [profile.columns[name] for name in profile.discovery]

    assert columns[0].space is profile.space
    assert not any(column.optical for column in columns)


@pytest.mark.parametrize("module", [huawei, zte], ids=["huawei", "zte"])
def test_states_are_words_that_everybody_knows(module):
    words = {*module.STATES.values(), *getattr(module, "STATE_BY_CAUSE", {}).values()}

    assert words <= set(ONU_STATES)


EXPLAINED_BY = {
    "huawei": {"admin_state", "down_cause"},
    "zte_c300": {"admin_state"},
    "zte_c600": {"admin_state"},
    "bdcom_gpon": {"place", "admin_state", "down_cause"},
    "vsol_epon": {"down_cause"},
    "nokia_isam": {"admin_state"},
    "cdata_gpon": {"admin_state", "down_cause"},
    "cdata_epon": {"admin_state", "down_cause"},
}


@each_brand
def test_a_state_is_read_with_what_explains_it(profile):
    needed = profile.with_needed(["name", "state", "name"])

    assert set(needed) == {"name", "state", "place"} & {*profile.columns} | EXPLAINED_BY.get(profile.id, set())
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
    assert bool(chained) is ("in_octets" in profile.columns)
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


@each_brand
def test_what_is_dear_is_asked_for_seldom(profile):
    dear = [job for job in profile.templates if any(profile.columns[name].optical for name in job.columns)]

    assert [job.name for job in dear] == ["Optical power"]
    assert dear[0].interval >= timedelta(minutes=30)
    assert dear[0].follows is None
    assert {name for name, column in profile.columns.items() if column.optical} <= set(dear[0].columns)


@each_brand
def test_no_template_goes_below_the_floor_of_a_column(profile):
    for job in profile.templates:
        floors = [profile.columns[name].floor for name in job.columns]
        assert all(floor is None or job.interval >= floor for floor in floors), job.name


@pytest.mark.parametrize("brand_id", ["zte_c300", "zte_c600"])
def test_a_zte_is_asked_for_its_optics_once_an_hour_at_most(brand_id):
    assert brand(brand_id).columns["rx_dbm"].floor == timedelta(hours=1)


@each_brand
def test_there_is_a_job_for_everything_that_can_be_read(profile):
    names = {job.name for job in profile.templates}
    read = {name for job in profile.templates for name in (job.columns or profile.discovery)}

    assert {"Discovery", "State", "Optical power", "Inventory"} <= names
    assert {"config_state", "match_state", "last_dying_gasp"} >= set(profile.columns) - read


def test_an_agent_that_is_slow_is_waited_for():
    assert brand("nokia_isam").manners.timeout >= 10
