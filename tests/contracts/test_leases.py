"""What every lease promises: at most one holder per device, and a token that tells it from those before."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from facho.adapters.clock import SystemClock
from facho.adapters.leases.local import LocalLeases
from facho.engine.errors import OltBusy
from facho.store.leases import DbLeases

CENTRAL, NORTE = 1, 2
DEVICES = {CENTRAL: "10.0.0.1:161", NORTE: "10.0.0.2:161"}


@pytest.fixture(params=["local", "database"])
def make_leases(request, make_thread):
    """Return what gives leases as another start, or another process, would have them."""
    if request.param == "local":
        return LocalLeases
    return lambda: DbLeases(make_thread(f"leases-{uuid4().hex}"), SystemClock())


@pytest.fixture
def leases(make_leases):
    return make_leases()


async def test_an_olt_has_one_holder_and_the_refusal_names_it(leases):
    async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]):
        with pytest.raises(OltBusy, match="noc/1"):
            async with leases.hold(CENTRAL, "noc/2", device=DEVICES[CENTRAL]):
                pytest.fail("two held it")


async def test_a_refusal_leaves_the_holder_where_it_is(leases):
    async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]):
        for _ in range(2):
            with pytest.raises(OltBusy):
                await leases.hold(CENTRAL, "noc/2", device=DEVICES[CENTRAL]).__aenter__()


async def test_other_olts_are_not_touched(leases):
    async with (
        leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]) as first,
        leases.hold(NORTE, "noc/2", device=DEVICES[NORTE]) as second,
    ):
        assert (first.olt_id, first.holder) == (CENTRAL, "noc/1")
        assert (second.olt_id, second.holder) == (NORTE, "noc/2")


async def test_two_olts_with_one_device_share_its_lease(leases):
    async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]):
        with pytest.raises(OltBusy, match=r"10\.0\.0\.1:161 is held by noc/1"):
            async with leases.hold(NORTE, "noc/2", device=DEVICES[CENTRAL]):
                pytest.fail("two asked one device")

    async with leases.hold(NORTE, "noc/2", device=DEVICES[CENTRAL]) as lease:
        assert (lease.olt_id, lease.device) == (NORTE, DEVICES[CENTRAL])


async def test_each_holder_has_a_greater_token_than_the_one_before(leases):
    tokens = []
    for _ in range(3):
        async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]) as lease:
            tokens.append(lease.token)

    assert tokens == sorted(set(tokens))


async def test_a_holder_that_fails_gives_it_back(leases):
    with pytest.raises(RuntimeError):
        async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]):
            raise RuntimeError("a defect")

    async with leases.hold(CENTRAL, "noc/2", device=DEVICES[CENTRAL]) as lease:
        assert lease.holder == "noc/2"


async def test_a_holder_that_is_cancelled_gives_it_back(leases):
    async def hold_forever():
        async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]):
            await asyncio.Event().wait()

    task = asyncio.create_task(hold_forever())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    async with leases.hold(CENTRAL, "noc/2", device=DEVICES[CENTRAL]) as lease:
        assert lease.holder == "noc/2"


async def test_a_lease_is_good_as_long_as_it_is_held(leases):
    async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]) as lease:
        assert leases.is_valid(lease)
        assert not leases.is_valid(replace(lease, token=lease.token - 1))

    assert not leases.is_valid(lease)


async def test_who_holds_it_again_cannot_use_the_earlier_lease(leases):
    async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]) as before:
        pass

    async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]) as now:
        assert leases.is_valid(now)
        assert not leases.is_valid(before)


async def test_tokens_go_on_growing_after_a_restart(leases, make_leases):
    async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]) as before:
        pass

    async with make_leases().hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]) as after:
        assert after.token > before.token


async def test_a_token_fits_the_column_that_fences(leases):
    async with leases.hold(CENTRAL, "noc/1", device=DEVICES[CENTRAL]) as lease:
        assert 0 < lease.token < 2**63
