"""Import of OLTs on its page: the preview, the community, and what stops it."""

import pytest
from cast import SECRETS, import_olts, make_olt
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from facho.apps.changes.models import Change
from facho.apps.dashboard.olt_import import COLUMNS
from facho.apps.inventory.models import Olt
from facho.apps.inventory.resources import COMMUNITY, OltResource

HEAD = "name,brand,host,port,location,version"


def settings_file(client):
    return client.get(reverse("dashboard:olt-settings-file"))


def test_a_file_of_all_olts_has_everything_but_the_secrets(admin_page, central):
    answer = settings_file(admin_page).content.decode()

    assert "OLT-CENTRAL-01" in answer
    assert not any(secret in answer for secret in (*SECRETS, *SECRETS.values(), central.community.token))


def test_template_page_and_import_have_the_same_columns(admin_page):
    template = admin_page.get(reverse("dashboard:olt-template")).content.decode()

    names = template.strip().split(",")
    assert names == [name for name, _help, _example in COLUMNS]
    assert set(names) == {*OltResource._meta.fields, COMMUNITY}


def test_an_unknown_format_is_not_found(admin_page):
    assert admin_page.get(reverse("dashboard:olt-template"), {"format": "yaml"}).status_code == 404


def test_new_olts_are_imported_with_the_community_of_the_form(admin_page, db):
    answer = import_olts(admin_page, f"{HEAD}\nOLT-NORTE-02,zte_c300,127.0.0.2,161,Norte,2c\n", community="private")

    olt = Olt.objects.get()
    assert answer.status_code == 302
    assert (olt.name, olt.brand, olt.location) == ("OLT-NORTE-02", "zte_c300", "Norte")
    assert olt.community.reveal() == "private"


def test_a_row_can_have_its_own_community(admin_page, db):
    import_olts(admin_page, "name,host,community\nOLT-A,127.0.0.2,own\nOLT-B,127.0.0.3,\n", community="common")

    assert {olt.name: olt.community.reveal() for olt in Olt.objects.all()} == {"OLT-A": "own", "OLT-B": "common"}
    assert not [change for change in Change.objects.all() if "own" in str(change.fields)]


def test_a_file_that_changes_only_communities_changes_them(admin_page, central):
    import_olts(admin_page, "name,community\nOLT-CENTRAL-01,next\n")

    central.refresh_from_db()
    assert central.community.reveal() == "next"


def test_known_olts_are_changed_by_name_and_keep_their_secrets(admin_page, central):
    import_olts(admin_page, f"{HEAD}\nOLT-CENTRAL-01,huawei,127.0.0.1,161,Sur,2c\n", community="of new ones")

    central.refresh_from_db()
    assert (central.location, central.community.reveal()) == ("Sur", SECRETS["community"])


@pytest.mark.parametrize(
    ("community", "host", "kept"),
    [
        pytest.param("", "127.0.0.1", SECRETS["community"], id="without a community: refused"),
        pytest.param("of moved ones", "127.0.0.9", "of moved ones", id="with one: moved"),
    ],
)
def test_an_import_that_moves_an_olt_does_not_take_its_community_along(admin_page, central, community, host, kept):
    answer = import_olts(admin_page, "name,host\nOLT-CENTRAL-01,127.0.0.9\n", community)

    central.refresh_from_db()
    assert ("Write this again" in answer.content.decode()) is not bool(community)
    assert (central.host, central.community.reveal()) == (host, kept)
    assert not community or not central.v3_auth_key


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "import"])
@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        pytest.param("OLT-X,huawai,127.0.0.2,161,,2c", "is not a valid choice", id="unknown brand"),
        pytest.param("OLT-X,huawei,127.0.0.2,161,,2c", "SNMP v1 and v2c need a community.", id="no community"),
        pytest.param("OLT-X,huawei,127.0.0.2,0,,2c", "greater than or equal to 1", id="a bad port"),
    ],
)
def test_a_bad_row_stops_the_whole_import_and_says_why(admin_page, db, row, sentence, preview):
    make_olt("OLT-A")

    answer = import_olts(admin_page, f"{HEAD}\nOLT-A,huawei,127.0.0.7,161,,2c\n{row}\n", community="", preview=preview)

    page = answer.content.decode()
    assert sentence in page
    # As a spreadsheet counts: the header is row 1.
    assert '<td class="end">3</td>' in page
    assert list(Olt.objects.values_list("name", "host")) == [("OLT-A", "127.0.0.1")]


def test_a_preview_shows_changes_without_secrets_and_stores_nothing(admin_page, central):
    text = "name,brand,host,location,site,community\n"
    text += "OLT-CENTRAL-01,huawei,127.0.0.1,Sur,,\nOLT-B,,127.0.0.2,,Puno,hidden-one\n"

    page = import_olts(admin_page, text, preview=True).content.decode()

    assert "1 new OLT. 1 changed. 0 unchanged." in page
    assert "<code>location</code> Centro → Sur" in page
    assert "<code>host</code> 127.0.0.2" in page
    assert "hidden-one" not in page
    central.refresh_from_db()
    assert (Olt.objects.count(), central.location, Change.objects.count()) == (1, "Centro", 0)


def test_an_import_says_what_it_did(admin_page, central):
    answer = import_olts(admin_page, "name,host\nOLT-CENTRAL-01,127.0.0.1\nOLT-B,127.0.0.2\n")

    assert "1 new OLT. 0 changed. 1 unchanged." in admin_page.get(answer["Location"]).content.decode()


def test_keys_of_snmpv3_in_a_file_are_refused_and_not_shown(admin_page, db):
    answer = import_olts(admin_page, "name,host,v3_auth_key\nOLT-X,127.0.0.1,in-the-clear\n")

    page = answer.content.decode()
    assert "Remove the column v3_auth_key: the keys of SNMPv3 are written in the settings of each OLT." in page
    assert "in-the-clear" not in page
    assert not Olt.objects.exists()


@pytest.mark.parametrize("missing", ["add_olt", "change_olt"])
def test_importing_needs_the_right_to_add_and_to_change(db, missing):
    user = User.objects.create(username="looker", is_staff=True)
    rights = {"view_olt", "change_olt", "add_olt"} - {missing}
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client = Client()
    client.force_login(user)

    assert import_olts(client, f"{HEAD}\n").status_code == 403
    assert import_olts(client, f"{HEAD}\n", preview=True).status_code == 403
