"""Answers leave nothing out unseen: waits on several, pages of a terminal, wrong cursors, lost streams, old clients."""

import json
import re
import socket
from urllib.parse import urlsplit

import pytest

from harness import HttpDaemon, WsRecorder, until
from harness.http_daemon import token
from harness.installation import ProblemError
from harness.wire import RawMcpClient

OLD_REVISIONS = ["2024-11-05", "2025-03-26"]
LINK_REVISIONS = ["2025-06-18", "2025-11-25"]
MODERN = {"MCP-Protocol-Version": "2026-07-28"}


def started(wire, script, **more):
    """Starts a script; returns its id."""
    return wire.text(wire.call("exec", command=script, wait_ms=0, **more)).split()[0].strip("[")


@pytest.mark.parametrize("all_of_them", [False, True])
def test_what_one_of_several_printed_is_counted_and_comes_after_its_cursor(installation, all_of_them):
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake()
        first = started(wire, "sleep 0.5")
        flag = installation.work / "go"
        second = started(wire, f"until test -e {flag}; do sleep 0.01; done; echo IMPORTANT; sleep 300")
        flag.touch()
        until(lambda: b"IMPORTANT" in installation.cli("logs", second).stdout)
        text = wire.text(wire.call("process", action="wait", ids=[first, second], wait_ms=3000, all=all_of_them))
        assert f"[{first} exit 0" in text and "10 bytes of output are not shown" in text, text
        cursor = re.search(rf"\[{second} running \S+ \| cursor ([\d.]+)\]", text)[1]
        rest = wire.text(wire.call("process", action="output", ids=[second], cursor=cursor))
        assert "IMPORTANT" in rest, rest
        # What was shown is not counted again.
        third = started(wire, "sleep 0.5")
        text = wire.text(wire.call("process", action="wait", ids=[third, second], wait_ms=3000))
        assert "not shown" not in text, text


def test_a_cursor_beyond_the_output_is_refused(each_installation):
    with RawMcpClient(each_installation, ["--tools", "core"]) as wire:
        wire.shake()
        process = started(wire, "echo FAILED; exit 1")
        wire.answer(wire.call("process", action="wait", ids=[process]))
        for action in ("output", "wait"):
            text = wire.text(wire.call("process", action=action, ids=[process], cursor="8893.0"))
            assert "value_error" in text and "beyond the output" in text, text
        # One that an answer gave is taken.
        text = wire.text(wire.call("process", action="wait", ids=[process], cursor="7.0"))
        assert "no new output" in text, text


def test_a_cursor_beyond_the_output_is_refused_by_resources_and_command_tools(installation):
    with RawMcpClient(installation, ["--tools", "core,command"]) as wire:
        wire.shake()
        process = started(wire, "echo FAILED; exit 1")
        wire.answer(wire.call("process", action="wait", ids=[process]))
        answer = wire.answer(wire.ask("resources/read", {"uri": f"proc://{process}/log?cursor=8893.0"}))
        assert "beyond the output" in answer["error"]["message"] and answer["error"]["data"]["code"] == "value_error", answer
        for tool, arguments in [("command_ps_logs", {"pid": process}), ("process", {"action": "output", "ids": [process]})]:
            text = wire.text(wire.call(tool, since="8893.0", **arguments))
            assert "'since'" in text and "beyond the output" in text, text
        answer = wire.answer(wire.ask("resources/read", {"uri": f"proc://{process}/log?cursor=7.0"}))
        assert "result" in answer, answer


