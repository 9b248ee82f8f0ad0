"""Document 000 §10.3: what it asks of the command executor, in the words of the MCP tools."""

import anyio
import pytest

from harness import members, until
from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


# 10.3.1 unit tests


async def test_000_10_3_1_initialize(place):
    async with place.agent() as agent:
        assert "ready" in (await agent.execute("echo", "ready")).text


async def test_000_10_3_1_execute_command(any_place):
    async with any_place.agent() as agent:
        reply = await agent.execute("sh", "-c", "echo out; echo err >&2; exit 5")
        assert not reply.is_error, "a command that fails is a successful answer"
        assert "out" in reply.text and "err" in reply.text
        assert reply.value("exit_code") == 5
        assert reply.value("execution_time", "duration", "duration_ms") >= 0


async def test_000_10_3_1_start_background_command(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert (await agent.detail(pid))["status"] == "running"
        await agent.stop(pid)


async def test_000_10_3_1_get_process_logs(place):
    async with place.agent() as agent:
        pid = await agent.start_sh("echo one; echo two")
        await agent.ended(pid, place)
        assert {"one", "two"} <= set(await agent.lines(pid))


async def test_000_10_3_1_stop_process(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert not (await agent.stop(pid)).is_error
        assert (await agent.detail(pid))["status"] == "terminated"


async def test_000_10_3_1_list_process(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300", labels=["here"])
        assert [entry["pid"] for entry in await agent.list(labels=["here"])] == [pid]
        await agent.stop(pid)


async def test_000_10_3_1_get_process_detail(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300", description="in detail")
        detail = await agent.detail(pid)
        expected = {"command", "directory", "description", "status", "start_time", "end_time", "exit_code", "labels", "timeout"}
        assert expected <= set(detail)
        await agent.stop(pid)


async def test_000_10_3_1_clean_process(place):
    async with place.agent() as agent:
        pid = await agent.start("true")
        await agent.ended(pid, place)
        assert (await agent.clean(pid))[pid] == "success"


async def test_000_10_3_1_shutdown(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300")
        uuid = place.rest("GET", f"/api/v1/executions/{pid}")["uuid"]
    until(lambda: members(uuid) == [], 10, "the end of background commands")


async def test_000_10_3_1_get_process_manager(place):
    """The manager is the same one behind every face."""
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert place.json("info", pid)["status"] == "running"
        assert place.rest("GET", f"/api/process/{pid}")["status"] == "running"
        place.cli("stop", pid)
        assert (await agent.detail(pid))["status"] == "terminated"


async def test_000_10_3_1_error_execution_failed(place):
    async with place.agent() as agent:
        reply = await agent.execute("nonexistent_cmd", directory="/tmp")
        assert reply.code == "command_execution_error"


async def test_000_10_3_1_error_execute_timeout(place):
    async with place.agent() as agent:
        reply = await agent.execute("sleep", "100", directory="/tmp", timeout=1)
        assert reply.code == "command_timeout"


async def test_000_10_3_1_error_background_failed(place):
    async with place.agent() as agent:
        reply = await agent.call(
            "command_bg_start", command="nonexistent_cmd", directory="/tmp", description="desc",
        )
        assert reply.code == "command_execution_error"


async def test_000_10_3_1_error_background_timeout(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "100", timeout=1)
        detail = await agent.ended(pid, place)
        assert detail["status"] == "terminated" and "time" in detail["error_message"].lower()
        assert place.cli("wait", pid, check=False).returncode != 0


async def test_000_10_3_1_error_process_not_found(place):
    async with place.agent() as agent:
        for tool in ("command_ps_logs", "command_ps_stop", "command_ps_detail"):
            assert (await agent.call(tool, pid="nonexistent")).code in ("process_not_found", "value_error")


async def test_000_10_3_1_error_invalid_arguments(place):
    async with place.agent() as agent:
        assert (await agent.execute("")).code == "value_error"
        assert (await agent.execute("true", directory="")).code == "value_error"
        bad = await agent.call("command_bg_start", command="", directory="/tmp", description="d")
        assert bad.code == "value_error"


async def test_000_10_3_1_error_permission(ordinary_place):
    locked = ordinary_place.work / "locked"
    locked.mkdir()
    ordinary_place.give(locked)
    locked.chmod(0)
    async with ordinary_place.agent() as agent:
        assert (await agent.execute("ls", directory=str(locked))).code == "permission_error"
    locked.chmod(0o700)


def broken(place, pid):
    directory = place.state / "executions" / place.json("info", pid)["uuid"]
    place.kill_daemon()
    for path in directory.glob("output.*"):
        path.unlink()
        path.mkdir()


async def test_000_10_3_1_error_output_retrieval(place):
    async with place.agent(session="kept") as agent:
        pid = await agent.start("echo", "hello")
        await agent.ended(pid, place)
    broken(place, pid)
    async with place.agent(session="kept") as agent:
        assert (await agent.logs(pid)).code == "output_retrieval_error"


async def test_000_10_3_1_error_process_control(place):
    async with place.agent() as agent:
        pid = await agent.start("true")
        await agent.ended(pid, place)
        reply = await agent.stop(pid)
        # Stopping what has ended changes nothing: either it is told as ended, or refused.
        assert reply.code in (None, "process_control_error")
        assert (await agent.detail(pid))["status"] == "completed"
        with pytest.raises(ProblemError) as refused:
            place.rest("POST", f"/api/v1/executions/{pid}/signal", {"signal": "SIGKILL"})
        assert refused.value.code == "process_control_error"


async def test_000_10_3_1_error_list_retrieval(place):
    async with place.agent(session="kept") as agent:
        pid = await agent.start("echo", "hello")
        await agent.ended(pid, place)
    broken(place, pid)
    async with place.agent(session="kept") as agent:
        reply = await agent.call("command_ps_list")
        assert reply.code in (None, "process_list_retrieval_error")


async def test_000_10_3_1_error_clean(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert (await agent.clean(pid))[pid].startswith("failed")
        await agent.stop(pid)


async def test_000_10_3_1_error_initialize(place):
    place.state.write_text("a file where the state directory should be")
    done = place.cli("run", "--", "true", check=False)
    assert done.returncode not in (0, 101, 134) and done.stderr
    place.state.unlink()


# 10.3.2 integration tests


async def test_000_10_3_2_end_to_end(any_place):
    async with any_place.agent() as agent:
        reply = await agent.execute("echo", "test", directory="/tmp")
        assert not reply.is_error and "test" in reply.text and reply.value("exit_code") == 0


async def test_000_10_3_2_background_life_cycle(any_place):
    async with any_place.agent() as agent:
        pid = await agent.start_sh("while :; do echo tick; sleep 0.1; done")
        until(lambda: b"tick" in any_place.cli("logs", pid, "--raw").stdout)
        assert "tick" in await agent.lines(pid)
        await agent.stop(pid)
        assert (await agent.detail(pid))["status"] == "terminated"


async def test_000_10_3_2_concurrent_background(place):
    async with place.agent() as agent:
        ids = []

        async def one():
            ids.append(await agent.start("sleep", "300"))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(one)
        assert {entry["pid"] for entry in await agent.list(status="running")} == set(ids)
        for pid in ids:
            await agent.stop(pid, force=True)


async def test_000_10_3_2_environment_and_encoding(place):
    async with place.agent() as agent:
        octal = "".join(f"\\{byte:03o}" for byte in "值".encode("gbk"))
        reply = await agent.sh(f'printf "$KEY {octal}\\n"', envs={"KEY": "VALUE"}, encoding="gbk")
        assert "VALUE 值" in reply.text


async def test_000_10_3_2_concurrent_stop_and_clean(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300")
        async with anyio.create_task_group() as group:
            group.start_soon(agent.stop, pid)
            group.start_soon(agent.clean, pid)
        last = await agent.call("command_ps_detail", pid=pid)
        assert last.code == "process_not_found" or last.value("status") == "terminated"


async def test_000_10_3_2_recovery_and_release(place):
    async with place.agent() as agent:
        refused = await agent.call(
            "command_bg_start", command="invalid_cmd", directory="/tmp", description="fail",
        )
        assert refused.is_error
        assert "fine" in (await agent.execute("echo", "fine")).text


async def test_000_10_3_2_shutdown(place):
    async with place.agent() as agent:
        await agent.execute("true")
        daemon = place.daemon()
    place.rest("POST", "/api/v1/shutdown")
    assert daemon.gone(10)


async def test_000_10_3_2_get_process_manager(place):
    async with place.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert pid in [entry["id"] for entry in place.json("ps")]
        await agent.stop(pid)


async def test_000_10_3_2_error_execution_failed(place):
    async with place.agent() as agent:
        assert (await agent.execute("nonexistent_cmd", directory="/tmp")).code == "command_execution_error"


async def test_000_10_3_2_error_execute_timeout(any_place):
    async with any_place.agent() as agent:
        reply = await agent.execute("sleep", "100", directory="/tmp", timeout=1)
        assert reply.code == "command_timeout"
        assert await agent.list(status="running") == []


async def test_000_10_3_2_error_background_failed(place):
    async with place.agent() as agent:
        reply = await agent.call(
            "command_bg_start", command="nonexistent_cmd", directory="/tmp", description="desc",
        )
        assert reply.code == "command_execution_error"


async def test_000_10_3_2_error_process_not_found(place):
    async with place.agent() as agent:
        assert (await agent.logs("zzzzzzzz")).code == "process_not_found"
        assert (await agent.stop("zzzzzzzz")).code == "process_not_found"
        assert (await agent.call("command_ps_detail", pid="zzzzzzzz")).code == "process_not_found"


async def test_000_10_3_2_error_invalid_execute(place):
    async with place.agent() as agent:
        assert (await agent.execute("", directory="/tmp")).code == "value_error"


async def test_000_10_3_2_error_invalid_start(place):
    async with place.agent() as agent:
        reply = await agent.call("command_bg_start", command="", directory="/tmp", description="desc")
        assert reply.code == "value_error"


async def test_000_10_3_2_error_invalid_logs(place):
    async with place.agent() as agent:
        assert (await agent.logs("")).code == "value_error"


async def test_000_10_3_2_error_invalid_stop(place):
    async with place.agent() as agent:
        assert (await agent.stop("")).code == "value_error"


async def test_000_10_3_2_error_invalid_detail(place):
    async with place.agent() as agent:
        assert (await agent.call("command_ps_detail", pid="")).code == "value_error"


async def test_000_10_3_2_error_invalid_clean(place):
    async with place.agent() as agent:
        assert (await agent.call("command_ps_clean", pids=[])).code == "value_error"


async def test_000_10_3_2_error_permission(ordinary_place):
    locked = ordinary_place.work / "locked"
    locked.mkdir()
    ordinary_place.give(locked)
    locked.chmod(0)
    async with ordinary_place.agent() as agent:
        reply = await agent.call(
            "command_bg_start", command="ls", directory=str(locked), description="desc",
        )
        assert reply.code == "permission_error"
    locked.chmod(0o700)


async def test_000_10_3_2_error_output_retrieval(place):
    pid = place.cli("run", "-d", "--", "echo", "x").stdout.decode().strip()
    place.cli("wait", pid)
    broken(place, pid)
    done = place.cli("logs", pid, check=False)
    assert done.returncode == 74 and done.stderr


async def test_000_10_3_2_error_process_control(place):
    pid = place.cli("run", "-d", "--", "true").stdout.decode().strip()
    place.cli("wait", pid)
    assert place.cli("kill", "-s", "TERM", pid, check=False).returncode == 71


async def test_000_10_3_2_error_list_retrieval(place):
    pid = place.cli("run", "-d", "--", "true").stdout.decode().strip()
    place.cli("wait", pid)
    broken(place, pid)
    assert place.cli("ps", "--all", check=False).returncode in (0, 74)


async def test_000_10_3_2_error_clean(place):
    pid = place.cli("run", "-d", "--", "sleep", "300").stdout.decode().strip()
    assert place.cli("rm", pid, check=False).returncode == 71
    place.cli("stop", pid)


async def test_000_10_3_2_error_initialize(place):
    done = place.cli("run", "--", "true", check=False, env={"OSTLER_STATE_DIR": "/proc/nowhere"})
    assert done.returncode not in (0, 101, 134) and done.stderr
