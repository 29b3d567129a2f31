"""Which device an address leads to: one text for every spelling of the same address and port.

Two OLTs with the same device are one machine, whatever their rows say, and share one lease.
"""

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

# What leads to this machine without any name server; a datagram to an unspecified address does, too.
LOOPBACK = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound


# As many as a large fleet has: the scheduler asks for every OLT once a second.
@lru_cache(maxsize=65536)
def ip_address(host: str) -> str:
    """Return an IP address in its one spelling; an empty text for a host name, which has to be resolved."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return LOOPBACK.get(host_name(host), "")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return LOOPBACK.get(str(address), str(address))


def host_name(host: str) -> str:
    """Return a host name in its one spelling."""
    return host.lower().rstrip(".")


def device_at(address: str, port: int) -> str:
    """Return the device at an address, or under a name that has no address yet."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@dataclass(frozen=True, slots=True)
class HostAddress:
    """Where an OLT is, as far as that is known. A name has the addresses that it was last resolved to."""

    host: str
    port: int
    # What `addresses` belong to. A name that a person changed since has no address yet.
    resolved_name: str = ""
    # The first one is asked.
    addresses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the host name, or an empty text where the OLT is set up by its address."""
        return "" if ip_address(self.host) else host_name(self.host)

    @property
    def candidates(self) -> tuple[str, ...]:
        """Return every address that it may have."""
        literal = ip_address(self.host)
        if literal:
            return (literal,)
        return self.addresses if self.resolved_name == self.name else ()

    @property
    def address(self) -> str:
        """Return the address to ask; empty while the name has none."""
        return next(iter(self.candidates), "")

    @property
    def device(self) -> str:
        return device_at(self.address or self.name, self.port)


def sort_addresses(hosts: Mapping[int, HostAddress]) -> dict[int, tuple[str, ...]]:
    """Return the addresses of each host, the one to ask first.

    A name may have several addresses. The one that most OLTs have goes first,
    so that OLTs with a common address end up at one device.
    """
    counts = Counter((address, each.port) for each in hosts.values() for address in each.candidates)
    return {id_: _most_common_first(each, counts) for id_, each in hosts.items()}


def _most_common_first(host: HostAddress, counts: Mapping[tuple[str, int], int]) -> tuple[str, ...]:
    def rank(address: str) -> tuple[int, int, int]:
        return -counts[address, host.port], *address_order(address)

    return tuple(sorted(host.candidates, key=rank))


def address_order(address: str) -> tuple[int, int]:
    """Return a key that sorts IPv4 before IPv6, then the lower address first.

    So a name server that rotates its answers does not move an OLT.
    """
    parsed = ipaddress.ip_address(address)
    return parsed.version, int(parsed)


def olts_by_device(devices: Mapping[int, str]) -> dict[str, list[int]]:
    """Return the OLTs of each device, lowest id first."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for olt_id in sorted(devices):
        found[devices[olt_id]].append(olt_id)
    return dict(found)
