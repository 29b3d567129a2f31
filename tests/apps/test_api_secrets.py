"""No answer of the API has a secret in it: every address is asked, so that a new one is asked too."""

import pytest
from cast import SECRETS
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLPattern


def names_of_addresses(patterns, prefix=""):
    """Yield the name of each address of the API, with the names of its parameters."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if not isinstance(pattern, URLPattern):
            yield from names_of_addresses(pattern.url_patterns, route)
        elif route.startswith("api/v1/"):
            yield pattern.name, set(pattern.pattern.regex.groupindex)


@pytest.fixture
def urls(execution, onu, central):
    """Every address, of a row that is there: `api-olt-detail` is that of an OLT."""
    rows = {
        "olt": central.pk,
        "job": execution.node.job_id,
        "node": execution.node_id,
        "run": execution.node_id,
        "execution": execution.pk,
        "onu": onu.pk,
    }
    return sorted(
        {
            reverse(name, kwargs={parameter: rows[name.split("-")[1]] for parameter in parameters})
            for name, parameters in names_of_addresses(get_resolver().url_patterns)
        }
    )


def test_no_answer_has_a_secret(api, urls, central):
    """Neither in the clear, nor as it is stored; not when read, not when described, not when refused."""
    hidden = [*SECRETS.values(), *(getattr(central, name).token for name in SECRETS)]
    olt = f"/api/v1/olts/{central.pk}/"

    answers = [(method, url, getattr(api, method)(url)) for url in urls for method in ("get", "options")]
    answers.append(("patch", "refused", api.patch(olt, {"port": 0, **SECRETS}, format="json")))
    answers.append(("patch", "accepted", api.patch(olt, {"port": 161, **SECRETS}, format="json")))
    answers.append(("post", "enable", api.post(f"{olt}enable/")))

    assert len(urls) >= 24
    assert olt in urls
    assert [
        (method, url) for method, url, answer in answers if any(secret in answer.content.decode() for secret in hidden)
    ] == []
