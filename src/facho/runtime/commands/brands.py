"""`facho brands`: lists the brands, and checks a profile."""

import argparse
from pathlib import Path

from facho import brands
from facho.brands.files import load_file
from facho.brands.profile import BadProfile
from facho.runtime.commands import report, screen, target
from facho.runtime.commands.screen import out, plural, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", type=Path, metavar="FILE", help="check a profile file and report its errors")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    if options.check:
        try:
            found = [load_file(options.check)]
            # It must not conflict with the built-in ones.
            brands.register(found)
        except BadProfile as error:
            raise screen.CommandError(str(error)) from error
    else:
        target.load()
        found = sorted(brands.BRANDS.values(), key=lambda each: each.id)
    if options.json:
        out(report.dump({"brands": [report.brand(each) for each in found]}))
    elif options.check:
        (brand,) = found
        out(f"{options.check} is a profile of {brand.label} [{brand.id}] with {plural(len(brand.columns), 'column')}.")
    else:
        rows = [
            [each.id, each.label, "experimental" if each.experimental else "", ", ".join(each.columns)]
            for each in found
        ]
        out("\n".join(table(["id", "maker", "", "columns"], rows)))
    return screen.COMPLETE
