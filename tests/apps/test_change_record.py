"""The record of changes: what is in a row, and what cannot be done to it."""

import json
import logging

import pytest
from alert_cast import make_channel, make_rule
from axes.models import AccessAttempt
from cast import SECRETS, import_olts
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from facho.apps.accounts.logins import ADDRESS_FACTOR, USER_FACTOR, unlock
from facho.apps.accounts.models import ApiToken
from facho.apps.changes.actor import Actor, Interface, acting, command_line, current, engine
from facho.apps.changes.models import AppendOnly, Change
from facho.apps.changes.record import record, write
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.store import breakers, runs

LIMIT = 5
SECRET_WORDS = [*SECRETS.values(), "another-secret"]


@pytest.fixture
def ana(db):
    """Somebody who acts on the command line."""
    with acting(Actor(Interface.CLI, name="ana", request_id="r1")):
        yield


def only_change(**wanted):
    return Change.objects.get(**wanted)


def test_a_change_has_before_and_after_of_the_changed_fields_only(central, ana):
    central.location, central.max_in_flight, central.enabled = "Lima", 4, True
    central.save()

    change = only_change()
    assert (change.actor, change.interface, change.request_id) == ("ana", "cli", "r1")
    assert (change.action, change.object_type, change.object_id) == ("changed", "inventory.olt", central.pk)
    assert (change.object_name, change.olt_id) == ("OLT-CENTRAL-01", central.pk)
    assert change.fields == {"location": ["Centro", "Lima"], "max_in_flight": [None, 4]}


def test_saving_the_same_values_again_records_nothing(central, ana):
    central.save()
    Olt.objects.get(pk=central.pk).save(update_fields=["community", "name"])

    assert not Change.objects.exists()


def test_a_secret_is_recorded_without_its_values(central, ana):
    central.community = "another-secret"
    central.save()
    central.delete()
    make_channel().delete()

    assert Change.objects.first().fields["signing_secret"] == "changed"
    assert Change.objects.filter(action="changed").get().fields == {"community": "changed"}
    stored = json.dumps(list(Change.objects.values("fields", "note", "object_name")))
    assert not [word for word in SECRET_WORDS if word in stored]


def test_a_secret_of_a_lost_key_can_be_replaced(central, ana, settings):
    settings.FACHO_SECRET_KEYS = ["b3RoZXIgdGVzdHM6IDMyIGJ5dGVzIG9mIG5vIHNlY3I="]
    Olt.objects.get(pk=central.pk).save(update_fields=["community"])
    central.community = "another-secret"
    central.save(update_fields=["community"])

    assert [change.fields for change in Change.objects.all()] == [{"community": "changed"}]


def test_the_engine_records_nothing_of_its_own(central, node):
    central.location = "Lima"
    central.save()
    node.request_run()

    assert not Change.objects.exists()


def test_a_change_that_is_rolled_back_has_no_record(central, ana):
    with transaction.atomic():
        central.disable()
        transaction.set_rollback(True)

    assert not Change.objects.exists()


def test_a_failed_save_leaves_no_record(central, norte, ana):
    norte.name = central.name
    with pytest.raises(DatabaseError), transaction.atomic():
        norte.save()

    assert not Change.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_row_and_its_record_are_one_transaction():
    """Channels and users have no transaction of their own, unlike OLTs."""
    seen = []

    def look(execute, sql, params, many, context):
        if sql.startswith(("INSERT", "UPDATE")):
            seen.append(connection.in_atomic_block)
        return execute(sql, params, many, context)

    with acting(command_line()), connection.execute_wrapper(look):
        user = User.objects.create(username="ana")
        user.first_name = "Ana"
        user.save()

    assert seen == [True] * 4


def test_nodes_of_an_applied_job_are_recorded_one_by_one(central, sur, power, names, ana):
    power.apply_to([central, sur])

    changes = Change.objects.filter(action="created", object_type="jobs.workflownode")
    assert sorted((change.olt_id, change.object_name) for change in changes) == [
        (central.pk, "Names @ OLT-CENTRAL-01"),
        (central.pk, "Optical power @ OLT-CENTRAL-01"),
        (sur.pk, "Names @ OLT-SUR-03"),
        (sur.pk, "Optical power @ OLT-SUR-03"),
    ]
    links = changes.filter(object_name="Names @ OLT-SUR-03").get().fields
    assert links == {
        "olt": [None, "OLT-SUR-03"],
        "job": [None, "Names"],
        "master": [None, "Optical power @ OLT-SUR-03"],
    }


