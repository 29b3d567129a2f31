"""From rows to engine values: what a node has of its own, raw OIDs, and what a bad row must not cost."""

import logging

import pytest
from builders import MIN, T0
from cryptography.fernet import Fernet
from django.db import connection
from django.test.utils import CaptureQueriesContext

from contracts.worlds import Inline, done
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from facho.apps.rest.fields import WrongKeyError
from facho.engine import oid
from facho.engine.errors import OltGone
from facho.engine.model import JobKind, RawOid
from facho.engine.quota.durations import learn
from facho.engine.snmp import Version
from facho.store.nodes import DbNodeSource
from facho.store.quotas import grid_nodes

pytestmark = pytest.mark.django_db

SYS_NAME = "1.3.6.1.2.1.1.5.0"


@pytest.fixture
def source():
    return DbNodeSource(Inline())


def make_olt(name="OLT-CENTRAL-01", **more):
    return Olt.objects.create(**{"name": name, "brand": "huawei", "host": "127.0.0.1", "community": "public"} | more)


def make_job(name="Optical power", **more):
    defaults = {"brand": "huawei", "kind": "table", "columns": ["rx_dbm"], "interval_seconds": 300}
    return SnmpJob.objects.create(name=name, **defaults | more)


def nodes_of(source, *olts):
    states = done(source.states([olt.pk for olt in olts]))
    return [node for state in states.values() for node in state.nodes]


def test_a_node_has_what_its_job_says(source, db):
    olt = make_olt()
    job = make_job(kind="get", priority=55, timeout_seconds=60, retries=5, retry_delay_seconds=7)
    job.apply_to([olt])

    (node,) = nodes_of(source, olt)

    assert (node.kind, node.columns, node.interval, node.priority) == (JobKind.GET, ("rx_dbm",), 5 * MIN, 55)
    assert (node.timeout, node.retries, node.retry_delay.total_seconds()) == (1 * MIN, 5, 7)


def test_what_a_node_has_of_its_own_comes_first(source, db):
    olt = make_olt()
    make_job(priority=55).apply_to([olt])
    WorkflowNode.objects.update(own_interval_seconds=60, own_priority=0)

    (node,) = nodes_of(source, olt)

    assert (node.interval, node.priority) == (1 * MIN, 0)


@pytest.mark.parametrize(
    ("job_enabled", "own_enabled", "is_there"),
    [
        pytest.param(True, None, True, id="same as the job"),
        pytest.param(False, None, False, id="the job is disabled"),
        pytest.param(True, False, False, id="disabled here"),
        pytest.param(False, True, True, id="enabled here only"),
    ],
)
def test_a_node_is_there_if_it_is_enabled(source, db, job_enabled, own_enabled, is_there):
    olt = make_olt()
    make_job(enabled=job_enabled).apply_to([olt])
    WorkflowNode.objects.update(own_enabled=own_enabled)

    assert bool(nodes_of(source, olt)) is is_there


def test_a_chained_node_names_its_master(source, db):
    olt = make_olt()
    power = make_job()
    make_job("Names", follows=power)
    power.apply_to([olt])

    master, chained = sorted(nodes_of(source, olt), key=lambda node: node.id)

    assert (master.master_id, chained.master_id, chained.name) == (None, master.id, "Names")


def test_raw_oids_come_with_their_job_once_and_in_order(source, db):
    central, norte = make_olt(), make_olt("OLT-NORTE-02")
    job, other = make_job(), make_job("Names")
    SnmpJobOid.objects.create(job=job, name="sysname", oid=SYS_NAME, decode="text", scalar=True)
    SnmpJobOid.objects.create(job=job, name="vlan", oid=".1.3.6.1.4.1.1", decode="integer")
    for each in (job, other):
        each.apply_to([central, norte])

    nodes = nodes_of(source, central, norte)

    expected = (
        RawOid("sysname", oid.parse(SYS_NAME), "text", True),
        RawOid("vlan", oid.parse("1.3.6.1.4.1.1"), "integer", False),
    )
    assert [(node.name, node.oids) for node in sorted(nodes, key=lambda node: (node.name, node.id))] == [
        ("Names", ()),
        ("Names", ()),
        ("Optical power", expected),
        ("Optical power", expected),
    ]


def test_a_malformed_oid_in_the_database_costs_itself_only(source, db, caplog):
    olt = make_olt()
    job = make_job()
    job.apply_to([olt])
    SnmpJobOid.objects.create(job=job, name="vlan", oid="not.an.oid", decode="integer")
    SnmpJobOid.objects.create(job=job, name="sysname", oid=SYS_NAME, decode="text", scalar=True)

    with caplog.at_level(logging.ERROR):
        (node,) = nodes_of(source, olt)

    assert [raw.name for raw in node.oids] == ["sysname"]
    assert "vlan" in caplog.text


