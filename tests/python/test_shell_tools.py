"""The tools of profile `shell`: one test for each item of the check list. Functions that read a registry's files
are tested through the tools, which are all that a client has.
"""

import asyncio
import json
import os
import random
import re
import time

import pytest

from harness import Shell, named, procs, until

pytestmark = pytest.mark.anyio

DENIED = "Process not found or access denied"
NOT_FOUND = -32603
BAD_PARAMETER = -32602
HINT = "Use 'poll_process' to check status and view output:"
FIVE_LINES = r"printf 'line1\nline2\nline3\nline4\nline5\n'"
#: How much the daemon may grow while a command prints megabytes.
GROWTH_BYTES = 25_000_000


def mark():
    """A unique number of seconds to sleep."""
    return f"300.{random.randrange(10**8, 10**9)}"


# Test code: unit tests


async def test_create_process_registry(each_installation):
    async with Shell.connect(each_installation) as shell:
        assert await shell.list() == {
            "processes": [], "total": 0, "running": 0, "finished": 0, "failed": 0, "killed": 0,
        }


async def test_tail_lines(installation):
    async with Shell.connect(installation) as shell:
        pid = await shell.start(FIVE_LINES)
        await shell.ended(pid)
        tail = (await shell.poll(pid, src="stdout", n=3))["tail"]
        assert tail == {"src": "stdout", "lines": ["line3", "line4", "line5"]}
        read = await shell.read(pid, mode="tail", lines=3)
        assert read["content"] == ["line3", "line4", "line5"]


@pytest.mark.parametrize("requested", [99, 100, 101, 200, 2**31])
async def test_tail_lines_max_limit(installation, requested):
    given = min(requested, 100)
    lines = [f"line{n}" for n in range(201 - given, 201)]
    async with Shell.connect(installation) as shell:
        pid = await shell.start('i=1; while [ $i -le 200 ]; do echo "line$i"; i=$((i+1)); done')
        await shell.ended(pid)
        assert (await shell.poll(pid, src="stdout", n=requested))["tail"]["lines"] == lines
        read = await shell.read(pid, lines=requested)
        assert (read["content"], read["lines_requested"], read["lines_returned"]) == (
            lines, given, given,
        )


async def test_head_lines(installation):
    async with Shell.connect(installation) as shell:
        pid = await shell.start(FIVE_LINES)
        await shell.ended(pid)
        read = await shell.read(pid, mode="head", lines=3)
        assert read["content"] == ["line1", "line2", "line3"]
        pid = await shell.start("seq 1 200")
        await shell.ended(pid)
        read = await shell.read(pid, mode="head", lines=200)
        assert read["content"] == [str(n) for n in range(1, 101)]


# Test code: integration tests


async def test_async_execute_shell(each_installation):
    async with Shell.connect(each_installation) as shell:
        reply = await shell.execute("echo 'test output'", run_mode="async")
        assert not reply.is_error
        pid = reply.value("process_id")
        assert f"Process ID: {pid}" in reply.text and "echo 'test output'" in reply.text
        assert HINT in reply.text
        assert f'poll_process(process_id: "{pid}", tail: {{src: "stdout", n: 20}})' in reply.text
        assert reply.value("status") in ("starting", "running")
        await shell.ended(pid)
        assert (await shell.poll(pid, src="stdout", n=10))["tail"]["lines"] == ["test output"]
        read = await shell.read(pid, mode="tail", lines=20)
        assert read["content"] == ["test output"]


