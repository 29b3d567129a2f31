"""Where channels may connect to: decided by the address that a socket really connects to."""

import pytest

from contracts.test_notifier import MESSAGE, SECRET, WORLDS, failure
from facho.alerts.channels.apprise import Apprise
from facho.alerts.channels.destinations import guarded, is_refused, refusal
from facho.alerts.channels.email import Email
from facho.alerts.channels.slack import Slack
from facho.alerts.channels.telegram import Telegram
from facho.alerts.channels.webhook import Webhook

METADATA = "169.254.169.254"


@pytest.fixture(params=WORLDS)
def world(request):
    world = WORLDS[request.param]()
    yield world
    world.server.close()


@pytest.mark.parametrize(
    ("address", "hosts", "is_allowed"),
    [
        pytest.param("10.0.0.7", (), True, id="private"),
        pytest.param("127.0.0.1", (), True, id="loopback"),
        pytest.param("::1", (), True, id="IPv6 loopback"),
        pytest.param("fd00::7", (), True, id="IPv6 private"),
        pytest.param("93.184.216.34", (), True, id="public"),
        pytest.param(METADATA, (), False, id="metadata of most clouds"),
        pytest.param("169.254.0.7", (), False, id="link-local"),
        pytest.param("fe80::7%eth0", (), False, id="IPv6 link-local with a zone"),
        pytest.param("fd00:ec2::254", (), False, id="metadata of AWS over IPv6"),
        pytest.param("100.100.100.200", (), False, id="metadata of Alibaba"),
        pytest.param("192.0.0.192", (), False, id="metadata of Oracle"),
        pytest.param(f"::ffff:{METADATA}", (), False, id="metadata as mapped IPv6"),
        pytest.param("64:ff9b::a9fe:a9fe", (), False, id="metadata through NAT64"),
        pytest.param("2002:a9fe:a9fe::1", (), False, id="metadata through 6to4"),
        pytest.param("0.0.0.0", (), False, id="unspecified"),
        pytest.param("224.0.0.1", (), False, id="multicast"),
        pytest.param("10.0.0.7", ("10.0.0.0/8",), True, id="allowed network"),
        pytest.param("10.0.0.7", ("10.0.0.7",), True, id="allowed address"),
        pytest.param("10.0.0.7", ("hooks.example.net",), True, id="allowed name"),
        pytest.param("10.0.0.7", ("other.example.net",), False, id="another name"),
        pytest.param("10.0.0.7", ("192.0.2.0/24",), False, id="another network"),
        pytest.param(METADATA, ("hooks.example.net",), False, id="allowed name with a metadata address"),
        pytest.param(METADATA, ("169.254.0.0/16",), True, id="link-local network allowed on purpose"),
    ],
)
def test_an_address_is_allowed_or_not(settings, address, hosts, is_allowed):
    settings.FACHO_CHANNEL_HOSTS = hosts

    assert (refusal(address, frozenset({"hooks.example.net"})) == "") is is_allowed


@pytest.mark.parametrize(
    ("host", "hosts", "expected"),
    [
        pytest.param(METADATA, (), True, id="metadata"),
        pytest.param("hooks.example.net", (), False, id="any name"),
        pytest.param("hooks.example.net", ("other.example.net",), True, id="not in the list"),
        pytest.param("Hooks.example.net.", ("hooks.example.net",), False, id="in the list"),
        pytest.param("hooks.example.net", ("10.0.0.0/8",), False, id="depends on its address"),
    ],
)
def test_a_host_that_can_never_be_used_is_refused_when_it_is_saved(settings, host, hosts, expected):
    settings.FACHO_CHANNEL_HOSTS = hosts

    assert is_refused(host) is expected


@pytest.mark.parametrize(
    "notifier",
    [
        pytest.param(Webhook(url=f"http://{METADATA}/{SECRET}", secret=SECRET), id="webhook"),
        pytest.param(Telegram(token=SECRET, chat_id="1", base_url=f"http://{METADATA}"), id="telegram"),
        pytest.param(Slack(url=f"http://[::ffff:{METADATA}]/{SECRET}"), id="slack"),
        pytest.param(Email(host=METADATA, sender="a@example.net", recipients=("b@example.net",)), id="email"),
        pytest.param(Apprise(url=f"json://{METADATA}/{SECRET}"), id="apprise"),
    ],
)
def test_nothing_is_sent_to_a_metadata_address(notifier):
    error = failure(notifier)

    assert not error.is_temporary
    assert str(error) == f"the host has the address {METADATA}, which channels may not use"


@pytest.mark.parametrize(
    ("hosts", "arrives"),
    [
        pytest.param(("hooks.example.net",), False, id="another host"),
        pytest.param(("127.0.0.1",), True, id="this address"),
        pytest.param(("127.0.0.0/8", "hooks.example.net"), True, id="its network"),
    ],
)
def test_a_channel_connects_to_allowed_hosts_only(world, settings, hosts, arrives):
    settings.FACHO_CHANNEL_HOSTS = hosts

    if arrives:
        world.make().send(MESSAGE)
    else:
        error = failure(world.make())
        said = "the host with the address 127.0.0.1 is not one of FACHO_CHANNEL_HOSTS"
        assert (error.is_temporary, str(error)) == (False, said)
    assert len(world.server.received) == arrives


def test_an_allowed_name_is_known_although_the_socket_sees_its_address(settings):
    settings.FACHO_CHANNEL_HOSTS = ("localhost",)
    world = WORLDS["apprise"]()

    Apprise(url=f"json://localhost:{world.server.port}/").send(MESSAGE)
    world.server.close()

    assert len(world.server.received) == 1


def test_other_connections_of_the_process_are_not_checked(settings):
    settings.FACHO_CHANNEL_HOSTS = ("hooks.example.net",)
    world = WORLDS["webhook"]()
    with guarded("hooks.example.net"):
        pass

    settings.FACHO_CHANNEL_HOSTS = ()
    world.make().send(MESSAGE)
    world.server.close()

    assert len(world.server.received) == 1
