"""Addresses of OLTs as users write them."""

import pytest

from facho.engine.address import split_address
from facho.engine.errors import BadAddress


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        pytest.param("192.0.2.10", "192.0.2.10", None, id="an address alone"),
        pytest.param("192.0.2.10:1161", "192.0.2.10", 1161, id="with a port"),
        pytest.param("olt-sur.example.net:1161", "olt-sur.example.net", 1161, id="a name with a port"),
        pytest.param("2001:db8::1", "2001:db8::1", None, id="IPv6 alone"),
        pytest.param("[2001:db8::1]", "2001:db8::1", None, id="IPv6 in brackets"),
        pytest.param("[2001:db8::1]:1161", "2001:db8::1", 1161, id="IPv6 with a port"),
    ],
)
def test_an_address_may_have_a_port(text, host, port):
    assert split_address(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(":161", id="no host"),
        pytest.param("192.0.2.10:", id="a colon without a port"),
        pytest.param("192.0.2.10:snmp", id="a word for a port"),
        pytest.param("192.0.2.10:0", id="port 0"),
        pytest.param("192.0.2.10:65536", id="a port beyond the last"),
        pytest.param("[2001:db8::1", id="half a bracket"),
        pytest.param("[2001:db8::1]161", id="no colon before the port"),
        pytest.param("[]:161", id="empty brackets"),
        pytest.param(" 192.0.2.10", id="a blank in front"),
    ],
)
def test_a_text_that_is_no_address_is_refused(text):
    with pytest.raises(BadAddress):
        split_address(text)