async def test_session_isolation(each_installation):
    async with Shell.connect(each_installation) as one, Shell.connect(each_installation) as other:
        pid = await one.start("echo 'session A'; exec sleep 300")
        calls = [
            ("poll_process", {}), ("poll_process", {"tail": {"src": "stderr", "n": 1}}),
            ("read_process_output", {"stream": "stdout"}), ("kill_process", {}),
        ]
        for tool, arguments in calls:
            foreign = await other.call(tool, process_id=pid, **arguments)
            unknown = await other.call(tool, process_id="zzzzzzzz", **arguments)
            assert foreign.text == unknown.text and foreign.meta == unknown.meta
            assert foreign.is_error and DENIED in foreign.text
            assert foreign.meta["rpc"] == NOT_FOUND
            assert foreign.meta["code"] == "process_not_found"
        assert (await other.list())["total"] == 0
        assert (await one.poll(pid))["status"] == "running"
        await one.kill(pid)


async def test_large_output_streaming(each_installation):
    async with Shell.connect(each_installation) as shell:
        await shell.sh("true")
        daemon = each_installation.daemon().pid
        before = resident(daemon)
        begin = time.monotonic()
        pid = await shell.start("seq 1 1000000", run_mode="background")
        assert time.monotonic() - begin < 1
        polled = await shell.ended(pid)
        assert polled["status"] == "finished" and polled["exit_code"] == 0
        assert polled["stdout_size"] == 6_888_896 > 1_000_000
        assert polled["stderr_size"] == 0
        read = await shell.read(pid, lines=100)
        assert read["content"] == [str(n) for n in range(999_901, 1_000_001)]
        assert read["total_size"] == 6_888_896
        assert resident(daemon) - before < GROWTH_BYTES


def resident(pid):
    return int(procs.status(pid, "VmRSS") or 0) * 1024


# Check list: unit tests


async def test_get_file_size(installation):
    async with Shell.connect(installation) as shell:
        pid = await shell.start(
            "printf 1234567890; printf abc >&2; while [ ! -e go ]; do sleep 0.05; done; printf more"
        )
        until(lambda: installation.rest("GET", f"/api/v1/executions/{pid}")["output_bytes"] == 13)
        polled = await shell.poll(pid)
        assert (polled["stdout_size"], polled["stderr_size"]) == (10, 3), "also while it runs"
        (installation.work / "go").touch()
        polled = await shell.ended(pid)
        assert (polled["stdout_size"], polled["stderr_size"]) == (14, 3)
        assert (await shell.read(pid))["total_size"] == 14
        assert (await shell.read(pid, "stderr"))["total_size"] == 3


async def test_registry_create_read_update_delete(installation):
    async with Shell.connect(installation) as shell:
        pid = await shell.start("exec sleep 300")
        assert [entry["process_id"] for entry in (await shell.list())["processes"]] == [pid]
        assert (await shell.poll(pid))["status"] == "running"
        assert (await shell.kill(pid))["status"] == "killed"
        assert (await shell.poll(pid))["status"] == "killed"
    until(lambda: installation.executions() == [], 10, "the cleaning of an ended session")


# Check list: integration tests


async def test_async_execute_and_poll_to_success(each_installation):
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start("echo on its way; while [ ! -e go ]; do sleep 0.05; done")
        running = await shell.poll(pid)
        assert running["status"] == "running" and running["process_id"] == pid
        assert procs.alive(running["pid"]) and running["started_at"].endswith("Z")
        assert running["exit_code"] is None and running["finished_at"] is None
        (each_installation.work / "go").touch()
        ended = await shell.ended(pid)
        assert ended["status"] == "finished" and ended["exit_code"] == 0
        assert ended["started_at"] == running["started_at"] < ended["finished_at"]


async def test_async_execute_and_poll_to_failure(each_installation):
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start("echo going; echo no such thing >&2; exit 3")
        ended = await shell.ended(pid)
        assert ended["status"] == "failed" and ended["exit_code"] == 3 and ended["finished_at"]
        assert (await shell.poll(pid, src="stderr"))["tail"]["lines"] == ["no such thing"]
        pid = await shell.start("kill -SEGV $$")
        ended = await shell.ended(pid)
        assert ended["status"] == "failed" and ended["exit_code"] is None
        assert ended["signal"] == "SIGSEGV"


