"""SNMP secrets: encrypted in the database, readable with the right key only, and shown nowhere."""

import copy
import io
import logging

import pytest
from cast import SECRETS, make_olt
from cryptography.fernet import Fernet
from django.core.exceptions import FieldError
from django.core.management import call_command
from django.db import connection

from facho.apps.inventory.models import Olt
from facho.apps.rest.fields import Secret, SecretField, WrongKeyError

pytestmark = pytest.mark.django_db

V3 = {"version": "3", "v3_user": "noc", "v3_auth": "SHA256", "v3_priv": "AES128"}


def new_key():
    return Fernet.generate_key().decode()


def stored():
    """Return what the table holds, as a thief of the file would see it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT community, v3_auth_key, v3_priv_key FROM olts")
        return list(cursor.fetchone())


@pytest.fixture
def central(db):
    make_olt("OLT-CENTRAL-01", **SECRETS)
    return Olt.objects.get()


def test_the_table_holds_no_secret_in_the_clear(central):
    assert all(token and secret not in token for token, secret in zip(stored(), SECRETS.values(), strict=True))


def test_a_secret_can_be_revealed(central):
    assert central.community.reveal() == SECRETS["community"]
    assert central.v3_priv_key.reveal() == SECRETS["v3_priv_key"]


@pytest.mark.parametrize("text", ["contraseña ñandú", "密码", " spaces  stay ", "a" * 500], ids=repr)
def test_any_text_can_be_a_secret(db, text):
    make_olt("OLT-CENTRAL-01", community=text)

    assert Olt.objects.get().community.reveal() == text


def test_no_secret_is_none_and_reveals_nothing(db):
    olt = make_olt("OLT-CENTRAL-01", community="public")
    olt.refresh_from_db()

    assert not olt.v3_auth_key
    assert olt.v3_auth_key.reveal() == ""
    assert stored()[1] == ""


def test_a_wrong_key_is_an_error_and_never_the_ciphertext(central, settings):
    settings.FACHO_SECRET_KEYS = [new_key()]
    olt = Olt.objects.get()

    with pytest.raises(WrongKeyError, match=r"FACHO_SECRET_KEYS.*secret\.keys"):
        olt.community.reveal()
    with pytest.raises(WrongKeyError):
        olt.community.rotated()
    with pytest.raises(WrongKeyError):
        olt.agent()


def test_a_ciphertext_that_was_tampered_with_is_an_error(central):
    Olt.objects.update(community=Secret(stored()[0][:-8] + "AAAAAAA="))

    with pytest.raises(WrongKeyError):
        Olt.objects.get().community.reveal()


def test_all_keys_read_and_the_first_one_writes(central, settings):
    old = settings.FACHO_SECRET_KEYS
    settings.FACHO_SECRET_KEYS = [new_key(), *old]
    olt = Olt.objects.get()
    assert olt.community.reveal() == SECRETS["community"]

    Olt.objects.update(community=olt.community.rotated())

    settings.FACHO_SECRET_KEYS = settings.FACHO_SECRET_KEYS[:1]
    assert Olt.objects.get().community.reveal() == SECRETS["community"]
    settings.FACHO_SECRET_KEYS = old
    with pytest.raises(WrongKeyError):
        Olt.objects.get().community.reveal()


def test_saving_another_column_leaves_the_ciphertext_alone(central):
    before = stored()

    central.location = "Centro"
    central.save()

    assert stored() == before


@pytest.mark.parametrize(
    "show",
    [
        pytest.param(lambda olt: repr(olt.community), id="repr"),
        pytest.param(lambda olt: f"{olt.community} {olt.community!s:>20}", id="text"),
        pytest.param(lambda olt: repr(vars(olt)), id="all attributes"),
        pytest.param(lambda olt: repr(olt), id="the OLT"),
        pytest.param(lambda olt: repr(olt.agent()), id="whom to ask"),
        pytest.param(lambda olt: repr(list(Olt.objects.values())), id="values of a query"),
        pytest.param(lambda olt: repr(copy.deepcopy(olt).__dict__), id="a copy"),
    ],
)
@pytest.mark.parametrize("is_fresh", [True, False], ids=["just assigned", "from the database"])
def test_a_secret_never_shows(db, show, is_fresh):
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", **SECRETS, **V3)

    shown = show(olt if is_fresh else Olt.objects.get())

    assert "s3cret" not in shown
    assert not any(token in shown for token in stored())


def test_a_secret_never_gets_into_a_log(central, caplog):
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("facho").warning("%s %r %s", central.community, central.__dict__, central.agent())

    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("form", ["json", "xml"])
def test_a_dump_has_no_trace_of_a_secret(central, form):
    out = io.StringIO()

    call_command("dumpdata", "inventory", format=form, stdout=out)

    assert "OLT-CENTRAL-01" in out.getvalue()
    assert "s3cret" not in out.getvalue()
    assert not any(token in out.getvalue() for token in stored())


@pytest.mark.parametrize(
    "lookup",
    [
        {"community": "s3cret-community"},
        {"community__startswith": "s3"},
        {"community__isnull": True},
        {"community__in": ["public"]},
        {"v3_priv_key__contains": "x"},
    ],
    ids=lambda lookup: next(iter(lookup)),
)
def test_a_secret_cannot_be_searched_for(central, lookup):
    with pytest.raises(FieldError, match="encrypted"):
        Olt.objects.filter(**lookup).exists()
    with pytest.raises(FieldError, match="encrypted"):
        Olt.objects.exclude(**lookup).exists()


def test_an_olt_that_was_never_saved_can_say_whom_to_ask():
    agent = Olt(name="OLT-CENTRAL-01", host="127.0.0.1", community="s3cret").agent()

    assert agent.credentials.name == "s3cret"


def test_equal_secrets_are_equal_under_any_ciphertext():
    first, second, other = Secret.of("public"), Secret.of("public"), Secret.of("private")

    assert first.token != second.token
    assert first == second
    assert len({first, second, other}) == 2
    assert first != other
    assert first != "public"


def test_what_a_person_left_out_stays_as_it_was(central):
    central.full_clean()
    central.save()

    assert Olt.objects.get().community.reveal() == SECRETS["community"]


def test_every_secret_of_an_olt_is_a_secret_field():
    fields = {field.name for field in Olt._meta.concrete_fields if isinstance(field, SecretField)}

    assert fields == set(SECRETS)
