"""The part of the embedded mode that can be had alone: the port."""

import socket

import pytest

from facho.runtime import serving
from facho.runtime.config import ConfigError


def test_a_port_in_use_is_named():
    with serving.listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]

        with pytest.raises(ConfigError, match=f"Port {port} on 127.0.0.1 cannot be used"):
            serving.listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["a..b", "no-such-host.invalid", "x" * 300], ids=["two dots", "unknown", "too long"])
def test_a_host_that_is_none_is_named(host):
    with pytest.raises(ConfigError, match="cannot be used"):
        serving.listen(host, 0)


def test_an_address_of_version_6_is_one_too():
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")

    with serving.listen("::1", 0) as listener:
        assert listener.family is socket.AF_INET6


def test_a_port_that_was_just_given_up_can_be_had_again():
    with serving.listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]

    with serving.listen("127.0.0.1", port) as again:
        assert again.getsockname()[1] == port