def test_a_cursor_beyond_the_output_is_refused_over_rest(installation):
    execution = installation.cli("run", "-d", "--", "sh", "-c", "echo FAILED; exec sleep 300").stdout.decode().strip()
    until(lambda: installation.cli("logs", execution).stdout)
    output = f"/api/v1/executions/{execution}"
    for path in [
        f"{output}/output?cursor=1000.0", f"{output}/output?since=1000.0", f"{output}/raw?cursor=1000.0",
        f"{output}/raw?cursor=1000.0&follow=true", f"/api/process/{execution}/output?since=1000.0",
        f"/api/v1/tasks/{execution}/events?cursor=1000.0",
    ]:
        with pytest.raises(ProblemError) as refused:
            installation.rest("GET", path)
        assert refused.value.status == 422 and "beyond the output" in str(refused.value), (path, refused.value)
    events = f"/api/v1/tasks/{execution}/events"
    connection = installation.connect()
    connection.request("GET", events, headers={"Host": "localhost", "Last-Event-ID": "1000.0"})
    answer = connection.getresponse()
    assert answer.status == 422 and b"header 'Last-Event-ID'" in answer.read()
    with pytest.raises(AssertionError, match="beyond the output"):
        WsRecorder(installation, None, query="cursor=1000.0", path=events)
    # What an answer gave is taken.
    end = installation.rest("GET", f"{output}/output")["next"]
    assert installation.rest("GET", f"{output}/output?cursor={end}")["lines"] == []


def test_a_cut_line_is_said_where_it_is_whole(installation):
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake()
        text = wire.text(wire.call("exec", command="printf 'a%.0s' $(seq 30000); echo END"))
        process = text.split()[0].strip("[")
        assert "characters in this line" in text and f"process output of {process} with raw true has all of it" in text, text
        rest, cursor = "", None
        for _ in range(10):
            page = {} if cursor is None else {"cursor": cursor}
            answer = wire.text(wire.call("process", action="output", ids=[process], raw=True, **page))
            rest += answer
            found = re.search(r'cursor "?([\d.]+)', answer)
            if "END" in answer or not found:
                break
            cursor = found[1]
        assert rest.count("a") >= 30_000 and "END" in rest, len(rest)
        # One that fits is whole.
        assert "raw true" not in wire.text(wire.call("exec", command="printf 'a%.0s' $(seq 300); echo END"))


@pytest.mark.parametrize("limit", [None, 3000])
def test_the_text_of_a_terminal_is_read_in_pages(installation, limit):
    count = 8_000
    options = {} if limit is None else {"limit": limit}
    with RawMcpClient(installation, ["--tools", "pty"]) as wire:
        wire.shake()
        session = wire.text(wire.call("pty_start", command=["sh", "-c", f"seq 1 {count}; sleep 300"], wait_ms=0))
        session = session.split()[0].strip("[")
        until(lambda: f"\n{count}\r\n".encode() in installation.cli("logs", session, "--raw").stdout, 20)
        numbers, offset = [], 0
        while True:
            reply = wire.answer(wire.call("pty_read", session=session, view="text", offset=offset, **options))["result"]
            text = reply["content"][0]["text"]
            assert "omitted" not in text, text[:300]
            numbers += re.findall(r"^\d+$", text, re.MULTILINE)
            following = reply["_meta"]["ostler/result"]["next_offset"]
            assert following > offset
            offset = following
            if f"offset {offset}" not in text:
                break
        assert numbers == [str(number) for number in range(1, count + 1)]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_an_exclamation_mark_is_one(installation, shell):
    with RawMcpClient(installation, ["--tools", "pty"]) as wire:
        wire.shake()
        session = wire.text(wire.call("pty_start", shell=shell)).split()[0].strip("[")
        for script, printed in (('echo "Done!!"', "Done!!"), ('echo "#!/bin/sh" | cat', "#!/bin/sh")):
            text = wire.text(wire.call("pty_run", session=session, script=script))
            assert "exit 0" in text and printed in text.splitlines(), text
        text = wire.text(wire.call("pty_run", session=session, script="env | grep -c OSTLER_SHELL"))
        assert "0" in text.splitlines(), text


def test_a_command_in_a_terminal_refuses_what_it_cannot_be(installation):
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake()
        refused = {
            "until 'ready'": {"until": "ready"},
            "mode 'service'": {"options": {"mode": "service"}},
            "on_prompt 'ask'": {"options": {"on_prompt": "ask"}},
        }
        for what, arguments in refused.items():
            text = wire.text(wire.call("exec", command="sleep 300", input="tty", **arguments))
            assert what in text and "does not go with input 'tty'" in text, text
        assert installation.json("ps") == [], "nothing was started"
        text = wire.text(wire.call("exec", command="seq 1 5000", input="tty", max_chars=2000))
        assert len(text) <= 2000 and "5000" in text, len(text)


