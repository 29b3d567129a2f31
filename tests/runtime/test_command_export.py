"""`facho export`, as a person types it."""

import csv
import fcntl
import io
import os
import sys
from datetime import UTC, date, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from builders import HOUR, T0
from django.db import OperationalError

from facho.apps.inventory.models import Olt
from facho.apps.telemetry import history as reader
from facho.apps.telemetry.history import RAW, start_of_day
from facho.apps.telemetry.history_export import Part
from facho.apps.telemetry.models import HistoryRun, Onu
from facho.engine.batch import UNREAD
from facho.runtime.cli import main
from facho.runtime.commands import export
from facho.store.history import append, close

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
D0 = start_of_day(T0)
SINCE = f"{D0:%Y-%m-%d}"


@pytest.fixture
def facho(capsys, tmp_path, monkeypatch):
    """Run `facho export` into a directory; return its status, what it printed and what it remarked."""
    monkeypatch.setattr(reader, "_reported", set())

    def run(*options):
        with pytest.raises(SystemExit) as ended:
            main(["export", "--output", str(tmp_path / "files"), *options])
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def files(tmp_path):
    """Return the files by path, as tables of CSV."""

    def read():
        found = {}
        for path in sorted((tmp_path / "files").rglob("*")):
            if path.is_file():
                text = path.read_bytes().decode()
                found[str(path.relative_to(tmp_path / "files"))] = list(csv.reader(io.StringIO(text, newline="")))
        return found

    return read


def make_olt(called="OLT-CENTRAL-01", onus=2, **more):
    olt = Olt.objects.create(name=called, brand="huawei", host="127.0.0.1", community="public")
    made = [
        Onu.objects.create(olt=olt, index=f"1.{n}", slot=0, port=3, onu=n, first_seen_at=T0, own_read_at=T0, **more)
        for n in range(onus)
    ]
    return olt, [onu.pk for onu in made]


def fill(olt, onu_ids, *days):
    for day in days:
        for hour in (0, 23):
            powers = [-20.5 - place for place, _id in enumerate(onu_ids)]
            append(olt.pk, day + hour * HOUR, onu_ids, {"rx_dbm": powers, "state": ["online"] * len(onu_ids)})


def test_each_day_of_an_olt_is_a_file(facho, files):
    for name in ("OLT-CENTRAL-01", "OLT-NORTE-02"):
        olt, onu_ids = make_olt(name, serial="HWTC00000001", name="Ana")
        fill(olt, onu_ids, D0, D0 + DAY)
        close(RAW, olt.pk, D0)

    status, out, err = facho("--from", SINCE, "--fields", "rx_dbm,state")

    assert status == 0
    assert list(files()) == [
        "OLT-CENTRAL-01/2026-03-01.csv",
        "OLT-CENTRAL-01/2026-03-02.csv",
        "OLT-NORTE-02/2026-03-01.csv",
        "OLT-NORTE-02/2026-03-02.csv",
    ]
    assert files()["OLT-NORTE-02/2026-03-01.csv"] == [
        ["time", "olt", "slot", "port", "onu", "serial", "name", "state", "rx_dbm"],
        ["2026-03-01T00:00:00Z", "OLT-NORTE-02", "0", "3", "0", "HWTC00000001", "Ana", "online", "-20.5"],
        ["2026-03-01T23:00:00Z", "OLT-NORTE-02", "0", "3", "0", "HWTC00000001", "Ana", "online", "-20.5"],
        ["2026-03-01T00:00:00Z", "OLT-NORTE-02", "0", "3", "1", "HWTC00000001", "Ana", "online", "-21.5"],
        ["2026-03-01T23:00:00Z", "OLT-NORTE-02", "0", "3", "1", "HWTC00000001", "Ana", "online", "-21.5"],
    ]
    # Not a terminal: a line for each file instead of a bar.
    assert len([line for line in err.splitlines() if "4 lines in" in line]) == 4
    assert "4 files with 16 lines in" in out


def test_what_was_not_read_and_what_has_no_value_is_empty(facho, files):
    olt, onu_ids = make_olt(onus=3)
    append(olt.pk, D0, onu_ids, {"rx_dbm": [None, UNREAD, -20.0], "state": ["los", UNREAD, UNREAD]})

    facho("--from", SINCE, "--fields", "rx_dbm,state")

    rows = files()["OLT-CENTRAL-01/2026-03-01.csv"][1:]
    assert [row[4:] for row in rows] == [["0", "", "", "los", ""], ["2", "", "", "", "-20.0"]]


