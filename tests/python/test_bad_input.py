"""Bad input gets a typed error with the problem and what is allowed; nothing starts."""

import os
import subprocess
import time

import pytest

from harness.installation import ProblemError

pytestmark = pytest.mark.anyio

EXECUTE = "command_execute"
START = "command_bg_start"
LOGS = "command_ps_logs"


def refusals(installation):
    """name -> (tool, arguments, accepted codes, words of which one must be in the message)"""
    here = str(installation.work)
    ok = {"command": "true", "directory": here}
    value = ("value_error",)
    start = {"description": "d", **ok}
    return {
        "empty command": (EXECUTE, ok | {"command": ""}, value, ["command"]),
        "blank command": (EXECUTE, ok | {"command": "   "}, ("value_error", "command_execution_error"), ["command", "not found"]),
        "missing command": (EXECUTE, {"directory": here}, value, ["command"]),
        "missing directory": (EXECUTE, {"command": "true"}, value, ["directory"]),
        "no such directory": (EXECUTE, ok | {"directory": f"{here}/nowhere"}, value, ["nowhere"]),
        "empty directory": (EXECUTE, ok | {"directory": ""}, value, ["directory"]),
        "directory is a file": (EXECUTE, ok | {"directory": f"{here}/file"}, value, ["file"]),
        "relative directory": (EXECUTE, ok | {"directory": "nowhere/at/all"}, value, ["directory", "nowhere"]),
        "unknown program": (EXECUTE, ok | {"command": "no-such-program-here"}, ("command_execution_error",), ["no-such-program-here"]),
        "unknown encoding": (EXECUTE, ok | {"encoding": "klingon"}, value, ["klingon"]),
        "negative timeout": (EXECUTE, ok | {"timeout": -1}, value, ["timeout"]),
        "zero timeout": (EXECUTE, ok | {"timeout": 0}, value, ["timeout"]),
        "huge timeout": (EXECUTE, ok | {"timeout": 10**30}, value, ["timeout"]),
        "fractional nonsense": (EXECUTE, ok | {"timeout": "soon"}, value, ["timeout"]),
        "negative limit": (EXECUTE, ok | {"limit_lines": -5}, value, ["limit_lines"]),
        "zero limit": (EXECUTE, ok | {"limit_lines": 0}, value, ["limit_lines"]),
        "args not a list": (EXECUTE, ok | {"args": "hello"}, value, ["args"]),
        "envs not an object": (EXECUTE, ok | {"envs": ["A=B"]}, value, ["envs"]),
        "name with = in envs": (EXECUTE, ok | {"envs": {"A=B": "c"}}, value, ["A=B"]),
        "empty name in envs": (EXECUTE, ok | {"envs": {"": "c"}}, value, ["env"]),
        "NUL in envs": (EXECUTE, ok | {"envs": {"A": "b\0c"}}, value, ["NUL", "nul", "env"]),
        "NUL in an argument": (EXECUTE, ok | {"args": ["a\0b"]}, value, ["NUL", "nul", "args"]),
        "unknown parameter": (EXECUTE, ok | {"comand": "true"}, value, ["comand"]),
        "a container without an image": (EXECUTE, ok | {"isolation": "container"}, ("value_error", "security_error"), ["container"]),
        "unknown isolation": (EXECUTE, ok | {"isolation": "fortress"}, value, ["fortress"]),
        "start without description": (START, ok, value, ["description"]),
        "labels not a list": (START, start | {"labels": "web"}, value, ["labels"]),
        "start in nowhere": (START, start | {"directory": "/no/such/place"}, value, ["/no/such/place"]),
        "start of nothing": (START, start | {"command": ""}, value, ["command"]),
        "unknown status": ("command_ps_list", {"status": "dancing"}, value, ["dancing", "running"]),
        "unknown id": ("command_ps_detail", {"pid": "zzzzzzzz"}, ("process_not_found",), ["not found"]),
        "empty id": ("command_ps_detail", {"pid": ""}, value, ["id"]),
        "an OS pid": ("command_ps_stop", {"pid": "1"}, ("process_not_found", "value_error"), ["id", "not found"]),
        "a path as id": (LOGS, {"pid": "../../etc/passwd"}, ("process_not_found", "value_error"), ["id", "not found"]),
        "no ids to clean": ("command_ps_clean", {"pids": []}, value, ["ids", "empty"]),
    }


NAMES = list(refusals(type("P", (), {"work": "/w"})).keys())


@pytest.mark.parametrize("name", NAMES)
async def test_refusal(installation, name):
    (installation.work / "file").write_text("")
    tool, arguments, codes, words = refusals(installation)[name]
    async with installation.agent() as agent:
        reply = await agent.call(tool, **arguments)
        assert reply.is_error and reply.code in codes, reply
        assert any(word in reply.text for word in words), reply
        assert installation.executions() == [], "nothing was started"
        assert "alive" in (await agent.execute("echo", "alive")).text


