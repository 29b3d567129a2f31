"""Brand profile from a plain mapping, as written in YAML. `profiles/README.md` explains the format.

Pure: takes the content of a file, returns a Brand, or raises `BadProfile` with all errors.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from facho.brands import section
from facho.brands.decode import RULES, Rule, chain, null_when_off, state_by_cause, text
from facho.brands.index import layout, space
from facho.brands.named import decoder
from facho.brands.section import REQUIRED, Section
from facho.brands.templates import job_templates
from facho.engine import oid
from facho.engine.brand import (
    FIRST_ONU,
    ONU_FIELDS,
    ONU_STATES,
    ONUS_PER_PORT,
    OPAQUE,
    Brand,
    Column,
    IndexSpace,
    Manners,
    PortTable,
)
from facho.engine.errors import FachoError
from facho.engine.oid import Oid

ID = re.compile(r"[a-z][a-z0-9_]{1,39}")
FIELD = re.compile(r"[a-z][a-z0-9_]*")
# Parts of the place that a column may fill, and the field that fills all at once.
PLACE_FIELDS = ("slot", "port", "onu")
PLACE = "place"
ADMIN_STATES = ("enabled", "disabled")
# Replaces an unreadable OID, so that the rest of a profile can be checked.
NO_OID = Oid(b"")
ANY_BASE = "1.3.6.1"


class BadProfile(FachoError):
    """An unusable profile. `problems` has a message for each error."""

    is_temporary = False

    def __init__(self, problems: Sequence[str], source: str = "") -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        head = f"the profile {source} has" if source else "the profile has"
        super().__init__("\n".join([f"{head} {count}:", *(f"- {each}" for each in problems)]))


def read_profile(data: Any, source: str = "") -> Brand:
    """Return the brand of a profile; `BadProfile` lists all errors."""
    problems: list[str] = []
    top = Section(data, "", problems)
    if problems:
        raise BadProfile(problems, source)
    brand = _brand(top)
    top.refuse_the_rest()
    if problems:
        raise BadProfile(problems, source)
    return brand


def _brand(top: Section) -> Brand:
    brand_id = top.take("id", _id, REQUIRED) or ""
    label = top.take("label", section.text, REQUIRED) or ""
    match = top.section("match")
    base = top.take("base", section.oid_below(""), oid.parse(ANY_BASE) if "base" in top else None)
    below = section.oid_below(oid.text(base) if base else "")
    spaces = _spaces(top)
    columns = {
        **_columns(top.section("columns"), below, spaces, known=(*ONU_FIELDS, *PLACE_FIELDS, PLACE)),
        **_columns(top.section("extra"), below, spaces, known=None),
    }
    columns = {name: replace(column, needs=_closed(name, columns)) for name, column in columns.items()}
    brand = Brand(
        id=brand_id,
        label=label,
        space=next(iter(spaces.values()), OPAQUE),
        columns=columns,
        discovery=top.take("discovery", section.list_of(section.text), REQUIRED) or (),
        sys_object_ids=match.take("sys_object_ids", section.list_of(section.oid_below("")), ()),
        sys_descr=match.take("sys_descr", section.pattern, None),
        probe=match.take("probe", below, None),
        ports=_ports(top, below),
        onus_per_port=top.take("onus_per_port", section.positive, ONUS_PER_PORT),
        first_onu=top.take("first_onu", section.not_negative, FIRST_ONU),
        experimental=top.take("experimental", section.flag, False),
        manners=_manners(top.section("manners")),
        finish=chain(_rules(top, columns)),
    )
    match.refuse_the_rest()
    _check_columns(top, brand)
    return replace(brand, templates=job_templates(top, brand))


def _id(value: Any) -> str:
    if not ID.fullmatch(section.text(value)):
        raise ValueError(f"{value!r} should be lowercase letters, digits and _, such as acme_gpon")
    return str(value)


def _spaces(top: Section) -> dict[str, IndexSpace]:
    written = top.peek("index")
    if not isinstance(written, Mapping):
        # The usual case: one index for all tables.
        return {"onu": top.take("index", _space, REQUIRED) or OPAQUE}
    index = top.section("index")
    if not written:
        top.complain("index", "it names no index")
    return {name: index.take(name, _space, OPAQUE) for name in index}


def _space(value: Any) -> IndexSpace:
    if value == "opaque":
        return OPAQUE
    if not isinstance(value, list) or not value:
        raise ValueError("it should be a list with a line for each number of the index, or opaque")
    layouts = value if isinstance(value[0], list) else [value]
    if not all(isinstance(each, list) and all(isinstance(line, str | int) for line in each) for each in layouts):
        raise ValueError("it should be a list of lines, or a list of such lists")
    return space(*(layout(each) for each in layouts))


def _columns(
    part: Section, below: Any, spaces: Mapping[str, IndexSpace], known: Sequence[str] | None
) -> dict[str, Column]:
    columns = {}
    for field in part:
        options = part.section(field)
        if known is None and field in (*ONU_FIELDS, *PLACE_FIELDS, PLACE):
            part.complain(field, "every ONU has this field: it belongs under columns")
        elif known is not None and field not in known:
            hint = section.meant(field, known) or "; a field of your own belongs under extra"
            part.complain(field, f"ONUs have no such field{hint}")
        elif not FIELD.fullmatch(field):
            part.complain(field, "a field name has lowercase letters, digits and _")
        columns[field] = _column(field, options, below, spaces)
    return columns


def _column(field: str, options: Section, below: Any, spaces: Mapping[str, IndexSpace]) -> Column:
    """Return a column. An unusable one is reported, and its name is still known."""
    column_oid = options.take("oid", below, REQUIRED)
    decode = decoder(field, options)
    name = options.take("space", section.text, next(iter(spaces), ""))
    if spaces and name not in spaces:
        options.complain("space", f"{name!r} is not an index of this profile; the indexes are {', '.join(spaces)}")
    _check_words(field, options)
    places = options.peek("read") == PLACE
    if places != (field == PLACE):
        options.complain("read", "a column called place, and no other, is read as place")
    optical = options.take("optical", section.flag, False)
    needs = options.take("needs", section.list_of(section.text), ())
    floor = options.take("floor", section.duration, None)
    options.refuse_the_rest()
    return Column(field, column_oid or NO_OID, decode or text, spaces.get(name, OPAQUE), optical, needs, places, floor)


def _check_words(field: str, options: Section) -> None:
    allowed = {"state": ONU_STATES, "admin_state": ADMIN_STATES}.get(field)
    words = options.peek("words")
    if allowed is None or not isinstance(words, Mapping):
        return
    written = [word for word in (*words.values(), options.peek("other")) if isinstance(word, str)]
    for word in dict.fromkeys(written):
        if word not in allowed:
            options.complain("words", f"{word!r} is not a valid {field}; the values are {', '.join(allowed)}")


def _closed(name: str, columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Return all columns that a column needs, directly or indirectly."""
    needed: list[str] = []
    queue = [name]
    while queue:
        column = columns.get(queue.pop(0))
        new = [each for each in (column.needs if column else ()) if each not in (*needed, name)]
        needed += new
        queue += new
    return tuple(dict.fromkeys(needed))