def test_applying_a_job_to_many_olts_needs_no_query_per_node(power, ana, django_assert_max_num_queries):
    olts = Olt.objects.bulk_create([Olt(name=f"OLT-{n}", brand="huawei", host=f"10.0.0.{n}") for n in range(60)])
    with django_assert_max_num_queries(20):
        power.apply_to(olts)

    assert Change.objects.count() == 60


def test_an_interval_that_a_deleted_master_leaves_to_its_followers_is_recorded(node, names, ana):
    WorkflowNode.objects.filter(pk=node.pk).update(own_interval_seconds=77)
    names.detach()

    change = only_change(object_type="jobs.workflownode")
    assert change.fields == {"own_interval_seconds": [None, 77]}


def test_names_are_in_english_in_every_language(central, power, ana):
    from django.utils import translation

    with translation.override("es"):
        power.apply_to([central])

    assert only_change(object_type="jobs.workflownode").object_name == "Optical power @ OLT-CENTRAL-01"


@pytest.mark.parametrize("way", ["forward", "backward", "cleared"])
def test_the_groups_of_a_user_are_recorded(boss, ana, way):
    viewers, operators = (Group.objects.create(name=name) for name in ("Viewers", "Operators"))
    boss.groups.add(viewers)
    if way == "forward":
        boss.groups.add(operators)
        expected = [["Viewers"], ["Operators", "Viewers"]]
    elif way == "backward":
        operators.user_set.add(boss)
        expected = [["Viewers"], ["Operators", "Viewers"]]
    else:
        viewers.user_set.clear()
        expected = [["Viewers"], []]

    last = Change.objects.filter(object_type="auth.user").first()
    assert (last.object_name, last.fields) == ("boss", {"groups": expected})


def test_the_olts_of_a_rule_are_recorded_by_name(central, ana):
    rule = make_rule()
    rule.olts.set([central])

    assert Change.objects.first().fields == {"olts": [[], ["OLT-CENTRAL-01"]]}


def test_a_password_is_recorded_as_changed(reader, ana):
    reader.set_password("another-secret")
    reader.save()

    assert only_change().fields == {"password": "changed"}


def test_a_changed_password_of_one_s_own_is_recorded_with_the_revoked_tokens(admin_page, boss):
    boss.set_password("a-long-password-1")
    boss.save()
    admin_page.force_login(boss)
    ApiToken(user=boss, name="Grafana").issue()
    form = {"old_password": "a-long-password-1", "revoke_tokens": "on"}
    new = {"new_password1": "a-long-password-2", "new_password2": "a-long-password-2"}

    admin_page.post(reverse("dashboard:password"), form | new)

    made = [(change.action, change.object_type, change.interface) for change in Change.objects.all()]
    assert made == [("revoked", "accounts.apitoken", "page"), ("changed", "auth.user", "page")]
    assert Change.objects.last().fields == {"password": "changed"}


def test_a_token_is_recorded_with_its_name_and_prefix_and_never_with_its_key(central, boss):
    key = ApiToken(user=boss, name="Grafana").issue()
    answer = APIClient().patch(
        f"/api/v1/olts/{central.pk}/", {"location": "Lima"}, format="json", headers={"authorization": f"Token {key}"}
    )

    assert answer.status_code == 200
    change = only_change()
    assert (change.actor, change.user_id, change.interface) == ("boss", boss.pk, "api")
    assert change.token == f"Grafana ({key[:10]}…)"
    assert change.address == "127.0.0.1"
    assert key not in json.dumps(list(Change.objects.values()), default=str)


def test_a_button_of_a_page_counts_as_the_page(admin_page, node):
    admin_page.post(f"/api/v1/pollers/nodes/{node.pk}/run/")

    assert only_change().interface == "page"


