"""Ids of requests, and metrics."""

import json
import re
import urllib.error
import urllib.request
import uuid

import pytest

from harness import Installation
from harness.http_daemon import serve_two_principals


@pytest.fixture(scope="module")
def served(binary):
    """A daemon that requires tokens, for ann and bob."""
    with serve_two_principals(Installation(binary)) as http_daemon:
        for name in ("ann", "bob"):
            words = ("--name", f"{name}-all", "--principal", name, "--scopes", "sessions:all", "--json")
            http_daemon.tokens[f"{name}-all"] = json.loads(http_daemon.installation.cli("token", "create", *words).stdout)["token"]
        words = ("--name", "owner-all", "--scopes", "sessions:all", "--json")
        http_daemon.tokens["owner-all"] = json.loads(http_daemon.installation.cli("token", "create", *words).stdout)["token"]
        yield http_daemon


def ask(http_daemon, path, request_id=None, secret=None, method="GET"):
    """Status, headers and body."""
    request = urllib.request.Request(http_daemon.base + path, method=method)
    request.add_header("Authorization", f"Bearer {secret or http_daemon.tokens['ann']}")
    if request_id is not None:
        request.add_header("X-Request-Id", request_id)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


@pytest.mark.parametrize("path, status", [
    ("/api/v1/health", 200), ("/api/v1/executions/none", 404), ("/nowhere", 404), ("/api/v1/health?x=1", 422), ("/mcp", 405)])
def test_every_response_names_its_request(served, path, status):
    found, headers, body = ask(served, path, "order-66/a")
    assert headers.get_all("X-Request-Id") == ["order-66/a"]
    if headers["Content-Type"] == "application/problem+json":
        assert '"request_id":"order-66/a"' in body and int(headers["Content-Length"]) == len(body.encode())
    assert found == status or path == "/mcp", (found, body)
    _, headers, _ = ask(served, path)
    uuid.UUID(headers["X-Request-Id"])


def test_a_refusal_names_it_too_and_keeps_its_challenge(served):
    status, headers, body = ask(served, "/api/v1/health", "mine", secret="ostler_wrong")
    assert status == 401 and "Bearer" in headers["WWW-Authenticate"] and headers["Connection"] == "close"
    assert headers["X-Request-Id"] == "mine" and '"request_id":"mine"' in body


@pytest.mark.parametrize("bad", ["", "with space", "x" * 129, "caf\xe9"])
def test_a_malformed_id_is_replaced(served, bad):
    _, headers, _ = ask(served, "/api/v1/health", bad)
    uuid.UUID(headers["X-Request-Id"])


def test_metrics_count_by_route_and_name_no_id(served):
    ask(served, "/api/v1/executions/canary-of-an-id")
    status, _, refusal = ask(served, "/metrics")
    assert status == 403 and "sessions:all" in refusal
    status, headers, text = ask(served, "/metrics", secret=served.tokens["owner-all"])
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4"
    for line in text.splitlines():
        assert line.startswith("# ") or re.fullmatch(r'[a-z_]+(\{([a-z]+="[^"\n]*",?)+\})? [0-9.e+-]+', line), line
    assert 'ostler_http_responses_total{route="/api/v1/executions/{id}",method="GET",status="404"}' in text
    assert "canary" not in text
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert int(samples["process_open_fds"]) < int(samples["process_max_fds"])
    assert int(samples["process_resident_memory_bytes"]) > 1_000_000
    assert samples["ostler_executions_running"] == "0"


def test_running_commands_of_others_are_not_counted(served):
    body = '{"command": {"argv": {"program": "sleep", "args": ["600"]}}, "cwd": "/"}'
    request = urllib.request.Request(f"{served.base}/api/v1/executions", data=body.encode(), headers={
        "Authorization": f"Bearer {served.tokens['bob']}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        started = json.load(response)["id"]
    for name, count in (("ann", 0), ("bob", 1)):
        text = ask(served, "/metrics", secret=served.tokens[f"{name}-all"])[2]
        assert f"\nostler_executions_running {count}\n" in text, text
    stop = urllib.request.Request(f"{served.base}/api/v1/executions/{started}/stop", data=b"{}", headers=request.headers)
    urllib.request.urlopen(stop, timeout=30).close()


def test_the_socket_has_ids_and_metrics_too(installation):
    installation.cli("ps")
    text = installation.rest("GET", "/metrics", raw=True).decode()
    assert 'ostler_http_responses_total{route="/api/v1/executions",method="GET",status="200"} 1' in text, text
    connection = installation.connect()
    connection.request("GET", "/nowhere", headers={"Host": "localhost", "X-Request-Id": "q1"})
    response = connection.getresponse()
    assert response.headers["X-Request-Id"] == "q1" and b'"request_id":"q1"' in response.read()
    connection.close()


@pytest.mark.parametrize("path", ["/nowhere", "/api/v1/tasks/none/input", "/api/v1/executions/none/stop", "/api/v1/health"])
def test_a_refusal_reaches_a_client_that_writes_its_body_late(installation, path):
    installation.cli("ps")
    connection = installation.connect()
    connection.putrequest("POST", path)
    connection.putheader("Host", "localhost")
    connection.putheader("Content-Length", "4000")
    connection.endheaders()
    for _ in range(4):
        connection.send(b" " * 1_000)
    response = connection.getresponse()
    assert response.status in (404, 405) and b"request_id" in response.read()
    connection.close()


def test_what_is_of_all_principals_is_for_the_daemons_user(served):
    """A token of another principal sees all of its own, which is not all there is."""
    for method, path in (("GET", "/api/v1/audit/verify"), ("POST", "/api/v1/history/rebuild")):
        status, _, refusal = ask(served, path, secret=served.tokens["ann-all"], method=method)
        assert status == 403 and "of all principals" in refusal, (path, status, refusal)
        assert served.installation.rest(method, path) is not None, path
    _, _, text = ask(served, "/metrics", secret=served.tokens["ann-all"])
    own = served.installation.rest("GET", "/metrics", raw=True).decode()
    for family in ("ostler_audit_entries_total", "ostler_http_responses_total", "ostler_http_response_seconds"):
        assert family not in text and family in own, family
    assert "ostler_executions_running" in text and "process_open_fds" in text