async def test_read_process_output_of_both_streams(each_installation):
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start("for i in 1 2 3; do echo out$i; echo err$i >&2; done")
        await shell.ended(pid)
        out = await shell.read(pid, "stdout")
        assert out == {
            "process_id": pid, "status": "finished", "stream": "stdout", "mode": "tail",
            "lines_requested": 20, "lines_returned": 3, "content": ["out1", "out2", "out3"],
            "total_size": 15, "note": "Text output only. Max 100 lines per request.",
        }
        err = await shell.read(pid, "stderr", mode="head", lines=2)
        assert err["content"] == ["err1", "err2"]
        reply = await shell.call("read_process_output", process_id=pid, stream="stderr", lines=1)
        assert reply.structured is None, "what bears output answers text"
        assert json.loads(reply.blocks[0])["content"] == ["err3"]
        assert reply.value("lines_returned") == 1


async def test_list_processes_filters(each_installation):
    async with Shell.connect(each_installation) as shell:
        done = await shell.start("true")
        bad = await shell.start("false")
        killed = await shell.start("exec sleep 300")
        await shell.ended(done)
        await shell.ended(bad)
        await shell.kill(killed)
        living = await shell.start("exec sleep 300")
        counts = {"running": 1, "finished": 3, "failed": 1, "killed": 1}
        every = await shell.list()
        ids = [entry["process_id"] for entry in every["processes"]]
        assert ids == [living, killed, bad, done], "newest first"
        statuses = [entry["status"] for entry in every["processes"]]
        assert statuses == ["running", "killed", "failed", "finished"]
        assert every["total"] == 4 and counts.items() <= every.items()
        assert set(every["processes"][0]) == {
            "process_id", "command", "status", "pid", "started_at", "exit_code",
        }
        running = await shell.list(status_filter="running")
        assert [entry["process_id"] for entry in running["processes"]] == [living]
        assert running["total"] == 1 and counts.items() <= running.items()
        finished = await shell.list(status_filter="finished")
        assert [entry["process_id"] for entry in finished["processes"]] == [killed, bad, done]
        assert finished["total"] == 3
        await shell.kill(living)


async def test_sessions_do_not_reach_each_other(each_installation):
    async with Shell.connect(each_installation, tools="seeds") as one, Shell.connect(each_installation) as other:
        pid = await one.start("exec sleep 300")
        denied = await other.call("poll_process", process_id=pid)
        assert denied.is_error and DENIED in denied.text
        assert (await other.list())["processes"] == []
        reply = await one.call("command_ps_detail", pid=pid)
        assert reply.structured["status"] == "running", "one process, whichever tool asks"
        await one.kill(pid)


async def test_large_output_of_more_than_10_mb(each_installation):
    async with Shell.connect(each_installation) as shell:
        await shell.sh("true")
        daemon = each_installation.daemon().pid
        before = resident(daemon)
        pid = await shell.start("seq 1 4000000; seq 1 100 >&2")
        polled = await shell.ended(pid, 40)
        assert polled["stdout_size"] == 30_888_896 and polled["stderr_size"] == 292
        begin = time.monotonic()
        assert (await shell.read(pid, lines=3))["content"] == ["3999998", "3999999", "4000000"]
        assert (await shell.read(pid, mode="head", lines=3))["content"] == ["1", "2", "3"]
        assert time.monotonic() - begin < 2
        assert resident(daemon) - before < GROWTH_BYTES


async def test_many_processes_at_once(each_installation):
    async with Shell.connect(each_installation) as shell:
        script = "echo {n}; while [ ! -e go ]; do sleep 0.05; done; echo {n} done; exit {n}"
        begin = time.monotonic()
        pids = await asyncio.gather(*(shell.start(script.format(n=n)) for n in range(10)))
        assert time.monotonic() - begin < 10 and len(set(pids)) == 10
        assert (await shell.list(status_filter="running"))["total"] == 10
        (each_installation.work / "go").touch()
        for number, pid in enumerate(pids):
            assert (await shell.ended(pid))["exit_code"] == number
            assert (await shell.read(pid))["content"] == [str(number), f"{number} done"]
        listed = await shell.list()
        assert (listed["running"], listed["finished"], listed["failed"]) == (0, 10, 9)


