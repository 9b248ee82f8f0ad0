"""Tokens of HTTP clients: made, refused once expired or revoked, and when each was last used."""

import contextlib
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from harness import HttpDaemon, Installation, WsRecorder, until
from harness.installation import ProblemError


@pytest.fixture(scope="module")
def served(binary):
    """A daemon that requires tokens."""
    installation = Installation(binary)
    try:
        made(installation, "first")
        http_daemon = HttpDaemon(installation, "--legacy-sse")
        yield installation, http_daemon
        http_daemon.end()
    finally:
        installation.close()


def made(installation, *args):
    return json.loads(installation.cli("token", "new", *args, "--json").stdout)


def listed(installation, name):
    tokens = json.loads(installation.cli("token", "list", "--json").stdout)
    return next(token for token in tokens if token["name"] == name)


def status(http_daemon, secret):
    """The status, the problem document and the challenge of a request."""
    request = urllib.request.Request(
        f"{http_daemon.base}/api/v1/health", headers={"Authorization": f"Bearer {secret}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, {}, None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), error.headers["WWW-Authenticate"]


def test_a_token_is_refused_once_it_has_expired(served):
    installation, http_daemon = served
    token = made(installation, "short", "--expires", "2s")
    assert status(http_daemon, token["token"])[0] == 200
    until(lambda: status(http_daemon, token["token"])[0] == 401, 20, "the expiry")
    code, problem, challenge = status(http_daemon, token["token"])
    assert "has expired" in problem["message"] and 'error="invalid_token"' in challenge, (problem, challenge)
    assert "expired" in installation.cli("token", "list").stdout.decode()
    assert status(http_daemon, made(installation, "long", "--expires", "30d")["token"])[0] == 200


def test_an_unknown_token_is_not_said_to_have_expired(served):
    _, http_daemon = served
    code, problem, _ = status(http_daemon, "ostler_unknown")
    assert code == 401 and "expired" not in problem["message"], problem


def test_a_revoked_token_is_refused_at_once(served):
    installation, http_daemon = served
    token = made(installation, "gone")
    assert status(http_daemon, token["token"])[0] == 200
    installation.cli("token", "revoke", "gone")
    assert status(http_daemon, token["token"])[0] == 401


def test_the_last_use_is_listed(served):
    installation, http_daemon = served
    token = made(installation, "used")
    assert listed(installation, "used")["used"] is None
    assert "never" in installation.cli("token", "list").stdout.decode()
    status(http_daemon, token["token"])
    used = listed(installation, "used")["used"]
    assert used >= listed(installation, "used")["created"]
    files = [path for path in installation.state.iterdir() if path.name.startswith("tokens.json")]
    assert all(path.stat().st_mode & 0o077 == 0 for path in files if path.suffix != ".lock"), files
    assert not any(token["token"].encode() in path.read_bytes() for path in files)


def test_the_words_of_the_documents_are_understood(served):
    installation, _ = served
    made_so = installation.cli(
        "token", "create", "--name", "worded", "--scopes", "sessions:all,daemon:stop", "--expires", "2099-01-01T00:00:00Z",
        "--json")
    token = json.loads(made_so.stdout)
    assert (token["name"], token["expires"]) == ("worded", "2099-01-01T00:00:00Z")
    assert listed(installation, "worded")["scopes"] == ["sessions:all", "daemon:stop"]


@pytest.mark.parametrize("expires", ["yesterday", "0s", "-1d", "2001-01-01T00:00:00Z", ""])
def test_a_time_that_is_none_or_past_is_refused(served, expires):
    installation, _ = served
    refused = installation.cli("token", "new", "never-made", f"--expires={expires}", check=False)
    assert refused.returncode == 64 and b"30d" in refused.stderr, refused.stderr
    assert "never-made" not in installation.cli("token", "list").stdout.decode()


def test_tokens_are_managed_over_the_daemons_socket(served):
    installation, http_daemon = served
    made_there = installation.rest("POST", "/api/v1/tokens", {"name": "rest", "principal": "ann", "scopes": ["sessions:all"]})
    assert made_there["principal"] == "token:ann" and status(http_daemon, made_there["token"])[0] == 200
    tokens = {token["name"]: token for token in installation.rest("GET", "/api/v1/tokens")["tokens"]}
    assert tokens["rest"]["scopes"] == ["sessions:all"] and "used" in tokens["rest"] and "expires" not in tokens["rest"]
    assert made_there["token"] not in json.dumps(tokens) and "sha256" not in json.dumps(tokens)
    installation.rest("DELETE", "/api/v1/tokens/rest")
    assert status(http_daemon, made_there["token"])[0] == 401
    assert "rest" not in installation.cli("token", "list").stdout.decode().split()


@pytest.mark.parametrize("body, word", [
    ({"name": "first"}, "already"), ({"name": "a b"}, "letters"), ({"name": "x", "principal": "uid:0"}, "principal"),
    ({"name": "x", "scopes": ["sessions:all", "all"]}, "sessions:all, daemon:stop"), ({"name": "x", "expires": "2020-01-01T00:00:00Z"}, "future"),
    ({}, "name"), ({"name": "x", "secret": "mine"}, "secret")])
def test_bad_tokens_are_refused_with_what_is_allowed(served, body, word):
    installation, _ = served
    before = installation.rest("GET", "/api/v1/tokens")
    with pytest.raises(ProblemError) as refused:
        installation.rest("POST", "/api/v1/tokens", body)
    assert refused.value.status in (400, 422) and word in json.dumps(refused.value.problem), refused.value.problem
    names = [[token["name"] for token in listing["tokens"]] for listing in (before, installation.rest("GET", "/api/v1/tokens"))]
    assert names[0] == names[1]


def test_neither_a_session_nor_a_token_manages_tokens(served):
    installation, http_daemon = served
    with pytest.raises(ProblemError) as refused:
        installation.rest("GET", "/api/v1/tokens", session="agent")
    assert (refused.value.status, refused.value.problem["code"]) == (403, "permission_error")
    own = made(installation, "own", "--scope", "sessions:all,daemon:stop")
    request = urllib.request.Request(
        f"{http_daemon.base}/api/v1/tokens", headers={"Authorization": f"Bearer {own['token']}"})
    with pytest.raises(urllib.error.HTTPError) as network:
        urllib.request.urlopen(request, timeout=30)
    assert network.value.code == 403 and own["token"] not in network.value.read().decode()
    with pytest.raises(ProblemError) as unknown:
        installation.rest("DELETE", "/api/v1/tokens/nothing")
    assert "nothing" in unknown.value.problem["message"]


def test_a_token_needs_one_name(served):
    installation, _ = served
    assert installation.cli("token", "new", check=False).returncode == 64
    assert installation.cli("token", "new", "a", "--name", "b", check=False).returncode == 64


EVENT_STREAM = {"Accept": "application/json, text/event-stream"}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
    "name": "exec", "arguments": {"command": ["sleep", "600"], "wait_ms": 60_000}}}


