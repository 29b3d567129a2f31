"""Each maker of OLTs: OIDs, index to position and back, raw value to ours. A brand is data plus a few functions.

What is known of a maker has been seen in different places. Each fact keeps
where it comes from, as a tag in a comment beside it:

    R   seen in a recording of a real device
    M   in a MIB file of the maker
    V   in a document of the maker
    C2  the same in two or more independent programs that run in production
    C1  in one such source only
    X   sources disagree
"""

from collections.abc import Mapping
from types import MappingProxyType

from facho.brands.huawei import HUAWEI
from facho.brands.zte import ZTE_C300
from facho.engine.brand import Brand
from facho.engine.errors import UnknownBrand
from facho.engine.oid import Oid

BRANDS: Mapping[str, Brand] = MappingProxyType({each.id: each for each in (HUAWEI, ZTE_C300)})


def brand(brand_id: str) -> Brand:
    """Return the profile of this id; `UnknownBrand` names the ones there are."""
    try:
        return BRANDS[brand_id]
    except KeyError:
        raise UnknownBrand(f"there is no brand {brand_id!r}; known are {', '.join(sorted(BRANDS))}") from None


def detect(sys_object_id: Oid, sys_descr: str) -> Brand | None:
    """Return the brand of a device by what it says of itself: the longest sysObjectID that fits, else sysDescr."""
    fitting = [
        (len(oid), each) for each in BRANDS.values() for oid in each.sys_object_ids if sys_object_id.startswith(oid)
    ]
    if fitting:
        return max(fitting, key=lambda pair: pair[0])[1]
    return next((each for each in BRANDS.values() if each.sys_descr and each.sys_descr.search(sys_descr)), None)
