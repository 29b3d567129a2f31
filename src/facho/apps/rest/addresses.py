"""Addresses of clients."""

import ipaddress

from django.http import HttpRequest
from rest_framework.settings import api_settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
