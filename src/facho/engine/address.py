"""Addresses of OLTs as users write them."""

from facho.engine.errors import BadAddress


def split_address(text: str) -> tuple[str, int | None]:
    """Return host and port, if there is one, of `host`, `host:port`, `[v6]:port`, `[v6]` or a bare IPv6 address."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadAddress(f"{text!r} is not an address: an IPv6 address with a port is written [2001:db8::1]:161")
    elif text.count(":") > 1:
        host, rest = text, ""
    else:
        host, colon, port = text.partition(":")
        rest = colon + port
    if not host or host != host.strip():
        raise BadAddress(f"{text!r} has no host: write a name or an address, like 192.0.2.10 or 192.0.2.10:161")
    if not rest:
        return host, None
    port = rest[1:]
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise BadAddress(f"{text!r} has no port after the colon: ports are numbers from 1 to 65535")
    return host, int(port)
