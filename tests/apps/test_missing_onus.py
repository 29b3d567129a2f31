"""ONUs that discoveries do not find: marked everywhere, counted as neither online nor dark, and never hidden."""

from datetime import timedelta

import pytest
from cast import BOSS, T0, make_olt, make_onu
from django.urls import reverse
from django.utils import timezone

from facho.apps.dashboard import queries
from facho.apps.inventory.models import Olt
from facho.apps.inventory.queries import with_onu_counts
from facho.apps.telemetry.pon_ports import ports_of


@pytest.fixture
def since():
    return timezone.now() - timedelta(hours=3)


@pytest.fixture
def onus(central, since):
    """One ONU online, one dark, one weak; and the same three again, missing."""
    states = {1: {}, 2: {"state": "los", "state_since": since}, 3: {"rx_dbm": -29.0}}
    for number, more in states.items():
        make_onu(central, number, **more)
        gone = {"misses": 2, "missing_since": since, "index": f"9.{number}", "name": f"gone-{number}"}
        make_onu(central, number, **more | gone)


def names(answer):
    return {onu["name"] for onu in answer.json()["results"]}


def test_a_missing_onu_is_neither_online_nor_dark_nor_weak(onus):
    [row] = queries.olt_rows(BOSS)
    [port] = ports_of(row.olt.pk)

    for counts in (row.onus, queries.OnuCounts.of(port.port), queries.total([row.onus])):
        numbers = (counts.total, counts.present, counts.online, counts.dark, counts.weak, counts.missing)
        assert numbers == (6, 3, 2, 1, 1, 3)
        assert counts.other == 0
    assert port.power.worst == -29.0


def test_lists_of_what_needs_a_look_leave_the_missing_out(onus):
    assert [onu.name for onu in queries.weakest_onus(BOSS)] == ["client-3"]
    assert [onu.name for onu in queries.latest_dark_onus(BOSS)] == ["client-2"]


def test_the_list_of_weak_onus_is_as_long_as_the_counter_says(central):
    for number, power in enumerate((-26.99, -27.0, -27.01, -27.99, -28.0, -40.5, None)):
        make_onu(central, number, rx_dbm=power)

    assert [onu.onu for onu in queries.weakest_onus(BOSS)] == [5, 4, 3, 2]
    assert queries.olt_rows(BOSS)[0].onus.weak == 4


def test_the_onus_that_went_dark_last_come_first_whatever_their_state(central):
    for number, state in enumerate(("los", "offline", "dying_gasp", "los", "online", "offline")):
        make_onu(central, number, state=state, state_since=T0 + timedelta(minutes=number))
    # Nobody knows how long it has been dark.
    make_onu(central, 9, state="los")

    assert [onu.onu for onu in queries.latest_dark_onus(BOSS, limit=4)] == [5, 3, 2, 1]


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        pytest.param("", {"client-1", "client-2", "client-3", "gone-1", "gone-2", "gone-3"}, id="all"),
        pytest.param("missing", {"gone-1", "gone-2", "gone-3"}, id="missing"),
        pytest.param("present", {"client-1", "client-2", "client-3"}, id="not missing"),
        pytest.param("dark", {"client-2"}, id="dark"),
        pytest.param("online", {"client-1", "client-3"}, id="online"),
        pytest.param("los", {"client-2"}, id="exactly one state"),
    ],
)
def test_the_list_shows_all_unless_it_is_asked_for_less(admin_page, api, onus, state, shown):
    page = admin_page.get("/onus/", {"state": state}).context["page"]

    assert {onu.name for onu in page.object_list} == shown
    assert names(api.get("/api/v1/onus/", {"state": state} if state else {})) == shown


def test_the_list_marks_them_with_the_time_since(admin_page, onus, since):
    # Without the start of their state, which is the same time.
    page = admin_page.get("/onus/?columns=state").content.decode()

    assert page.count('<span class="badge warn">missing</span>') == 3
    assert page.count(f'datetime="{since.isoformat()}"') == 3


def test_the_page_of_one_says_what_its_values_are_worth(admin_page, onus, central):
    gone = central.onus.get(name="gone-2")

    page = admin_page.get(f"/onus/{gone.pk}/").content.decode()

    assert "Discoveries no longer find it." in page
    assert "Its last state was: loss of signal" in page


def test_an_onu_that_moved_says_from_where(admin_page, central):
    onu = make_onu(central, 7, moved_at=T0, moved_from="0/3/9")

    assert "moved from 0/3/9" in admin_page.get("/onus/").content.decode()
    assert "0/3/9" in admin_page.get(f"/onus/{onu.pk}/").content.decode()


@pytest.fixture
def replaced(central, since):
    """An ONU, and the one at whose place it was found."""
    new = make_onu(central, 7, serial="HWTC00000107", name="new-7")
    gone = {"place_taken": True, "replaced_by": new, "missing_since": since}
    return make_onu(central, 7, serial="HWTC00000007", name="old-7", **gone), new


