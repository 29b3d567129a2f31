"""What an unknown agent turns out to be, from what it says and from the tables it answers."""

from datetime import timedelta

import pytest
from probe_fakes import (
    ACME,
    CENTRAL,
    CENTRAL_V1,
    OTHER,
    SYSTEM,
    MemoryAgent,
    garbled,
    make_brand,
    onu_rows,
    silent,
)

from facho.engine.detect.detect import SYS_DESCR, SYS_NAME, identify
from facho.engine.errors import NoAnswer, OltUnreachable, Refused
from facho.engine.oid import parse
from facho.engine.snmp import ErrorStatus

ACME_BRAND = make_brand()
OTHER_BRAND = make_brand("other", OTHER)


def by_object_id(*brands):
    """The registry's `candidates`, as far as these tests need it."""

    def candidates(object_id, descr):
        return [each for each in brands if object_id.startswith(each.sys_object_ids[0])]

    return candidates


EITHER = by_object_id(ACME_BRAND, OTHER_BRAND)


async def ask(agent, *, whom=CENTRAL, candidates=EITHER, seconds=60, **more):
    deadline = agent.clock.now() + timedelta(seconds=seconds)
    return await identify(whom, snmp=agent, clock=agent.clock, deadline=deadline, candidates=candidates, **more)


async def test_an_olt_says_what_it_is_and_its_tables_agree():
    agent = MemoryAgent(SYSTEM | onu_rows(7))

    found = await ask(agent)

    assert found.brand is ACME_BRAND
    assert found.sys_descr == "ACME Access"
    assert found.sys_object_id == f"{ACME}.1.7"
    assert found.sys_name == "OLT-CENTRAL-01"
    assert found.uptime == timedelta(hours=1)
    assert found.remark == ""
    assert [kind for kind, _, _ in agent.asked] == ["get", "get_next"]
    assert (found.traffic.pdus, found.traffic.retransmissions) == (2, 0)


@pytest.mark.parametrize(
    ("empty", "full"),
    [
        pytest.param(ACME, OTHER, id="nothing follows the empty table"),
        pytest.param(OTHER, ACME, id="rows of another table follow it"),
    ],
)
async def test_of_brands_that_share_an_object_id_the_one_whose_table_has_rows_wins(empty, full):
    first, second = (make_brand(root=root, sys_object_ids=(parse(ACME),)) for root in (empty, full))
    agent = MemoryAgent(SYSTEM | onu_rows(7, full))

    found = await ask(agent, candidates=by_object_id(first, second))

    assert found.brand is second
    assert found.remark == ""


async def test_an_olt_without_onus_is_the_only_fitting_brand_and_says_why_that_is_not_sure():
    found = await ask(MemoryAgent(SYSTEM), candidates=by_object_id(ACME_BRAND))

    assert found.brand is ACME_BRAND
    assert "its ONU tables are empty" in found.remark


async def test_an_olt_without_onus_that_may_be_of_several_brands_is_left_to_a_person():
    found = await ask(MemoryAgent(SYSTEM), candidates=by_object_id(ACME_BRAND, make_brand("shared", ACME)))

    assert found.brand is None
    assert "cannot tell until the OLT has ONUs" in found.remark


async def test_a_brand_without_a_probe_is_identified_by_its_first_column():
    plain = make_brand("plain", ACME, probe=None)

    found = await ask(MemoryAgent(SYSTEM | onu_rows(7)), candidates=by_object_id(plain))

    assert (found.brand, found.remark) == (plain, "")


async def test_an_agent_that_reports_something_unheard_of_is_identified_by_the_tables_it_answers():
    strange = SYSTEM | {"1.3.6.1.2.1.1.2.0": parse("1.3.6.1.4.1.8072.3.2.10"), "1.3.6.1.2.1.1.1.0": b"Linux"}
    agent = MemoryAgent(strange | onu_rows(7, OTHER))

    found = await ask(agent, brands=[make_brand("blind", OTHER, probe=None), ACME_BRAND, OTHER_BRAND])

    assert found.brand is OTHER_BRAND
    assert found.remark == "It does not report its model, but it answers the tables of Other."


async def test_where_nothing_fits_a_person_reads_what_was_seen_and_what_to_do():
    strange = SYSTEM | {"1.3.6.1.2.1.1.2.0": parse("1.3.6.1.4.1.8072.3.2.10"), "1.3.6.1.2.1.1.1.0": b"Linux box"}

    found = await ask(MemoryAgent(strange), brands=[ACME_BRAND, OTHER_BRAND])

    assert found.brand is None
    assert found.remark == (
        "It reports 'Linux box', sysObjectID 1.3.6.1.4.1.8072.3.2.10; no known brand matches. "
        "Set the brand manually, or add a profile for it."
    )


