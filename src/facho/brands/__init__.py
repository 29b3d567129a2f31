"""Brands of OLTs: OIDs, index to place and back, decoding of values. A brand is data and a few functions.

Most are profiles in `profiles/`, in the same format as an admin's own; two
need functions. A tag in a comment beside each fact names its source:

    R   seen in a recording of a real device
    M   in a MIB file of the vendor
    V   in a document of the vendor
    C2  the same in two or more independent programs that run in production
    C1  in one such source only
    X   sources disagree
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from facho.brands.files import load_file
from facho.brands.huawei import HUAWEI
from facho.brands.profile import BadProfile
from facho.brands.zte import ZTE_C300
from facho.engine.brand import Brand
from facho.engine.errors import UnknownBrand
from facho.engine.oid import Oid

PROFILES = Path(__file__).parent / "profiles"
# In the order in which they are tried on a device that could be of several: the probes of C-Data's three, which say
# the same of themselves, are to be tried in this one (M, C2).
PROFILE_IDS = (
    "zte_c600",
    "ubiquiti",
    "bdcom_gpon",
    "vsol_epon",
    "fiberhome",
    "nokia_isam",
    "calix_axos",
    "cdata_gpon",
    "cdata_epon",
    "cdata_fd11",
)

BUILT_IN: Mapping[str, Brand] = MappingProxyType(
    {each.id: each for each in (HUAWEI, ZTE_C300, *(load_file(PROFILES / f"{each}.yaml") for each in PROFILE_IDS))}
)

_brands = dict(BUILT_IN)
# All brands: built-in and registered ones.
BRANDS: Mapping[str, Brand] = MappingProxyType(_brands)


def register(brands: Iterable[Brand]) -> None:
    """Register these brands besides the built-in ones; `BadProfile` if an id is already used.

    Replaces the brands registered before.
    """
    added: dict[str, Brand] = {}
    problems = []
    for each in brands:
        if each.id in BUILT_IN:
            problems.append(f"id: {each.id} is built in and cannot be replaced; use another id.")
        elif each.id in added:
            problems.append(f"id: two profiles are called {each.id}.")
        added[each.id] = each
    if problems:
        raise BadProfile(problems)
    _brands.clear()
    _brands.update(BUILT_IN)
    _brands.update(added)


def brand(brand_id: str) -> Brand:
    """Return the profile of this id; `UnknownBrand` lists the existing ones."""
    try:
        return BRANDS[brand_id]
    except KeyError:
        raise UnknownBrand(f"there is no brand {brand_id!r}; known brands: {', '.join(sorted(BRANDS))}") from None


def candidates(sys_object_id: Oid, sys_descr: str) -> list[Brand]:
    """Return the brands that match a device's self-description, in the order in which to try their probes.

    The longest matching sysObjectID comes first, then brands whose sysDescr matches too, then those with only
    sysDescr. Of equal ones an admin's own come before the built-in ones.
    """
    ranked = []
    for each in sorted(BRANDS.values(), key=lambda each: each.id in BUILT_IN):
        longest = max((len(oid) for oid in each.sys_object_ids if sys_object_id.startswith(oid)), default=0)
        has_descr = bool(each.sys_descr and each.sys_descr.search(sys_descr))
        if longest or has_descr:
            ranked.append(((longest, has_descr), each))
    return [each for _, each in sorted(ranked, key=lambda pair: pair[0], reverse=True)]