def test_a_replaced_onu_and_its_successor_are_linked_on_both_pages(admin_page, replaced):
    old, new = replaced

    for path in (f"/onus/{old.pk}/", reverse("admin:telemetry_onu_change", args=[old.pk])):
        assert "new-7" in admin_page.get(path).content.decode()
    for path in (f"/onus/{new.pk}/", reverse("admin:telemetry_onu_change", args=[new.pk])):
        assert "old-7" in admin_page.get(path).content.decode()
    assert "replaced by new-7" in admin_page.get("/onus/").content.decode()


def test_the_api_links_a_replaced_onu_and_its_successor(api, replaced):
    old, new = replaced

    shown = {onu["name"]: onu for onu in api.get("/api/v1/onus/").json()["results"]}

    assert shown["old-7"]["missing_cause"] == "replaced by HWTC00000107"
    assert shown["old-7"]["replaced_by"] == {"id": new.pk, "serial": "HWTC00000107", "mac": None, "name": "new-7"}
    assert [each["id"] for each in shown["new-7"]["replaces"]] == [old.pk]
    assert (shown["new-7"]["missing_cause"], shown["new-7"]["replaced_by"]) == ("", None)
    assert shown["old-7"]["index"] == shown["new-7"]["index"]
    assert names(api.get("/api/v1/onus/", {"is_replaced": "true"})) == {"old-7"}


def test_overview_and_olt_pages_say_how_many_are_missing(admin_page, onus, central):
    for path in ("/", f"/olts/{central.pk}/"):
        assert "3 missing" in admin_page.get(path).content.decode()


def test_the_api_tells_filters_and_orders(api, onus, central, since):
    make_onu(central, 7, index="1.7", moved_at=T0, moved_from="0/3/9")
    gone = api.get("/api/v1/onus/", {"is_missing": "true", "ordering": "-missing_since"})
    [moved] = api.get("/api/v1/onus/", {"moved_at__gt": (T0 - timedelta(hours=1)).isoformat()}).json()["results"]

    assert names(gone) == {"gone-1", "gone-2", "gone-3"}
    assert names(api.get("/api/v1/onus/", {"is_missing": "false"})) == {"client-1", "client-2", "client-3", "client-7"}
    first = gone.json()["results"][0]
    assert (first["misses"], first["is_missing"]) == (2, True)
    assert first["missing_since"] is not None
    assert (moved["name"], moved["moved_from"], moved["is_missing"]) == ("client-7", "0/3/9", False)


def test_the_summary_counts_them_apart(api, onus, central):
    answer = api.get("/api/v1/onus/summary/").json()

    assert (answer["total"], answer["missing"], answer["by_state"]) == (6, 3, {"online": 2, "los": 1})
    assert answer["olts"][0]["missing"] == 3


def test_an_olt_counts_them_apart(api, onus, central):
    shown = api.get(f"/api/v1/olts/{central.pk}/").json()

    assert (shown["onus_total"], shown["onus_online"], shown["onus_missing"]) == (6, 2, 3)
    assert with_onu_counts(Olt.objects.all()).get().onus_missing == 3


@pytest.mark.parametrize(
    ("wanted", "shown"), [("", 6), ("yes", 3), ("no", 3)], ids=["all", "the missing", "the present"]
)
def test_the_admin_filters_them(admin_page, onus, wanted, shown):
    answer = admin_page.get(reverse("admin:telemetry_onu_changelist"), {"missing": wanted} if wanted else {})

    assert answer.context["cl"].result_count == shown


def test_the_admin_marks_them(admin_page, onus):
    page = admin_page.get(reverse("admin:telemetry_onu_changelist")).content.decode()

    assert page.count("missing since") == 3


@pytest.fixture
def suspect(central, since):
    Olt.objects.filter(pk=central.pk).update(suspect_since=since)
    for number in range(1, 10):
        make_onu(central, number, misses=int(number <= 4))
    make_onu(central, 0, index="9.9", misses=2, missing_since=since)


HELD = "4 of 9 ONUs disappeared at once; waiting for the next discovery to confirm it."


def test_a_mass_vanishing_is_said_in_plain_words(admin_page, suspect, central):
    for path in (f"/olts/{central.pk}/", "/olts/", "/"):
        assert HELD in admin_page.get(path).content.decode()


def test_an_olt_that_is_not_suspect_has_no_banner(admin_page, suspect, central):
    Olt.objects.update(suspect_since=None)

    assert "vanished at once" not in admin_page.get(f"/olts/{central.pk}/").content.decode()


def test_the_api_and_the_admin_tell_of_it_too(api, admin_page, suspect, central):
    make_olt("OLT-NORTE-02")

    assert api.get(f"/api/v1/olts/{central.pk}/").json()["suspect_since"] is not None
    found = api.get("/api/v1/olts/", {"is_suspect": "true"}).json()["results"]
    assert [olt["name"] for olt in found] == ["OLT-CENTRAL-01"]
    page = admin_page.get(reverse("admin:inventory_olt_change", args=[central.pk])).content.decode()
    assert "waiting for the next discovery to confirm it" in page


def test_what_a_person_saves_leaves_what_the_engine_noted(central, since):
    stale = Olt.objects.get(pk=central.pk)
    Olt.objects.update(suspect_since=since, learned={"onus": 20})

    stale.location = "Norte"
    stale.save()

    fresh = Olt.objects.get()
    assert (fresh.location, fresh.suspect_since, fresh.learned) == ("Norte", since, {"onus": 20})
