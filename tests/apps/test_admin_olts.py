"""OLTs in the admin: their secrets, their switch, their end, and files of them."""

import pytest
import tablib
from cast import SECRETS, make_olt
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution
from facho.apps.rest.spreadsheets import XlsxFile
from facho.apps.telemetry.models import Onu

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
COLUMNS = "name,brand,host,port,location,enabled,version,max_in_flight,max_pdus_per_second"


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

    admin_page.post(CHANGELIST, {"action": action, "_selected_action": [central.pk, sur.pk]})

    assert list(Olt.objects.values_list("enabled", "revision")) == [(expected, 2), (expected, 2)]


def test_deleting_says_what_goes_with_it_and_takes_it_all(admin_page, execution, onu, central):
    url = reverse("admin:inventory_olt_delete", args=[central.pk])

    asked = admin_page.get(url).content.decode()
    answer = admin_page.post(url, {"post": "yes"})

    assert "Executions: 2" in asked
    assert "ONUs: 1" in asked
    assert answer.status_code == 302
    assert not any(model.objects.exists() for model in (Olt, Onu, Execution))


def test_deleting_needs_its_permission(central):
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename__in=["view_olt", "change_olt"]))
    client = Client()
    client.force_login(looker)

    answer = client.post(reverse("admin:inventory_olt_delete", args=[central.pk]), {"post": "yes"})

    assert answer.status_code == 403
    assert Olt.objects.exists()


def export(client, file_format):
    page = client.get(reverse("admin:inventory_olt_export"))
    formats = {str(label): value for value, label in page.context["form"].fields["format"].choices}
    return client.post(reverse("admin:inventory_olt_export"), {"format": formats[file_format], "resource": ""})


def test_an_export_has_everything_but_the_secrets(admin_page, central):
    answer = export(admin_page, "csv").content.decode()

    assert "OLT-CENTRAL-01" in answer
    assert not any(secret in answer for secret in (*SECRETS, *SECRETS.values(), central.community.token))


def test_an_export_has_the_columns_of_an_import(admin_page, central):
    exported = export(admin_page, "csv").content.decode()

    assert set(exported.splitlines()[0].split(",")) == {*COLUMNS.split(","), "site", "tags"}


def import_csv(client, text, **more):
    file = SimpleUploadedFile("olts.csv", text.encode(), content_type="text/csv")
    return client.post(reverse("admin:inventory_olt_import"), {"import_file": file, "format": "0", **more})


def test_new_olts_are_imported_with_the_community_of_the_form(admin_page, db):
    text = f"{COLUMNS}\nOLT-NORTE-02,zte_c300,127.0.0.2,161,Norte,1,2c,1,\n"

    answer = import_csv(admin_page, text, community="private")

    olt = Olt.objects.get()
    assert answer.status_code == 302
    assert (olt.name, olt.brand, olt.location, olt.community.reveal()) == (
        "OLT-NORTE-02",
        "zte_c300",
        "Norte",
        "private",
    )


def test_known_olts_are_changed_by_name_and_keep_their_secrets(admin_page, central):
    text = f"{COLUMNS}\nOLT-CENTRAL-01,huawei,127.0.0.1,161,Sur,1,2c,1,\n"

    import_csv(admin_page, text, community="of new ones")

    central.refresh_from_db()
    assert (central.location, central.community.reveal()) == ("Sur", SECRETS["community"])


def test_an_import_reads_no_file_of_the_machine(admin_page, db, tmp_path, monkeypatch):
    # The second step of an import takes the name of a file from the browser.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = tmp_path / "of-another-program.xlsx"
    file.write_bytes(XlsxFile().export_data(tablib.Dataset(headers=["name", "host"])))
    form = {"import_file_name": file.name, "original_file_name": "a.xlsx", "format": "1", "resource": ""}

    admin_page.post("/admin/inventory/olt/process_import/", form)

    # The library deletes the file that it has read.
    assert file.exists()


@pytest.mark.parametrize(
    ("community", "host", "kept"),
    [
        pytest.param("", "127.0.0.1", SECRETS["community"], id="without a community: refused"),
        pytest.param("of moved ones", "127.0.0.9", "of moved ones", id="with one: moved"),
    ],
)
def test_an_import_that_moves_an_olt_does_not_take_its_community_along(admin_page, central, community, host, kept):
    answer = import_csv(admin_page, f"{COLUMNS}\nOLT-CENTRAL-01,huawei,127.0.0.9,161,,1,2c,1,\n", community=community)

    central.refresh_from_db()
    assert ("Write this again" in answer.content.decode()) is not bool(community)
    assert (central.host, central.community.reveal()) == (host, kept)
    assert not community or not central.v3_auth_key


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        pytest.param("OLT-X,huawai,127.0.0.2,161,,1,2c,1,", "is not a valid choice", id="unknown maker"),
        pytest.param("OLT-X,huawei,127.0.0.2,161,,1,2c,1,", "SNMP v1 and v2c need a community.", id="no community"),
        pytest.param("OLT-X,huawei,127.0.0.2,0,,1,2c,1,", "greater than or equal to 1", id="a bad port"),
    ],
)
def test_a_bad_row_stops_the_whole_import_and_says_why(admin_page, db, row, sentence):
    good = "OLT-A,huawei,127.0.0.1,161,,1,2c,1,"
    make_olt("OLT-A")

    answer = import_csv(admin_page, f"{COLUMNS}\n{good.replace('127.0.0.1', '127.0.0.7')}\n{row}\n")

    assert sentence in answer.content.decode()
    assert list(Olt.objects.values_list("name", "host")) == [("OLT-A", "127.0.0.1")]


def test_secrets_in_a_file_are_refused(admin_page, db):
    answer = import_csv(admin_page, "name,brand,host,community\nOLT-X,huawei,127.0.0.1,in-the-clear\n")

    page = answer.content.decode()
    assert "Remove the column community: files must not contain secrets." in page
    assert "in-the-clear" not in page
    assert not Olt.objects.exists()


def test_importing_needs_the_right_to_add_and_to_change(db):
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename__in=["view_olt", "change_olt"]))
    client = Client()
    client.force_login(looker)

    assert import_csv(client, f"{COLUMNS}\n").status_code == 403