def test_many_olts_take_as_many_statements_as_one(source, db):
    olts = [make_olt(f"OLT-{number:02}") for number in range(20)]
    jobs = [make_job(), make_job("Names")]
    for job in jobs:
        SnmpJobOid.objects.create(job=job, name="vlan", oid="1.3.6.1.4.1.1", decode="integer")
        job.apply_to(olts)

    with CaptureQueriesContext(connection) as queries:
        nodes = nodes_of(source, *olts)

    assert len(nodes) == 40
    assert len(queries) <= 3


def test_asking_what_changed_is_one_statement_and_one_about_maintenance(source, db):
    for number in range(5):
        make_olt(f"OLT-{number:02}")

    with CaptureQueriesContext(connection) as queries:
        standings = done(source.standings())

    assert len(standings) == 5
    assert len(queries) == 2


def test_an_olt_of_version_3_comes_with_its_user(source, db):
    keys = {"v3_auth": "SHA256", "v3_auth_key": "auth-secret", "v3_priv": "AES128", "v3_priv_key": "priv-secret"}
    row = make_olt(version="3", v3_user="noc", max_in_flight=4, max_pdus_per_second=20.0, port=1161, **keys)

    olt = done(source.olt(row.pk))

    assert (olt.agent.version, olt.agent.port) == (Version.V3, 1161)
    user = olt.agent.credentials
    assert (user.name, user.auth, user.auth_key, user.priv, user.priv_key) == (
        "noc",
        "SHA256",
        "auth-secret",
        "AES128",
        "priv-secret",
    )
    assert (olt.max_in_flight, olt.max_pdus_per_second) == (4, 20.0)


def test_the_oldest_version_is_asked_as_such(source, db):
    row = make_olt(version="1")

    assert done(source.olt(row.pk)).agent.version is Version.V1


def test_a_disabled_olt_is_named_in_the_refusal(source, db):
    row = make_olt(enabled=False)

    with pytest.raises(OltGone, match="OLT-CENTRAL-01 was disabled"):
        done(source.olt(row.pk))


def test_an_olt_whose_secret_cannot_be_read_says_what_to_do(source, db, settings):
    row = make_olt()
    settings.FACHO_SECRET_KEYS = [Fernet.generate_key().decode()]

    with pytest.raises(WrongKeyError, match="FACHO_SECRET_KEYS"):
        done(source.olt(row.pk))


def test_a_request_to_run_arrives(source, db):
    olt = make_olt()
    (row,) = make_job().apply_to([olt])
    row.request_run(T0)

    assert [node.run_requested_at for node in nodes_of(source, olt)] == [T0]


def state_of(source, olt):
    return done(source.states([olt.pk]))[olt.pk]


def test_a_state_says_where_the_olt_is(source, db):
    central = make_olt(host="10.0.0.7", port=1161)
    norte = make_olt("OLT-NORTE-02", version="3", v3_user="noc")

    assert (state_of(source, central).name, state_of(source, central).address) == (
        "OLT-CENTRAL-01",
        "10.0.0.7:1161 (v2c)",
    )
    assert state_of(source, norte).address == "127.0.0.1:161 (v3)"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"community": "private"}, id="community"),
        pytest.param({"version": "1"}, id="version"),
        pytest.param({"v3_user": "noc"}, id="user"),
        pytest.param({"v3_auth_key": "another one"}, id="password"),
        pytest.param({"v3_priv": "AES128"}, id="privacy"),
    ],
)
def test_other_credentials_have_another_digest_which_shows_none_of_them(source, db, change):
    olt = make_olt()
    before = state_of(source, olt).credentials
    for name, value in change.items():
        setattr(olt, name, value)
    olt.save()

    after = state_of(source, olt).credentials

    assert before != after
    assert not any(secret in f"{after} {state_of(source, olt)!r}" for secret in ("public", "private", "another one"))


def test_a_key_that_was_rotated_is_no_change_of_credentials(source, db, settings):
    olt = make_olt()
    before = state_of(source, olt), done(source.fingerprints())
    settings.FACHO_SECRET_KEYS = [Fernet.generate_key().decode(), *settings.FACHO_SECRET_KEYS]
    olt.community = olt.community.rotated()
    olt.save()

    after = state_of(source, olt), done(source.fingerprints())

    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_secret_that_cannot_be_read_costs_the_others_nothing(source, db, settings, caplog):
    readable = settings.FACHO_SECRET_KEYS
    settings.FACHO_SECRET_KEYS = [Fernet.generate_key().decode()]
    sur = make_olt("OLT-SUR-03")
    settings.FACHO_SECRET_KEYS = readable
    central = make_olt()
    make_job().apply_to([central, sur])

    with caplog.at_level(logging.ERROR):
        states = done(source.states([central.pk, sur.pk]))

    assert {state.name: len(state.nodes) for state in states.values()} == {"OLT-CENTRAL-01": 1, "OLT-SUR-03": 1}
    assert "OLT-SUR-03" in caplog.text
    assert "OLT-CENTRAL-01" not in caplog.text


