"""Rotation: afterwards every secret is under the first key, and nothing was unreadable in between."""

import stat

import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.db import connection

from facho.alerts.models import Channel
from facho.apps.inventory.models import Olt
from facho.apps.rest.fields import WrongKeyError
from facho.runtime import config, keys
from facho.runtime.config import ConfigError
from facho.runtime.lock import EngineLock

pytestmark = pytest.mark.django_db


def new_key():
    return Fernet.generate_key().decode()


def make_olts(count):
    for number in range(count):
        Olt.objects.create(
            name=f"OLT-{number:02}", brand="huawei", host="127.0.0.1", community=f"secret {number}", v3_auth_key="auth"
        )


def readable_with(*names):
    """Return the communities that these keys can read, as a program that knows nothing else."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT community FROM olts ORDER BY name")
        return [Fernet(names[0]).decrypt(token).decode() for (token,) in cursor.fetchall()]


@pytest.fixture
def in_file(tmp_path, settings):
    """An installation whose key is in its data directory."""
    config.prepare(config.load({"FACHO_DATA_DIR": str(tmp_path)}))
    loaded = config.load({"FACHO_DATA_DIR": str(tmp_path)})
    settings.FACHO_SECRET_KEYS = list(loaded.secret_keys)
    return loaded


def test_with_keys_in_the_file_a_new_one_is_made_and_the_old_one_kept(db, in_file):
    make_olts(3)

    count = keys.rotate(in_file)

    new, old = in_file.key_file.read_text().split()
    assert count == 3
    assert (old,) == in_file.secret_keys
    assert readable_with(new) == ["secret 0", "secret 1", "secret 2"]
    assert Olt.objects.first().v3_auth_key.reveal() == "auth"
    assert stat.S_IMODE(in_file.key_file.stat().st_mode) == 0o600


def test_rotating_again_keeps_every_key_for_old_backups(db, in_file):
    make_olts(1)
    keys.rotate(in_file)
    again = config.load({"FACHO_DATA_DIR": str(in_file.data_dir)})

    keys.rotate(again)

    assert len(in_file.key_file.read_text().split()) == 3
    assert in_file.key_file.read_text().split()[1:] == list(again.secret_keys)


def test_with_keys_in_the_environment_the_first_one_is_the_new_one(db, tmp_path, settings):
    old, new = new_key(), new_key()
    settings.FACHO_SECRET_KEYS = [old]
    make_olts(2)
    settings.FACHO_SECRET_KEYS = [new, old]
    loaded = config.load({"FACHO_DATA_DIR": str(tmp_path), "FACHO_SECRET_KEYS": f"{new},{old}"})

    count = keys.rotate(loaded)

    assert count == 2
    assert readable_with(new) == ["secret 0", "secret 1"]
    assert list(tmp_path.iterdir()) == []


def test_one_secret_that_cannot_be_read_leaves_all_as_they_were(db, tmp_path, settings):
    old, new = new_key(), new_key()
    settings.FACHO_SECRET_KEYS = [old]
    make_olts(2)
    settings.FACHO_SECRET_KEYS = [new_key()]
    Olt.objects.create(name="OLT-SUR-03", brand="huawei", host="127.0.0.3", community="lost")
    settings.FACHO_SECRET_KEYS = [new, old]
    loaded = config.load({"FACHO_DATA_DIR": str(tmp_path), "FACHO_SECRET_KEYS": f"{new},{old}"})

    with pytest.raises(WrongKeyError):
        keys.rotate(loaded)

    Olt.objects.filter(name="OLT-SUR-03").delete()
    assert readable_with(old) == ["secret 0", "secret 1"]


def test_an_olt_without_secrets_stays_without(db, in_file):
    Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1")

    keys.rotate(in_file)

    assert not Olt.objects.get().community


def test_rotating_is_no_change_for_the_engine(db, in_file):
    make_olts(1)
    before = Olt.objects.get().revision

    keys.rotate(in_file)

    assert Olt.objects.get().revision == before


def test_the_secrets_of_channels_are_rotated_too(db, in_file):
    channel = Channel.objects.create(name="NOC", kind="webhook", url="https://127.0.0.1", signing_secret="hush")
    old = in_file.secret_keys[0]

    count = keys.rotate(in_file)

    with connection.cursor() as cursor:
        cursor.execute("SELECT signing_secret FROM alert_channels")
        ((token,),) = cursor.fetchall()
    channel.refresh_from_db()
    assert count == 1
    assert channel.signing_secret.reveal() == "hush"
    with pytest.raises(InvalidToken):
        Fernet(old).decrypt(token)


def test_a_new_key_is_refused_while_facho_runs(db, in_file):
    make_olts(1)
    before = in_file.key_file.read_text()

    with EngineLock(in_file), pytest.raises(ConfigError, match="Stop Facho, run `facho rotate-keys` again"):
        keys.rotate(in_file)

    assert in_file.key_file.read_text() == before
    assert readable_with(*before.split()) == ["secret 0"]
