"""The three paths that machines ask: who gets which answer."""

import json

import pytest
from prometheus_client import CollectorRegistry, Counter

from facho.runtime.health import Check, Checks, NotWell, mount, probes

HERE = ("127.0.0.1", 50000)
ELSEWHERE = ("10.0.0.9", 50000)


async def fine():
    return "ok"


async def silent():
    raise NotWell("the database did not answer within 2 s")


async def broken():
    raise RuntimeError("password=hunter2 at 10.1.2.3")


@pytest.fixture
def registry():
    registry = CollectorRegistry()
    Counter("facho_attempts", "Attempts.", registry=registry).inc(7)
    return registry


@pytest.fixture
def app(registry):
    return probes(Checks(alive=[Check("loop", fine)], ready=[Check("database", silent)]), registry)


class Answered:
    def __init__(self, sent):
        self.status = sent[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        self.body = b"".join(part["body"] for part in sent[1:])

    @property
    def json(self):
        return json.loads(self.body)


async def ask(app, path, *, method="GET", client=HERE, **headers):
    """Ask an ASGI app as a server would; headers with _ for -."""
    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": lines, "client": client}
    sent = []

    async def send(message):
        sent.append(message)

    await app(scope, None, send)
    return Answered(sent)


async def test_a_process_that_lives_reports_it_though_it_cannot_work(app):
    alive, ready = await ask(app, "/healthz"), await ask(app, "/readyz")

    assert (alive.status, alive.json) == (200, {"ok": True, "checks": {"loop": "ok"}})
    assert ready.status == 503
    assert ready.json == {"ok": False, "checks": {"database": "the database did not answer within 2 s"}}


async def test_each_check_is_named_and_one_that_fails_fails_all(registry):
    ready = [Check("database", fine), Check("bus", silent), Check("scheduler", fine)]

    answer = await ask(probes(Checks(ready=ready), registry), "/readyz")

    assert answer.status == 503
    assert list(answer.json["checks"]) == ["database", "bus", "scheduler"]
    assert answer.json["checks"]["scheduler"] == "ok"


async def test_what_a_check_has_to_say_is_told(registry):
    async def standby():
        return "standby"

    answer = await ask(probes(Checks(ready=[Check("scheduler", standby)]), registry), "/readyz")

    assert (answer.status, answer.json["checks"]) == (200, {"scheduler": "standby"})


async def test_a_check_that_breaks_tells_its_reason_to_the_log_alone(registry, caplog):
    answer = await ask(probes(Checks(ready=[Check("database", broken)]), registry), "/readyz")

    assert answer.status == 503
    assert b"hunter2" not in answer.body
    assert b"Traceback" not in answer.body
    assert "hunter2" in caplog.text


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_no_answer_may_be_kept_by_a_cache_or_be_taken_for_a_page(app, path):
    headers = (await ask(app, path)).headers

    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


async def test_who_asks_for_the_head_gets_no_body_and_is_told_its_length(app):
    whole, head = await ask(app, "/healthz"), await ask(app, "/healthz", method="HEAD")

    assert head.body == b""
    assert head.headers["content-length"] == str(len(whole.body))


@pytest.mark.parametrize("path", ["/", "/admin/", "/healthz/", "/metrics/x"])
async def test_there_is_nothing_else(app, path):
    assert (await ask(app, path)).status == 404


async def test_nothing_can_be_changed_here(app):
    answer = await ask(app, "/metrics", method="POST")

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_a_web_socket_is_closed(app):
    sent = []

    async def send(message):
        sent.append(message)

    await app({"type": "websocket", "path": "/metrics"}, None, send)

    assert sent == [{"type": "websocket.close"}]


async def test_a_server_is_told_that_there_is_nothing_to_start(app):
    with pytest.raises(RuntimeError, match="lifespan"):
        await app({"type": "lifespan"}, None, None)


class TestMetrics:
    async def test_they_are_in_the_format_that_was_asked_for(self, app):
        plain = await ask(app, "/metrics")
        open_metrics = await ask(app, "/metrics", accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")

        assert b"facho_attempts_total 7.0" in plain.body
        assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert open_metrics.body.endswith(b"# EOF\n")
        assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")

    @pytest.mark.parametrize(
        ("client", "headers", "status"),
        [
            pytest.param(HERE, {}, 200, id="this machine"),
            pytest.param(("::1", 1), {}, 200, id="this machine, version 6"),
            pytest.param(("::ffff:127.0.0.1", 1), {}, 200, id="this machine, version 4 in version 6"),
            pytest.param(ELSEWHERE, {}, 403, id="another machine"),
            pytest.param(("2001:db8::1", 1), {}, 403, id="another machine, version 6"),
            pytest.param(("::ffff:10.0.0.9", 1), {}, 403, id="another machine, version 4 in version 6"),
            pytest.param(HERE, {"x_forwarded_for": "203.0.113.7"}, 403, id="anybody, through a proxy here"),
            pytest.param(HERE, {"x_forwarded_proto": "https"}, 403, id="anybody, through a proxy that says little"),
            pytest.param(HERE, {"Forwarded": "for=203.0.113.7"}, 403, id="anybody, through a proxy of the new kind"),
            pytest.param(None, {}, 403, id="a socket without an address"),
            pytest.param(("somewhere", 1), {}, 403, id="an address that is none"),
            pytest.param(ELSEWHERE, {"authorization": "Bearer "}, 403, id="an empty token is none"),
        ],
    )
    async def test_without_a_token_only_this_machine_reads_them(self, app, client, headers, status):
        assert (await ask(app, "/metrics", client=client, **headers)).status == status

    @pytest.mark.parametrize(
        ("shown", "status"),
        [
            pytest.param("Bearer s3cret", 200, id="the token"),
            pytest.param("bearer s3cret", 200, id="the token, in other letters"),
            pytest.param("Bearer other", 401, id="another"),
            pytest.param("Bearer s3cre", 401, id="a part of it"),
            pytest.param("Bearer señal", 401, id="other letters than ASCII"),
            pytest.param("Basic s3cret", 401, id="shown as something else"),
            pytest.param("", 401, id="none"),
        ],
    )
    @pytest.mark.parametrize("client", [HERE, ELSEWHERE], ids=["here", "elsewhere"])
    async def test_with_a_token_any_machine_may(self, registry, client, shown, status):
        app = probes(Checks(), registry, token="s3cret")

        answer = await ask(app, "/metrics", client=client, authorization=shown)

        assert answer.status == status
        assert b"s3cret" not in answer.body

    async def test_health_is_everybodys_business(self, registry):
        app = probes(Checks(), registry, token="s3cret")

        assert (await ask(app, "/healthz", client=ELSEWHERE)).status == 200
        assert (await ask(app, "/readyz", client=ELSEWHERE, x_forwarded_for="203.0.113.7")).status == 200


class TestMounted:
    @pytest.mark.parametrize(
        ("scope", "whose"),
        [
            ({"type": "http", "path": "/healthz"}, "ours"),
            ({"type": "http", "path": "/readyz"}, "ours"),
            ({"type": "http", "path": "/metrics"}, "ours"),
            ({"type": "http", "path": "/"}, "theirs"),
            ({"type": "http", "path": "/metrics/"}, "theirs"),
            ({"type": "websocket", "path": "/metrics"}, "theirs"),
            ({"type": "lifespan"}, "theirs"),
        ],
        ids=lambda each: each if isinstance(each, str) else " ".join(each.values()),
    )
    async def test_an_app_keeps_all_but_the_three_paths(self, scope, whose):
        served = []

        def serve(name):
            async def app(scope, receive, send):
                served.append((name, scope, receive, send))

            return app

        await mount(serve("theirs"), serve("ours"))(scope, "receive", "send")

        assert served == [(whose, scope, "receive", "send")]