def _ports(top: Section, below: Any) -> PortTable | None:
    part = top.section("ports")
    if "ports" not in top:
        return None
    table = part.take("oid", below, REQUIRED)
    index = part.take("index", lambda lines: layout(section.list_of(_line)(lines), with_onu=False), REQUIRED)
    counts = part.take("counts", section.flag, False)
    part.refuse_the_rest()
    return PortTable(table, index.decode, counts) if table and index else None


def _line(value: Any) -> str | int:
    if not isinstance(value, str | int):
        raise ValueError(f"{value!r} should be a line such as slot:8 port:8")
    return value


def _manners(part: Section) -> Manners:
    default = Manners()
    times = {name: part.take(name, section.duration) for name in ("timeout", "optical_timeout", "min_timeout")}
    manners = replace(
        default,
        max_repetitions=part.take("max_repetitions", section.positive, default.max_repetitions),
        rows_per_get=part.take("rows_per_get", section.positive, default.rows_per_get),
        retries=part.take("retries", section.positive, default.retries),
        max_in_flight=part.take("max_in_flight", section.positive, default.max_in_flight),
        **{name: time.total_seconds() for name, time in times.items() if time},
    )
    if manners.min_timeout > min(manners.timeout, manners.optical_timeout):
        part.complain("min_timeout", "it is longer than the longest allowed wait")
    part.refuse_the_rest()
    return manners


def _rules(top: Section, columns: Mapping[str, Column]) -> list[Rule]:
    rules: list[Rule] = []
    for each in top.take("rules", section.list_of(lambda rule: rule), ()):
        try:
            rules.append(_rule(each, columns))
        except ValueError as error:
            top.complain("rules", str(error))
    return rules


def _rule(written: Any, columns: Mapping[str, Column]) -> Rule:
    if isinstance(written, str) and written in RULES:
        return RULES[written]
    name, given = next(iter(written.items())) if isinstance(written, Mapping) and len(written) == 1 else (written, None)
    if name == "null_when_off":
        fields = section.list_of(section.text)(given)
        if strange := [field for field in fields if field not in columns]:
            raise ValueError(f"null_when_off names {', '.join(strange)}, which is not a column of this profile")
        return null_when_off(fields)
    if name == "state_by_cause":
        if not isinstance(given, Mapping) or not all(state in ONU_STATES for state in given.values()):
            raise ValueError(f"state_by_cause must map each cause to one of the states {', '.join(ONU_STATES)}")
        return state_by_cause({str(cause): str(state) for cause, state in given.items()})
    raise ValueError(f"{name!r} is not a rule; the rules are {', '.join([*RULES, 'null_when_off', 'state_by_cause'])}")


def _check_columns(top: Section, brand: Brand) -> None:
    for name in brand.discovery:
        if name not in brand.columns:
            top.complain("discovery", f"{name!r} is not a column of this profile")
        elif brand.columns[name].optical:
            top.complain("discovery", f"{name} is an optical column, which is too slow for a discovery")
    first = brand.columns.get(brand.discovery[0]) if brand.discovery else None
    if first is not None and first.space is not brand.space:
        top.complain("discovery", f"{first.field} comes first and must be of the first index, which names the ONUs")
    seen: dict[Oid, str] = {}
    for name, column in brand.columns.items():
        other = seen.setdefault(column.oid, name)
        if other != name and column.oid != NO_OID:
            top.complain(f"columns.{name}.oid", f"it is the same as in {other}")
        for needed in column.needs:
            if needed not in brand.columns:
                top.complain(f"columns.{name}.needs", f"{needed!r} is not a column of this profile")
