"""Profiles in YAML files: read as people mean them, refused with the line that is wrong; and the ones that ship."""

import re
from pathlib import Path

import pytest

from facho.brands import BUILT_IN, PROFILES, huawei, zte
from facho.brands.files import load_file, load_folder
from facho.brands.profile import BadProfile
from facho.engine.oid import parse

ACME = """\
id: acme
label: ACME
base: 1.3.6.1.4.1.99999
index: [port, onu]
columns:
  name: {oid: 1.10, read: text}
discovery: name
"""
# A fact says where it comes from.
TAG = re.compile(r"#.*\b(R|M|V|C1|C2|X)\b")


@pytest.fixture
def write(tmp_path):
    def write(text, name="acme.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_is_a_brand(write):
    brand = load_file(write(ACME))

    assert brand.id == "acme"
    assert brand.columns["name"].oid == parse("1.3.6.1.4.1.99999.1.10")


@pytest.mark.parametrize("word", ["off", "yes", "010", "2024-01-01", "1e3", "1:30", "0.1"])
def test_plain_words_are_what_was_written(write, word):
    brand = load_file(write(ACME.replace("label: ACME", f"label: {word}")))

    assert brand.label == word


def test_numbers_and_flags_are_numbers_and_flags(write):
    text = ACME.replace("read: text", "read: choice, words: {-1: none, 0x10: some}").replace(
        "label", "experimental: true\nlabel"
    )

    brand = load_file(write(text))

    assert brand.experimental is True
    assert [brand.columns["name"].decode(raw) for raw in (-1, 16, 10)] == ["none", "some", None]


def test_columns_that_differ_little_can_be_written_once(write):
    more = "  rx_dbm: &dbm {oid: 2, read: power, scale: 0.01}\n  tx_dbm: {<<: *dbm, oid: 3}\ndiscovery"

    columns = load_file(write(ACME.replace("discovery", more))).columns

    assert columns["tx_dbm"].oid == parse("1.3.6.1.4.1.99999.3")
    assert columns["tx_dbm"].decode(-2153) == columns["rx_dbm"].decode(-2153) == -21.53


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(ACME + "label: twice\n", "line 8: label is repeated.", id="a key twice"),
        pytest.param(
            ACME.replace("{oid: 1.10", "{oid: 1.10, oid: 2"), "line 6: oid is repeated.", id="an option twice"
        ),
        pytest.param(ACME.replace("onu]", "onu"), "line 5:", id="a bracket that stays open"),
        pytest.param(ACME + "[a]: b\n", "line 8: this cannot be a key.", id="a key that is a list"),
        pytest.param("--- a\n--- b\n", "line 2:", id="two documents"),
        pytest.param("id: !!python/object:os.system x\n", "line 1:", id="something that would be run"),
        pytest.param("id: !!int acme\n", "it is not valid YAML: invalid literal", id="a tag that does not fit"),
        pytest.param("id: a\0b\n", "it is not valid YAML:", id="a character that cannot be"),
        pytest.param("", "id: it is required", id="nothing"),
        pytest.param("acme", "the profile: 'acme' should be keys with values", id="a word"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_name_and_line(write, text, problem):
    path = write(text)

    with pytest.raises(BadProfile) as caught:
        load_file(path)

    assert str(caught.value).startswith(f"the profile {path} has ")
    assert caught.value.problems[0].startswith(problem)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "acme.yaml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(BadProfile, match="the file cannot be read"):
        load_file(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadProfile, match="the file cannot be read"):
        load_file(tmp_path / "nobody.yaml")


def test_a_folder_has_a_brand_for_each_profile_and_nothing_for_the_rest(write, tmp_path):
    write(ACME)
    write(ACME.replace("id: acme", "id: bcme"), "b.yml")
    write("hello", "notes.txt")

    assert list(load_folder(tmp_path)) == ["acme", "bcme"]


def test_a_folder_that_is_not_there_has_no_profiles(tmp_path):
    assert load_folder(tmp_path / "nobody") == {}


def test_what_is_wrong_in_any_file_of_a_folder_is_said_at_once(write, tmp_path):
    write(ACME, "a.yaml")
    write(ACME, "b.yaml")
    write(ACME + "label: x\n", "c.yaml")
    write(ACME.replace("id: acme", "id: dcme").replace("discovery: name", "discovery: mac"), "d.yaml")

    with pytest.raises(BadProfile) as caught:
        load_folder(tmp_path)

    assert caught.value.problems == (
        "b.yaml: id: another profile in this folder also has the id acme.",
        "c.yaml: line 8: label is repeated.",
        "d.yaml: discovery: 'mac' is not a column of this profile.",
    )


def test_the_example_that_explains_the_format_can_be_used(write):
    text = (PROFILES / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]

    brand = load_file(write(example))

    assert (brand.id, brand.experimental, brand.ports.counts) == ("acme_gpon", True, True)


PROFILE_PATHS = sorted(PROFILES.glob("*.yaml"))
each_profile = pytest.mark.parametrize("path", PROFILE_PATHS, ids=lambda path: path.stem)


@each_profile
def test_a_profile_that_ships_is_called_as_its_file(path):
    assert load_file(path).id == path.stem
    assert path.stem in BUILT_IN


@each_profile
def test_every_fact_of_a_profile_says_where_it_comes_from(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    facts = [at for at, line in enumerate(lines) if re.search(r"\b(oid|probe|sys_object_ids):", line)]

    untagged = [lines[at] for at in facts if not TAG.search(lines[at]) and not TAG.search(_comment_above(lines, at))]

    assert facts
    assert untagged == []


def _comment_above(lines, at):
    """Return the comment right above a line, which may be longer than one."""
    above = []
    while at and lines[at - 1].lstrip().startswith("#"):
        at -= 1
        above.append(lines[at])
    return "#" + " ".join(above)


@each_profile
def test_a_profile_says_what_its_index_rests_on(path):
    index = re.search(r"(?:^ *#.*\n)*^index:(?:.*\n)(?: .*\n)*", path.read_text(encoding="utf-8"), re.MULTILINE)

    assert TAG.search(index[0].replace("\n", " "))


@pytest.mark.parametrize("module", [huawei, zte], ids=["huawei", "zte"])
def test_every_column_that_is_programmed_says_where_it_comes_from(module):
    source = Path(module.__file__).read_text(encoding="utf-8")
    columns = re.findall(r"^    _(?:column|optical)\(\"\w+\", .*$", source, re.MULTILINE)

    assert len(columns) == len([*module.COLUMNS])
    assert [line for line in columns if not TAG.search(line)] == []


@each_profile
def test_no_line_of_a_profile_is_longer_than_a_line_of_code(path):
    assert [line for line in path.read_text(encoding="utf-8").splitlines() if len(line) > 120] == []
