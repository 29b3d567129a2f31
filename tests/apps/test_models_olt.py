"""An OLT: what it must have, what it says of itself, and what a person's change must not undo."""

import pytest
from cast import T0, make_job, make_olt
from django.core.exceptions import ValidationError

from facho.apps.inventory.models import Olt

pytestmark = pytest.mark.django_db

V3 = {
    "version": "3",
    "community": "",
    "v3_user": "noc",
    "v3_auth": "SHA256",
    "v3_auth_key": "auth-secret",
    "v3_priv": "AES128",
    "v3_priv_key": "priv-secret",
}


def unsaved(**more):
    return Olt(**{"name": "OLT-CENTRAL-01", "brand": "huawei", "host": "127.0.0.1", "community": "public"} | more)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="v2c"),
        pytest.param({"version": "1"}, id="v1"),
        pytest.param(V3, id="v3 with privacy"),
        pytest.param(V3 | {"v3_priv": "", "v3_priv_key": ""}, id="v3 without privacy"),
        pytest.param(
            V3 | {"v3_auth": "", "v3_auth_key": "", "v3_priv": "", "v3_priv_key": ""}, id="v3 without anything"
        ),
    ],
)
def test_an_olt_that_is_set_up_well_is_accepted(db, more):
    unsaved(**more).full_clean()


@pytest.mark.parametrize(
    ("more", "field", "sentence"),
    [
        pytest.param({"community": ""}, "community", "need a community", id="no community"),
        pytest.param({"version": "1", "community": ""}, "community", "need a community", id="v1, no community"),
        pytest.param(V3 | {"v3_user": ""}, "v3_user", "needs a user", id="v3 without a user"),
        pytest.param(V3 | {"v3_auth": ""}, "v3_auth", "privacy requires", id="v3 privacy without authentication"),
        pytest.param(V3 | {"v3_auth_key": "short"}, "v3_auth_key", "at least 8", id="v3 short password"),
        pytest.param(V3 | {"v3_priv_key": ""}, "v3_priv_key", "at least 8", id="v3 no privacy password"),
        pytest.param({"brand": "acme"}, "brand", "acme", id="an unknown maker"),
        pytest.param({"port": 0}, "port", "greater than or equal to 1", id="port 0"),
        pytest.param({"port": 65536}, "port", "65535", id="port 65536"),
        pytest.param({"max_in_flight": 0}, "max_in_flight", "1", id="nothing in flight"),
        pytest.param({"max_pdus_per_second": 0}, "max_pdus_per_second", "0.1", id="no requests per second"),
        pytest.param({"host": ""}, "host", "blank", id="no address"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(db, more, field, sentence):
    with pytest.raises(ValidationError) as refusal:
        unsaved(**more).full_clean()

    assert list(refusal.value.message_dict) == [field]
    assert sentence in str(refusal.value)


def test_a_name_is_given_once(db):
    make_olt("OLT-CENTRAL-01")

    with pytest.raises(ValidationError, match="already exists"):
        unsaved().full_clean()


def test_the_brand_stays_as_long_as_jobs_of_it_are_applied(db):
    olt = make_olt("OLT-CENTRAL-01")
    (node,) = make_job("Optical power").apply_to([olt])
    olt.brand = "zte_c300"

    with pytest.raises(ValidationError, match="Remove them first"):
        olt.full_clean()

    node.delete()
    olt.full_clean()


@pytest.mark.parametrize(
    ("enabled", "reachability", "expected"),
    [
        (True, "unknown", "unknown"),
        (True, "slow", "slow"),
        (True, "unreachable", "unreachable"),
        (False, "reachable", "disabled"),
    ],
)
def test_the_admins_word_comes_before_what_was_observed(enabled, reachability, expected):
    assert Olt(enabled=enabled, reachability=reachability).state == expected


def test_disabling_and_enabling_change_nothing_else(db):
    olt = make_olt("OLT-CENTRAL-01", location="Centro")
    stale = Olt.objects.get()
    Olt.objects.update(location="Norte")

    stale.disable()

    olt.refresh_from_db()
    assert (olt.enabled, olt.location) == (False, "Norte")
    stale.enable()
    olt.refresh_from_db()
    assert (olt.enabled, olt.location) == (True, "Norte")


def test_a_form_opened_long_ago_does_not_undo_what_the_engine_saw(db):
    olt = make_olt("OLT-CENTRAL-01")
    Olt.objects.update(reachability="slow", last_error="slow", last_answer_at=T0, extra={"uptime": 7})

    olt.location = "Centro"
    olt.save()

    olt.refresh_from_db()
    assert (olt.location, olt.reachability, olt.last_error) == ("Centro", "slow", "slow")
    assert (olt.last_answer_at, olt.extra) == (T0, {"uptime": 7})


def test_a_form_opened_long_ago_still_tells_the_engine(db):
    olt = make_olt("OLT-CENTRAL-01")
    Olt.touch([olt.pk])
    seen_by_engine = Olt.objects.get().revision

    olt.host = "127.0.0.9"
    olt.save()

    assert Olt.objects.get().revision > seen_by_engine