class TokenHolder:
    """Who has a token, and what they opened with it: a command, a terminal, streams and waits of each kind."""

    def __init__(self, http_daemon, secret, stack):
        self.http_daemon, self.stack = http_daemon, stack
        self.headers = {"Authorization": f"Bearer {secret}"}
        self.cwd = str(http_daemon.installation.work)
        self.command = self.start()
        self.socket = stack.enter_context(WsRecorder(http_daemon, self.start(pty=True), headers=self.headers))
        self.session = {"Mcp-Session-Id": self.begin_session()}
        self.events = self.open("GET", "/api/v1/events", headers={"Accept": "text/event-stream"})
        self.raw = self.open("GET", f"/api/v1/executions/{self.command}/raw?follow=true")
        self.wait = self.send("POST", f"/api/v1/executions/{self.command}/wait", {"until": "exit", "at_most_ms": 60_000})
        self.mcp = self.open("GET", "/mcp", headers={**EVENT_STREAM, **self.session})
        self.call = self.send("POST", "/mcp", CALL, {**EVENT_STREAM, **self.session})
        self.sse = self.open("GET", "/sse", headers=EVENT_STREAM)

    def send(self, method, path, body=None, headers=None):
        """A connection with this request."""
        connection = self.stack.enter_context(contextlib.closing(self.http_daemon.connect()))
        content = {} if body is None else {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {**self.headers, **content, **(headers or {})})
        return connection

    def open(self, *args, **options):
        """The response of a request that is answered."""
        response = self.send(*args, **options).getresponse()
        assert response.status < 300, (response.status, response.read())
        return response

    def start(self, pty=False):
        stdin = {"pty": {"cols": 80, "rows": 24}} if pty else {"stdin": "open"}
        body = {"command": {"argv": {"program": "cat", "args": []}}, "cwd": self.cwd, **stdin}
        return json.loads(self.open("POST", "/api/v1/executions", body).read())["id"]

    def begin_session(self):
        response = self.open("POST", "/mcp", INITIALIZE, EVENT_STREAM)
        response.read()
        return response.headers["Mcp-Session-Id"]

    def ends_with(self, why):
        """Asserts that all of it ends, and says so."""
        comment = f": {why}".encode()
        for stream in (self.events, self.mcp, self.sse):
            assert stream.read().rstrip().splitlines()[-1] == comment
        problem = json.loads(self.raw.read().splitlines()[-1])["problem"]
        assert problem["status"] == 401, problem
        assert self.wait.getresponse().status == 401
        call = self.call.getresponse()
        assert call.status == 401 or call.read().rstrip().splitlines()[-1] == comment
        self.socket.to_the_end()
        assert self.socket.close_frame == (1008).to_bytes(2, "big") + why.encode()
        assert self.send("POST", "/mcp", CALL, {**EVENT_STREAM, **self.session}).getresponse().status == 401


