"""Maintenance through the API: planning, ending, extending, and what a scope allows."""

from datetime import UTC, datetime, timedelta

import pytest
from cast import make_maintenance, make_olt, make_port
from django.db import IntegrityError, transaction
from django.utils import timezone

from facho.apps.accounts.roles import Role, set_role
from facho.apps.inventory.models import Scope, Site, Tag
from facho.apps.maintenance.models import Maintenance, MaintenanceWindow
from facho.apps.maintenance.queries import maintained_at

URL = "/api/v1/maintenance/"
HOUR = timedelta(hours=1)


@pytest.fixture
def olt(central):
    return central


def soon(hours=1, length=2, **more):
    start = timezone.now() + hours * HOUR
    return {"starts_at": start.isoformat(), "ends_at": (start + length * HOUR).isoformat(), **more}


def covered(*where):
    return [window.maintenance_id for window in maintained_at(timezone.now()).of(*where)]


def test_a_planned_maintenance_says_what_when_and_who(api, olt):
    answer = api.post(URL, soon(olt=olt.pk, slot=0, port=1, reason="Splitter"), format="json")

    said = answer.json()
    assert answer.status_code == 201, said
    assert (said["target"], said["olt_name"], said["state"]) == (f"{olt.name} 0/1", olt.name, "planned")
    assert (said["author"], said["reason"], said["polling"]) == ("boss", "Splitter", True)
    assert said["window"] == {name: said[name] for name in ("starts_at", "ends_at")}
    assert api.get(f"{URL}{said['id']}/").json() == said


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({}, "non_field_errors", id="of nothing"),
        pytest.param({"olt": True, "site": "Lima"}, "non_field_errors", id="of two things"),
        pytest.param({"olt": True, "port": 1}, "non_field_errors", id="a port without its slot"),
        pytest.param({"site": "Lima", "slot": 0, "port": 1}, "non_field_errors", id="a port of a site"),
        pytest.param({"site": "Cusco"}, "site", id="an unknown site"),
        pytest.param({"olt": True, "ends_at": "2020-01-01T00:00Z"}, "ends_at", id="ends before it starts"),
        pytest.param(
            {"olt": True, "starts_at": "2020-01-01T00:00Z", "ends_at": "2020-01-01T01:00Z"}, "ends_at", id="past"
        ),
        pytest.param({"olt": True, "ends_at": "2099-01-01T00:00Z"}, "ends_at", id="too long"),
        pytest.param({"olt": True, "zone": "Lima"}, "zone", id="an unknown zone"),
        pytest.param({"olt": True, "recurrence": "daily", **soon(length=24)}, "recurrence", id="it never ends"),
        pytest.param({"olt": True, "repeats_until": "2020-01-01T00:00Z"}, "repeats_until", id="never repeated"),
        pytest.param({"olt": True, "author": "ana"}, "author", id="in the name of another"),
    ],
)
def test_a_maintenance_that_makes_no_sense_is_refused(api, olt, body, field):
    Site.objects.create(name="Lima")
    body = {**body, "olt": olt.pk} if body.get("olt") else body

    answer = api.post(URL, {**soon(), **body}, format="json")

    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert not Maintenance.objects.exists()


@pytest.mark.parametrize("of", ["olt", "site", "tag"])
def test_a_running_maintenance_covers_the_olts_of_its_target(api, olt, of):
    olt.site = Site.objects.create(name="Lima")
    olt.save()
    olt.tags.set([Tag.objects.create(name="core")])
    other = make_olt("OLT-SUR-03", host="127.0.0.3")
    target = {"olt": olt.pk, "site": "Lima", "tag": "core"}[of]

    plan = api.post(URL, {**soon(hours=-1), of: target}, format="json").json()

    assert plan["state"] == "running"
    assert covered(olt.pk) == covered(olt.pk, 0, 1) == [plan["id"]]
    assert covered(other.pk) == covered(None) == []


def test_the_maintenance_of_a_port_covers_no_other_port_and_not_the_olt(olt):
    make_port(olt, 0, 1)
    plan = make_maintenance(olt, slot=0, port=1)

    assert covered(olt.pk, 0, 1) == [plan.pk]
    assert covered(olt.pk) == covered(olt.pk, 0, 2) == []


def test_a_maintenance_ends_now_and_is_over(api, olt):
    plan = make_maintenance(olt)

    first, second = (api.post(f"{URL}{plan.pk}/end/") for _ in range(2))

    assert (first.status_code, first.json()["state"]) == (202, "over")
    assert (second.status_code, second.json()) == (409, {"detail": "It is not running."})
    assert covered(olt.pk) == []