@pytest.mark.parametrize("revision", OLD_REVISIONS + LINK_REVISIONS)
def test_links_are_for_revisions_that_have_them(installation, revision):
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake(revision)
        content = wire.answer(wire.call("exec", command="seq 1 50000; exit 1"))["result"]["content"]
        kinds = {block["type"] for block in content}
        assert kinds == ({"text"} if revision in OLD_REVISIONS else {"text", "resource_link"}), content
        assert "proc://" in json.dumps(content)


class HttpClient:
    """Requests to `/mcp` of a daemon, written by hand."""

    def __init__(self, served, secret=None):
        self.address = urlsplit(served.base)
        self.headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if secret:
            self.headers["Authorization"] = f"Bearer {secret}"

    def send(self, method, body=None, **more):
        """Sends a request; returns the socket."""
        text = json.dumps(body).encode() if body else b""
        headers = {"Host": self.address.netloc, **self.headers, **more, "Content-Length": str(len(text))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection = socket.create_connection((self.address.hostname, self.address.port), timeout=30)
        connection.sendall(f"{method} /mcp HTTP/1.1\r\n{lines}\r\n".encode() + text)
        return connection

    def ask(self, method, body=None, **more):
        """The whole response; the connection is closed after it."""
        with self.send(method, body, Connection="close", **more) as connection:
            return connection.makefile("rb").read().decode()

    def call(self, tool, **arguments):
        """A call of the revision without a handshake."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return self.ask("POST", body, **MODERN, **{"Mcp-Method": "tools/call", "Mcp-Name": tool})


@pytest.mark.parametrize("is_late", [False, True], ids=["before the answer", "after it"])
def test_a_stream_that_was_lost_is_resumed(http_daemon, is_late):
    client = HttpClient(http_daemon)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}
    answer = client.ask("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    client.headers["Mcp-Session-Id"] = re.search(r"(?i)mcp-session-id: (\S+)", answer)[1]
    client.ask("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    flag = http_daemon.installation.work / f"go-{is_late}"
    script = f"echo one; until test -e {flag}; do sleep 0.05; done; echo two"
    call = {"name": "exec", "arguments": {"command": script, "wait_ms": 30000}}
    with client.send("POST", {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call}) as lost:
        received = b""
        while not (event := re.search(rb"\nid: (\d+/\S+)\r?\n", received)):
            received += lost.recv(65536)
    last = event[1].decode()
    if is_late:
        flag.touch()
        running = lambda: http_daemon.installation.rest("GET", "/api/v1/executions?status=running")["executions"]  # noqa: E731
        until(lambda: not any(str(flag) in json.dumps(it) for it in running()), 20)
    resumed = client.send("GET", **{"Last-Event-ID": last})
    flag.touch()
    text = b""
    with resumed:
        while b'"id":9' not in text:
            piece = resumed.recv(65536)
            assert piece, text
            text += piece
    assert b"one" in text and b"two" in text, text


def test_tokens_of_one_principal_have_sessions_of_their_own(make_installation):
    installation = make_installation()
    secrets = [token(installation, name, principal="agents") for name in ("a", "b")]
    served = HttpDaemon(installation)
    ann, bob = (HttpClient(served, secret) for secret in secrets)
    # The profile is that of the path without a name.
    answer = ann.call("exec", command="echo secret; sleep 300", wait_ms=2000)
    process = re.search(r"\[(\w{8}) running", answer)[1]
    assert process in ann.call("process", action="list")
    assert process not in bob.call("process", action="list")
    assert "not found" in bob.call("process", action="output", ids=[process]).lower()
    assert "not found" in bob.call("process_control", action="stop", ids=[process]).lower()
    ann.call("process_control", action="stop", ids=[process])
    served.end()
