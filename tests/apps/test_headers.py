"""Headers of every answer: pages, admin, API, static files and errors."""

import pytest

SELF = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"


@pytest.mark.parametrize(
    ("path", "status", "policy", "cached"),
    [
        pytest.param("/olts/", 200, SELF, "private", id="page"),
        pytest.param("/login/", 302, SELF, "private", id="login"),
        pytest.param("/nothing/", 404, SELF, None, id="page that does not exist"),
        pytest.param("/static/dashboard/main.js", 200, SELF, "public", id="static file"),
        pytest.param("/admin/", 200, "script-src 'self' 'unsafe-eval'", "private", id="admin"),
        pytest.param("/admin/nothing/", 404, "script-src 'self' 'unsafe-eval'", None, id="admin, not found"),
        pytest.param("/api/v1/olts/", 200, SELF, "no-store", id="API"),
        pytest.param("/api/v1/olts/?what=1", 400, SELF, "no-store", id="API, bad request"),
        pytest.param("/api/v1/olts/7/", 404, SELF, "no-store", id="API, not found"),
        pytest.param("/api/v1/nothing/", 404, SELF, "no-store", id="API, no such path"),
        pytest.param("/api/v1/docs/", 200, "style-src 'self' 'unsafe-inline'", None, id="API docs"),
        pytest.param("/api/v1/schema/", 200, SELF, None, id="API schema"),
    ],
)
def test_every_answer_has_its_headers(admin_page, path, status, policy, cached):
    answer = admin_page.get(path)

    assert answer.status_code == status
    assert SELF in answer["Content-Security-Policy"]
    assert policy in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "camera=()" in answer["Permissions-Policy"]
    assert "Access-Control-Allow-Origin" not in answer
    assert (cached or "") in answer.get("Cache-Control", "")
    assert cached is not None or "Cache-Control" not in answer


def test_no_page_needs_a_script_of_its_own(admin_page):
    """The policy would block it. Data for scripts is not a script."""
    for path in ("/", "/admin/", "/admin/inventory/olt/add/", "/api/v1/docs/"):
        scripts = [part.partition(">")[0] for part in admin_page.get(path).content.decode().split("<script")[1:]]

        assert scripts
        assert [script for script in scripts if "src=" not in script and "application/json" not in script] == []