def test_files_are_readable_by_their_user_only(facho, tmp_path):
    fill(*make_olt(), D0)

    facho("--from", SINCE)

    paths = [tmp_path / "files", *(tmp_path / "files").rglob("*")]
    assert [oct(path.stat().st_mode & 0o777) for path in paths] == ["0o700", "0o700", "0o600"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        pytest.param(["--from", "2026-03-01"], ["2026-03-01.csv", "2026-03-02.csv"], id="until now"),
        pytest.param(["--from", "2026-03-01", "--to", "2026-03-01"], ["2026-03-01.csv"], id="the last day is included"),
        pytest.param(["--from", "2026-03-02"], ["2026-03-02.csv"], id="from a day"),
        pytest.param(
            ["--from", "2026-03-01T12:00", "--to", "2026-03-02T01:00"],
            ["2026-03-01-T120000-end.csv", "2026-03-02-T000000-T010000.csv"],
            id="days that are cut have their times in the name",
        ),
        pytest.param(
            ["--from", "2026-03-01T19:00-05:00", "--to", "2026-03-02T19:00:00-05:00"], ["2026-03-02.csv"], id="offset"
        ),
    ],
)
def test_the_period_decides_which_files_there_are(facho, files, options, names):
    fill(*make_olt(), D0, D0 + DAY)

    status, _out, _err = facho(*options)

    assert status == 0
    assert [name.removeprefix("OLT-CENTRAL-01/") for name in files()] == names


def test_a_cut_day_has_the_values_of_its_time_only(facho, files):
    fill(*make_olt(onus=1), D0)

    facho("--from", "2026-03-01T00:00:01", "--to", "2026-03-01T23:00:01")

    [rows] = files().values()
    assert [row[0] for row in rows] == ["time", "2026-03-01T23:00:00Z"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--from", "yesterday"], "--from must be a day or a time, such as 2026-11-19", id="no time"),
        pytest.param(["--from", "2999-01-01"], "--from must be in the past, and before --to", id="future"),
        pytest.param(["--from", SINCE, "--to", "2020-01-01"], "--from must be in the past, and before", id="backwards"),
        pytest.param(["--from", "0001-01-01T00:00+10:00"], "--from is too far away", id="before the first year"),
        pytest.param(["--from", SINCE, "--to", "9999-12-31"], "--to is too far away", id="after the last year"),
        pytest.param(
            ["--from", SINCE, "--fields", "rx,state"], "Unknown field rx. Valid fields: state, rx_dbm", id="field"
        ),
        pytest.param(
            ["--from", SINCE, "--olt", "OLT-X"], "There is no OLT with the name or id OLT-X", id="no such OLT"
        ),
        pytest.param(
            ["--from", SINCE, "--olt", "²"], "There is no OLT with the name or id", id="digit that is no number"
        ),
        pytest.param(["--to", SINCE], "the following arguments are required: --from", id="no start"),
    ],
)
def test_mistakes_are_explained_and_nothing_is_written(facho, files, options, said):
    fill(*make_olt(), D0)

    status, _out, err = facho(*options)

    assert status == 2
    assert said in err
    assert files() == {}


def test_olts_are_chosen_by_name_or_id(facho, files):
    for name in ("OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03"):
        fill(*make_olt(name), D0)

    facho("--from", SINCE, "--olt", "OLT-SUR-03", "--olt", str(Olt.objects.get(name="OLT-CENTRAL-01").pk))

    assert list(files()) == ["OLT-CENTRAL-01/2026-03-01.csv", "OLT-SUR-03/2026-03-01.csv"]


def test_a_period_without_history_is_explained(facho, files):
    first = facho("--from", SINCE)
    fill(*make_olt(), D0)
    second = facho("--from", "2026-03-05")

    assert first[0] == second[0] == 0
    assert "There is no history yet." in first[2]
    assert "There is no history in this period." in second[2]
    assert "from 2026-03-01 to 2026-03-01." in second[2]
    assert files() == {}


def test_existing_files_are_kept_unless_they_are_to_be_replaced(facho, files, tmp_path):
    olt, onu_ids = make_olt()
    fill(olt, onu_ids, D0, D0 + DAY)
    facho("--from", SINCE)
    path = tmp_path / "files/OLT-CENTRAL-01/2026-03-01.csv"
    path.write_text("mine")

    refused = facho("--from", SINCE)
    kept = path.read_text()
    replaced = facho("--from", SINCE, "--overwrite")

    assert refused[0] == 2
    assert "2026-03-01.csv exists, and 1 more." in refused[2]
    assert "--resume" in refused[2]
    assert "--overwrite" in refused[2]
    assert kept == "mine"
    assert replaced[0] == 0
    assert len(files()["OLT-CENTRAL-01/2026-03-01.csv"]) == 5


