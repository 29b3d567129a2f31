"""The cast as rows: three OLTs, their jobs, ONU 7, and people who may and may not."""

from collections.abc import Callable, Iterator

import pytest
from cast import SECRETS, T0, EngineClock, make_execution, make_job, make_olt, make_onu
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone, translation
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role, set_role
from facho.apps.inventory import asking
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.telemetry.models import Onu
from history_rows import add_reading


@pytest.fixture(autouse=True)
def _each_test_starts_in_the_default_language() -> Iterator[None]:
    yield
    # The language of a request stays with the thread that answered it, which is the thread of the tests.
    translation.deactivate()


@pytest.fixture(autouse=True)
def _the_clock_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour that ends between a row and the page that shows it would make another page of it."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)


@pytest.fixture
def central(db: None) -> Olt:
    return make_olt("OLT-CENTRAL-01", location="Centro", reachability="reachable", **SECRETS)


@pytest.fixture
def norte(db: None) -> Olt:
    return make_olt("OLT-NORTE-02", "zte_c300", host="127.0.0.2", reachability="slow")


@pytest.fixture
def sur(db: None) -> Olt:
    return make_olt("OLT-SUR-03", host="127.0.0.3", reachability="unreachable", last_error="No answer in 5 s.")


@pytest.fixture
def power(db: None) -> SnmpJob:
    return make_job("Optical power")


@pytest.fixture
def names(power: SnmpJob) -> SnmpJob:
    return make_job("Names", columns=["name"], follows=power)


@pytest.fixture
def node(central: Olt, power: SnmpJob, names: SnmpJob) -> WorkflowNode:
    """Optical power on OLT-CENTRAL-01, with Names behind it."""
    [master] = power.apply_to([central])
    return master


@pytest.fixture
def chained(node: WorkflowNode) -> WorkflowNode:
    return node.chain.get()


@pytest.fixture
def onu(central: Olt) -> Onu:
    onu = make_onu(central, 7, rx_dbm=-21.53)
    add_reading(onu, T0, state="online", rx_dbm=-21.53)
    return onu


@pytest.fixture
def execution(node: WorkflowNode, chained: WorkflowNode) -> Execution:
    """A master that went well, with a link that failed at its second attempt."""
    master = make_execution(node, waits={"olt_busy": 2.0}, readings=7)
    link = make_execution(chained, status="FAILED", master_execution=master, error="No answer in 5 s.")
    for number in (1, 2):
        ExecutionAttempt.objects.create(execution=link, number=number, status="FAILED", started_at=T0)
    return master


@pytest.fixture
def boss(db: None) -> User:
    return User.objects.create(username="boss", is_staff=True, is_superuser=True)


@pytest.fixture
def reader(db: None) -> User:
    """Somebody of the NOC who may see everything and change nothing."""
    user = User.objects.create(username="reader")
    set_role(user, Role.VIEWER)
    return user


@pytest.fixture
def api(boss: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(boss)
    return client


@pytest.fixture
def reader_api(reader: User) -> APIClient:
    client = APIClient()
    # With the scope, as each way to log in reads the user.
    client.force_authenticate(User.objects.select_related("scope").get(pk=reader.pk))
    return client


@pytest.fixture
def admin_page(boss: User) -> Client:
    client = Client()
    client.force_login(boss)
    return client


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what sets the steps of the engine while a request waits for an answer."""
    return lambda *steps: monkeypatch.setattr(asking, "CLOCK", EngineClock(*steps))
