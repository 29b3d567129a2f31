"""Networks that a client may be in."""

import ipaddress
from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from facho.apps.rest.addresses import Address

MOST_NETWORKS = 50


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
