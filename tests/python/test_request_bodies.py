"""Messages about the bodies of requests: what is allowed in words of the API, and no more of what was sent than it takes."""

import contextlib
import gzip
import http.client
import json
import re
from urllib.parse import urlsplit

import pytest

from harness import HttpDaemon
from harness.installation import ProblemError

LONG = "x" * 1_900_000
#: Bytes of a whole problem document.
PROBLEM_BYTES = 8_192
ARGV = {"argv": {"program": "true", "args": []}}


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def refused(host, path="executions", **body):
    with pytest.raises(ProblemError) as error:
        host.rest("POST", f"/api/v1/{path}", body)
    assert error.value.status == 422, error.value
    return error.value.problem


@pytest.mark.parametrize("body", [
    {"stdin": LONG}, {LONG: 1}, {"stdin": {LONG: 1}}, {"env": {LONG: 1}}, {"restart": LONG}, {"isolation": LONG},
    {"command": {LONG: 1}}, {"command": ARGV | {LONG: 1}}, {"command": {"argv": {"program": "true", "args": [], LONG: 1}}},
    {"context": LONG}, {"cwd": LONG},
])
def test_a_problem_quotes_only_a_part_of_a_long_value(host, body):
    problem = refused(host, **{"command": ARGV, "cwd": "/", **body})
    assert len(str(problem)) < PROBLEM_BYTES, len(str(problem))


def test_a_problem_with_a_long_key_still_lists_the_fields(host):
    problem = refused(host, command=ARGV, cwd="/", **{LONG: 1})
    assert "`command`" in problem["message"], problem


@pytest.mark.parametrize("command", [
    ["true"], "true", 1, None, {}, {"argv": ["true"]}, {"argv": "true"}, {"run": {}}, ARGV | {"shell": {"shell": "sh", "script": ":"}},
    {"shell": ["sh", ":"]},
])
def test_a_command_of_another_form_is_told_what_is_allowed(host, command):
    message = refused(host, command=command, cwd="/")["message"]
    assert "field 'command" in message and ('"program"' in message or '"script"' in message), message
    assert not any(word in message for word in ("line 1", "Body", "variant", "struct", "elements")), message


def test_fields_of_a_command_are_named(host):
    message = refused(host, command={"argv": {"program": "true"}}, cwd="/")["message"]
    assert "field 'command" in message and "missing field `args`" in message, message
    message = refused(host, command={"argv": {"program": "true", "args": [1]}}, cwd="/")["message"]
    assert "field 'command.argv.args[0]'" in message, message


@pytest.mark.parametrize("stdin", ["nonsense", "given", 1, ["open"], {}, {"take": "x"}, {"given": "x", "open": 1}])
def test_standard_input_of_another_form_is_told_what_is_allowed(host, stdin):
    message = refused(host, command=ARGV, cwd="/", stdin=stdin)["message"]
    assert "field 'stdin" in message and '"default", "empty", "open" or {"given": TEXT}' in message, message
    assert "variant" not in message and "line 1" not in message, message


@pytest.mark.parametrize("stdin", ["default", "empty", "open", {"given": "text"}, {"given": {"base64": "eA=="}}])
def test_each_form_of_standard_input_is_taken(host, stdin):
    answer = host.rest("POST", "/api/v1/executions", {"command": ARGV, "cwd": "/", "stdin": stdin})
    assert answer["id"]


def test_a_long_name_of_a_token_is_not_repeated(host):
    name = "n" * 300
    for done in (host.cli("token", "new", name, check=False), host.cli("token", "revoke", name, check=False)):
        text = done.stderr.decode().replace("\n  ", "")
        assert done.returncode == 64 and "n" * 20 in text and "n" * 65 not in text and "…" in text, done


#: Routes that take no body, for an execution that has ended.
WITHOUT_BODY = [
    ("POST", "/api/v1/executions/{id}/workspace/commit"),
    ("POST", "/api/v1/executions/{id}/workspace/discard"),
    ("POST", "/api/v1/executions/{id}/pause"),
    ("POST", "/api/v1/executions/{id}/resume"),
    ("DELETE", "/api/v1/executions/{id}/output"),
    ("DELETE", "/api/v1/executions/{id}"),
    ("POST", "/api/v1/tasks/{id}/cancel"),
    ("POST", "/api/process/{id}/clean"),
    ("POST", "/api/process/clean_all"),
    ("POST", "/api/v1/services/unknown/dismiss"),
    ("POST", "/api/v1/services/unknown/restart"),
    ("DELETE", "/api/v1/services/unknown"),
    ("DELETE", "/api/v1/tokens/unknown"),
    ("POST", "/api/v1/history/rebuild"),
    ("POST", "/api/v1/web/codes"),
    ("POST", "/api/v1/shutdown"),
]


