"""What every start looks at first, with ids and hints."""

import os
from dataclasses import replace

import pytest
from cryptography.fernet import Fernet
from django.core.checks import run_checks
from django.db import OperationalError, connection

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob
from facho.runtime import checks

pytestmark = pytest.mark.django_db


def found(messages):
    return [(message.id, message.msg, message.hint) for message in messages]


def test_a_sound_installation_has_nothing_to_say(db):
    Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")

    assert checks.database(None, databases=["default"]) == []
    assert [
        message for message in run_checks(databases=["default"]) if message.level >= 30 and not message.is_silenced()
    ] == []


def test_an_olt_that_is_never_identified_is_found(db):
    Olt.objects.bulk_create([Olt(name="OLT-SUR-03", host="127.0.0.3")])

    [(id_, said, hint)] = found(checks.database(None, databases=["default"]))
    assert id_ == "facho.W006"
    assert said == "OLT-SUR-03 has no brand and no identification job."
    assert "Start Facho" in hint


def test_olts_that_are_one_device_are_found(db):
    hosts = ["127.0.0.1", "localhost", "::ffff:127.0.0.1", "127.0.0.2"]
    # As SQL would put them there: nothing but the address is filled in.
    Olt.objects.bulk_create([Olt(name=f"OLT-{number}", host=host) for number, host in enumerate(hosts)])

    [(id_, said, hint)] = found(checks.shared_devices())
    assert id_ == "facho.W007"
    assert said == "OLT-0, OLT-1, OLT-2 are the same device: 127.0.0.1:161."
    assert "at a time" in hint


def test_a_job_that_reads_nothing_is_found(db):
    SnmpJob.objects.create(name="Optical power", brand="huawei", kind="table")
    SnmpJob.objects.create(name="Discovery", brand="huawei", kind="discovery")

    [(id_, said, hint)] = found(checks.database(None, databases=["default"]))
    assert id_ == "facho.W008"
    assert said == "The job Optical power of huawei reads nothing, so it is not scheduled."
    assert "Add a column" in hint


def test_passwords_without_encryption_are_found(settings):
    plain = {"ldap_url": "ldap://ldap.example.net", "ldap_start_tls": False}
    settings.CONFIG = replace(settings.CONFIG, **plain)

    [(id_, said, hint)] = found(checks.plain_passwords(None))
    assert id_ == "facho.W009"
    assert "without encryption" in said
    assert "ldaps://" in hint


def test_a_time_series_store_that_does_not_answer_is_found(settings):
    config = replace(settings.CONFIG, tsdb_url="http://ana:secret@127.0.0.1:9/api/v1/write")

    [(id_, said, hint)] = found(checks.time_series(config))

    assert id_ == "facho.W012"
    assert said == (
        "The time series store at http://127.0.0.1:9/api/v1/write does not accept runs: Connection refused."
    )
    assert "FACHO_TSDB_URL" in hint
    assert checks.time_series(settings.CONFIG) == []


def test_a_real_store_accepts_runs(settings, victoria):
    config = replace(settings.CONFIG, tsdb_url=victoria.url)

    [(id_, said, _)] = found(checks.time_series(config))

    assert (id_, said) == ("facho.I003", f"The time series store at {victoria.url} accepts runs.")


def test_a_misspelt_setting_is_found_with_a_hint(monkeypatch):
    monkeypatch.setenv("FACHO_POLERS", "20")

    assert found(checks.environment(None)) == [
        ("facho.E001", "FACHO_POLERS is not a setting of Facho.", "Did you mean FACHO_POLLERS?")
    ]


def test_a_setting_like_no_other_is_found_with_all_there_are(monkeypatch):
    monkeypatch.setenv("FACHO_XYZZY", "20")

    ((_, _, hint),) = found(checks.environment(None))
    assert "FACHO_DATA_DIR, FACHO_HOST" in hint


def test_a_database_that_is_unavailable_is_found(monkeypatch):
    def away():
        raise OperationalError("connection refused")

    monkeypatch.setattr(connection, "ensure_connection", away)

    ((id_, said, hint),) = found(checks.database(None, databases=["default"]))
    assert id_ == "facho.E002"
    assert "connection refused" in said
    assert "DATABASE_URL" in hint


@pytest.mark.parametrize("closed", ["facho.sqlite3", "facho.sqlite3-wal", ""], ids=["file", "log", "folder"])
def test_a_file_that_we_cannot_write_is_found_before_anybody_tries(tmp_path, monkeypatch, closed):
    for name in ("facho.sqlite3", "facho.sqlite3-wal"):
        (tmp_path / name).touch()
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / closed)

    (error,) = checks.unwritable(tmp_path / "facho.sqlite3")

    assert error.id == "facho.E015"
    assert str(tmp_path / closed) in error.msg
    assert "chown" in error.hint


def test_a_file_that_is_not_there_yet_is_nobodys(tmp_path):
    assert checks.unwritable(tmp_path / "facho.sqlite3") == []


def test_a_database_that_is_behind_is_found(db, monkeypatch):
    monkeypatch.setattr(checks.MigrationExecutor, "migration_plan", lambda *_: [("inventory", False)])

    ((id_, _, hint),) = found(checks.database(None, databases=["default"]))
    assert id_ == "facho.W001"
    assert "facho migrate" in hint


def test_a_secret_that_cannot_be_read_names_its_olt(db, settings):
    Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    settings.FACHO_SECRET_KEYS = [Fernet.generate_key().decode()]

    ((id_, said, _),) = found(checks.database(None, databases=["default"]))
    assert id_ == "facho.E003"
    assert said.startswith("OLT-CENTRAL-01: ")


def test_without_a_database_to_look_at_it_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(connection, "ensure_connection", lambda: pytest.fail("it was"))

    assert checks.database(None, databases=None) == []
