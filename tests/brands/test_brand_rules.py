"""Rules over a row: what they change, and that they leave everything else as it is."""

import pytest

from facho.brands.decode import (
    RULES,
    cause_from_state,
    chain,
    disabled_by_admin,
    no_optics_when_off,
    no_slot,
    null_when_off,
    state_by_cause,
)
from facho.engine.brand import ONU_STATES

OFF = ("offline", "los", "dying_gasp", "auth_failed", "logging", "syncing", "disabled")


@pytest.mark.parametrize("state", [*ONU_STATES, None])
def test_only_an_onu_that_may_answer_keeps_what_was_measured(state):
    row = no_optics_when_off({"state": state, "rx_dbm": -21.5, "name": "ONU 7"})

    assert row == {"state": state, "rx_dbm": None if state in OFF else -21.5, "name": "ONU 7"}


def test_a_row_whose_state_was_not_read_stays_as_it_is():
    row = {"rx_dbm": -21.5, "port": 2}

    assert no_optics_when_off(row) == row
    assert null_when_off(["port"])(row) == row
    assert disabled_by_admin(row) == row
    assert state_by_cause({"los": "los"})(row) == row
    assert cause_from_state(row) == row


def test_what_an_onu_that_is_off_cannot_have_is_taken_from_it_and_nothing_is_added():
    assert null_when_off(["port", "uptime_s"])({"state": "offline", "port": 0}) == {"state": "offline", "port": None}


def test_a_cause_says_more_of_an_onu_that_is_offline():
    rule = state_by_cause({"losi": "los"})

    assert rule({"state": "offline", "down_cause": "losi"})["state"] == "los"
    assert rule({"state": "offline", "down_cause": "reset"})["state"] == "offline"
    assert rule({"state": "disabled", "down_cause": "losi"})["state"] == "disabled"


@pytest.mark.parametrize("state", ["los", "dying_gasp", "auth_failed"])
def test_a_state_that_tells_is_a_cause(state):
    assert cause_from_state({"state": state}) == {"state": state, "down_cause": state}
    assert cause_from_state({"state": state, "down_cause": "reset"})["down_cause"] == "reset"


def test_a_device_without_slots_has_none():
    assert no_slot({"slot": 0, "port": 2}) == {"slot": None, "port": 2}


def test_rules_go_one_after_the_other():
    both = chain([disabled_by_admin, no_optics_when_off])

    row = {"state": "offline", "admin_state": "disabled", "rx_dbm": -21.5}
    assert both(row) == {"state": "disabled", "admin_state": "disabled", "rx_dbm": None}
    assert row["state"] == "offline"
    assert chain([]) is None


def test_rules_are_known_by_their_names():
    assert set(RULES) == {"disabled_by_admin", "no_optics_when_off", "cause_from_state", "no_slot"}
