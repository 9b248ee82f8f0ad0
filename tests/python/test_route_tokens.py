"""Which token each route over HTTP takes: none answers without a valid one, and some need a scope."""

import json
import re

import pytest

from harness import HttpDaemon, Installation, until
from harness.api_surface import documented, rest_routes

#: Routes that any valid token may use: methods and path.
OPEN_TO_ALL = """
GET /api/openapi.json
POST /api/process/clean_all
POST /api/process/clean_selected
GET /api/process/{id}
POST /api/process/{id}/clean
DELETE|GET /api/process/{id}/output
POST /api/process/{id}/stop
GET /api/processes
GET /api/v1/command-templates
GET /api/v1/command-templates/{template}
GET|POST /api/v1/contexts
DELETE|GET /api/v1/contexts/{id}
POST /api/v1/detect
GET /api/v1/audit
GET /api/v1/command-templates
GET /api/v1/command-templates/{template}
GET /api/v1/events
GET|POST /api/v1/executions
DELETE|GET /api/v1/executions/{id}
POST /api/v1/executions/{id}/again
GET /api/v1/executions/{id}/environment
GET /api/v1/executions/{id}/export
POST /api/v1/executions/{id}/input
POST /api/v1/executions/{id}/keys
GET /api/v1/executions/{id}/network
DELETE|GET /api/v1/executions/{id}/output
GET /api/v1/executions/{id}/output/failures
GET /api/v1/executions/{id}/output/find
GET /api/v1/executions/{id}/output/lines
GET /api/v1/executions/{id}/output/shape
POST /api/v1/executions/{id}/pause
GET /api/v1/executions/{id}/raw
GET /api/v1/executions/{id}/report
POST /api/v1/executions/{id}/resize
GET /api/v1/executions/{id}/report
GET /api/v1/executions/{id}/resources
GET /api/v1/executions/{id}/resources/history
POST /api/v1/executions/{id}/resume
GET /api/v1/executions/{id}/screen
POST /api/v1/executions/{id}/shell/run
POST /api/v1/executions/{id}/signal
POST /api/v1/executions/{id}/stop
GET /api/v1/executions/{id}/terminal
GET /api/v1/executions/{id}/terminal/output
POST /api/v1/executions/{id}/wait
GET /api/v1/executions/{id}/workspace
POST /api/v1/executions/{id}/workspace/commit
GET /api/v1/executions/{id}/workspace/diff
POST /api/v1/executions/{id}/workspace/discard
GET /api/v1/health
GET /api/v1/history
GET /api/v1/history/{id}
GET|POST /api/v1/interactions
GET /api/v1/interactions/events
GET /api/v1/interactions/{id}
POST /api/v1/interactions/{id}/answer
POST /api/v1/interactions/{id}/cancel
POST /api/v1/projects/{id}/execute
GET /api/v1/projects/{id}/executions
GET /api/v1/policy
GET /api/v1/resources
POST /api/v1/policy/check
GET|POST /api/v1/services
GET /api/v1/version
GET /api/v1/web/session
POST /api/v1/services/ensure
POST /api/v1/services/up
DELETE|GET|PUT /api/v1/services/{name}
POST /api/v1/services/{name}/dismiss
POST /api/v1/services/{name}/restart
POST /api/v1/services/{name}/stop
GET /api/v1/services/{name}/why
POST /api/v1/shells
GET /api/v1/starts/{id}
GET /api/v1/tasks/{id}
POST /api/v1/tasks/{id}/cancel
GET /api/v1/tasks/{id}/events
POST /api/v1/tasks/{id}/input
POST /api/v1/tasks/{id}/pause
GET /api/v1/tasks/{id}/resources
GET /api/v1/tasks/{id}/resources/history
POST /api/v1/tasks/{id}/resume
"""
#: Routes that need a scope, or take no token at all: what the refusal names.
SCOPED = {
    ("GET", "/api/v1/tokens"): "over its socket",
    ("POST", "/api/v1/tokens"): "over its socket",
    ("DELETE", "/api/v1/tokens/{name}"): "over its socket",
    ("POST", "/api/v1/web/codes"): "over its socket",
    ("GET", "/metrics"): "sessions:all",
    ("GET", "/api/v1/audit/verify"): "sessions:all",
    ("GET", "/api/v1/doctor"): "sessions:all",
    ("POST", "/api/v1/history/rebuild"): "sessions:all",
    ("POST", "/api/v1/shutdown"): "daemon:stop",
}
#: What a token needs where something changes, unless it names no scope of projects at all.
WRITE = "project:write"
#: Needs it or not, by its body: see `test_project_scopes.py`.
EXECUTE = ("POST", "/api/v1/projects/{id}/execute")
#: Routes that a token with `project:read` alone may use though they are no `GET`, and others that it may not.
READING = {("POST", "/api/v1/detect"), ("POST", "/api/v1/executions/{id}/wait"), ("POST", "/api/v1/policy/check"), EXECUTE}
WRITING = {("GET", "/api/v1/executions/{id}/terminal"), ("GET", "/api/v1/interactions/events")}
#: Routes that answer everybody, and with what where nothing is given: the page of the document, and those that sign the
#: web interface in (a body is missing) and out.
PUBLIC = {("GET", "/api/docs"): 200, ("POST", "/api/v1/web/session"): 422, ("DELETE", "/api/v1/web/session"): 204}
#: The routes of MCP, which are not declared with those of REST.
MCP = [(method, path) for path in ("/mcp", "/mcp/p/core", "/mcp/s/name", "/mcp/s/name/p/core", "/sse", "/messages?sessionId=x")
       for method in ("GET", "POST", "DELETE")]