def test_an_imported_olt_is_recorded_as_imported(admin_page, db):
    import_olts(admin_page, "name,brand,host,community\nOLT-9,huawei,127.0.0.9,another-secret\n")

    change = only_change()
    assert (change.interface, change.action, change.object_name) == ("import", "created", "OLT-9")
    assert change.fields["community"] == "changed"


def test_logins_and_failures_are_recorded_without_the_password(client, boss):
    boss.set_password("a-long-password")
    boss.save()
    client.post(reverse("login"), {"username": "bo\x1bss\n", "password": "another-secret"})
    client.post(reverse("login"), {"username": "boss", "password": "a-long-password"})
    client.post(reverse("logout"))

    made = [(change.action, change.actor, change.user_id) for change in Change.objects.order_by("id")]
    assert made == [("login_failed", "boss", None), ("login", "boss", boss.pk), ("logout", "boss", boss.pk)]
    assert "another-secret" not in json.dumps(list(Change.objects.values()), default=str)


def test_a_login_for_a_token_is_recorded(boss):
    boss.set_password("a-long-password")
    boss.save()
    url = reverse("api-token")
    APIClient().post(url, {"username": "boss", "password": "wrong"}, format="json")
    APIClient().post(url, {"username": "boss", "password": "a-long-password"}, format="json")

    made = [(change.action, change.object_type, change.interface) for change in Change.objects.order_by("id")]
    assert made == [("login_failed", "", "api"), ("login", "auth.user", "api"), ("created", "accounts.apitoken", "api")]
    assert set(Change.objects.values_list("actor", flat=True)) == {"boss"}


def recorded_attempts():
    return list(
        Change.objects.filter(action__in=["login_failed", "locked_out"])
        .order_by("id")
        .values_list("action", "actor", "address", "note")
    )


def attempt(name="ana", address="192.0.2.7"):
    return Client(REMOTE_ADDR=address).post(reverse("login"), {"username": name, "password": "wrong"}).status_code


def test_attempts_during_a_lock_do_not_fill_the_record(db):
    for _attempt in range(LIMIT + 3):
        attempt()

    assert recorded_attempts() == [("login_failed", "ana", "192.0.2.7", "")] * LIMIT + [
        ("locked_out", "ana", "192.0.2.7", "")
    ]


def test_a_second_lock_is_recorded_again(db):
    for _attempt in range(LIMIT):
        attempt()
    unlock("ana")
    for _attempt in range(LIMIT):
        attempt()

    assert [action for action, *_ in recorded_attempts()].count("locked_out") == 2


def test_a_locked_address_does_not_fill_the_record_with_other_names(db):
    for number in range(LIMIT * ADDRESS_FACTOR):
        AccessAttempt.objects.create(username=f"user {number}", ip_address="192.0.2.7", failures_since_start=1)

    assert {attempt(f"name {number}") for number in range(20)} == {429}
    assert recorded_attempts() == [("locked_out", "", "192.0.2.7", "all users")]


def test_a_locked_user_does_not_fill_the_record_from_other_addresses(db):
    for number in range(USER_FACTOR):
        AccessAttempt.objects.create(username="ana", ip_address=f"192.0.2.{number}", failures_since_start=LIMIT)

    assert {attempt(address=f"198.51.100.{number}") for number in range(20)} == {429}
    assert recorded_attempts() == [("locked_out", "ana", "", "all addresses")]


def test_addresses_of_one_ipv6_network_share_the_record_of_a_lock(db):
    for number in range(LIMIT + 10):
        attempt(address=f"2001:db8:0:1::{number}")

    assert [each for each in recorded_attempts() if each[0] == "locked_out"] == [
        ("locked_out", "ana", "2001:db8:0:1::", "")
    ]
    assert len(recorded_attempts()) == LIMIT + 1


def test_a_long_name_of_a_failed_login_is_cut(client, db):
    client.post(reverse("login"), {"username": "x" * 150, "password": "y"})

    assert only_change().actor == "x" * 150


@pytest.mark.parametrize(
    ("proxies", "sent", "is_taken"),
    [
        pytest.param(1, "req-7.A_b", True, id="from our proxy"),
        pytest.param(1, "evil\tid", False, id="invalid"),
        pytest.param(1, "x" * 65, False, id="too long"),
        pytest.param(0, "req-7.A_b", False, id="from a client"),
    ],
)
def test_the_id_of_a_request_comes_from_the_proxy_only(client, db, settings, proxies, sent, is_taken):
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": proxies}
    answer = client.get(reverse("login"), headers={"X-Request-ID": sent})

    assert (answer["X-Request-ID"] == sent) is is_taken
    assert len(answer["X-Request-ID"]) in (len(sent), 32)


