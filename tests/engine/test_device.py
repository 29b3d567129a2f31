"""One text for every spelling of an address."""

import pytest

from facho.engine.device import HostAddress, address_order, sort_addresses
from facho.engine.snmp import Agent, Community, Version


@pytest.mark.parametrize(
    ("host", "device"),
    [
        pytest.param("10.0.0.7", "10.0.0.7:161", id="IPv4"),
        pytest.param("::ffff:10.0.0.7", "10.0.0.7:161", id="IPv4 in IPv6"),
        pytest.param("::FFFF:0a00:0007", "10.0.0.7:161", id="IPv4 in IPv6, in hexadecimal"),
        pytest.param("2001:DB8:0:0::0007", "[2001:db8::7]:161", id="IPv6 in another spelling"),
        pytest.param("localhost", "127.0.0.1:161", id="this machine"),
        pytest.param("LocalHost.", "127.0.0.1:161", id="this machine with a dot"),
        pytest.param("0.0.0.0", "127.0.0.1:161", id="the unspecified address leads to this machine"),
        pytest.param("OLT-7.Example.net.", "olt-7.example.net:161", id="a name that has no address yet"),
    ],
)
def test_a_device_has_one_spelling(host, device):
    assert HostAddress(host, 161).device == device
    assert Agent(host, 161, Version.V2C, Community("public")).device == device


def test_a_name_is_at_the_first_of_its_addresses():
    where = HostAddress("olt-7.example.net", 161, "olt-7.example.net", ("10.0.0.7", "10.0.0.8"))

    assert (where.address, where.device) == ("10.0.0.7", "10.0.0.7:161")


def test_a_name_that_was_changed_has_no_address_of_the_one_before():
    where = HostAddress("olt-8.example.net", 161, "olt-7.example.net", ("10.0.0.7",))

    assert (where.address, where.device) == ("", "olt-8.example.net:161")


def test_the_device_of_an_agent_is_the_address_that_it_is_asked_at():
    agent = Agent("olt-7.example.net", 161, Version.V2C, Community("public"), "10.0.0.7")

    assert (agent.target, agent.device) == ("10.0.0.7", "10.0.0.7:161")


def named(*addresses, port=161):
    return HostAddress("olt", port, "olt", addresses)


@pytest.mark.parametrize(
    ("hosts", "asked"),
    [
        pytest.param([named("2001:db8::1", "10.0.0.9", "10.0.0.8")], ["10.0.0.8"], id="IPv4 first, then the lower one"),
        pytest.param(
            [named("10.0.0.1", "10.0.0.2"), named("10.0.0.2", "10.0.0.3")], ["10.0.0.2"] * 2, id="a common one"
        ),
        pytest.param(
            [named("10.0.0.1", "2001:db8::1"), HostAddress("2001:db8::1", 161)], ["2001:db8::1"] * 2, id="IPv6"
        ),
        pytest.param(
            [named("10.0.0.1", "10.0.0.2"), HostAddress("10.0.0.2", 162)], ["10.0.0.1", "10.0.0.2"], id="port"
        ),
    ],
)
def test_olts_with_a_common_address_are_asked_there(hosts, asked):
    found = sort_addresses(dict(enumerate(hosts)))

    assert [found[number][0] for number in range(len(hosts))] == asked


def test_rotated_answers_of_a_name_server_do_not_move_an_olt():
    assert min(["10.0.0.10", "10.0.0.9"], key=address_order) == "10.0.0.9"
