"""What a person changed, told from two states of an OLT."""

from dataclasses import replace

import pytest
from builders import MIN, T0, make_node
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.model import RawOid
from facho.engine.scheduling.changes import ChangeKind, OltState, detect_changes, fingerprint

POWER = make_node(1, interval=5 * MIN)
NAMES = make_node(2, master_id=1)
STATE = OltState(1, "OLT-CENTRAL-01", "10.0.0.7:161 (v2c)", (POWER, NAMES), "digest")


def with_nodes(*nodes):
    return replace(STATE, nodes=nodes)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, None, [], id="never there"),
        pytest.param(STATE, STATE, [], id="nothing happened"),
        pytest.param(None, STATE, [(ChangeKind.OLT_ENABLED, None)], id="enabled: its nodes come with it"),
        pytest.param(STATE, None, [(ChangeKind.OLT_DISABLED, None)], id="disabled: its nodes go with it"),
        pytest.param(with_nodes(POWER), STATE, [(ChangeKind.TASK_ADDED, 2)], id="a task more"),
        pytest.param(STATE, with_nodes(POWER), [(ChangeKind.TASK_REMOVED, 2)], id="a task less"),
        pytest.param(
            STATE,
            with_nodes(replace(POWER, interval=10 * MIN), NAMES),
            [(ChangeKind.TASK_INTERVAL_CHANGED, 1)],
            id="another interval",
        ),
        pytest.param(
            STATE, with_nodes(POWER, replace(NAMES, interval=10 * MIN)), [], id="a chained node has no interval"
        ),
        pytest.param(
            STATE, with_nodes(replace(POWER, priority=90), NAMES), [(ChangeKind.TASK_CHANGED, 1)], id="a priority"
        ),
        pytest.param(
            STATE,
            with_nodes(replace(POWER, oids=(RawOid("fans", (1, 3), "integer"),)), NAMES),
            [(ChangeKind.TASK_CHANGED, 1)],
            id="a raw OID",
        ),
        pytest.param(
            STATE, replace(STATE, address="10.0.0.8:161 (v2c)"), [(ChangeKind.ADDRESS_CHANGED, None)], id="moved"
        ),
        pytest.param(
            STATE, replace(STATE, credentials="other"), [(ChangeKind.CREDENTIALS_CHANGED, None)], id="another password"
        ),
        pytest.param(
            STATE,
            with_nodes(replace(POWER, next_check=T0, run_requested_at=T0, expected=4.0), NAMES),
            [],
            id="what the engine writes is no change",
        ),
        pytest.param(
            STATE,
            replace(with_nodes(NAMES, make_node(3)), credentials="other"),
            [(ChangeKind.CREDENTIALS_CHANGED, None), (ChangeKind.TASK_REMOVED, 1), (ChangeKind.TASK_ADDED, 3)],
            id="several at once",
        ),
    ],
)
def test_what_happened_between_two_states(before, after, expected):
    changes = detect_changes(before, after)

    assert [(change.kind, change.node and change.node.id) for change in changes] == expected


def test_a_change_tells_what_was_and_what_is_but_no_secret():
    (moved,) = detect_changes(STATE, replace(STATE, address="10.0.0.8:161 (v2c)"))
    (slower,) = detect_changes(STATE, with_nodes(replace(POWER, interval=10 * MIN), NAMES))
    (renewed,) = detect_changes(STATE, replace(STATE, credentials="other"))

    assert moved.details == {"before": "10.0.0.7:161 (v2c)", "after": "10.0.0.8:161 (v2c)"}
    assert slower.details == {"before": 300.0, "after": 600.0}
    assert renewed.details == {}
    assert "digest" not in repr(STATE)


values = st.lists(st.one_of(st.none(), st.integers(), st.text(), st.booleans()), max_size=6).map(tuple)


@pytest.mark.slow
@given(st.lists(values, max_size=5), st.lists(values, max_size=5))
def test_a_fingerprint_is_the_same_for_the_same_and_another_for_anything_else(one, other):
    same = [tuple(part) for part in one]

    assert fingerprint(one) == fingerprint(same)
    assert (fingerprint(one) == fingerprint(other)) == (repr(one) == repr(other))
    assert len(fingerprint(one)) == 64
