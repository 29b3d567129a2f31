"""A run from memory: it asks what the last run asked, decodes what changed, and never says anything else."""

from dataclasses import replace
from datetime import timedelta

import pytest
from collect_fakes import (
    COLUMNS,
    RAW_DECODERS,
    FakeAgent,
    FakeClock,
    Faults,
    at,
    check_same,
    index_of,
    known,
    make_brand,
    make_mib,
    make_node,
    make_olt,
    oid_of,
    one_port,
    values_of,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from examples import examples
from facho.adapters.snmp import codec
from facho.adapters.snmp.codec import PduType
from facho.engine.brand import PortTable
from facho.engine.collect import Memory, collect
from facho.engine.collect.replay import FEW_REPLAYS, MAX_REPLAYS, Memories
from facho.engine.errors import FachoError
from facho.engine.model import Completeness, JobKind, RawOid
from facho.engine.oid import Oid, parse
from facho.engine.snmp import Answer, Asked, Missing, SendByTask, Version

ONUS = [*one_port(7, port=1), *one_port(5, port=2)]
FIELDS = ("serial", "name", "state", "distance_m", "rx_dbm", "tx_dbm")
KINDS = (JobKind.DISCOVERY, JobKind.TABLE, JobKind.WALK, JobKind.GET)


class OverTheWire(SendByTask):
    """A fake agent whose answers are encoded and read again, as those of a real one are."""

    def __init__(self, agent):
        self.agent = agent
        self.clock = agent.clock

    async def get(self, agent, oids, **how):
        return self._sent(oids, await self.agent.get(agent, oids, **how))

    async def get_next(self, agent, oids, **how):
        return self._sent(oids, await self.agent.get_next(agent, oids, **how))

    async def get_bulk(self, agent, oids, **how):
        return self._sent(oids, await self.agent.get_bulk(agent, oids, **how))

    def _sent(self, oids, answer: Answer) -> Answer:
        request = codec.Request(Version.V2C, b"public", PduType.GET, codec.MIN_REQUEST_ID, 0, 0, ())
        variables = zip(answer.oids, answer.tags, answer.values, strict=True)
        data = codec.encode_response(request, answer.error_status, answer.error_index, variables)
        envelope = codec.open_answer(data)
        return codec.unread_answer(envelope, oids) if isinstance(oids, Asked) else codec.read_answer(envelope)


class Stage:
    """One OLT and one job, run after run."""

    def __init__(self, kind=JobKind.TABLE, *fields, onus=ONUS, over_the_wire=True, brand=None, **olt):
        self.mib = make_mib(onus)
        self.faults = Faults()
        self.path = ()
        self.disorder = None
        self.node = make_node(kind, *(fields or FIELDS))
        self.brand = brand or make_brand()
        self.onus = known(onus)
        self.memory = Memory(max_unsettled=0)
        self._olt = make_olt(**olt)
        self._is_wire = over_the_wire

    def agent(self):
        return FakeAgent(FakeClock(), self.mib, self.faults, path=self.path)

    async def run(self, *, memory: bool = True):
        agent = self.agent()
        collected = await collect(
            self.node,
            self._olt,
            self.brand,
            snmp=OverTheWire(agent) if self._is_wire else agent,
            clock=agent.clock,
            deadline=agent.clock.now() + timedelta(seconds=300),
            known=self.onus,
            raw_decoders=RAW_DECODERS,
            memory=self.memory if memory else None,
        )
        self.log = agent.log
        if memory:
            self._olt = replace(self._olt, learned=collected.learned)
        return collected

    async def run_both_ways(self):
        """Run with memory and without; return the result with it."""
        olt = self._olt
        results = []
        for memory in (False, True):
            self._olt = olt
            try:
                results.append(await self.run(memory=memory))
            except FachoError as error:
                results.append(error)
        careful, replayed = results
        if any(isinstance(each, FachoError) for each in results):
            assert type(replayed) is type(careful)
        elif self.disorder is None or replayed.traffic.sizes == careful.traffic.sizes:
            # Which rows of an agent without order a walk meets depends on how many it asks for at once.
            check_same(self.faults, replayed, careful)
        return replayed


@pytest.mark.parametrize("over_the_wire", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_in_which_nothing_changed_decodes_nothing_and_keeps_every_list(kind, over_the_wire):
    stage = Stage(kind, over_the_wire=over_the_wire)
    first = await stage.run()
    asked = [(request.kind, request.oids, request.repetitions) for request in stage.log]

    second = await stage.run_both_ways()

    assert second.traffic.answers_unchanged == second.traffic.pdus
    assert second.traffic.answers_decoded == second.traffic.answers_parsed == 0
    assert second.batch.layout is first.batch.layout
    assert all(second.batch.columns[field] is first.batch.columns[field] for field in FIELDS)
    assert [(request.kind, request.oids, request.repetitions) for request in stage.log] == asked


@pytest.mark.parametrize(("over_the_wire", "way"), [(True, "answers_parsed"), (False, "answers_decoded")])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_changed_value_gives_one_new_list(kind, over_the_wire, way):
    stage = Stage(kind, over_the_wire=over_the_wire)
    first = await stage.run()
    stage.mib[oid_of("rx_dbm", ONUS[3])] = -3000

    second = await stage.run_both_ways()

    assert values_of(second)[index_of(ONUS[3])]["rx_dbm"] == -30.0
    assert getattr(second.traffic, way) > 0
    # A walk may read a row twice, where one column ends and the next begins.
    assert second.traffic.answers_unchanged >= second.traffic.pdus - 2
    changed = [field for field in FIELDS if second.batch.columns[field] is not first.batch.columns[field]]
    assert changed == ["rx_dbm"]
    assert (await stage.run()).traffic.answers_unchanged == second.traffic.pdus


@pytest.mark.parametrize("kind", KINDS)
async def test_no_request_is_sent_twice_where_the_careful_path_takes_over(kind):
    stage = Stage(kind)
    await stage.run()
    # A string instead of a number: the last ONU of the last cheap column.
    stage.mib[oid_of("distance_m", ONUS[-1])] = b"far"

    collected = await stage.run_both_ways()

    assert collected.errors == ("distance_m: could not be decoded for 1 ONUs",)
    assert collected.traffic.answers_unchanged == 0
    requests = [(request.kind, tuple(request.oids), request.repetitions) for request in stage.log]
    assert len(set(requests)) == len(requests)


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.GET])
async def test_an_onu_that_lost_its_light_is_not_asked_for_its_power(kind):
    stage = Stage(kind)
    await stage.run()
    stage.mib[oid_of("state", ONUS[2])] = 2

    collected = await stage.run_both_ways()

    assert values_of(collected)[index_of(ONUS[2])]["rx_dbm"] is None
    assert not any(oid_of("rx_dbm", ONUS[2]) in request.oids for request in stage.log)
    requests = [(request.kind, tuple(request.oids), request.repetitions) for request in stage.log]
    assert len(set(requests)) == len(requests)
    assert collected.traffic.answers_unchanged > 0

    stage.mib[oid_of("state", ONUS[2])] = 1
    stage.mib[oid_of("rx_dbm", ONUS[2])] = -2500

    collected = await stage.run_both_ways()

    assert values_of(collected)[index_of(ONUS[2])]["rx_dbm"] == -25.0
    assert collected.traffic.answers_unchanged > 0
    again = await stage.run_both_ways()
    assert again.traffic.answers_unchanged == again.traffic.pdus


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.GET])
async def test_an_outage_of_many_onus_is_left_to_the_careful_path(kind, monkeypatch):
    monkeypatch.setattr("facho.engine.collect.replay.MOST_CHANGED", 2)
    stage = Stage(kind)
    await stage.run()
    stage.mib |= {oid_of("state", onu): 2 for onu in ONUS[:3]}

    collected = await stage.run_both_ways()

    assert collected.traffic.answers_unchanged == 0
    again = await stage.run_both_ways()
    assert again.traffic.answers_unchanged == again.traffic.pdus


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.GET])
async def test_an_onu_with_light_again_that_has_no_power_yet_is_left_to_the_careful_path(kind):
    stage = Stage(kind)
    stage.mib[oid_of("state", ONUS[2])] = 2
    await stage.run()
    stage.mib[oid_of("state", ONUS[2])] = 1
    stage.mib[oid_of("rx_dbm", ONUS[2])] = Missing.NO_SUCH_INSTANCE

    collected = await stage.run_both_ways()

    assert values_of(collected)[index_of(ONUS[2])]["rx_dbm"] is None


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.GET])
async def test_the_first_onu_with_light_is_asked_for_its_power(kind):
    stage = Stage(kind, "state", "rx_dbm")
    stage.mib |= {oid_of("state", onu): 2 for onu in ONUS}
    assert {values["rx_dbm"] for values in values_of(await stage.run()).values()} == {None}
    stage.mib[oid_of("state", ONUS[2])] = 1

    collected = await stage.run_both_ways()

    assert values_of(collected)[index_of(ONUS[2])]["rx_dbm"] == -21.53


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.GET])
async def test_an_onu_without_a_row_of_its_state_has_that_of_the_inventory(kind):
    stage = Stage(kind, "serial", "state", "rx_dbm")
    del stage.mib[oid_of("state", ONUS[0])]
    await stage.run()
    stage.onus = [*known(ONUS[:1], "offline"), *known(ONUS[1:])]

    collected = await stage.run_both_ways()

    assert values_of(collected)[index_of(ONUS[0])]["rx_dbm"] is None
    assert not any(oid_of("rx_dbm", ONUS[0]) in request.oids for request in stage.log)


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
async def test_a_state_that_changed_in_the_inventory_counts_where_none_is_read(kind):
    stage = Stage(kind, "name", "rx_dbm")
    await stage.run()
    stage.onus = [*known(ONUS[:1], "offline"), *known(ONUS[1:])]

    collected = await stage.run_both_ways()

    assert values_of(collected)[index_of(ONUS[0])]["rx_dbm"] is None


