"""A name server that is slow or down holds nobody up."""

import threading

import pytest

from facho.adapters.resolver import MAX_THREADS, Resolver, look_up


@pytest.fixture
def silence():
    """A name server that does not answer until the test is over."""
    over = threading.Event()
    yield over
    over.set()


@pytest.fixture
def mute(silence):
    asked = []

    def look_up(name):
        asked.append(name)
        silence.wait()
        return ()

    resolver = Resolver(look_up)
    resolver.asked = asked
    return resolver


def test_the_system_finds_this_machine():
    assert "127.0.0.1" in look_up("localhost")


@pytest.mark.parametrize("name", ["a..b", "x" * 64 + ".net", "no-such-name.invalid"])
def test_what_has_no_address_is_an_error_and_no_crash(name):
    with pytest.raises(OSError, match=r"\w"):
        look_up(name)


def test_a_result_is_remembered():
    names = []

    def look_up(name):
        names.append(name)
        return ("10.0.0.7",)

    resolver = Resolver(look_up)

    assert [resolver.resolve("olt-7", timeout=5) for _ in range(3)] == [("10.0.0.7",)] * 3
    assert resolver.remembered("olt-7") == ("10.0.0.7",)
    assert names == ["olt-7"]


def test_a_name_that_is_not_known_has_no_addresses():
    def look_up(name):
        raise OSError("no such name")

    assert Resolver(look_up).resolve("olt-7", timeout=5) == ()


def test_a_thousand_names_without_a_name_server_cost_one_time_out(mute):
    mute.resolve_all([f"olt-{number}" for number in range(1000)], timeout=0.01)
    afterwards = mute.resolve("olt-7", timeout=600)

    assert len(mute.asked) <= MAX_THREADS
    assert afterwards == ()


async def test_a_lookup_that_takes_too_long_is_given_up_and_others_are_not_begun(mute):
    with pytest.raises(TimeoutError, match="no answer"):
        await mute.find("olt-7", timeout=0.01)
    with pytest.raises(TimeoutError, match="still wait"):
        await mute.find("olt-8", timeout=600)


async def test_names_are_found_without_the_loop_waiting():
    resolver = Resolver(lambda name: ("10.0.0.7",))

    assert await resolver.find("olt-7", timeout=5) == ("10.0.0.7",)