# Check list: manual tests


async def test_a_command_that_runs_for_long(each_installation):
    seconds = mark()
    async with Shell.connect(each_installation) as shell:
        begin = time.monotonic()
        pid = await shell.start(f"echo Server started...; exec sleep {seconds}")
        assert time.monotonic() - begin < 1, "the answer does not wait for it"
        await seen(shell, pid, ["Server started..."])
        polled = await shell.poll(pid, src="stdout", n=20)
        assert polled["status"] == "running"
        assert (await shell.sh("echo meanwhile")).blocks[0] == "meanwhile"
        assert named(f"sleep {seconds}")
        await shell.kill(pid)
        assert not named(f"sleep {seconds}")


async def test_output_while_it_runs(each_installation):
    log = each_installation.work / "app.log"
    log.write_text("first\n")
    os.chmod(log, 0o666)
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start("exec tail -n 1 -f app.log")
        await seen(shell, pid, ["first"])
        for number in range(3):
            with log.open("a") as file:
                file.write(f"line {number}\n")
            await seen(shell, pid, [f"line {number}"])
        assert (await shell.read(pid))["content"] == ["first", "line 0", "line 1", "line 2"]
        assert (await shell.poll(pid))["status"] == "running"
        await shell.kill(pid)


async def seen(shell, pid, lines):
    """Waits until the output ends with these lines."""
    deadline = time.monotonic() + 10
    while True:
        tail = (await shell.poll(pid, src="stdout", n=len(lines)))["tail"]["lines"]
        if tail == lines:
            return
        assert time.monotonic() < deadline, tail


async def test_stderr_after_an_error(each_installation):
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start("echo begun; ls /no/such/place")
        assert (await shell.ended(pid))["status"] == "failed"
        errors = (await shell.read(pid, "stderr"))["content"]
        assert len(errors) == 1 and "/no/such/place" in errors[0]
        assert (await shell.read(pid, "stdout"))["content"] == ["begun"]


async def test_status_after_the_end(each_installation):
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start("echo line1; echo line2")
        first = await shell.ended(pid)
        again = await shell.poll(pid, src="stdout", n=10)
        assert again.pop("tail") == {"src": "stdout", "lines": ["line1", "line2"]}
        assert again == first and again["status"] == "finished"
        assert (await shell.read(pid, lines=50))["content"] == ["line1", "line2"]
        listed = await shell.list(status_filter="finished")
        assert listed["processes"][0]["process_id"] == pid


# The rest of the document


async def test_a_shell_that_cannot_be_started(each_installation):
    async with Shell.connect(each_installation) as shell:
        each_installation.work.rename(each_installation.dir / "elsewhere")
        try:
            refused = await shell.execute("echo hello", run_mode="async")
        finally:
            (each_installation.dir / "elsewhere").rename(each_installation.work)
        assert refused.is_error and "working directory" in refused.text, refused
        assert refused.meta["rpc"] in (NOT_FOUND, BAD_PARAMETER)
        assert (await shell.list())["total"] == 0, "nothing was started"


async def test_a_command_that_cannot_be_started(each_installation):
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start("no-such-command-anywhere")
        assert (await shell.ended(pid))["exit_code"] == 127
        assert "not found" in (await shell.read(pid, "stderr"))["content"][0]
        (each_installation.work / "plain").write_text("no program\n")
        pid = await shell.start("./plain")
        assert (await shell.ended(pid))["exit_code"] == 126
        assert "denied" in (await shell.read(pid, "stderr"))["content"][0]


