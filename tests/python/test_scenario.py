"""A whole session of an agent: run, start, read, stop, list, clean, inspect."""

import re
import socket
import urllib.request

import pytest

from harness import Agent, members, until

pytestmark = pytest.mark.anyio

TOOLS = {
    "command_execute", "command_bg_start", "command_ps_list", "command_ps_stop",
    "command_ps_logs", "command_ps_clean", "command_ps_detail",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/here.txt", timeout=2) as answer:
            return answer.read()
    except OSError:
        return None


async def test_the_seven_tools_are_there_with_their_parameters(installation):
    async with installation.agent() as agent:
        tools = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
    assert TOOLS <= set(tools)
    schema = tools["command_execute"].input_schema
    assert set(schema["required"]) == {"command", "directory"}
    assert {"args", "stdin", "timeout", "envs", "encoding", "limit_lines"} <= set(schema["properties"])
    assert schema["properties"]["timeout"]["default"] == 15
    assert schema["properties"]["limit_lines"]["default"] == 500
    logs = tools["command_ps_logs"].input_schema
    assert logs["required"] == ["pid"]
    defaults = {name: spec.get("default") for name, spec in logs["properties"].items()}
    expected = {
        "with_stdout": True, "with_stderr": False, "add_time_prefix": True, "follow_seconds": 1,
        "limit_lines": 500, "grep_mode": "line",
    }
    assert {name: defaults[name] for name in expected} == expected


async def test_an_agent_runs_a_real_server(each_installation):
    installation, port = each_installation, free_port()
    (installation.work / "here.txt").write_text("it is here")
    installation.give(installation.work)
    async with installation.agent() as agent:
        done = await agent.sh("echo out; echo err >&2; exit 3")
        assert "out" in done.text and "err" in done.text and "3" in done.text

        server = await agent.start(
            "python3", "-u", "-m", "http.server", str(port), "--bind", "127.0.0.1",
            description="a web server", labels=["web", "test"],
        )
        assert until(lambda: answers(port), 15) == b"it is here"
        until(lambda: b"GET /here.txt" in installation.cli("logs", server, "--raw").stderr, 5)

        # http.server prints its address on stdout, and requests on stderr.
        assert any("Serving HTTP" in line for line in await agent.lines(server))
        assert any(
            "GET /here.txt" in line
            for line in await agent.lines(server, with_stdout=False, with_stderr=True)
        )
        # This test's request, or the readiness probe.
        tail = await agent.lines(server, with_stderr=True, tail=1)
        assert sum("GET /" in line for line in tail) == 1
        assert not any("Serving HTTP" in line for line in tail)
        found = await agent.lines(server, with_stderr=True, grep=r'"GET /(?=here)\S+ HTTP')
        assert sum("GET /here.txt" in line for line in found) >= 1
        only = await agent.lines(
            server, with_stdout=False, with_stderr=True, grep=r"GET /\w+\.txt", grep_mode="content",
        )
        assert "GET /here.txt" in only

        running = await agent.list(labels=["web"], status="running")
        assert [entry["pid"] for entry in running] == [server]
        assert await agent.list(labels=["web", "nothing"]) == []
        assert await agent.list(labels=["web"], status="failed") == []

        detail = await agent.detail(server)
        assert detail["description"] == "a web server"
        assert detail["status"] == "running" and detail["labels"] == ["web", "test"]

        stopped = await agent.stop(server, reason="the story is over")
        assert not stopped.is_error, stopped
        detail = await agent.detail(server)
        assert detail["status"] == "terminated"
        assert "the story is over" in str(detail)
        assert answers(port) is None

        assert (await agent.clean(server))[server] == "success"
        gone = await agent.call("command_ps_detail", pid=server)
        assert gone.code == "process_not_found"


async def test_logs_by_time(installation):
    async with installation.agent() as agent:
        pid = await agent.start_sh("echo first; sleep 1.2; echo second; sleep 1.2; echo third")
        await agent.ended(pid, installation)
        entries = installation.rest("GET", f"/api/v1/executions/{pid}/output")["lines"]
        assert [entry["text"] for entry in entries] == ["first", "second", "third"]
        times = [entry["at"] for entry in entries]

        since = await agent.lines(pid, since=times[1])
        assert "first" not in since and {"second", "third"} <= set(since)
        before = await agent.lines(pid, until=times[1])
        assert "first" in before and "third" not in before
        local = times[1].split(".")[0].rstrip("Z")
        by_local_time = await agent.lines(pid, since=local)
        assert "first" not in by_local_time and "third" in by_local_time
        assert {"first", "third"} <= set(await agent.lines(pid, since="10m"))


async def test_time_prefix_and_its_format(installation):
    async with installation.agent() as agent:
        pid = await agent.start_sh("echo a line")
        await agent.ended(pid, installation)
        plain = await agent.must("command_ps_logs", pid=pid, follow_seconds=0)
        assert re.search(r"^\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]? a line$", plain.text, re.M), plain
        formatted = await agent.must(
            "command_ps_logs", pid=pid, follow_seconds=0, time_prefix_format="%H.%M",
        )
        assert re.search(r"^\[?\d\d\.\d\d\]? a line$", formatted.text, re.M), formatted


async def test_follow_collects_and_returns_at_exit(installation):
    async with installation.agent() as agent:
        pid = await agent.start_sh("echo one; sleep 1; echo two")
        at_once = await agent.logs(pid)
        assert "two" not in at_once.text
        followed = await agent.logs(pid, follow_seconds=30)
        assert "one" in followed.text and "two" in followed.text

        long = await agent.start_sh("echo now; exec sleep 300")
        some = await agent.logs(long, follow_seconds=1)
        assert "now" in some.text
        await agent.stop(long, force=True)


async def test_output_beyond_the_budget_is_counted(installation):
    async with installation.agent() as agent:
        reply = await agent.execute("seq", "200000")
        assert not reply.is_error
        assert len(reply.text) <= 21_000
        lines = reply.text.splitlines()
        assert "1" in lines and "200000" in lines and "100000" not in lines
        assert re.search(r"\d{6}", reply.text.replace("200000", "")), "the omitted lines are counted"


async def test_limit_lines_makes_blocks(installation):
    async with installation.agent() as agent:
        reply = await agent.execute("seq", "25", limit_lines=10)
        assert not reply.is_error
        numbers = [[line for line in block.splitlines() if line.isdigit()] for block in reply.blocks]
        assert all(len(block) <= 10 for block in numbers)
        assert [n for block in numbers for n in block] == [str(n) for n in range(1, 26)]


async def test_no_shell_touches_arguments(each_installation):
    hostile = ['$(id)', '`id`', '; rm -rf /', '&& id', '| id', '*', '~', "'", '"', '\\', 'a\nb', '']
    async with each_installation.agent() as agent:
        code = "import sys, json; print(json.dumps(sys.argv[1:]))"
        reply = await agent.execute("python3", "-c", code, *hostile)
        assert not reply.is_error
        import json
        line = next(line for line in reply.text.splitlines() if line.startswith('["'))
        assert json.loads(line) == hostile
        echoed = await agent.execute("echo", "$(id)", ";", "rm")
        assert "$(id) ; rm" in echoed.text


async def test_standard_input_is_given_or_empty(installation):
    async with installation.agent() as agent:
        given = await agent.execute("cat", stdin="from the client\n")
        assert "from the client" in given.text
        empty = await agent.execute("sh", "-c", "wc -c", timeout=5)
        assert not empty.is_error and "0" in empty.text


async def test_both_protocol_eras_are_spoken(installation):
    for mode in ("auto", "legacy"):
        async with Agent.connect(installation.argv("mcp"), installation.env(), installation.work, mode=mode) as agent:
            reply = await agent.execute("echo", f"hello {mode}")
            assert f"hello {mode}" in reply.text


async def test_the_environment_is_clean(installation):
    async with installation.agent(env={"SECRET_TOKEN": "do not pass on"}) as agent:
        reply = await agent.execute("env", envs={"MINE": "passed on"})
        assert "MINE=passed on" in reply.text
        assert "SECRET_TOKEN" not in reply.text
        assert f"HOME={installation.dir / 'home'}" in reply.text


async def test_nothing_is_left_of_a_finished_command(each_installation):
    async with each_installation.agent() as agent:
        pid = await agent.start_sh("sleep 300 >/dev/null 2>&1 & exit 0")
        await agent.ended(pid, each_installation)
        uuid = each_installation.rest("GET", f"/api/v1/executions/{pid}")["uuid"]
        until(lambda: not members(uuid), 5, "the end of leftovers")
