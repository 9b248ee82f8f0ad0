"""The process manager of the command server, and one process.

`IProcess` methods are requests with the process's id; waiting is REST's `wait`.
"""

import shutil
import time

import anyio
import pytest

from harness import members, until
from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


def wait(installation, pid, at_most=20.0):
    body = {"until": "exit", "at_most_ms": int(at_most * 1000)}
    return installation.rest("POST", f"/api/v1/executions/{pid}/wait", body)


# One function at a time


async def test_initialize(installation):
    async with installation.agent() as agent:
        assert await agent.list() == []
    assert installation.rest("GET", "/api/v1/health")["running"] == 0


async def test_start_process(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300", description="a nap", labels=["nap"], timeout=600)
        detail = await agent.detail(pid)
        assert detail["status"] == "running" and detail["description"] == "a nap"
        assert detail["labels"] == ["nap"] and detail["timeout"] == 600
        assert detail["directory"] == str(installation.work)
        assert detail["start_time"] and not detail["end_time"]
        assert detail["exit_code"] is None
        await agent.stop(pid, force=True)


@pytest.mark.parametrize("force", [False, True])
async def test_stop_process(each_installation, force):
    async with each_installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        reply = await agent.stop(pid, force=force, reason="enough")
        assert not reply.is_error, reply
        detail = await agent.detail(pid)
        assert detail["status"] == "terminated" and "enough" in str(detail)
        info = each_installation.rest("GET", f"/api/v1/executions/{pid}")
        assert info["signal"] == ("SIGKILL" if force else "SIGTERM")
        assert info["stop_reason"] == "enough" and members(info["uuid"]) == []


async def test_get_process_info(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sh", "-c", "exit 3", description="three")
        detail = await agent.ended(pid, installation)
        assert detail["status"] == "failed" and detail["exit_code"] == 3
        assert detail["end_time"] and "sh" in str(detail["command"])


async def test_list_processes(installation):
    async with installation.agent() as agent:
        good = await agent.start("true", labels=["a", "b"])
        bad = await agent.start("false", labels=["a"])
        for pid in (good, bad):
            await agent.ended(pid, installation)
        nap = await agent.start("sleep", "300", labels=["b"])

        async def ids(**options):
            return [entry["pid"] for entry in await agent.list(**options)]

        assert await ids() == [nap, bad, good], "newest first"
        assert await ids(status="running") == [nap]
        assert await ids(status="completed") == [good]
        assert await ids(status="failed") == [bad]
        assert await ids(labels=["a"]) == [bad, good]
        assert await ids(labels=["a", "b"]) == [good], "all of the labels"
        await agent.stop(nap)
        assert await ids(status="terminated") == [nap]


async def test_clean_processes(installation):
    async with installation.agent() as agent:
        done, nap = await agent.start("true"), await agent.start("sleep", "300")
        await agent.ended(done, installation)
        results = await agent.clean(done, nap, "zzzzzzzz")
        assert results[done] == "success"
        assert results[nap].startswith("failed") and results["zzzzzzzz"].startswith("failed")
        assert [entry["pid"] for entry in await agent.list()] == [nap]
        await agent.stop(nap)


async def test_shutdown(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        uuid = installation.rest("GET", f"/api/v1/executions/{pid}")["uuid"]
    until(lambda: members(uuid) == [], 10, "the end of what the session had started")
    daemon = installation.daemon()
    installation.rest("POST", "/api/v1/shutdown")
    assert daemon.gone(10)


async def test_process_get_details(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300", description="details")
        assert (await agent.detail(pid))["description"] == "details"
        assert installation.rest("GET", f"/api/process/{pid}")["description"] == "details"
        await agent.stop(pid)


async def test_process_wait_for_completion(installation):
    async with installation.agent() as agent:
        quick = await agent.start_sh("sleep 0.3; exit 4")
        waited = wait(installation, quick, 5)
        assert waited["why"] == "exit" and waited["info"]["exit_code"] == 4
        slow = await agent.start("sleep", "300")
        begin = time.monotonic()
        waited = wait(installation, slow, 0.3)
        assert waited["why"] == "at_most" and waited["error"]["code"] == "process_timeout"
        assert time.monotonic() - begin < 3
        assert (await agent.detail(slow))["status"] == "running", "a wait kills nothing"
        await agent.stop(slow)


async def test_process_get_output(installation):
    async with installation.agent() as agent:
        pid = await agent.start_sh("echo out; echo err >&2")
        await agent.ended(pid, installation)
        only = await agent.lines(pid)
        assert "out" in only and "err" not in only
        assert "err" in await agent.lines(pid, with_stdout=False, with_stderr=True)


async def test_process_stop(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        stopped = installation.rest("POST", f"/api/process/{pid}/stop", {"force": True})
        assert stopped is not None
        assert (await agent.ended(pid, installation))["status"] == "terminated"


async def test_process_clean(installation):
    async with installation.agent() as agent:
        pid = await agent.start("true")
        await agent.ended(pid, installation)
        assert installation.rest("POST", f"/api/process/{pid}/clean")["result"] == "success"
        assert (await agent.call("command_ps_detail", pid=pid)).code == "process_not_found"
        assert installation.executions() == [], "its files are gone"


async def test_error_process_not_found(installation):
    async with installation.agent() as agent:
        for tool in ("command_ps_detail", "command_ps_stop", "command_ps_logs"):
            assert (await agent.call(tool, pid="zzzzzzzz")).code == "process_not_found", tool


async def test_error_command_execution(installation):
    async with installation.agent() as agent:
        reply = await agent.call(
            "command_bg_start", command="nonexistent_cmd", directory="/tmp", description="d",
        )
        assert reply.code == "command_execution_error" and "nonexistent_cmd" in reply.text


async def test_error_timeout(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        short = installation.json("info", pid)["id"]
        for options in ({"until": "exit"}, {"until": "pattern", "pattern": "x"}, {"until": "idle", "idle_ms": 60_000}):
            waited = installation.rest("POST", f"/api/v1/executions/{pid}/wait", {**options, "at_most_ms": 100})
            error = {"code": "process_timeout", "message": f"{short} is still running", "retryable": True}
            assert waited["why"] == "at_most" and waited["error"] == error, waited
        done = installation.cli("wait", "--timeout", "100ms", pid, check=False)
        assert done.returncode == 75 and b"process_timeout" in done.stderr, done
        assert (await agent.detail(pid))["status"] == "running"
        await agent.stop(pid)


async def test_error_permission(unprivileged_installation):
    locked = unprivileged_installation.work / "locked"
    locked.mkdir()
    unprivileged_installation.give(locked)
    locked.chmod(0)
    async with unprivileged_installation.agent() as agent:
        reply = await agent.call(
            "command_bg_start", command="ls", directory=str(locked), description="desc",
        )
        assert reply.code == "permission_error"
    locked.chmod(0o700)


@pytest.mark.parametrize("wrong", [{"command": ""}, {"directory": ""}, {"directory": "/no/such/directory"}])
async def test_error_invalid_start(installation, wrong):
    arguments = {"command": "true", "directory": "/tmp", "description": "desc"} | wrong
    async with installation.agent() as agent:
        assert (await agent.call("command_bg_start", **arguments)).code == "value_error"


async def test_error_invalid_stop(installation):
    async with installation.agent() as agent:
        assert (await agent.stop("")).code == "value_error"


async def test_error_invalid_info(installation):
    async with installation.agent() as agent:
        assert (await agent.call("command_ps_detail", pid="")).code == "value_error"


async def test_error_invalid_list(installation):
    async with installation.agent() as agent:
        reply = await agent.call("command_ps_list", status="invalid")
        assert reply.code == "value_error"
        assert all(word in reply.text for word in ("running", "completed", "terminated"))


async def test_error_invalid_clean(installation):
    async with installation.agent() as agent:
        assert (await agent.call("command_ps_clean", pids=[])).code == "value_error"


async def test_error_process_control(installation):
    async with installation.agent() as agent:
        pid = await agent.start("true")
        await agent.ended(pid, installation)
        with pytest.raises(ProblemError) as refused:
            installation.rest("POST", f"/api/v1/executions/{pid}/signal", {"signal": "SIGTERM"})
        assert refused.value.code == "process_control_error"


def damaged(installation, *names):
    """An ended execution whose files were damaged while no daemon ran."""
    pid = installation.cli("run", "-d", "--", "sh", "-c", "echo x; exit 3").stdout.decode().strip()
    installation.cli("wait", pid, check=False)
    directory = installation.state / "executions" / installation.json("info", pid)["uuid"]
    installation.kill_daemon()
    for name in names:
        (directory / name).write_bytes(b"\0garbled\n" * 9)
    return pid, directory


async def test_error_info_retrieval(installation):
    pid, directory = damaged(installation, "spec.json", "events.jsonl", "exit")
    installation.json("ps", "--all")
    try:
        info = installation.rest("GET", f"/api/v1/executions/{directory.name}")
        assert info["status"] == "error" and info["exit_code"] is None, "told as lost, not invented"
    except ProblemError as refused:
        assert refused.code in ("process_info_retrieval_error", "process_not_found")


async def test_error_list_retrieval(installation):
    pid, _ = damaged(installation, "spec.json", "events.jsonl", "exit")
    healthy = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", healthy)
    try:
        assert healthy in [entry["id"] for entry in installation.json("ps", "--all")]
    except ProblemError as refused:
        assert refused.code == "process_list_retrieval_error"


async def test_error_clean(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert (await agent.clean(pid))[pid].startswith("failed")
        with pytest.raises(ProblemError) as refused:
            installation.rest("DELETE", f"/api/v1/executions/{pid}")
        assert refused.value.status == 409
        await agent.stop(pid)


async def test_error_initialize(installation):
    shutil.rmtree(installation.dir / "run")
    (installation.dir / "run").write_text("in the way")
    done = installation.cli("ps", check=False)
    assert done.returncode not in (0, 101, 134) and done.stderr
    (installation.dir / "run").unlink()
    (installation.dir / "run").mkdir(mode=0o700)


async def test_process_error_output_retrieval(installation):
    pid, directory = damaged(installation)
    for path in directory.glob("output.*"):
        path.unlink()
        path.mkdir()
    async with installation.agent() as agent:
        installation.json("ps", "--all")
        with pytest.raises(ProblemError) as refused:
            installation.rest("GET", f"/api/v1/executions/{pid}/output")
        assert refused.value.code == "output_retrieval_error"
        assert "up" in (await agent.execute("echo", "up")).text


async def test_process_error_invalid_output(installation):
    async with installation.agent() as agent:
        assert (await agent.logs("")).code == "value_error"


async def test_process_error_clean(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        with pytest.raises(ProblemError) as refused:
            installation.rest("POST", f"/api/process/{pid}/clean")
        assert refused.value.code == "process_clean_error"
        await agent.stop(pid)


# Together


async def test_life_cycle(each_installation):
    async with each_installation.agent() as agent:
        pid = await agent.start_sh("echo alive; exec sleep 300")
        assert (await agent.detail(pid))["status"] == "running"
        until(lambda: b"alive" in each_installation.cli("logs", pid, "--raw").stdout)
        await agent.stop(pid)
        assert (await agent.detail(pid))["status"] == "terminated"
        assert (await agent.clean(pid))[pid] == "success"
        assert await agent.list() == []


async def test_a_timeout_ends_it(each_installation):
    async with each_installation.agent() as agent:
        pid = await agent.start("sleep", "300", timeout=1)
        uuid = each_installation.rest("GET", f"/api/v1/executions/{pid}")["uuid"]
        detail = await agent.ended(pid, each_installation)
        assert detail["status"] == "terminated" and detail["error_message"]
        assert members(uuid) == []
        waited = each_installation.cli("wait", pid, check=False)
        assert waited.returncode in (124, 137, 143)


async def test_waiting_for_one_that_timed_out_is_command_timeout(installation):
    """The tool that waits, REST and the command line answer the same, also once it has ended."""
    async with installation.agent(args=["--tools", "command,core"]) as agent:
        pid = await agent.start("sleep", "300", timeout=1)
        reply = await agent.call("process", action="wait", ids=[pid], wait_ms=20_000)
        assert reply.code == "command_timeout" and "timeout of 1 s" in reply.text, reply
        waited = wait(installation, pid)
        assert waited["why"] == "exit" and waited["info"]["status"] == "terminated"
        error = waited["error"]
        assert error["code"] == "command_timeout" and "timed out" in error["message"] and not error["retryable"], error
        done = installation.cli("wait", pid, check=False)
        assert done.returncode == 124 and b"command_timeout" in done.stderr, done
        # One that is stopped, or fails by itself, has not timed out.
        for other in (await agent.start("false", timeout=60), await agent.start("sleep", "300", timeout=60)):
            await agent.call("command_ps_stop", pid=other)
            assert "error" not in wait(installation, other)
            await agent.must("process", action="wait", ids=[other])


async def test_a_wait_that_was_met_is_no_error(installation):
    """A time limit ended the command afterwards."""
    async with installation.agent(args=["--tools", "command,core"]) as agent:
        pid = await agent.start("sh", "-c", "echo marker; sleep 300", timeout=1)
        installation.cli("wait", pid, check=False)
        reply = await agent.must("process", action="wait", ids=[pid], until="pattern", pattern="marker")
        assert "marker" in reply.text
        waited = installation.rest("POST", f"/api/v1/executions/{pid}/wait", {"until": "pattern", "pattern": "marker"})
        assert waited["why"] == "pattern" and "error" not in waited


async def test_concurrent_processes(installation):
    async with installation.agent() as agent:
        ids = []

        async def one(number):
            ids.append((number, await agent.start_sh(f"echo number {number}; sleep 0.2; exit {number}")))

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(one, number)
        assert len({pid for _, pid in ids}) == 5
        for number, pid in ids:
            detail = await agent.ended(pid, installation)
            assert detail["exit_code"] == number
            assert f"number {number}" in await agent.lines(pid)


async def test_output_captured_and_filtered(installation):
    async with installation.agent() as agent:
        pid = await agent.start("seq", "1", "50")
        await agent.ended(pid, installation)
        numbers = [line for line in await agent.lines(pid, tail=10) if line.isdigit()]
        assert numbers == [str(n) for n in range(41, 51)]
        assert "7" in await agent.lines(pid, grep="^7$")


async def test_encodings(installation):
    async with installation.agent() as agent:
        octal = "".join(f"\\{byte:03o}" for byte in "中文".encode("gbk"))
        pid = await agent.start("printf", octal + "\\n", encoding="gbk")
        await agent.ended(pid, installation)
        assert "中文" in await agent.lines(pid)


async def test_concurrent_stop_and_clean(installation):
    async with installation.agent() as agent:
        for _ in range(20):
            pid = await agent.start("sleep", "300")
            async with anyio.create_task_group() as group:
                group.start_soon(agent.stop, pid)
                group.start_soon(agent.clean, pid)
            last = await agent.call("command_ps_detail", pid=pid)
            assert last.code == "process_not_found" or last.value("status") == "terminated"


async def test_recovery_and_release(installation):
    async with installation.agent() as agent:
        nap = await agent.start("sleep", "300")
        for _ in range(5):
            assert (await agent.execute("invalid_cmd")).code == "command_execution_error"
        failing = await agent.start("false")
        assert (await agent.ended(failing, installation))["status"] == "failed"
        assert (await agent.clean(failing))[failing] == "success"
        assert (await agent.detail(nap))["status"] == "running", "others are not affected"
        await agent.stop(nap)
