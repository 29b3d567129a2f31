"""The brands a command knows: the built-in ones, and an admin's own from the data directory if there is one."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from facho import brands
from facho.brands.files import load_folder
from facho.brands.profile import BadProfile
from facho.engine.brand import Brand
from facho.engine.errors import UnknownBrand
from facho.runtime.commands.status import CommandError

FOLDER = "brands"


def load(environ: Mapping[str, str] = os.environ) -> None:
    """Add the profiles in the data directory to the brands. Nothing is created where there is none."""
    folder = _folder(environ)
    if not folder.is_dir():
        return
    try:
        brands.register(load_folder(folder).values())
    except (BadProfile, OSError) as error:
        raise CommandError(str(error)) from error


def _folder(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("FACHO_DATA_DIR") or "data").expanduser() / FOLDER
    except RuntimeError as error:
        raise CommandError(f"FACHO_DATA_DIR: {error}") from error


def chosen(options: argparse.Namespace) -> Brand | None:
    """Return the brand that `--brand` names; None where it is to be found out."""
    if options.brand is None:
        return None
    try:
        return brands.brand(options.brand)
    except UnknownBrand as error:
        raise CommandError(str(error)) from error