def test_a_daily_maintenance_that_ends_early_goes_on_tomorrow(api, olt):
    plan = make_maintenance(olt, recurrence="daily")

    said = api.post(f"{URL}{plan.pk}/end/").json()

    assert said["state"] == "planned"
    assert datetime.fromisoformat(said["window"]["starts_at"]) == plan.starts_at + 24 * HOUR


def test_a_running_maintenance_is_extended(api, olt):
    plan = make_maintenance(olt)

    said = api.post(f"{URL}{plan.pk}/extend/", {"minutes": 90}, format="json").json()

    assert datetime.fromisoformat(said["window"]["ends_at"]) == plan.ends_at + 1.5 * HOUR
    too_long = api.post(f"{URL}{Maintenance.objects.get().pk}/extend/", {"minutes": 10**6}, format="json")
    assert too_long.status_code == 400


def test_a_changed_plan_moves_the_window_that_has_not_begun(api, olt):
    plan = api.post(URL, soon(olt=olt.pk), format="json").json()
    later = soon(hours=5)

    said = api.patch(f"{URL}{plan['id']}/", later, format="json").json()

    assert datetime.fromisoformat(said["window"]["starts_at"]) == datetime.fromisoformat(later["starts_at"])
    assert MaintenanceWindow.objects.count() == 1


def test_a_deleted_plan_leaves_what_has_happened(api, olt):
    planned = api.post(URL, soon(olt=olt.pk), format="json").json()
    running = make_maintenance(olt)

    assert api.delete(f"{URL}{planned['id']}/").status_code == api.delete(f"{URL}{running.pk}/").status_code == 204

    (left,) = api.get(URL).json()["results"]
    assert (left["id"], left["state"], left["cancelled_at"] is None) == (running.pk, "over", False)
    assert covered(olt.pk) == []


@pytest.mark.parametrize("state", ["running", "planned", "over"])
def test_the_list_is_filtered_by_state(api, olt, state):
    found = {
        "running": make_maintenance(olt).pk,
        "planned": api.post(URL, soon(olt=olt.pk), format="json").json()["id"],
        "over": make_maintenance(olt, starts_at=datetime(2025, 1, 1, tzinfo=UTC), ends_at=timezone.now() - HOUR).pk,
    }
    # A window of the past, which the engine has followed.
    MaintenanceWindow.objects.get_or_create(
        maintenance_id=found["over"],
        starts_at=datetime(2025, 1, 1, tzinfo=UTC),
        defaults={"ends_at": timezone.now() - HOUR},
    )

    rows = api.get(URL, {"state": state}).json()["results"]

    assert [(row["id"], row["state"]) for row in rows] == [(found[state], state)]


def test_a_user_with_a_scope_plans_for_its_olts_only_and_sees_no_others(api, boss, olt):
    # The scope of a superuser does not count.
    boss.is_superuser = False
    lima, cusco = Site.objects.create(name="Lima"), Site.objects.create(name="Cusco")
    edge = Tag.objects.create(name="edge")
    olt.site = lima
    olt.save()
    olt.tags.set([edge])
    hidden = make_olt("OLT-OCULTA", host="127.0.0.3", site=cusco)
    hidden.tags.set([edge])
    boss.save()
    set_role(boss, Role.OPERATOR)
    Scope.objects.create(user=boss).sites.set([lima])
    others = make_maintenance(hidden), make_maintenance(site=cusco)
    shared = make_maintenance(tag=edge)

    assert [row["id"] for row in api.get(URL).json()["results"]] == [shared.pk]
    assert api.get(f"{URL}{others[0].pk}/").status_code == 404
    assert api.delete(f"{URL}{shared.pk}/").status_code == api.post(f"{URL}{shared.pk}/end/").status_code == 403
    assert api.post(URL, soon(site="Lima"), format="json").status_code == 201
    assert api.post(URL, soon(olt=olt.pk), format="json").status_code == 201
    for refused in ({"site": "Cusco"}, {"tag": "edge"}, {"olt": hidden.pk}):
        assert api.post(URL, soon(**refused), format="json").status_code == 400, refused
    own = api.post(URL, soon(olt=olt.pk), format="json").json()
    assert api.patch(f"{URL}{own['id']}/", {"olt": None, "tag": "edge"}, format="json").status_code == 400


def test_the_database_refuses_a_maintenance_of_nothing(olt):
    start = timezone.now()

    with pytest.raises(IntegrityError), transaction.atomic():
        Maintenance.objects.create(starts_at=start, ends_at=start + HOUR)
