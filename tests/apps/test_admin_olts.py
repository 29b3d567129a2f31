"""OLTs in the admin: their secrets, their switch and their end."""

import pytest
from cast import SECRETS
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from facho.apps.inventory.models import Olt

CHANGELIST = reverse("admin:inventory_olt_changelist")
FORM = {
    "name": "OLT-CENTRAL-01",
    "brand": "huawei",
    "host": "127.0.0.1",
    "port": "161",
    "location": "Centro",
    "enabled": "on",
    "version": "2c",
    "community": "",
    "v3_user": "",
    "v3_auth": "",
    "v3_auth_key": "",
    "v3_priv": "",
    "v3_priv_key": "",
    "max_in_flight": "1",
    "max_pdus_per_second": "",
}


def change(olt):
    return reverse("admin:inventory_olt_change", args=[olt.pk])


def errors(answer):
    return answer.context["adminform"].form.errors


def test_an_olt_is_added_with_its_secret(admin_page):
    answer = admin_page.post(reverse("admin:inventory_olt_add"), FORM | {"community": " private "})

    assert answer.status_code == 302
    assert Olt.objects.get().community.reveal() == " private "


def test_an_empty_input_keeps_the_stored_secret(admin_page, central):
    answer = admin_page.post(change(central), FORM | {"location": "Sur"})

    central.refresh_from_db()
    assert answer.status_code == 302
    assert central.location == "Sur"
    assert {name: getattr(central, name).reveal() for name in SECRETS} == SECRETS


def test_a_given_secret_replaces_the_stored_one(admin_page, central):
    admin_page.post(change(central), FORM | {"community": "another"})

    central.refresh_from_db()
    assert central.community.reveal() == "another"


def test_the_form_says_whether_a_secret_is_stored(admin_page, sur):
    form = admin_page.get(change(sur)).context["adminform"].form

    assert str(form.fields["community"].help_text) == "Stored. Leave empty to keep it."
    assert str(form.fields["v3_auth_key"].help_text) == "Nothing is stored."


def test_a_refused_form_does_not_give_back_the_secret_that_was_typed(admin_page, central):
    answer = admin_page.post(change(central), FORM | {"community": "just-typed", "port": "70000"})

    assert errors(answer) == {"port": ["Ensure this value is less than or equal to 65535."]}
    assert "just-typed" not in answer.content.decode()


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        pytest.param({}, "community", "SNMP v1 and v2c need a community.", id="no community"),
        pytest.param({"version": "3"}, "v3_user", "SNMPv3 needs a user.", id="v3 without a user"),
        pytest.param(
            {"brand": "huawai", "community": "x"},
            "brand",
            "Select a valid choice. huawai is not one of the available choices.",
            id="unknown maker",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(admin_page, wrong, field, sentence):
    answer = admin_page.post(reverse("admin:inventory_olt_add"), FORM | wrong)

    assert errors(answer) == {field: [sentence]}
    assert not Olt.objects.exists()


def test_the_log_of_changes_names_a_secret_only_when_it_changed(admin_page, central):
    admin_page.post(change(central), FORM | {"location": "Sur"})

    history = admin_page.get(reverse("admin:inventory_olt_history", args=[central.pk]), follow=True)
    [shown] = history.context["changes"]
    assert "location" in shown.change.fields
    assert "community" not in shown.change.fields


def test_a_change_leaves_what_is_the_engines(admin_page, central, monkeypatch):
    original = Olt.full_clean

    def engine_writes_meanwhile(olt, *args, **kwargs):
        Olt.objects.filter(pk=olt.pk).update(reachability="slow", revision=41)
        return original(olt, *args, **kwargs)

    monkeypatch.setattr(Olt, "full_clean", engine_writes_meanwhile)

    admin_page.post(change(central), FORM | {"location": "Norte"})

    central.refresh_from_db()
    assert (central.location, central.reachability, central.revision) == ("Norte", "slow", 42)


@pytest.mark.parametrize(("action", "expected"), [("enable_chosen", True), ("disable_chosen", False)])
def test_chosen_olts_are_enabled_and_disabled_and_the_engine_told(admin_page, central, sur, action, expected):
    Olt.objects.update(enabled=not expected, revision=1)

    admin_page.post(CHANGELIST, {"action": action, "_selected_action": [central.pk, sur.pk], "confirmed": "1"})

    assert list(Olt.objects.values_list("enabled", "revision")) == [(expected, 2), (expected, 2)]


def test_disabling_chosen_olts_asks_first(admin_page, central, sur):
    asked = admin_page.post(CHANGELIST, {"action": "disable_chosen", "_selected_action": [central.pk]})

    text = asked.content.decode()
    assert "Disable these?" in text
    assert "OLT-CENTRAL-01" in text
    assert "OLT-SUR-03" not in text
    assert Olt.objects.get(pk=central.pk).enabled


def test_deleting_needs_its_permission(central):
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename__in=["view_olt", "change_olt"]))
    client = Client()
    client.force_login(looker)

    answer = client.post(reverse("admin:inventory_olt_delete", args=[central.pk]), {"post": "yes"})

    assert answer.status_code == 403
    assert Olt.objects.exists()
