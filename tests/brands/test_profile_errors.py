"""What is said of a profile that is wrong: all of it, each with its key and what to do."""

import contextlib
import copy

import pytest
from acme import PROFILE, profile, with_column
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from facho.brands.named import DECODERS
from facho.brands.profile import BadProfile, read_profile


def problems_of(data):
    with pytest.raises(BadProfile) as caught:
        read_profile(data)
    return caught.value.problems


WRONG = {
    "not a mapping": (["id"], ["the profile: ['id'] should be keys with values, one to a line."]),
    "no id": (profile(id=None), ["id: it is required."]),
    "an id with blanks": (
        profile(id="ACME GPON"),
        ["id: 'ACME GPON' should be lowercase letters, digits and _, such as acme_gpon."],
    ),
    "a key that is none": (
        profile(lable="x"),
        [
            "lable: unknown key (did you mean label?); the keys are base, columns, discovery, experimental, "
            "extra, first_onu, id, index, jobs, label, manners, match, onus_per_port, ports, rules."
        ],
    ),
    "a port without room, and an id below zero": (
        profile(onus_per_port=0, first_onu=-1),
        ["onus_per_port: 0 should be 1 or more.", "first_onu: -1 should be 0 or more."],
    ),
    "a flag that is a word": (profile(experimental="yes"), ["experimental: 'yes' should be true or false."]),
    "no index": (
        profile(index=None, columns={"name": {"oid": 1, "read": "text"}}, discovery="name", rules=None),
        ["index: it is required."],
    ),
    "an index that cannot be": (
        profile(index={"onu": ["slot:8", "onu"], "optics": "opaque"}),
        ["index.onu: no part is called port."],
    ),
    "an index of another kind": (
        profile(index={"onu": "manual", "optics": "opaque"}),
        ["index.onu: it should be a list with a line for each number of the index, or opaque."],
    ),
    "a field that no ONU has": (
        with_column("rx_dmb", oid=9, read="power"),
        ["columns.rx_dmb: ONUs have no such field (did you mean rx_dbm?)."],
    ),
    "a field of one's own in the wrong place": (
        with_column("colour", oid=9, read="text"),
        ["columns.colour: ONUs have no such field; a field of your own belongs under extra."],
    ),
    "a field of every ONU under extra": (
        profile(extra={"mac": {"oid": 9, "read": "mac"}}),
        ["extra.mac: every ONU has this field: it belongs under columns."],
    ),
    "no OID": (with_column("mac", read="mac"), ["columns.mac.oid: it is required."]),
    "an OID that became a number": (
        with_column("mac", oid=1.1, read="mac"),
        ["columns.mac.oid: 1.1 was read as a number and may have lost a zero: put the OID in quotes."],
    ),
    "an OID with letters": (
        with_column("mac", oid="1.x", read="mac"),
        [
            "columns.mac.oid: '1.3.6.1.4.1.99999.1.x' is not an OID: "
            "write numbers with dots between them, like 1.3.6.1.2.1.1.5.0."
        ],
    ),
    "no base": (
        profile(base=None, columns={"name": {"oid": 1, "read": "text"}}, match=None, extra=None, discovery="name"),
        ["columns.name.oid: 1 is not a full OID, and there is no base to complete it."],
    ),
    "a base that is none": (
        profile(base="acme"),
        ["base: acme is not a full OID, and there is no base to complete it."],
    ),
    "the same OID twice": (
        with_column("mac", oid="2.1", read="mac"),
        ["columns.mac.oid: it is the same as in serial."],
    ),
    "no way to read": (with_column("mac", oid=9), ["columns.mac.read: it is required."]),
    "an unknown way to read": (
        with_column("mac", oid=9, read="magic"),
        [f"columns.mac.read: 'magic' is not a decoder; the decoders are {', '.join(DECODERS)}."],
    ),
    "an option that is not for it": (
        with_column("mac", oid=9, read="mac", scales=2),
        ["columns.mac.scales: unknown key; the keys are floor, needs, oid, optical, read, space."],
    ),
    "a scale that is no number": (
        with_column("tx_dbm", oid=9, read="power", scale="a tenth"),
        ["columns.tx_dbm.scale: 'a tenth' should be a number, such as 0.01."],
    ),
    "a scale that leaves nothing": (
        with_column("tx_dbm", oid=9, read="power", scale=0),
        ["columns.tx_dbm.scale: 0 is not a valid factor; write one such as 0.01."],
    ),
    "a sum beyond all bounds": (
        with_column("tx_dbm", oid=9, read="power", add="1e300"),
        ["columns.tx_dbm.add: '1e300' is too large to add."],
    ),
    "too many digits": (
        with_column("tx_dbm", oid=9, read="power", digits=10),
        ["columns.tx_dbm.digits: 10 should be from 0 to 9."],
    ),
    "no words": (
        with_column("admin_state", oid=9, read="choice"),
        ["columns.admin_state.words: it is required."],
    ),
    "words without numbers": (
        with_column("admin_state", oid=9, read="choice", words={"up": "enabled"}),
        ["columns.admin_state.words: 'up' should be a whole number."],
    ),
    "a state that is none": (
        with_column("admin_state", oid=9, read="choice", words={1: "up"}),
        ["columns.admin_state.words: 'up' is not a valid admin_state; the values are enabled, disabled."],
    ),
    "a pattern that is none": (
        with_column("tx_dbm", oid=9, read="power", regex="(("),
        ["columns.tx_dbm.regex: '((' is not a regular expression: missing ), unterminated subpattern at position 1."],
    ),
    "a pattern without brackets": (
        with_column("tx_dbm", oid=9, read="power", regex="dBm"),
        ["columns.tx_dbm.regex: 'dBm' should have one pair of brackets, around the number."],
    ),
    "a sentinel for a text": (
        with_column("tx_dbm", oid=9, read="power", regex="(.*)", none=1),
        ["columns.tx_dbm.none: it only applies to whole numbers and cannot be combined with regex; use low and high."],
    ),
    "a place without groups": (
        with_column("place", oid=9, read="place", regex="x"),
        [
            "columns.place.regex: it should have groups named (?P<port>...) and (?P<onu>...), "
            "and may have shelf and slot."
        ],
    ),
    "a place of another name": (
        with_column("name", oid=9, read="place", regex=r"(?P<port>\d+):(?P<onu>\d+)"),
        ["columns.name.read: a column called place, and no other, is read as place."],
    ),
    "a time that is none": (
        with_column("last_up", oid=9, read="text"),
        ["columns.last_up.read: last_up is a time: read it as date or date_in_text."],
    ),
    "an unknown space": (
        with_column("mac", oid=9, read="mac", space="optic"),
        ["columns.mac.space: 'optic' is not an index of this profile; the indexes are onu, optics."],
    ),
    "a need that is no column": (
        with_column("mac", oid=9, read="mac", needs="magic"),
        ["columns.mac.needs: 'magic' is not a column of this profile."],
    ),
    "a floor without a unit": (
        with_column("mac", oid=9, read="mac", floor=15),
        ["columns.mac.floor: 15 should be a time with its unit, such as 10s, 15m or 1h."],
    ),
    "a floor of many lifetimes": (
        with_column("mac", oid=9, read="mac", floor="999999999999d"),
        ["columns.mac.floor: '999999999999d' should be a time with its unit, such as 10s, 15m or 1h."],
    ),
    "a discovery of what is not there": (
        profile(discovery=["serial", "sreial"]),
        ["discovery: 'sreial' is not a column of this profile."],
    ),
    "a discovery that waits for every ONU": (
        profile(discovery=["serial", "rx_dbm"]),
        ["discovery: rx_dbm is an optical column, which is too slow for a discovery."],
    ),
    "a discovery by another index": (
        profile(discovery="mac", columns={**PROFILE["columns"], "mac": {"oid": 9, "read": "mac", "space": "optics"}}),
        ["discovery: mac comes first and must be of the first index, which names the ONUs."],
    ),
    "an unknown rule": (
        profile(rules=["no_magic"]),
        [
            "rules: 'no_magic' is not a rule; the rules are disabled_by_admin, no_optics_when_off, cause_from_state, "
            "no_slot, null_when_off, state_by_cause."
        ],
    ),
    "a rule over what is not there": (
        profile(rules=[{"null_when_off": ["port"]}]),
        ["rules: null_when_off names port, which is not a column of this profile."],
    ),
    "a rule with a state that is none": (
        profile(rules=[{"state_by_cause": {"los": "dark"}}]),
        [
            "rules: state_by_cause must map each cause to one of the states online, offline, los, dying_gasp, "
            "auth_failed, logging, syncing, degraded, disabled, unknown."
        ],
    ),
    "manners that never ask": (
        profile(manners={"max_repetitions": 0}),
        ["manners.max_repetitions: 0 should be 1 or more."],
    ),
    "manners that wait too long": (
        profile(manners={"min_timeout": "30s"}),
        ["manners.min_timeout: it is longer than the longest allowed wait."],
    ),
    "ports with ONUs": (
        profile(ports={"oid": 9, "index": ["port", "onu"]}),
        ["ports.index: a port has no part called onu."],
    ),
    "an unknown kind of job": (
        profile(jobs=[{"name": "Look", "kind": "stare", "every": "5m", "columns": ["state"]}]),
        ["jobs[1].kind: 'stare' is not a job type; the types are discovery, get, walk, table."],
    ),
    "a job without columns": (
        profile(jobs=[{"name": "Look", "kind": "table", "every": "5m"}]),
        ["jobs[1].columns: a job that is not a discovery must name its columns."],
    ),
    "a job for what is not there": (
        profile(jobs=[{"name": "Look", "kind": "table", "every": "5m", "columns": ["magic"]}]),
        ["jobs[1].columns: magic is not a column of this profile."],
    ),
    "a job that outlives its turn": (
        profile(jobs=[{"name": "Look", "kind": "table", "every": "5m", "columns": "state", "timeout": "6m"}]),
        ["jobs[1].timeout: the time limit must be shorter than the interval."],
    ),
    "a job that follows nobody": (
        profile(jobs=[{"name": "Look", "kind": "table", "every": "5m", "columns": "state", "follows": "Find"}]),
        ["jobs: Look follows Find, which is not a job with its own schedule."],
    ),
    "a job at another pace than its master": (
        profile(
            jobs=[
                {"name": "Look", "kind": "table", "every": "5m", "columns": "state"},
                {"name": "Count", "kind": "table", "every": "6m", "columns": "in_octets", "follows": "Look"},
            ]
        ),
        ["jobs: Count follows Look, and must have the same value for `every`."],
    ),
    "two jobs of one name": (
        profile(jobs=[{"name": "Look", "kind": "discovery", "every": "5m"}] * 2),
        ["jobs: two of them have the same name."],
    ),
}


