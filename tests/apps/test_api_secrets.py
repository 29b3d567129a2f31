"""No answer of the API has a secret in it: every address is asked, so that a new one is asked too."""

import pytest
from alert_cast import SECRETS as CHANNEL_SECRETS
from alert_cast import make_alert, make_channel, make_delivery, make_rule
from cast import SECRETS, make_event, make_log, make_maintenance, make_plan, make_port, make_quota, make_violation
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLPattern

from facho.apps.accounts.models import ApiToken
from facho.apps.changes.actor import Interface
from facho.apps.changes.models import Change
from facho.apps.coordinator.models import Forecast
from facho.apps.dashboard.models import SavedView
from facho.apps.inventory.models import Question, Site, Tag
from facho.apps.telemetry.models import OnuNote
from facho.engine.model import QuestionKind
from problem_rows import make_problem


def names_of_addresses(patterns, prefix=""):
    """Yield the name of each address of the API, with the names of its parameters."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if not isinstance(pattern, URLPattern):
            yield from names_of_addresses(pattern.url_patterns, route)
        elif route.startswith("api/v1/"):
            yield pattern.name, set(pattern.pattern.regex.groupindex)


@pytest.fixture
def channel(db):
    return make_channel()


@pytest.fixture
def urls(execution, onu, central, channel, boss):
    """Every address, of a row that is there: `api-olt-detail` is that of an OLT."""
    alert = make_alert(central)
    token = ApiToken(user=boss, name="script")
    token.issue()
    rows = {
        "olt": central.pk,
        "job": execution.node.job_id,
        "node": execution.node_id,
        "run": execution.node_id,
        "execution": execution.pk,
        "onu": onu.pk,
        "event": make_event(onu).pk,
        "port": make_port(central).pk,
        "problem": make_problem(central).pk,
        "view": SavedView.objects.create(list="onus", name="Dark", owner=boss).pk,
        "note": OnuNote.objects.create(onu=onu, text="No light", author_name="boss").pk,
        "explain": execution.node_id,
        "quota": make_quota(execution.node).pk,
        "violation": make_violation(execution.node).pk,
        "plan": make_plan(execution.node).pk,
        "log": make_log(olt=central).pk,
        "forecast": Forecast.objects.create(params={"hours": 1}).pk,
        "alert": alert.pk,
        "rule": make_rule().pk,
        "channel": channel.pk,
        "delivery": make_delivery(channel, alert).pk,
        "apitoken": token.pk,
        "site": Site.objects.create(name="Lima").pk,
        "tag": Tag.objects.create(name="core").pk,
        "maintenance": make_maintenance(central).pk,
        "change": Change.objects.create(action=Change.Action.LOGIN, interface=Interface.PAGE).pk,
        "question": Question.ask(central, QuestionKind.TRY_JOB, {"columns": ["rx_dbm"]}, by=boss).pk,
    }
    return sorted(
        {
            reverse(name, kwargs={parameter: rows[name.split("-")[1]] for parameter in parameters})
            for name, parameters in names_of_addresses(get_resolver().url_patterns)
        }
    )


def test_no_answer_has_a_secret(api, urls, central, channel):
    """Neither in the clear, nor as it is stored; not when read, not when described, not when refused."""
    hidden = [*SECRETS.values(), *(getattr(central, name).token for name in SECRETS)]
    hidden += [token.key_hash for token in ApiToken.objects.all()]
    hidden += [*CHANNEL_SECRETS.values(), *(getattr(channel, name).token for name in CHANNEL_SECRETS)]
    olt = f"/api/v1/olts/{central.pk}/"

    answers = [(method, url, getattr(api, method)(url)) for url in urls for method in ("get", "options")]
    answers.append(("patch", "refused", api.patch(olt, {"port": 0, **SECRETS}, format="json")))
    answers.append(("patch", "accepted", api.patch(olt, {"port": 161, **SECRETS}, format="json")))
    answers.append(("post", "enable", api.post(f"{olt}enable/")))

    assert len(urls) >= 34
    assert olt in urls
    assert [
        (method, url) for method, url, answer in answers if any(secret in answer.content.decode() for secret in hidden)
    ] == []
