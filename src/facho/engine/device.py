"""Devices: one text for every spelling of the same address and port.

Two OLTs with the same device are one machine and share one lease.
"""

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

# Names of this machine that need no DNS. A datagram to an unspecified address also stays on this machine.
LOOPBACK = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound


# Enough for a large fleet: the scheduler calls this for every OLT once a second.
@lru_cache(maxsize=65536)
def ip_address(host: str) -> str:
    """Return the normalized IP address; empty for a host name, which has to be resolved."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return LOOPBACK.get(host_name(host), "")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return LOOPBACK.get(str(address), str(address))


def host_name(host: str) -> str:
    """Return the normalized host name."""
    return host.lower().rstrip(".")


def device_at(address: str, port: int) -> str:
    """Return the device at an address, or of a name without an address."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@dataclass(frozen=True, slots=True)
class HostAddress:
    """Address of an OLT, as far as it is known. A name has its last resolved addresses."""

    host: str
    port: int
    # Name that `addresses` belong to. A name that was changed since has no address yet.
    resolved_name: str = ""
    # Requests go to the first one.
    addresses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the host name; empty if the OLT is configured by IP address."""
        return "" if ip_address(self.host) else host_name(self.host)

    @property
    def candidates(self) -> tuple[str, ...]:
        """Return all possible addresses."""
        literal = ip_address(self.host)
        if literal:
            return (literal,)
        return self.addresses if self.resolved_name == self.name else ()

    @property
    def address(self) -> str:
        """Return the address for requests; empty while the name has none."""
        return next(iter(self.candidates), "")

    @property
    def device(self) -> str:
        return device_at(self.address or self.name, self.port)


def sort_addresses(hosts: Mapping[int, HostAddress]) -> dict[int, tuple[str, ...]]:
    """Return the addresses of each host, the preferred one first.

    The address that most OLTs have is preferred, so that OLTs with a common address get one device.
    """
    counts = Counter((address, each.port) for each in hosts.values() for address in each.candidates)
    return {
        id_: tuple(sorted(each.candidates, key=lambda address: (-counts[address, each.port], *address_order(address))))
        for id_, each in hosts.items()
    }


def address_order(address: str) -> tuple[int, int]:
    """Return a sort key: IPv4 before IPv6, then the lower address.

    So round-robin DNS does not move an OLT.
    """
    parsed = ipaddress.ip_address(address)
    return parsed.version, int(parsed)


def olts_by_device(devices: Mapping[int, str]) -> dict[str, list[int]]:
    """Return the OLTs of each device, lowest id first."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for olt_id in sorted(devices):
        found[devices[olt_id]].append(olt_id)
    return dict(found)