async def test_missing_and_wrong_parameters(installation):
    async with Shell.connect(installation) as shell:
        cases = [
            ("execute_shell", {}, "Missing required parameter: command"),
            ("poll_process", {}, "Missing required parameter: process_id"),
            ("kill_process", {}, "Missing required parameter: process_id"),
            ("read_process_output", {"process_id": "x"}, "Missing required parameter: stream"),
            ("read_process_output", {"stream": "stdout"}, "Missing required parameter: process_id"),
            ("execute_shell", {"command": "true", "run_mode": "later"}, "sync, async, background"),
            ("execute_shell", {"command": " "}, "'command' is empty"),
            ("poll_process", {"process_id": "x", "tail": {"n": 0}}, "from 1 to 100"),
            ("poll_process", {"process_id": "x", "tail": {"src": "all"}}, "stdout, stderr"),
            ("poll_process", {"process_id": "x", "tail": {"m": 1}}, "'m'; allowed: src, n"),
            ("list_processes", {"status_filter": "failed"}, "all, running, finished"),
        ]
        for tool, arguments, expected in cases:
            reply = await shell.call(tool, **arguments)
            assert reply.is_error and expected in reply.text, reply
            assert reply.meta["rpc"] == BAD_PARAMETER and reply.meta["code"] == "value_error"
        assert (await shell.list())["total"] == 0


async def test_only_an_unknown_tool_is_a_protocol_error(installation):
    async with Shell.connect(installation) as shell:
        with pytest.raises(Exception, match="unknown tool 'execute'"):
            await shell.call("execute", command="true")


async def test_at_most_20_at_once(each_installation):
    async with Shell.connect(each_installation) as shell:
        held = [await shell.start("exec sleep 300") for _ in range(20)]
        refused = await shell.execute("true", timeout=1)
        assert refused.code == "quota_exceeded", refused
        assert all(pid in refused.text for pid in held), "the holders are named"
        assert (await shell.list(status_filter="running"))["total"] == 20
        await shell.kill(held[0])
        assert not (await shell.execute("true")).is_error
    until(lambda: each_installation.executions() == [], 20, "the cleaning of the session")


async def test_output_is_kept_out_of_the_workspace(each_installation):
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start("echo hidden")
        await shell.ended(pid)
        assert list(each_installation.work.iterdir()) == []


async def test_ended_processes_are_kept_for_24_hours(installation):
    async with Shell.connect(installation) as shell:
        pid = await shell.start("true")
        await shell.ended(pid)
        spec = json.loads((installation.executions()[0] / "spec.json").read_text())
        assert spec.get("spec", spec)["retention"] == 24 * 3600 * 1000


async def test_a_cursor_in_an_answer_is_taken_by_read_process_output(installation):
    async with Shell.connect(installation) as shell:
        reply = await shell.sh("seq 100000")
        cursor = re.search(r"omitted; cursor ([0-9.]+) ", reply.text)[1]
        pid = re.search(r'process_id "(\w+)" and a cursor', reply.text)[1]
        first = await shell.read(pid, cursor=cursor, lines=3)
        begin = int(first["content"][0])
        assert first["content"] == [str(begin + n) for n in range(3)] and f"\n{begin - 1}\n[…" in reply.text, first
        after = await shell.read(pid, cursor=first["next_cursor"], lines=1)
        assert after["content"] == [str(begin + 3)]


@pytest.mark.parametrize("length", [20_000, 200_000])
async def test_how_to_read_a_cut_line_is_told(installation, length):
    script = f"python3 -c \"print('q' * {length})\""
    note = re.compile(r"a line is cut: `ostler logs --raw \w{8}` has all of it")
    async with Shell.connect(installation) as shell:
        assert note.search((await shell.sh(script)).text)
    async with installation.agent(args=["--tools", "command"]) as agent:
        done = await agent.sh(script)
        assert note.search(done.text), done
        assert note.search((await agent.logs((await agent.list())[0]["pid"])).text)
    async with installation.agent() as agent:
        assert "with raw true has all of it" in (await agent.must("exec", command=script)).text
