"""`http.rate_limit`: requests a second of each principal over HTTP."""

import json

import pytest

from harness import Installation, serve_two_principals, until


@pytest.fixture
def served(binary):
    """A daemon that lets each of ann and bob make three requests at once, and one a second."""
    installation = Installation(binary)
    settings = ("--set", "http.rate_limit=1", "--set", "http.rate_burst=3")
    with serve_two_principals(installation, *settings) as http_daemon:
        yield http_daemon


def ask(http_daemon, name, path="/api/v1/health", method="GET", body=None):
    connection = http_daemon.connect()
    headers = {"Authorization": f"Bearer {http_daemon.tokens[name]}", "Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, response.headers, data


def test_beyond_the_burst_requests_are_refused_until_their_time(served):
    answers = [ask(served, "ann") for _ in range(30)]
    refused = [answer for answer in answers if answer[0] != 200]
    assert [status for status, *_ in answers[:3]] == [200] * 3 and refused, answers
    status, headers, data = refused[0]
    problem = json.loads(data)
    assert status == problem["status"] == 429 and headers["Retry-After"] == "1", (status, headers.items())
    assert problem["code"] == "quota_exceeded" and "1 a second, 3 at once" in problem["message"], problem
    assert problem["request_id"] == headers["X-Request-Id"]
    assert ask(served, "bob")[0] == 200, "he asked nothing yet"
    for path in ("/mcp", "/metrics", "/no/such/route"):
        assert any(ask(served, "ann", path, "POST", "{}")[0] == 429 for _ in range(5)), path
    until(lambda: ask(served, "ann")[0] == 200, 20, "a request in time")


def test_the_own_user_at_the_socket_is_not_limited(served):
    assert [served.installation.rest("GET", "/api/v1/health")["running"] for _ in range(20)] == [0] * 20