def test_a_node_is_expected_to_take_what_it_took(source, db):
    olt = make_olt()
    make_job().apply_to([olt])
    unknown = nodes_of(source, olt)[0].expected
    WorkflowNode.objects.update(durations=learn({}, 12.0, T0))

    assert unknown is None
    assert nodes_of(source, olt)[0].expected == 12.0


def test_the_breaker_is_part_of_how_an_olt_stands(source, db):
    central, sur = make_olt(), make_olt("OLT-SUR-03")
    Olt.objects.filter(pk=sur.pk).update(breaker_opened_at=T0)

    standings = done(source.standings())

    assert (standings[central.pk].breaker_since, standings[sur.pk].breaker_since) == (None, T0)


@pytest.fixture
def fleet(db):
    """OLT-CENTRAL-01 and OLT-NORTE-02, each with a job and a raw OID."""
    olts = make_olt(), make_olt("OLT-NORTE-02")
    job, other = make_job(), make_job("Names")
    job.apply_to(olts[:1])
    other.apply_to(olts[1:])
    SnmpJobOid.objects.create(job=job, name="vlan", oid="1.3.6.1.4.1.1", decode="integer")
    return olts


def update(model, **columns):
    """Change a row as anybody could who has a shell of the database: past every model."""
    return lambda: model.objects.filter(pk=model.objects.order_by("pk").first().pk).update(**columns)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(update(Olt, host="10.0.0.9"), id="address"),
        pytest.param(update(Olt, port=1161), id="port"),
        pytest.param(update(Olt, version="1"), id="version"),
        pytest.param(update(Olt, community="private"), id="community"),
        pytest.param(update(Olt, v3_auth_key="password"), id="v3 password"),
        pytest.param(update(Olt, max_in_flight=4), id="limit of requests in flight"),
        pytest.param(update(Olt, max_pdus_per_second=9.0), id="limit of requests per second"),
        pytest.param(update(WorkflowNode, own_enabled=False), id="a node disabled"),
        pytest.param(update(WorkflowNode, own_interval_seconds=60), id="interval of a node"),
        pytest.param(update(WorkflowNode, own_priority=1), id="priority of a node"),
        pytest.param(lambda: WorkflowNode.objects.order_by("pk").first().delete(), id="a node deleted"),
        pytest.param(update(SnmpJob, enabled=False), id="a job disabled"),
        pytest.param(update(SnmpJob, interval_seconds=60), id="interval of a job"),
        pytest.param(update(SnmpJob, priority=1), id="priority of a job"),
        pytest.param(update(SnmpJob, columns=["tx_dbm"]), id="columns"),
        pytest.param(update(SnmpJob, timeout_seconds=7), id="time limit"),
        pytest.param(update(SnmpJob, retries=0), id="retries"),
        pytest.param(update(SnmpJob, retry_delay_seconds=7), id="delay between retries"),
        pytest.param(update(SnmpJobOid, oid="1.3.6.1.4.1.2"), id="raw OID"),
        pytest.param(update(SnmpJobOid, scalar=True), id="kind of a raw OID"),
    ],
)
def test_whatever_changes_what_is_polled_changes_the_fingerprint_of_that_olt_alone(source, fleet, change):
    central, norte = (olt.pk for olt in fleet)
    before = done(source.fingerprints())

    change()

    after = done(source.fingerprints())
    assert after[central] != before[central]
    assert after[norte] == before[norte]


def test_what_the_engine_writes_changes_no_fingerprint(source, fleet):
    before = done(source.fingerprints())

    Olt.objects.update(
        reachability="slow",
        last_answer_at=T0,
        last_error="no answer",
        failures=2,
        breaker_opened_at=T0,
        learned={"sizes": {"onus": 20}},
        revision=99,
        location="Centro",
    )
    WorkflowNode.objects.update(next_run_at=T0, last_run_at=T0, run_requested_at=T0, durations={"recent": [1.0]})

    assert done(source.fingerprints()) == before


def test_fingerprints_take_as_many_statements_for_many_as_for_one(source, fleet):
    for number in range(10):
        make_job(f"Job {number}").apply_to(fleet)

    with CaptureQueriesContext(connection) as queries:
        fingerprints = done(source.fingerprints())

    assert len(fingerprints) == 2
    assert len(queries) == 4


def test_a_job_that_reads_nothing_is_not_scheduled_and_owes_nothing(source, db):
    olt = make_olt()
    make_job().apply_to([olt])
    WorkflowNode.objects.update(next_run_at=T0)
    SnmpJob.objects.update(columns=[])

    assert list(nodes_of(source, olt)) == []
    assert [node.due for node in grid_nodes([olt.pk])] == [None]