def test_an_export_is_continued(facho, tmp_path):
    fill(*make_olt(), D0, D0 + DAY)
    facho("--from", SINCE)
    complete, early = (tmp_path / f"files/OLT-CENTRAL-01/2026-03-0{day}.csv" for day in (1, 2))
    complete.write_text("complete")
    early.write_text("early")
    # Written half an hour after the end of its day, when results may still be in a spool.
    written = (D0 + 2 * DAY + HOUR / 2).timestamp()
    os.utime(early, (written, written))

    status, out, err = facho("--from", SINCE, "--resume")

    assert status == 0
    assert complete.read_text() == "complete"
    assert early.read_text().startswith("time,")
    assert "1 file of an earlier export kept." in err
    assert "1 file with 4 lines" in out


def test_an_export_that_is_cut_leaves_no_half_file(facho, files, monkeypatch):
    fill(*make_olt(), D0, D0 + DAY)
    of, calls = Part.of, []

    def lost(self, ids):
        calls.append(ids)
        if len(calls) == 2:
            raise OperationalError("server closed the connection")
        return of(self, ids)

    monkeypatch.setattr(Part, "of", lost)
    status, _out, err = facho("--from", SINCE)
    cut = list(files())
    resumed = facho("--from", SINCE, "--resume")

    assert status == 4
    assert "The database is unavailable (server closed the connection)." in err
    assert cut == ["OLT-CENTRAL-01/2026-03-01.csv"]
    assert resumed[0] == 0
    assert list(files()) == ["OLT-CENTRAL-01/2026-03-01.csv", "OLT-CENTRAL-01/2026-03-02.csv"]


def test_what_a_killed_export_left_does_not_matter(facho, files, tmp_path):
    fill(*make_olt(), D0)
    left = tmp_path / "files/OLT-CENTRAL-01/.2026-03-01.csv.part"
    left.parent.mkdir(parents=True)
    left.write_text("x" * 10_000)

    status, _out, _err = facho("--from", SINCE)

    assert status == 0
    assert list(files()) == ["OLT-CENTRAL-01/2026-03-01.csv"]
    assert len(files()["OLT-CENTRAL-01/2026-03-01.csv"]) == 5


def test_two_exports_do_not_write_one_file(facho, files, tmp_path):
    fill(*make_olt(), D0)
    part = tmp_path / "files/OLT-CENTRAL-01/.2026-03-01.csv.part"
    part.parent.mkdir(parents=True)
    with part.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        status, _out, err = facho("--from", SINCE)

    assert status == 2
    assert "Another export writes" in err
    assert part.exists()


def test_a_directory_that_cannot_be_written_is_explained(facho, tmp_path):
    fill(*make_olt(), D0)
    (tmp_path / "files").write_text("a file")

    status, _out, err = facho("--from", SINCE)

    assert status == 3
    assert "could not be written" in err


def test_a_link_is_not_followed(facho, tmp_path):
    fill(*make_olt(), D0)
    mine = tmp_path / "mine"
    mine.write_text("mine")
    part = tmp_path / "files/OLT-CENTRAL-01/.2026-03-01.csv.part"
    part.parent.mkdir(parents=True)
    part.symlink_to(mine)

    status, _out, _err = facho("--from", SINCE)

    assert status == 3
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        pytest.param("OLT-CENTRAL-01", "OLT-CENTRAL-01", id="as it is"),
        pytest.param("Peñalolén", "Peñalolén", id="letters of other languages"),
        pytest.param("../../etc/cron.d", "_._.._etc_cron.d~{}", id="path"),
        pytest.param("OLT Sur 03", "OLT_Sur_03~{}", id="spaces"),
        pytest.param("-rf", "_rf~{}", id="option"),
        pytest.param("ñ" * 80, "ñ" * 50 + "~{}", id="long"),
    ],
)
def test_the_name_of_an_olt_is_safe_as_a_folder(facho, files, name, folder):
    olt, onu_ids = make_olt(name)
    fill(olt, onu_ids, D0)

    facho("--from", SINCE)

    assert list(files()) == [f"{folder.format(olt.pk)}/2026-03-01.csv"]


def test_olts_with_similar_names_have_folders_of_their_own(facho, files):
    ids = {}
    for name in ("OLT 1", "OLT_1", "Sur", "SUR"):
        olt, onu_ids = make_olt(name)
        fill(olt, onu_ids, D0)
        ids[name] = olt.pk

    facho("--from", SINCE)

    folders = {name.split("/")[0] for name in files()}
    assert folders == {f"OLT_1~{ids['OLT 1']}", "OLT_1", f"Sur~{ids['Sur']}", f"SUR~{ids['SUR']}"}


def test_no_text_is_a_formula(facho, files):
    fill(*make_olt("=OLT", name="=HYPERLINK(0)", serial="@x"), D0)

    facho("--from", SINCE)

    [rows] = files().values()
    assert [rows[1][place] for place in (1, 5, 6)] == ["'=OLT", "'@x", "'=HYPERLINK(0)"]