async def test_an_undecodable_value_of_an_onu_that_is_not_listed_is_reported():
    stage = Stage(JobKind.DISCOVERY, "serial", "name")
    stage.mib[oid_of("serial", ONUS[0])] = Missing.NO_SUCH_OBJECT
    await stage.run()
    stage.mib[oid_of("name", ONUS[0])] = 1

    collected = await stage.run_both_ways()

    assert collected.errors == ("name: could not be decoded for 1 ONUs",)


async def test_a_state_that_a_get_has_to_walk_comes_too_late_to_decide_who_is_asked():
    state = COLUMNS["state"]
    walked = replace(state, space=replace(state.space, by_index=False))
    stage = Stage(JobKind.GET, "state", "rx_dbm", brand=make_brand(columns={**COLUMNS, "state": walked}))
    await stage.run()
    stage.mib[oid_of("state", ONUS[2])] = 2

    collected = await stage.run_both_ways()

    assert values_of(collected)[index_of(ONUS[2])] == {"state": "offline", "rx_dbm": -21.53}
    assert collected.traffic.answers_parsed > 0


@pytest.mark.parametrize("kind", KINDS)
async def test_two_columns_and_two_scalars_with_one_oid_both_get_new_values(kind):
    stage = Stage(kind, "distance_m")
    column, scalar = COLUMNS["distance_m"].oid, parse("1.3.6.1.4.1.99999.8.0")
    stage.mib[scalar] = 1
    oids = [RawOid(name, column, "number") for name in ("length_a", "length_b")]
    oids += [RawOid(name, scalar, "number", scalar=True) for name in ("fans_a", "fans_b")]
    stage.node = replace(stage.node, oids=tuple(oids))
    await stage.run()
    stage.mib |= {scalar: 2, oid_of("distance_m", ONUS[3]): 1234}

    collected = await stage.run_both_ways()

    assert collected.scalars == {"fans_a": 2, "fans_b": 2}
    values = values_of(collected)[index_of(ONUS[3])]
    assert [values[name] for name in ("distance_m", "length_a", "length_b")] == [1234] * 3


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_without_variables_is_asked_for_again(kind):
    stage = Stage(kind)
    await stage.run()
    stage.faults = Faults(empty_every=3)

    collected = await stage.run_both_ways()

    assert collected.traffic.retransmissions > 0
    assert collected.traffic.answers_unchanged == collected.traffic.pdus - collected.traffic.retransmissions