def log_refusals():
    value = ("value_error",)
    return {
        "bad regex": ({"grep": "a(b"}, value, ["2", "1", "position", "column"]),
        "bad class": ({"grep": "[z-a]"}, value, ["z-a"]),
        "unknown grep mode": ({"grep": "a", "grep_mode": "word"}, value, ["word", "line"]),
        "negative tail": ({"tail": -1}, value, ["tail"]),
        "huge tail": ({"tail": 10**30}, value, ["tail"]),
        "bad since": ({"since": "yesterday-ish"}, value, ["since", "yesterday-ish"]),
        "bad until": ({"until": "2026-13-45T99:00:00"}, value, ["until", "2026-13-45"]),
        "negative follow": ({"follow_seconds": -3}, value, ["follow_seconds"]),
        "huge follow": ({"follow_seconds": 10**30}, value, ["follow_seconds"]),
        "neither stream": ({"with_stdout": False, "with_stderr": False}, value + (None,), ["std", ""]),
        "bad time format": ({"add_time_prefix": True, "time_prefix_format": "%Q%"}, value, ["%Q", "time_prefix_format"]),
    }


@pytest.mark.parametrize("name", log_refusals().keys())
async def test_log_refusal(installation, name):
    arguments, codes, words = log_refusals()[name]
    async with installation.agent() as agent:
        pid = await agent.start("echo", "hello")
        await agent.ended(pid, installation)
        reply = await agent.call(LOGS, pid=pid, **{"follow_seconds": 0, **arguments})
        assert reply.code in codes, reply
        assert any(word in reply.text for word in words), reply


async def test_a_catastrophic_expression_is_stopped_by_its_budget(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sh", "-c", "printf 'a%.0s' $(seq 2000); echo '!'")
        await agent.ended(pid, installation)
        begin = time.monotonic()
        linear = await agent.logs(pid, grep=r"(a+)+$")
        assert not linear.is_error and time.monotonic() - begin < 5
        begin = time.monotonic()
        # A back-reference needs the backtracking engine.
        reply = await agent.logs(pid, grep=r"^(a+)+\1+b$")
        assert time.monotonic() - begin < 10
        assert reply.code in ("value_error", "output_retrieval_error", None), reply


async def test_an_unreadable_directory_is_a_permission_error(unprivileged_installation):
    installation = unprivileged_installation
    locked = installation.work / "locked"
    locked.mkdir()
    installation.give(locked)
    locked.chmod(0)
    try:
        async with installation.agent() as agent:
            reply = await agent.execute("true", directory=str(locked))
            assert reply.code == "permission_error", reply
            assert installation.executions() == []
    finally:
        locked.chmod(0o700)


async def test_a_program_without_the_right_to_run_is_a_permission_error(unprivileged_installation):
    script = unprivileged_installation.work / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o600)
    unprivileged_installation.give(script)
    async with unprivileged_installation.agent() as agent:
        reply = await agent.execute(str(script))
        assert reply.code in ("permission_error", "command_execution_error"), reply


async def test_an_argument_of_ten_megabytes(installation):
    async with installation.agent() as agent:
        reply = await agent.execute("true", "x" * 10_000_000)
        assert reply.code in ("value_error", "command_execution_error"), reply.code
        assert len(reply.text) < 20_000, "the answer does not repeat the argument"
        assert "alive" in (await agent.execute("echo", "alive")).text


async def test_standard_input_of_ten_megabytes(installation):
    async with installation.agent() as agent:
        reply = await agent.execute("wc", "-c", stdin="x" * 10_000_000)
        assert reply.code in (None, "value_error"), reply.code
        if not reply.is_error:
            assert "10000000" in reply.text


async def test_names_that_are_not_utf8(installation):
    name = os.fsencode(installation.work) + b"/\xff\xfename"
    os.mkdir(name)
    with open(name + b"/\xfefile", "wb") as file:
        file.write(b"content\n")
    done = installation.cli("run", "--", "cat", os.fsdecode(name + b"/\xfefile"))
    assert done.stdout == b"content\n"
    async with installation.agent() as agent:
        listing = await agent.execute("ls", directory=str(installation.work))
        assert not listing.is_error and "name" in listing.text