@pytest.mark.parametrize("whom", [pytest.param(CENTRAL, id="v2c"), pytest.param(CENTRAL_V1, id="v1 refuses all four")])
async def test_an_agent_without_a_name_is_known_by_the_rest(whom):
    nameless = {name: value for name, value in SYSTEM.items() if name != "1.3.6.1.2.1.1.5.0"}

    found = await ask(MemoryAgent(nameless | onu_rows(7)), whom=whom)

    assert found.brand is ACME_BRAND
    assert (found.sys_name, found.sys_descr) == ("", "ACME Access")


async def test_an_agent_without_a_description_is_identified_by_its_tables():
    found = await ask(MemoryAgent(onu_rows(7)), brands=[ACME_BRAND])

    assert found.brand is ACME_BRAND
    assert (found.sys_descr, found.sys_object_id, found.uptime) == ("", "", None)


async def test_what_trips_over_one_question_is_asked_them_one_by_one():
    def trouble(oids, times):
        return ErrorStatus.GEN_ERR if SYS_NAME in oids else None

    found = await ask(MemoryAgent(SYSTEM | onu_rows(7), trouble=trouble))

    assert (found.brand, found.sys_name, found.sys_descr) == (ACME_BRAND, "", "ACME Access")


async def test_a_lost_answer_is_asked_for_again_and_counted():
    def trouble(oids, times):
        return NoAnswer("lost") if times == 1 else None

    found = await ask(MemoryAgent(SYSTEM | onu_rows(7), trouble=trouble))

    assert found.brand is ACME_BRAND
    assert (found.traffic.pdus, found.traffic.retransmissions) == (4, 2)


@pytest.mark.parametrize("trouble", [pytest.param(silent, id="silence"), pytest.param(garbled, id="only garbage")])
async def test_an_agent_without_a_usable_answer_is_unreachable_and_its_cost_is_known(trouble):
    agent = MemoryAgent(SYSTEM, trouble=trouble)

    with pytest.raises(OltUnreachable, match=r"192\.0\.2\.1 port 161 gave no usable answer") as caught:
        await ask(agent)

    assert caught.value.traffic.pdus == len(agent.asked)
    assert "secret" not in str(caught.value)


async def test_silence_costs_three_requests_and_no_more():
    agent = MemoryAgent(SYSTEM, trouble=silent)

    with pytest.raises(OltUnreachable):
        await ask(agent)

    assert len(agent.asked) == 3


async def test_nobody_is_asked_after_the_deadline():
    agent = MemoryAgent(SYSTEM, trouble=silent)

    with pytest.raises(OltUnreachable):
        await ask(agent, seconds=4)

    assert agent.clock.elapsed == pytest.approx(4)
    assert len(agent.asked) == 2


async def test_a_deadline_in_the_middle_says_that_not_every_brand_was_tried():
    strange = {"1.3.6.1.2.1.1.1.0": b"Linux"}

    def trouble(oids, times):
        return None if SYS_DESCR in oids else NoAnswer("lost")

    found = await ask(MemoryAgent(strange, trouble=trouble), brands=[ACME_BRAND, OTHER_BRAND], seconds=5)

    assert found.brand is None
    assert "the time limit was reached before all brands were tried" in found.remark


async def test_who_is_refused_is_told_so():
    def trouble(oids, times):
        return Refused("192.0.2.1 does not know user noc")

    with pytest.raises(Refused, match="does not know user noc"):
        await ask(MemoryAgent(SYSTEM, trouble=trouble))


async def test_an_object_id_that_is_cut_off_is_none_at_all():
    broken = SYSTEM | {"1.3.6.1.2.1.1.2.0": b"\x2b\x86"}

    found = await ask(MemoryAgent(broken | onu_rows(7)), candidates=lambda object_id, descr: [])

    assert found.sys_object_id == ""


async def test_what_is_lost_of_a_quick_agent_is_not_waited_for_long():
    quick = MemoryAgent(SYSTEM | onu_rows(7), latency=0.02)
    lossy = MemoryAgent(SYSTEM | onu_rows(7), latency=0.02, trouble=first_time_silent(ACME_BRAND.probe))

    await ask(quick)
    await ask(lossy)

    assert lossy.clock.elapsed - quick.clock.elapsed == pytest.approx(1.0)


def first_time_silent(oid):
    def trouble(oids, times):
        return NoAnswer("no answer") if oid in oids and times == 1 else None

    return trouble