async def test_a_port_that_counts_more_onus_than_it_lists_ends_the_replay():
    column = parse("1.3.6.1.4.1.99999.9")
    ports = PortTable(column, lambda arcs: replace(at(0, arcs[0], 0), onu=None), counts=True)
    stage = Stage(JobKind.DISCOVERY, "serial", "state", brand=make_brand(ports=ports))
    stage.mib |= {Oid(column + b"\x01"): 7, Oid(column + b"\x02"): 5}
    assert (await stage.run()).completeness is Completeness.COMPLETE
    stage.mib[Oid(column + b"\x02")] = 6

    collected = await stage.run_both_ways()

    assert collected.completeness is Completeness.PARTIAL


async def test_rules_are_applied_again_to_onus_that_changed():
    def finish(row):
        return row if row["state"] == "online" else {**row, "distance_m": None, "down_cause": "fiber"}

    stage = Stage(JobKind.TABLE, "state", "distance_m", brand=make_brand(finish=finish))
    await stage.run()
    stage.mib[oid_of("state", ONUS[2])] = 2
    collected = await stage.run_both_ways()
    assert values_of(collected)[index_of(ONUS[2])] == {"state": "offline", "distance_m": None, "down_cause": "fiber"}
    stage.mib[oid_of("state", ONUS[2])] = 1

    collected = await stage.run_both_ways()

    assert values_of(collected)[index_of(ONUS[2])] == {"state": "online", "distance_m": 700}
    assert collected.traffic.answers_decoded == 0