@pytest.mark.parametrize(("method", "path"), WITHOUT_BODY)
def test_a_route_without_a_body_refuses_one(host, method, path):
    """What was meant as an option is not ignored: most of these routes decide something for good."""
    done = host.cli("run", "-d", "--overlay", "--cwd", host.work, "--", "sh", "-c", "echo x > written")
    pid = done.stdout.decode().strip()
    host.cli("wait", pid)
    for body, named in (({"allow_autorun": 1}, "field 'allow_autorun'"), (b"not json{", "line 1 column 2"),
                        ([], "the body"), (b'"text"', "the body")):
        with pytest.raises(ProblemError) as error:
            host.rest(method, path.format(id=pid), body)
        assert error.value.status == 422, error.value
        message = error.value.problem["message"]
        assert named in message and "allowed: no body, or {}" in message, message
    assert host.json("workspace", pid)["fate"] == "open"
    assert not (host.work / "written").exists()
    for query in ("?dry_run=1",):
        with pytest.raises(ProblemError) as error:
            host.rest(method, path.format(id=pid) + query)
        assert "dry_run" in error.value.problem["message"], error.value.problem
    assert host.json("workspace", pid)["fate"] == "open"


@pytest.mark.parametrize("body", [None, b"", b" \n", b"{}", b" {} ", b"null"])
def test_an_empty_body_is_no_body(host, body):
    done = host.cli("run", "-d", "--overlay", "--cwd", host.work, "--", "sh", "-c", "echo x > written")
    pid = done.stdout.decode().strip()
    host.cli("wait", pid)
    assert host.rest("POST", f"/api/v1/executions/{pid}/workspace/discard", body)["fate"] == "discarded"
    assert host.rest("DELETE", f"/api/v1/executions/{pid}", body) is None


@pytest.mark.parametrize("path", ["/api/v1/executions/{id}/stop?force=true", "/api/v1/executions/{id}/wait?at_most_ms=1",
                                  "/api/v1/executions/{id}/signal?signal=KILL", "/api/v1/executions?cwd=/"])
def test_an_option_in_the_query_of_a_route_with_a_body_is_not_ignored(host, path):
    pid = host.cli("run", "-d", "--", "sleep", "300").stdout.decode().strip()
    with pytest.raises(ProblemError) as error:
        host.rest("POST", path.format(id=pid), {})
    assert error.value.status == 422 and re.search("force|at_most_ms|signal|cwd", error.value.problem["message"])
    assert host.json("info", pid)["status"] == "running"
    host.cli("stop", "--force", pid)


@pytest.fixture
def http_daemon(installation):
    http_daemon = HttpDaemon(installation, "--no-token")
    yield http_daemon
    http_daemon.end()


def posted(http_daemon, path, body, *headers):
    """The status and the body of the response to a request as it is written here."""
    head = [f"POST {path} HTTP/1.1", f"Host: {urlsplit(http_daemon.base).netloc}", "Content-Type: application/json",
            "Accept: application/json, text/event-stream", "Connection: close", *headers]
    with contextlib.closing(http_daemon.connect()) as connection:
        connection.connect()
        connection.sock.sendall("\r\n".join([*head, "", ""]).encode() + body)
        response = http.client.HTTPResponse(connection.sock)
        response.begin()
        return response.status, response.read().decode()


def of_length(body):
    return f"Content-Length: {len(body)}"


INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).encode()


def test_a_byte_order_mark_before_a_message_is_skipped(http_daemon):
    body = b"\xef\xbb\xbf" + INITIALIZE
    status, answer = posted(http_daemon, "/mcp", body, of_length(body))
    assert status == 200 and "serverInfo" in answer, answer


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/executions"])
def test_an_encoded_body_is_refused_by_the_name_of_its_encoding(http_daemon, path):
    body = gzip.compress(INITIALIZE)
    status, answer = posted(http_daemon, path, body, of_length(body), "Content-Encoding: gzip")
    assert status == 415 and "Content-Encoding 'gzip' is not supported" in answer, answer


def test_a_body_that_breaks_off_is_not_called_too_large(http_daemon):
    status, answer = posted(http_daemon, "/mcp", b"zz\r\n", "Transfer-Encoding: chunked")
    assert status == 400 and "the body broke off" in answer, answer


@pytest.mark.parametrize("header", ["Host: localhost", "Origin: http://localhost"])
def test_a_header_that_is_given_twice_is_named(http_daemon, header):
    name = header.partition(":")[0]
    headers = [header] if name == "Host" else [header, header]
    status, answer = posted(http_daemon, "/mcp", INITIALIZE, of_length(INITIALIZE), *headers)
    assert status == 403 and f"{name} is given more than once" in answer, answer


@pytest.mark.parametrize(("body", "problem"), [
    (b'{"command": {"argv": {"program": "true", "args": []}}, "timeout_ms": -1}', "allowed: a whole number, 0 or more"),
    (b'{"command": {"argv": {"program": "true" "args": []}}}', "field 'command.argv': expected"),
])
def test_a_problem_names_what_is_allowed_and_no_unknown_field(host, body, problem):
    with pytest.raises(ProblemError) as error:
        host.rest("POST", "/api/v1/executions", body)
    detail = error.value.problem["message"]
    assert problem in detail and "?" not in detail and "u64" not in detail, detail


def test_a_session_with_a_space_is_told_what_is_allowed(host):
    with pytest.raises(ProblemError) as error:
        host.rest("GET", "/api/v1/executions", session="a b")
    assert "without spaces" in error.value.problem["message"], error.value.problem