@pytest.mark.parametrize("why", ["the token was revoked", "the token has expired"])
def test_what_a_token_opened_ends_with_it(served, why):
    installation, http_daemon = served
    is_revoked = why.endswith("revoked")
    keeper = made(installation, "keeper", "--principal", "ann")
    with contextlib.ExitStack() as stack:
        other = TokenHolder(http_daemon, keeper["token"], stack)
        token = made(installation, "opener", "--principal", "ann", *([] if is_revoked else ["--expires", "4s"]))
        holder = TokenHolder(http_daemon, token["token"], stack)
        if is_revoked:
            installation.cli("token", "revoke", "opener")
        holder.ends_with(why)
        # Another token's streams go on, and so does what was started.
        other.socket.say(type="repaint")
        other.socket.wait_message("paint")
        running = json.loads(other.open("GET", f"/api/v1/executions/{holder.command}").read())
        assert running["status"] == "running", running
        installation.cli("token", "revoke", "keeper", *([] if is_revoked else ["opener"]))
        other.ends_with("the token was revoked")


#: States of a TCP socket in /proc/net/tcp.
ESTABLISHED = "01"


def server_socket(client):
    """The daemon's end of a client's connection: its state and the bytes it could not send yet; none once it is gone."""
    ours = f"0100007F:{client.getsockname()[1]:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[2] == ours:
            return fields[3], int(fields[4].split(":")[0], 16)
    return None, 0


@pytest.mark.parametrize("query", ["raw?follow=true", "raw"])
def test_a_connection_whose_client_does_not_read_ends_with_its_token(served, query):
    """Unread responses would keep all that the principal may have at once, although the token is gone."""
    installation, http_daemon = served
    revoked, kept = (made(installation, f"{name}-{len(query)}", "--principal", "ann") for name in ("revoked", "kept"))
    body = {"command": {"argv": {"program": "sh", "args": ["-c", "yes 0123456789abcdef | head -c 32000000"]}}, "cwd": "/tmp"}
    access = {"Authorization": f"Bearer {kept['token']}", "Content-Type": "application/json"}
    address = urllib.parse.urlsplit(http_daemon.base)
    with socket.create_connection((address.hostname, address.port)) as silent, contextlib.closing(http_daemon.connect()) as reader:
        reader.request("POST", "/api/v1/executions", json.dumps(body), access)
        execution = json.loads(reader.getresponse().read())["id"]
        reader.request("POST", f"/api/v1/executions/{execution}/wait", json.dumps({"until": "exit"}), access)
        assert json.loads(reader.getresponse().read())["why"] == "exit"
        path = f"/api/v1/executions/{execution}/{query}"
        silent.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {revoked['token']}\r\n\r\n".encode())
        unsent = []

        def is_stuck():
            unsent.append(server_socket(silent)[1])
            return unsent[-1] > 0 and len(unsent) > 4 and len(set(unsent[-4:])) == 1

        until(is_stuck)
        reader.request("GET", path, headers=access)
        assert reader.getresponse().read(1000)
        assert server_socket(silent)[0] == ESTABLISHED
        installation.cli("token", "revoke", revoked["name"])
        until(lambda: server_socket(silent)[0] != ESTABLISHED, 10, "the end of the connection")
        assert server_socket(reader.sock)[0] == ESTABLISHED, "the response of another token goes on"