DAILY = "rx_dbm_min,rx_dbm_mean,rx_dbm_max,in_octets_sum"


def test_daily_values_are_a_file_per_month(facho, files):
    olt, onu_ids = make_olt(onus=1)
    for hour, power in ((1, -20.0), (2, -22.0)):
        columns = {"rx_dbm": [power], "in_octets": [1000 * hour], "state": ["online"]}
        append(olt.pk, D0 + hour * HOUR, onu_ids, columns)
    close(RAW, olt.pk, D0)

    status, _out, _err = facho("--from", SINCE, "--daily", "--fields", "rx_dbm,in_octets,state")

    assert status == 0
    assert files() == {
        "OLT-CENTRAL-01/2026-03-daily.csv": [
            f"day,olt,slot,port,onu,serial,name,state,{DAILY}".split(","),
            ["2026-03-01", "OLT-CENTRAL-01", "0", "3", "0", "", "", "online", "-22.0", "-21.0", "-20.0", "1000"],
        ]
    }


def test_a_parquet_file_has_the_same_values_with_types(facho, tmp_path):
    olt, onu_ids = make_olt(onus=2, serial="HWTC00000001", name="=Ana")
    append(olt.pk, D0, onu_ids, {"rx_dbm": [-20.5, None], "state": ["online", "los"], "in_octets": [2**60, UNREAD]})

    status, _out, _err = facho("--from", SINCE, "--format", "parquet", "--fields", "rx_dbm,state,in_octets")

    table = pq.read_table(tmp_path / "files/OLT-CENTRAL-01/2026-03-01.parquet")
    assert status == 0
    assert {field.name: str(field.type) for field in table.schema} == {
        "time": "timestamp[us, tz=UTC]",
        "olt": "string",
        "slot": "int64",
        "port": "int64",
        "onu": "int64",
        "serial": "string",
        "name": "string",
        "state": "string",
        "rx_dbm": "double",
        "in_octets": "int64",
    }
    common = {"time": D0, "olt": "OLT-CENTRAL-01", "slot": 0, "port": 3, "serial": "HWTC00000001", "name": "=Ana"}
    assert table.to_pylist() == [
        common | {"onu": 0, "state": "online", "rx_dbm": -20.5, "in_octets": 2**60},
        common | {"onu": 1, "state": "los", "rx_dbm": None, "in_octets": None},
    ]


def test_daily_values_in_parquet_have_days(facho, tmp_path):
    olt, onu_ids = make_olt(onus=1)
    append(olt.pk, D0, onu_ids, {"rx_dbm": [-20.5]})
    close(RAW, olt.pk, D0)

    facho("--from", SINCE, "--format", "parquet", "--daily", "--fields", "rx_dbm")

    [row] = pq.read_table(tmp_path / "files/OLT-CENTRAL-01/2026-03-daily.parquet").to_pylist()
    assert (row["day"], row["rx_dbm_mean"]) == (date(2026, 3, 1), -20.5)


def test_without_pyarrow_the_command_names_the_package(facho, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    fill(*make_olt(), D0)

    status, _out, err = facho("--from", SINCE, "--format", "parquet")

    assert status == 2
    assert "pip install 'facho[parquet]'" in err
    assert files() == {}


def test_many_onus_are_written_in_parts(facho, files, monkeypatch):
    monkeypatch.setattr(export, "ONUS_AT_ONCE", 2)
    olt, onu_ids = make_olt(onus=5)
    fill(olt, onu_ids, D0)

    facho("--from", SINCE)

    [rows] = files().values()
    assert [row[4] for row in rows[1:]] == [str(number) for number in range(5) for _ in range(2)]


def test_damaged_rows_make_the_export_partial(facho, files):
    fill(*make_olt(onus=1), D0)
    HistoryRun.objects.filter(at=D0).update(data=b"damaged!!!")

    status, _out, err = facho("--from", SINCE)

    assert status == 3
    assert "Damaged rows of the history were left out" in err
    assert [len(rows) for rows in files().values()] == [2]


def test_a_day_that_is_not_over_is_written_again(facho, tmp_path):
    olt, onu_ids = make_olt(onus=1)
    today = start_of_day(datetime.now(UTC))
    append(olt.pk, today, onu_ids, {"rx_dbm": [-20.5]})
    facho("--from", f"{today:%Y-%m-%d}")
    path = tmp_path / f"files/OLT-CENTRAL-01/{today:%Y-%m-%d}.csv"
    path.write_text("early")

    facho("--from", f"{today:%Y-%m-%d}", "--resume")

    assert path.read_text().startswith("time,")