UNSCOPED = [(method, path) for line in OPEN_TO_ALL.split("\n") if line for methods, path in [line.split()]
            for method in methods.split("|")]
ROUTES = sorted({*UNSCOPED, *SCOPED})
#: What is wrong with the credentials, and the part of the challenge that says so.
WRONG = {"missing": "Bearer", "other scheme": "Bearer", "two headers": "Bearer", "unknown": "invalid_token", "cut": "invalid_token",
         "revoked": "invalid_token", "expired": "expired"}


@pytest.fixture(scope="module")
def served(binary):
    """A daemon that requires tokens; `secrets` has one without a scope, and others that are not valid."""
    installation = Installation(binary)
    try:
        secrets = {name: made(installation, name) for name in ("plain", "revoked")}
        secrets["reader"] = made(installation, "reader", "--scope", "project:read")
        secrets["expired"] = made(installation, "expired", "--expires", "1s")
        http_daemon = HttpDaemon(installation, "--legacy-sse")
        installation.cli("token", "revoke", "revoked")
        http_daemon.secrets = secrets
        until(lambda: ask(http_daemon, "GET", "/api/v1/health", bearer(secrets["expired"]))[0] == 401, 20, "the expiry")
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()


def made(installation, name, *args):
    return json.loads(installation.cli("token", "new", name, "--principal", "ann", *args, "--json").stdout)["token"]


def bearer(secret):
    return [("Authorization", f"Bearer {secret}")]


def credentials(http_daemon, wrong):
    secrets = http_daemon.secrets
    return {
        "missing": [], "other scheme": [("Authorization", f"Basic {secrets['plain']}")], "two headers": bearer(secrets["plain"]) * 2,
        "unknown": bearer("ostler_" + "A" * 43), "cut": bearer(secrets["plain"][:-1]),
        "revoked": bearer(secrets["revoked"]), "expired": bearer(secrets["expired"]),
    }[wrong]


def ask(http_daemon, method, path, headers):
    """One request without a body: status, headers, body."""
    connection = http_daemon.connect()
    connection.putrequest(method, re.sub(r"\{\w+\}", "zzzzzzzz", path))
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    answer = response.status, response.headers, response.read()
    connection.close()
    return answer


def needed(method, path):
    """What the refusal of a token with `project:read` alone names; none where there is none."""
    changes = (method != "GET" and (method, path) not in READING) or (method, path) in WRITING
    return SCOPED.get((method, path)) or (WRITE if changes and (method, path) not in PUBLIC else None)


def test_every_route_is_in_the_table():
    declared = set(rest_routes())
    assert declared - {*ROUTES, *PUBLIC} == set(), "a new route: say here which scope it needs"
    assert {*ROUTES, *PUBLIC} - declared == set(), "there is no such route any more"


def test_the_document_names_the_scopes():
    for (method, path), operation in documented().items():
        scopes = [scope for rule in operation["security"] for scope in rule["bearer"]]
        refusal = needed(method, path) or ""
        assert scopes == ([refusal] if ":" in refusal else []), (method, path)
        assert bool(operation["security"]) == ((method, path) not in PUBLIC), (method, path)


@pytest.mark.parametrize("wrong", WRONG)
def test_no_route_answers_without_a_valid_token(served, wrong):
    headers = credentials(served, wrong)
    for method, path in ROUTES + MCP + [("GET", "/no/such/route")]:
        status, answered, body = ask(served, method, path, headers)
        problem = json.loads(body)
        assert (status, problem["status"], problem["code"]) == (401, 401, "permission_error"), (method, path, problem)
        assert WRONG[wrong] in answered["WWW-Authenticate"] and problem["request_id"] == answered["X-Request-Id"], (method, path)
        assert not any(secret.encode() in body for secret in served.secrets.values())


def test_a_token_without_the_scope_is_refused_where_one_is_needed_and_nowhere_else(served):
    headers = bearer(served.secrets["plain"])
    for method, path in ROUTES:
        status, _, body = ask(served, method, path, headers)
        if scope := SCOPED.get((method, path)):
            assert status == 403 and scope in json.loads(body)["message"], (method, path, status, body)
        else:
            assert status < 500 and status not in (401, 403), (method, path, status, body)
    assert ask(served, "GET", "/api/v1/health", headers)[0] == 200, "it was shut down"


def test_a_token_that_may_only_read_is_refused_where_something_changes(served):
    headers = bearer(served.secrets["reader"])
    for method, path in set(ROUTES) - {EXECUTE}:
        status, _, body = ask(served, method, path, headers)
        if scope := needed(method, path):
            assert status == 403 and scope in json.loads(body)["message"], (method, path, status, body)
        else:
            assert status < 500 and status not in (401, 403), (method, path, status, body)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_public_route_answers_everybody_and_tells_nothing_of_this_daemon(served, wrong):
    for (method, path), expected in PUBLIC.items():
        status, answered, body = ask(served, method, path, credentials(served, wrong))
        assert status == expected and answered["X-Request-Id"], (method, path, status)
        assert served.installation.dir.name.encode() not in body and b"ostler_" not in body
        foreign = [("Origin", "http://other.example.org")]
        assert ask(served, method, path, foreign)[0] == 403
