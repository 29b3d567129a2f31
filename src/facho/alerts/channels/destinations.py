"""Addresses that channels may connect to.

A user who may change a channel chooses where Facho connects. Link-local and cloud metadata addresses are refused, and
everything outside FACHO_CHANNEL_HOSTS if it is set.

The check is made by an audit hook of Python at the moment when a socket connects. So it sees the address that is really
used, whatever DNS answered before, and it works for the libraries of all services of Apprise.
"""

import ipaddress
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.conf import settings

from facho.engine.errors import DeliveryFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# They give the keys of a machine in a cloud to any process on it: AWS over IPv6, Alibaba, Azure, Oracle. Those of most
# clouds are link-local.
METADATA = tuple(map(ipaddress.ip_network, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")))

# IPv4 addresses in IPv6, translated by a router.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class AddressRefused(OSError):
    """A channel may not connect to this address."""


class Guard(threading.local):
    """State of the thread that sends a message."""

    is_active = False
    # Names of the destination, as configured and as looked up.
    names: frozenset[str] = frozenset()
    # Why a connection was refused.
    refusal = ""


_guard = Guard()


@contextmanager
def guarded(host: str = "") -> Iterator[None]:
    """Check all connections of this thread inside a `with`. `host`: the configured one, if it is known.

    A refusal is a permanent `DeliveryFailed`, whatever error the library made of it.
    """
    _install()
    _guard.is_active, _guard.refusal = True, ""
    _guard.names = frozenset({host.lower().rstrip(".")} - {""})
    try:
        yield
    except Exception:
        # Each library turns the refused connection into an error of its own. Other errors are raised as they are.
        if _guard.refusal:
            raise DeliveryFailed(_guard.refusal, is_temporary=False) from None
        raise
    finally:
        _guard.is_active = False


def refusal(address: str, names: frozenset[str]) -> str:
    """Return why a connection to an address, found under these names, is refused; empty if it is not."""
    hosts = settings.FACHO_CHANNEL_HOSTS
    found = _plain(ipaddress.ip_address(address.partition("%")[0]))
    if any(found in network for network in _networks(hosts)):
        return ""
    # Without the name, which is a secret in some URLs of Apprise.
    if hosts and not (names and names <= set(hosts)):
        return f"the host with the address {found} is not one of FACHO_CHANNEL_HOSTS"
    is_special = found.is_link_local or found.is_multicast or found.is_unspecified
    if is_special or any(found in network for network in METADATA):
        return f"the host has the address {found}, which channels may not use"
    return ""


def is_refused(host: str) -> bool:
    """Return whether a configured host can never be used. Of other names, the address decides when it is used."""
    hosts = settings.FACHO_CHANNEL_HOSTS
    name = host.lower().rstrip(".")
    try:
        return bool(refusal(name, frozenset({name})))
    except ValueError:
        return bool(hosts) and name not in hosts and not _networks(hosts)


def _plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped or address.sixtofour:
            return address.ipv4_mapped or address.sixtofour or address
        if address in NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


@cache
def _networks(hosts: tuple[str, ...]) -> tuple[Any, ...]:
    networks = []
    for host in hosts:
        try:
            networks.append(ipaddress.ip_network(host))
        except ValueError:
            # A name.
            continue
    return tuple(networks)


@cache
def _install() -> None:
    # A hook cannot be removed, and sees all events of the process: it must be fast for the others.
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith("socket.") or not _guard.is_active:
        return
    if event == "socket.getaddrinfo" and isinstance(arguments[0], str):
        _guard.names |= {arguments[0].lower().rstrip(".")}
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        # A local socket has a path.
        if isinstance(address, tuple) and (reason := refusal(str(address[0]), _guard.names)):
            _guard.refusal = reason
            raise AddressRefused(reason)
