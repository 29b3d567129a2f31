"""Profiles from YAML files. The only module here that uses YAML."""

import re
from pathlib import Path
from typing import Any

import yaml

from facho.brands.profile import BadProfile, read_profile
from facho.engine.brand import Brand

ENDINGS = (".yaml", ".yml")


# The C parser is part of the usual builds, and several times as fast.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """YAML without surprises: 1.10 stays an OID, `off` is a word, and keys are unique."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.value == "<<":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int):
                raise yaml.constructor.ConstructorError(None, None, "this cannot be a key", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key} is repeated", key_node.start_mark)
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


# Only these are not texts: other YAML conversions, such as of 1.10, yes or 2024-01-01, are unexpected.
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    ("null", r"~|null|", ["~", "n", ""]),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


def load_file(path: Path) -> Brand:
    """Return the brand of a file; `BadProfile` lists the errors with their position."""
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        try:
            data = loader.get_single_data()
        finally:
            loader.dispose()
    except (OSError, UnicodeDecodeError) as error:
        raise BadProfile([f"the file cannot be read: {error}."], str(path)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}" if mark else "somewhere"
        raise BadProfile([f"{where}: {error.problem}."], str(path)) from None
    # A value that does not match its tag is a ValueError.
    except (yaml.YAMLError, ValueError) as error:
        raise BadProfile([f"it is not valid YAML: {error}."], str(path)) from None
    return read_profile(data, str(path))


def load_folder(path: Path) -> dict[str, Brand]:
    """Return the brands of all profiles in a folder by id. `BadProfile` lists all errors.

    A missing folder has none.
    """
    brands: dict[str, Brand] = {}
    problems: list[str] = []
    for file in sorted(each for each in path.iterdir() if each.suffix in ENDINGS) if path.is_dir() else ():
        try:
            brand = load_file(file)
        except BadProfile as error:
            problems += [f"{file.name}: {each}" for each in error.problems]
            continue
        if brand.id in brands:
            problems.append(f"{file.name}: id: another profile in this folder also has the id {brand.id}.")
        brands[brand.id] = brand
    if problems:
        raise BadProfile(problems, f"folder {path}")
    return brands
