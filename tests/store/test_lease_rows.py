"""Leases in the database: several processes, one holder, and nobody who lost one can go on as if nothing had been."""

import asyncio
import threading

import pytest
from clocks import HandClock
from django.db import DatabaseError, transaction

from facho.apps.polling.models import Lease as LeaseRow
from facho.engine.errors import OltBusy
from facho.store import leases
from facho.store.database import DbThread
from facho.store.leases import OLT_TERMS, DbLeases, Terms

CENTRAL = 7
DEVICE = "10.0.0.7:161"


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def here(make_thread, clock):
    return DbLeases(make_thread("here"), clock)


@pytest.fixture
def there(make_thread, clock):
    return DbLeases(make_thread("there"), clock)


@pytest.fixture
def grab():
    """Take a lease and never give it back: what is held lives as long as the test."""
    held = []

    async def grab(leases: DbLeases, holder: str):
        held.append(leases.hold(CENTRAL, holder, device=DEVICE))
        return await held[-1].__aenter__()

    return grab


async def run_out(thread: DbThread, key: str = leases.key_of(DEVICE)) -> None:
    """Let the database's time pass: the lease is over now."""
    await thread.run(lambda: LeaseRow.objects.filter(key=key).update(expires_at=leases.NEVER))


async def test_two_processes_cannot_hold_one_olt(here, there, grab):
    async with here.hold(CENTRAL, "noc-1/3", device=DEVICE):
        with pytest.raises(OltBusy, match="noc-1/3"):
            await grab(there, "noc-2/1")


async def test_a_released_lease_is_free_whatever_the_clock_of_the_database_says(here, make_thread):
    async with here.hold(CENTRAL, "noc-1/3", device=DEVICE):
        pass

    row = await make_thread("look").run(LeaseRow.objects.get)

    # The time of the release would be in the future after that clock was set back.
    assert row.expires_at == leases.NEVER


async def test_of_many_that_reach_for_it_one_gets_it(make_thread, clock, grab):
    rivals = [DbLeases(make_thread(f"rival-{number}"), clock) for number in range(4)]

    got = await asyncio.gather(
        *(grab(each, f"noc/{number}") for number, each in enumerate(rivals)),
        return_exceptions=True,
    )

    assert sum(not isinstance(each, Exception) for each in got) == 1
    assert [type(each) for each in got if isinstance(each, Exception)] == [OltBusy] * 3


async def test_a_dead_holder_keeps_others_out_until_its_time_is_over(here, there, make_thread, grab):
    thread = make_thread("database")
    dead = await grab(here, "noc-1/3")
    with pytest.raises(OltBusy):
        await grab(there, "noc-2/1")

    await run_out(thread)

    async with there.hold(CENTRAL, "noc-2/1", device=DEVICE) as lease:
        assert lease.token == dead.token + 1


async def test_what_is_renewed_in_time_stays_ours(here, clock):
    async with here.hold(CENTRAL, "noc-1/3", device=DEVICE) as lease:
        for _ in range(10):
            clock.pass_by(OLT_TERMS.renew_every)
            await here.renew()

        assert here.is_valid(lease)


async def test_a_holder_that_was_paused_knows_that_it_is_too_late_before_it_asks_anybody(here, clock):
    async with here.hold(CENTRAL, "noc-1/3", device=DEVICE) as lease:
        clock.pass_by(OLT_TERMS.ttl - OLT_TERMS.margin)

        assert not here.is_valid(lease)


async def test_a_holder_trusts_its_lease_for_a_shorter_time_than_others_wait_for_it():
    assert OLT_TERMS.trusted < OLT_TERMS.ttl.total_seconds()


@pytest.mark.parametrize("seconds", [10, 30, 300])
def test_however_long_a_lease_lasts_several_renewals_may_fail(seconds):
    terms = Terms.lasting(seconds)

    assert terms.ttl.total_seconds() == seconds
    assert 4 * terms.renew_every.total_seconds() <= terms.trusted < seconds