async def test_another_job_another_brand_and_other_known_onus_are_not_what_was_remembered():
    stage = Stage(JobKind.TABLE, "serial")
    await stage.run()
    stage.node = make_node(JobKind.TABLE, "name")
    assert (await stage.run()).traffic.answers_unchanged == 0
    stage.brand = make_brand(label="Acme 2")
    assert (await stage.run()).traffic.answers_unchanged == 0
    stage.onus = known(ONUS[1:])
    assert (await stage.run()).traffic.answers_unchanged == 0
    assert (await stage.run()).traffic.answers_unchanged > 0


async def test_once_in_a_while_a_run_goes_the_careful_way():
    stage = Stage(JobKind.TABLE, "serial", onus=ONUS[:2])
    careful = [(await stage.run()).traffic.answers_unchanged == 0 for _ in range(MAX_REPLAYS + 3)]
    assert [run for run, was_careful in enumerate(careful) if was_careful] == [0, MAX_REPLAYS + 1]


async def test_while_sizes_are_not_settled_runs_are_replayed_and_full_runs_come_sooner():
    stage = Stage(JobKind.TABLE, "serial")
    stage.memory = Memory(max_unsettled=2)
    full = [(await stage.run()).traffic.answers_unchanged == 0 for _ in range(FEW_REPLAYS + 3)]
    # The first run started without a size for its table, and ended with one.
    assert [run for run, was_full in enumerate(full) if was_full] == [0, FEW_REPLAYS + 1]


def test_the_memory_that_was_not_used_for_longest_goes_first():
    memories = Memories(limit=2)
    first, second = memories.of(1), memories.of(2)
    assert memories.of(1) is first
    memories.of(3)
    assert memories.of(1) is first
    assert memories.of(2) is not second


