"""Every line of the client is answered on standard output, and answered truthfully."""

import json
import subprocess
import time

import pytest

from harness import until
from harness.wire import RawMcpClient

LIMIT = 16 * 1024 * 1024

MALFORMED = {
    "truncated": (b'{"jsonrpc":"2.0","id":7,"method":"tools/li', -32700, 7),
    "no JSON": (b"hello there", -32700, None),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":7,"method":"\xff\xfe"}', -32700, 7),
    "a lone surrogate": (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"\\ud800"}}', -32700, 7),
    "too deep": (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":' + b"[" * 100_000, -32700, 7),
    "too long": (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"' + b"x" * LIMIT + b'"}}', -32600, 7),
    "an empty batch": (b"[]", -32600, None),
    "a number": (b"5", -32600, None),
    "an id of a wrong type": (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
    "no version": (b'{"id":7,"method":"ping"}', -32600, 7),
    "a batch in a revision without": (
        b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', -32600, None),
}
KNOWN = {
    "tools/call": {"name": 5},
    "tools/list": [1],
    "resources/read": {},
    "resources/subscribe": {"uri": 5},
    "resources/unsubscribe": {},
    "resources/list": 5,
    "resources/templates/list": [1],
    "completion/complete": {"ref": 1},
    "logging/setLevel": {"level": "loud"},
    "tasks/get": {},
    "tasks/update": {"taskId": 1},
    "tasks/cancel": {},
    "subscriptions/listen": {"notifications": 1},
    "initialize": {"protocolVersion": 1},
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("shaken", [True, False])
def test_what_is_malformed_is_answered_and_the_next_line_is_served(each_installation, case, shaken):
    line, code, number = MALFORMED[case]
    with RawMcpClient(each_installation) as wire:
        if shaken:
            wire.shake()
            # The handshake has taken the first number.
        wire.raw(line + b"\n")
        answer = wire.answer(number)
        assert answer["error"]["code"] == code, answer
        assert len(answer["error"]["message"]) > 5
        ping = wire.ask("ping")
        assert wire.answer(ping)["result"] == {}
        assert wire.end() == 0


def test_malformed_params_of_known_methods_are_invalid_params(each_installation):
    with RawMcpClient(each_installation) as wire:
        wire.shake()
        for method, params in KNOWN.items():
            error = wire.answer(wire.ask(method, params))["error"]
            assert error["code"] == -32602, (method, error)
            assert method in error["message"] or "params" in error["message"], error
        assert wire.answer(wire.ask("no/such", {}))["error"]["code"] == -32601


def test_an_id_in_flight_is_refused_and_not_run_twice(each_installation):
    with RawMcpClient(each_installation) as wire:
        wire.shake()
        script = "echo once >> twice; sleep 0.5; echo done"
        message = {"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": {
            "name": "exec", "arguments": {"script": script}}}
        wire.send(message)
        wire.send(message)
        wire.until(lambda: len(wire.answers.get('"same"', [])) == 2)
        first, second = wire.answers['"same"']
        assert first["error"]["code"] == -32600 and "in flight" in first["error"]["message"]
        assert "done" in json.dumps(second["result"])
        assert (each_installation.work / "twice").read_text() == "once\n"
        # Answered, its id is free.
        wire.send(message)
        wire.until(lambda: len(wire.answers['"same"']) == 3)
        assert "done" in json.dumps(wire.answers['"same"'][2]["result"])


def test_batches_belong_to_one_revision(each_installation):
    with RawMcpClient(each_installation) as wire:
        wire.shake("2025-03-26")
        wire.send([
            {"jsonrpc": "2.0", "id": "a", "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
            {"jsonrpc": "2.0", "id": "b", "method": "tools/call",
             "params": {"name": "exec", "arguments": {"command": ["echo", "hi"]}}},
            {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {}},
            5,
        ])
        wire.until(lambda: any(isinstance(it, list) for it in wire.others))
        [batch] = [it for it in wire.others if isinstance(it, list)]
        answers = {it["id"]: it for it in batch}
        assert set(answers) == {"a", "b", "c", None} and len(batch) == 4, batch
        assert answers["a"]["result"] == {}
        assert "hi" in json.dumps(answers["b"]["result"])
        assert answers["c"]["error"]["code"] == -32602
        assert answers[None]["error"]["code"] == -32600
        # Nothing but notifications: no answer at all.
        wire.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
        assert wire.answer(wire.ask("ping"))["result"] == {}
        assert len([it for it in wire.others if isinstance(it, list)]) == 1


@pytest.mark.parametrize("transport", ["pipe", "socket", "file"])
def test_the_end_of_input_is_answered_within_a_second(each_installation, transport):
    with RawMcpClient(each_installation, transport=transport) as wire:
        wire.shake()
        slow = [wire.call("exec", command=["sleep", "300"]) for _ in range(3)]
        quick = wire.call("exec", script="sleep 0.2; echo quick")
        began = time.monotonic()
        assert wire.end() == 0
        assert time.monotonic() - began < 3
        assert "quick" in wire.text(quick)
        for number in slow:
            error = wire.answer(number)["error"]
            assert error["message"] == "cancelled: input closed", error
    assert each_installation.json("ps") == []


def test_the_last_line_needs_no_end(each_installation):
    with RawMcpClient(each_installation) as wire:
        wire.shake()
        wire.raw(b'{"jsonrpc":"2.0","id":40,"method":"ping"}')
        assert wire.end() == 0
        assert wire.answer(40)["result"] == {}


@pytest.mark.parametrize("running", [False, True])
def test_a_client_that_reads_no_more_is_served_no_more(installation, running):
    """Its output is closed and its input stays open: one answer fails, and nothing is begun after it."""
    marks = installation.work / "marks"
    child = subprocess.Popen(
        installation.argv("mcp"), cwd=installation.work, env=installation.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(id, method, params):
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
        child.stdin.flush()

    def execute(id, script):
        send(id, "tools/call", {"name": "exec", "arguments": {"command": script}})

    try:
        send(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        assert b'"id":1' in child.stdout.readline()
        child.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        if running:
            execute(2, f"echo running >> {marks}; exec sleep 300")
            until(marks.exists, 20, "the command that runs on")
        child.stdout.close()
        # Nothing of it is begun where another message failed to be written before.
        execute(3, f"echo first >> {marks}")
        assert child.wait(40) is not None
        with pytest.raises(BrokenPipeError):
            execute(4, f"echo second >> {marks}")
        running = installation.json("ps")
        assert not running, "what nobody knows the id of has ended"
        assert not marks.exists() or "second" not in marks.read_text()
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize(("line", "problem"), [
    (b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}', "the key 'method' is given twice"),
    (b'{"jsonrpc":"2.0","id":7,"method":"foo/bar"}', "unknown method 'foo/bar'"),
])
def test_the_problem_of_a_request_is_named(installation, line, problem):
    with RawMcpClient(installation) as wire:
        wire.shake()
        wire.raw(line + b"\n")
        assert wire.answer(7)["error"]["message"] == problem