async def test_who_lost_it_to_another_learns_so_at_the_next_renewal(here, there, make_thread):
    thread = make_thread("database")
    async with here.hold(CENTRAL, "noc-1/3", device=DEVICE) as lost:
        await run_out(thread)
        async with there.hold(CENTRAL, "noc-2/1", device=DEVICE) as taken:
            await here.renew()

            assert not here.is_valid(lost)
            assert there.is_valid(taken)


async def test_giving_back_a_lost_lease_does_not_take_it_from_its_present_holder(here, there, make_thread, grab):
    thread = make_thread("database")
    late = here.hold(CENTRAL, "noc-1/3", device=DEVICE)
    await late.__aenter__()
    await run_out(thread)

    async with there.hold(CENTRAL, "noc-2/1", device=DEVICE):
        await late.__aexit__(None, None, None)

        with pytest.raises(OltBusy, match="noc-2/1"):
            await grab(here, "noc-1/3")


async def test_who_lets_go_late_of_what_it_lost_leaves_it_to_who_holds_it_now_in_the_same_process(here, make_thread):
    thread = make_thread("database")
    late = here.hold(CENTRAL, "noc-1/3", device=DEVICE)
    await late.__aenter__()
    await run_out(thread)

    async with here.hold(CENTRAL, "noc-1/4", device=DEVICE) as present:
        await late.__aexit__(None, None, None)

        assert here.is_valid(present)


async def test_a_revoked_lease_is_not_renewed_and_not_free_either(here, there, make_thread, grab):
    thread = make_thread("database")
    async with here.hold(CENTRAL, "noc-1/3", device=DEVICE) as lease:
        await thread.run(lambda: leases.revoke([(DEVICE, lease.token)]))
        await here.renew()

        assert not here.is_valid(lease)
        with pytest.raises(OltBusy):
            await grab(there, "noc-2/1")

    async with there.hold(CENTRAL, "noc-2/1", device=DEVICE) as next_one:
        assert there.is_valid(next_one)


async def test_a_database_that_is_unavailable_leaves_a_lease_as_long_as_it_is_good(here, clock, monkeypatch):
    async with here.hold(CENTRAL, "noc-1/3", device=DEVICE) as lease:
        with monkeypatch.context() as patch:
            patch.setattr(leases, "renew", raise_away)
            clock.pass_by(OLT_TERMS.renew_every)
            await here.renew()
            assert here.is_valid(lease)

            clock.pass_by(OLT_TERMS.ttl)
            await here.renew()
            assert not here.is_valid(lease)


async def test_a_database_that_is_unavailable_at_the_end_is_no_reason_to_fail(here, monkeypatch):
    with monkeypatch.context() as patch:
        async with here.hold(CENTRAL, "noc-1/3", device=DEVICE):
            patch.setattr(leases, "release", raise_away)


def raise_away(*_):
    raise DatabaseError("the server closed the connection")


async def test_who_is_stopped_while_reaching_for_it_leaves_it_free(here, there, grab):
    reaching = asyncio.ensure_future(grab(here, "noc-1/3"))
    await asyncio.sleep(0)
    reaching.cancel()
    await asyncio.gather(reaching, return_exceptions=True)

    async with there.hold(CENTRAL, "noc-2/1", device=DEVICE) as lease:
        assert there.is_valid(lease)


async def test_who_is_stopped_while_the_database_goes_away_is_stopped_all_the_same(here, grab, monkeypatch):
    go_on = threading.Event()

    def acquire(*_):
        go_on.wait()
        raise_away()

    monkeypatch.setattr(leases, "acquire", acquire)
    reaching = asyncio.ensure_future(grab(here, "noc-1/3"))
    await asyncio.sleep(0)
    reaching.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(reaching, return_exceptions=True)

    assert reaching.cancelled()


async def test_the_lock_of_a_lease_is_for_its_token_alone(here, make_thread):
    thread = make_thread("database")
    async with here.hold(CENTRAL, "noc-1/3", device=DEVICE) as lease:
        locked = [await thread.run(lambda token=token: _lock(token)) for token in (lease.token, lease.token - 1)]

    assert locked == [True, False]


def _lock(token: int) -> bool:
    with transaction.atomic():
        return leases.lock(leases.key_of(DEVICE), token)