PLACES = [at(0, port, onu) for port in (1, 2, 3) for onu in range(1, 6)]
places = st.sampled_from(PLACES)
fields = st.sampled_from(FIELDS)
numbers = st.one_of(st.integers(1, 2), st.integers(-3000, 3000), st.just(2147483647))
values = st.one_of(numbers, st.binary(max_size=9), st.none(), st.sampled_from(Missing))
changes = st.one_of(
    st.tuples(st.just("value"), st.just("state"), places, st.integers(1, 2)),
    st.tuples(st.just("value"), fields, places, numbers),
    st.tuples(st.just("odd value"), fields, places, values),
    st.tuples(st.just("all states"), st.integers(1, 2)),
    st.tuples(st.just("known state"), places, st.sampled_from(["online", "offline"])),
    st.tuples(st.just("add"), places),
    st.tuples(st.just("remove"), places),
    st.tuples(st.just("drop one row"), fields, places),
    st.tuples(st.just("disorder"), st.randoms(use_true_random=False)),
    st.tuples(st.just("order")),
    st.tuples(
        st.just("faults"),
        st.sampled_from(
            [
                Faults(drop_every=3),
                Faults(garbage_every=4),
                Faults(empty_every=5),
                Faults(too_big_above=6),
                Faults(most_variables=7),
                Faults(lost_above=9),
                Faults(gen_err_at=frozenset({oid_of("serial", PLACES[2])})),
                Faults(silent_at=frozenset({oid_of("rx_dbm", PLACES[7])})),
                Faults(dies_after=4),
                Faults(jumps={9: 4}),
            ]
        ),
    ),
    st.tuples(st.just("none")),
)


def change(stage, what, *how):
    if what in ("value", "odd value"):
        field, place, value = how
        if oid_of(field, place) in stage.mib:
            is_text = field in ("serial", "name") and what == "value"
            stage.mib[oid_of(field, place)] = b"%d" % value if is_text else value
    elif what == "all states":
        stage.mib |= {oid: how[0] for place in PLACES if (oid := oid_of("state", place)) in stage.mib}
    elif what == "known state":
        place, state = how
        stage.onus = [replace(onu, state=state) if onu.index == index_of(place) else onu for onu in stage.onus]
    elif what == "add":
        stage.mib |= make_mib(how)
    elif what == "remove":
        stage.mib = {
            oid: value for oid, value in stage.mib.items() if oid not in make_mib(how, COLUMNS) or len(oid) < 9
        }
    elif what == "drop one row":
        stage.mib.pop(oid_of(*how), None)
    elif what == "faults":
        stage.faults = how[0]
    elif what in ("disorder", "order"):
        stage.disorder = how[0].random() if how else None


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@example(
    kind=JobKind.GET,
    over_the_wire=False,
    chosen=["state", "rx_dbm"],
    window=1,
    story=[[], [("value", "state", PLACES[0], 2)]],
)
@given(
    kind=st.sampled_from(KINDS),
    over_the_wire=st.booleans(),
    chosen=st.lists(fields, min_size=1, max_size=4, unique=True),
    window=st.sampled_from([1, 4]),
    story=st.lists(st.lists(changes, max_size=3), min_size=2, max_size=6),
)
async def test_whatever_happens_between_runs_memory_changes_nothing_that_is_told(
    kind, over_the_wire, chosen, window, story
):
    stage = Stage(kind, *chosen, onus=PLACES[:9], over_the_wire=over_the_wire, max_in_flight=window)
    for steps in story:
        stage.faults = Faults()
        for step in steps:
            change(stage, *step)
        stage.path = sorted(stage.mib)
        if stage.disorder is not None:
            at_place = int(stage.disorder * len(stage.path))
            stage.path = [*stage.path[at_place:], *stage.path[:at_place]]
        else:
            stage.path = ()
        await stage.run_both_ways()
