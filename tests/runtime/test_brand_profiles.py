"""Profiles of brands in the data directory: there for everybody after a start, and no start with a broken one."""

import os
import subprocess
import sys

import pytest
import yaml

from facho import brands
from facho.apps.inventory.models import Olt, brand_choices
from facho.brands import BRANDS, BUILT_IN, PROFILES
from facho.runtime import checks, config
from facho.runtime.config import ConfigError


@pytest.fixture
def installation(tmp_path):
    """A data directory with a folder for profiles; the brands are the built-in ones again afterwards."""
    (tmp_path / "brands").mkdir()
    yield config.load({"FACHO_DATA_DIR": str(tmp_path)})
    brands.register([])


def write(installation, name="acme.yaml", **changes):
    profile = yaml.safe_load((PROFILES / "vsol_epon.yaml").read_text())
    (installation.brands_dir / name).write_text(yaml.safe_dump(profile | {"id": "acme", "label": "Acme"} | changes))


def test_a_profile_in_the_data_directory_is_a_brand_like_any_other(installation):
    write(installation)

    config.register_brands(installation)

    assert BRANDS["acme"].label == "Acme"
    assert "acme" in dict(brand_choices())


def test_no_folder_is_no_profile(tmp_path):
    config.register_brands(config.load({"FACHO_DATA_DIR": str(tmp_path)}))

    assert dict(BRANDS) == dict(BUILT_IN)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"columns": 7}, "acme.yaml", id="not what a profile looks like"),
        pytest.param({"id": "huawei"}, "huawei is built in", id="the id of a built-in brand"),
    ],
)
def test_a_broken_profile_is_named_with_its_problem(installation, changes, named):
    write(installation, **changes)

    with pytest.raises(ConfigError) as refused:
        config.register_brands(installation)

    assert named in str(refused.value)
    assert str(installation.brands_dir) in str(refused.value)
    assert "acme" not in BRANDS


@pytest.mark.parametrize("command", ["check", "migrate"])
def test_no_command_starts_with_a_broken_profile(installation, command):
    (installation.brands_dir / "acme.yaml").write_text("id: acme\nid: again\n")
    environ = {**os.environ, "FACHO_DATA_DIR": str(installation.data_dir)}

    run = subprocess.run(
        [sys.executable, "-m", "facho.runtime.cli", command], env=environ, capture_output=True, text=True, timeout=60
    )

    assert run.returncode != 0
    assert "acme.yaml" in run.stderr
    assert "is repeated" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.django_db
def test_an_olt_whose_profile_was_taken_away_is_found():
    Olt.objects.create(name="OLT-CENTRAL-01", brand="acme", host="127.0.0.1", community="public")
    Olt.objects.create(name="OLT-NORTE-02", host="127.0.0.2", community="public")

    [message] = checks.database(None, databases=["default"])

    assert (message.id, message.msg) == (
        "facho.W002",
        "OLT-CENTRAL-01 has the brand acme, but there is no profile for it.",
    )


@pytest.mark.parametrize(
    ("name", "value", "attribute", "expected"),
    [
        pytest.param("FACHO_MISSES", "", "misses", 2, id="two misses unless somebody says otherwise"),
        pytest.param("FACHO_MISSES", "5", "misses", 5, id="as many as somebody says"),
        pytest.param("FACHO_MASS_VANISHING", "", "mass_vanishing", 30, id="30 percent unless somebody says otherwise"),
        pytest.param("FACHO_MASS_VANISHING", "100", "mass_vanishing", 100, id="none at all"),
    ],
)
def test_when_an_onu_is_missing_is_a_setting(tmp_path, name, value, attribute, expected):
    assert getattr(config.load({"FACHO_DATA_DIR": str(tmp_path), name: value}), attribute) == expected


@pytest.mark.parametrize("text", ["0", "101", "30 %", "-1"])
def test_a_share_that_is_none_is_refused(tmp_path, text):
    with pytest.raises(ConfigError, match="FACHO_MASS_VANISHING"):
        config.load({"FACHO_DATA_DIR": str(tmp_path), "FACHO_MASS_VANISHING": text})