async def test_unknown_tool_is_a_protocol_error(installation):
    async with installation.agent() as agent:
        with pytest.raises(Exception, match="(?i)unknown|not found|tool"):
            await agent.client.call_tool("command_dance", {})
        assert "alive" in (await agent.execute("echo", "alive")).text


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'"text"', b"null", b"{}", b'{"jsonrpc":"2.0"}', b"\xff\xfe\n", b'{"jsonrpc":"1.0","id":1,"method":"x"}', b"x" * 1_000_000],
)
def test_garbage_on_the_wire_ends_nothing_else(installation, line):
    import json
    import subprocess

    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    }
    child = subprocess.Popen(
        installation.argv("mcp"), cwd=installation.work, env=installation.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    try:
        child.stdin.write(json.dumps(hello).encode() + b"\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["id"] == 1
        child.stdin.write(line + b"\n")
        child.stdin.flush()
        child.stdin.close()
        assert child.wait(10) is not None
    finally:
        child.kill()
        child.stdout.close()
        child.wait()
    assert installation.cli("run", "--", "echo", "alive").stdout == b"alive\n"


@pytest.mark.limit(180)
@pytest.mark.parametrize("pattern", ["(a{1,200}){1,200}b", pytest.param("(?=a)(a|a)*b", marks=pytest.mark.full)])
async def test_a_pattern_that_would_take_minutes_is_refused_and_delays_no_other(installation, pattern):
    """8 MB without a newline: one engine would take ten minutes for it, and nothing interrupts it."""
    async with installation.agent() as agent:
        pid = await agent.start("python3", "-c", "import sys; sys.stdout.write('a' * 8_000_000)")
        await agent.ended(pid, installation, 60)
        argv = installation.argv("logs", pid, "--grep", pattern)
        with subprocess.Popen(argv, env=installation.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as search:
            answers = 0
            while search.poll() is None:
                assert "alive" in (await agent.execute("echo", "alive")).text
                answers += 1
            assert search.returncode == 64, search.stderr.read()
            assert b"the pattern takes too long" in search.stderr.read()
            assert answers > 0, "others were answered meanwhile"
        reply = await agent.call(LOGS, pid=pid, grep=pattern)
        assert reply.is_error and reply.code == "value_error", reply
        found = await agent.call(LOGS, pid=pid, grep="a{3}$")
        assert not found.is_error, found


@pytest.mark.parametrize("route", [
    "GET /api/v1/executions/%ff", "POST /api/v1/executions/%ff/stop", "DELETE /api/v1/tokens/%ff", "GET /api/v1/history/%ff",
    "POST /api/v1/projects/%ff/execute", "GET /api/v1/projects/%ff/executions", "GET /api/v1/services/%ff"])
def test_names_in_paths_that_are_not_utf8_are_told_as_values(installation, route):
    installation.cli("ps")
    with pytest.raises(ProblemError) as problem:
        installation.rest(*route.split(), {} if route.startswith("POST") else None)
    assert (problem.value.status, problem.value.code) == (422, "value_error"), problem.value


@pytest.mark.parametrize("query", ["grep=%ff", "grep=a&tail=1&%c3=2"])
def test_queries_that_are_not_utf8_are_refused(installation, query):
    pid = installation.cli("run", "-d", "--", "echo", "\ufffd").stdout.decode().strip()
    installation.cli("wait", pid)
    with pytest.raises(ProblemError) as problem:
        installation.rest("GET", f"/api/v1/executions/{pid}/output?{query}")
    assert problem.value.status == 422 and "is not UTF-8" in str(problem.value), problem.value
    found = installation.rest("GET", f"/api/v1/executions/{pid}/output?grep=%EF%BF%BD")
    assert "\ufffd" in str(found), found


def test_an_array_is_no_body(installation):
    installation.cli("ps")
    pid = installation.cli("run", "-d", "--", "sleep", "600").stdout.decode().strip()
    with pytest.raises(ProblemError) as problem:
        installation.rest("POST", f"/api/v1/executions/{pid}/stop", b" [true]")
    assert problem.value.status == 422 and "a JSON object" in str(problem.value)
    assert installation.json("info", pid)["status"] == "running"


def test_what_is_over_is_not_to_be_tried_again(installation):
    pid = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", pid)
    for verb, body in (("signal", {"signal": "TERM"}), ("pause", {}), ("input", b"x")):
        with pytest.raises(ProblemError) as problem:
            installation.rest("POST", f"/api/v1/executions/{pid}/{verb}", body)
        assert problem.value.status == 409 and problem.value.problem["retryable"] is False, problem.value


async def test_a_script_given_as_a_program_is_refused_at_once(installation):
    async with installation.agent() as agent:
        await agent.execute("true")
        begin = time.monotonic()
        reply = await agent.call("exec", command=["cd app && make test; " * 300])
        assert reply.is_error and time.monotonic() - begin < 2, reply


async def test_a_pattern_that_gives_up_leaves_the_command_running(installation):
    script = "python3 -c \"print('a' * 30000)\"; sleep 1; touch done"
    async with installation.agent() as agent:
        reply = await agent.must("exec", script=script, pattern=r"(a*)*\1c", wait_ms=20_000)
        assert "the wait failed" in reply.text and "a line is cut" in reply.text, reply
        ended = await agent.must("process", action="wait", ids=[reply.id], wait_ms=20_000)
        assert "exit 0" in ended.text and (installation.work / "done").exists(), ended


@pytest.mark.parametrize("script", ["echo a\0b", "#" * 140_000])
async def test_a_script_no_shell_can_be_given_is_named_as_the_script(installation, script):
    async with installation.agent() as agent:
        reply = await agent.call("exec", command=script)
        assert reply.is_error and "the script in 'command'" in reply.text, reply


async def test_an_empty_id_is_named_with_its_parameter(installation):
    async with installation.agent() as agent:
        reply = await agent.call("process", action="output", ids="")
        assert reply.is_error and "parameter 'ids' has an empty id" in reply.text, reply