@pytest.mark.parametrize(("data", "problems"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_profile_is_said(data, problems):
    assert list(problems_of(data)) == problems


def test_all_that_is_wrong_is_said_at_once():
    data = profile(id=7, rules=["x"], discovery=["nobody"], manners={"retries": 0}, jobs=[{"name": "Look"}])

    said = problems_of(data)

    assert [each.split(":")[0] for each in said] == [
        "id",
        "manners.retries",
        "rules",
        "discovery",
        "jobs[1].kind",
        "jobs[1].every",
        "jobs[1].columns",
    ]


def test_the_error_reads_as_sentences_and_names_its_source():
    with pytest.raises(BadProfile) as caught:
        read_profile(profile(label=None, experimental=1), "acme.yaml")

    assert str(caught.value) == (
        "the profile acme.yaml has 2 problems:\n- label: it is required.\n- experimental: 1 should be true or false."
    )
    assert not caught.value.is_temporary


def paths(value, path=()):
    """Return the way to every value of a profile."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from paths(each, (*path, key))


WHOLE = profile(
    manners={"timeout": "5s", "retries": 3},
    ports={"oid": "3.1", "index": ["slot:8 port:8"], "counts": True},
    jobs=[{"name": "Look", "kind": "table", "every": "5m", "columns": ["state"], "priority": 70}],
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["1.2", "5m"])
ANYTHING = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), below, max_size=3),
)


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None)
@given(path=st.sampled_from([path for path in paths(WHOLE) if path]), written=ANYTHING)
def test_whatever_is_written_in_a_profile_it_is_a_brand_or_told_what_is_wrong(path, written):
    data = copy.deepcopy(WHOLE)
    part = data
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = written

    with contextlib.suppress(BadProfile):
        for column in read_profile(data).columns.values():
            assert column.decode(None) is None
            column.decode(2**64 - 1)
            column.decode(b"9" * 400)