def test_nobody_acts_after_a_request(client, db):
    client.get(reverse("login"))

    assert current() is None


def test_the_engine_s_changes_are_told_apart(central, sur):
    Olt.objects.filter(pk=central.pk).update(breaker_opened_at=timezone.now(), failures=3)
    breakers.answered(central.pk, breakers.USUAL_POLICY, timezone.now())
    Olt.objects.filter(pk=sur.pk).update(brand="")
    runs.put_to_work(sur.pk, "huawei")

    assert {(change.actor, change.interface) for change in Change.objects.all()} == {("Facho", "engine")}
    made = {(change.action, change.object_type) for change in Change.objects.all()}
    assert made >= {("breaker_closed", "inventory.olt"), ("changed", "inventory.olt"), ("created", "jobs.snmpjob")}
    assert Change.objects.get(action="changed", object_type="inventory.olt").fields == {"brand": ["", "huawei"]}


def test_a_breaker_that_opens_is_recorded_once(central):
    turn = breakers.BreakerTurn(
        breakers.Breaker(central.pk, central.name, 2, None, None), {"failures": 3}, breakers.Event.BREAKER_OPENED
    )
    turn.record()
    breakers.BreakerTurn(turn.breaker, {"failures": 4}).record()

    assert only_change().action == "breaker_opened"


def test_a_row_of_the_record_cannot_be_changed_or_deleted(db):
    write(engine(), Change.Action.LOGIN, [(None, {})])
    change = only_change()
    for attempt in (
        change.save,
        change.delete,
        Change.objects.all().delete,
        lambda: Change.objects.update(actor="x"),
        lambda: Change.objects.bulk_update([change], ["actor"]),
    ):
        with pytest.raises(AppendOnly):
            attempt()


def test_the_database_refuses_to_change_a_row_too(db):
    write(engine(), Change.Action.LOGIN, [(None, {})])
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE changes SET actor = 'x'")

    assert only_change().actor == "Facho"


def test_a_deleted_user_stays_in_the_record(boss, central):
    with acting(Actor(Interface.PAGE, logged_in=boss)):
        central.disable()
    id_ = boss.pk
    boss.delete()

    assert (only_change().actor, only_change().user_id) == ("boss", id_)


def test_a_deleted_job_is_recorded_with_its_nodes(node, ana):
    SnmpJob.remove([node.job], "delete")

    made = sorted(Change.objects.filter(action="deleted").values_list("object_type", "object_name"))
    assert made == [
        ("jobs.snmpjob", "Names"),
        ("jobs.snmpjob", "Optical power"),
        ("jobs.workflownode", "Names @ OLT-CENTRAL-01"),
        ("jobs.workflownode", "Optical power @ OLT-CENTRAL-01"),
    ]


def test_each_change_is_logged_as_json_after_the_commit(central, ana, django_capture_on_commit_callbacks):
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(json.loads(record.getMessage()))
    logger = logging.getLogger("facho.changes")
    logger.addHandler(handler)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            central.disable()
            assert lines == []
    finally:
        logger.removeHandler(handler)

    [line] = lines
    assert (line["actor"], line["action"], line["object_name"]) == ("ana", "changed", "OLT-CENTRAL-01")
    assert line["changes"] == [{"field": "enabled", "before": True, "after": False}]


def test_an_action_without_an_object_is_recorded(ana):
    record(Change.Action.KEYS_ROTATED)

    assert (only_change().object_type, only_change().object_id) == ("", None)


def test_an_unlock_by_a_command_is_recorded(client, db):
    client.post(reverse("login"), {"username": "ana", "password": "wrong"})
    before = set(Change.objects.values_list("pk", flat=True))

    with acting(command_line()):
        unlock("ana")

    change = Change.objects.exclude(pk__in=before).get()
    assert (change.action, change.interface, change.fields["username"]) == ("unlocked", "cli", ["ana", None])
