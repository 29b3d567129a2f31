"""`facho brands`: lists the brands, and checks a profile."""

import argparse
from pathlib import Path

from facho import brands
from facho.brands.files import load_file
from facho.brands.profile import BadProfile
from facho.engine.brand import Brand
from facho.runtime.commands import report, screen, target
from facho.runtime.commands.screen import out, plural, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", type=Path, metavar="FILE", help="check a profile file and report its errors")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    found = [_checked(options.check)] if options.check else _known()
    if options.json:
        out(report.dump({"brands": [report.brand(each) for each in found]}))
    elif options.check:
        (brand,) = found
        out(f"{options.check} is a profile of {brand.label} [{brand.id}] with {plural(len(brand.columns), 'column')}.")
    else:
        out("\n".join(table(["id", "maker", "", "columns"], [_row(each) for each in found])))
    return screen.COMPLETE


def _row(brand: Brand) -> list[str]:
    return [brand.id, brand.label, "experimental" if brand.experimental else "", ", ".join(brand.columns)]


def _known() -> list[Brand]:
    target.load()
    return sorted(brands.BRANDS.values(), key=lambda each: each.id)


def _checked(file: Path) -> Brand:
    """Return the brand of a file, if it can be used with the built-in ones."""
    try:
        brand = load_file(file)
        brands.register([brand])
    except BadProfile as error:
        raise screen.CommandError(str(error)) from error
    return brand
