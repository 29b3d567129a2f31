"""Address of a client, and networks that it may be in."""

import ipaddress
from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework.settings import api_settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MOST_NETWORKS = 50


def client_address(request: HttpRequest) -> Address | None:
    """Return the address of the connection, or behind our proxy the one that the proxy saw; None if it is not known.

    Only the last address of `X-Forwarded-For` was written by the proxy. The client can write all others.
    """
    hops = request.META.get("HTTP_X_FORWARDED_FOR", "") if api_settings.NUM_PROXIES else ""
    return parse_address(hops.rpartition(",")[2] or request.META.get("REMOTE_ADDR", ""))


def parse_address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    # An IPv4 client of a server that listens on IPv6.
    return (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address


def is_within(address: Address | None, networks: Iterable[str]) -> bool:
    return address is not None and any(address in ipaddress.ip_network(network) for network in networks)


def clean_networks(texts: Iterable[str]) -> list[str]:
    """Return networks in their usual form. A single address is a network of one."""
    networks = list(dict.fromkeys(_clean_network(text.strip()) for text in texts if text.strip()))
    if len(networks) > MOST_NETWORKS:
        raise ValidationError(_("Write at most %(most)d networks.") % {"most": MOST_NETWORKS})
    return networks


def _clean_network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        said = _("“%(text)s” is not a network. Write one like 192.0.2.0/24 or 2001:db8::/32, or a single address.")
        raise ValidationError(said % {"text": text[:50]}) from None
