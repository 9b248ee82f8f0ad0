"""The command executor, over the MCP tools of profile `command`."""

import re

import anyio
import pytest

from harness import members, until
from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


# One function at a time


async def test_initialize(installation):
    async with installation.agent() as agent:
        assert "ready" in (await agent.execute("echo", "ready")).text


async def test_execute_command(each_installation):
    async with each_installation.agent() as agent:
        reply = await agent.execute("sh", "-c", "echo out; echo err >&2; exit 5")
        assert not reply.is_error, "a command that fails is a successful answer"
        assert "out" in reply.text and "err" in reply.text
        assert reply.value("exit_code") == 5
        assert reply.value("execution_time", "duration", "duration_ms") >= 0


async def test_start_background_command(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert (await agent.detail(pid))["status"] == "running"
        await agent.stop(pid)


async def test_get_process_logs(installation):
    async with installation.agent() as agent:
        pid = await agent.start_sh("echo one; echo two")
        await agent.ended(pid, installation)
        assert {"one", "two"} <= set(await agent.lines(pid))


async def test_stop_process(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert not (await agent.stop(pid)).is_error
        assert (await agent.detail(pid))["status"] == "terminated"


async def test_list_process(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300", labels=["here"])
        assert [entry["pid"] for entry in await agent.list(labels=["here"])] == [pid]
        await agent.stop(pid)


async def test_get_process_detail(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300", description="in detail")
        detail = await agent.detail(pid)
        expected = {"command", "directory", "description", "status", "start_time", "end_time", "exit_code", "labels", "timeout"}
        assert expected <= set(detail)
        await agent.stop(pid)


async def test_clean_process(installation):
    async with installation.agent() as agent:
        pid = await agent.start("true")
        await agent.ended(pid, installation)
        assert (await agent.clean(pid))[pid] == "success"


async def test_shutdown(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        uuid = installation.rest("GET", f"/api/v1/executions/{pid}")["uuid"]
    until(lambda: members(uuid) == [], 10, "the end of background commands")


async def test_get_process_manager(installation):
    """The same manager is behind every interface."""
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert installation.json("info", pid)["status"] == "running"
        assert installation.rest("GET", f"/api/process/{pid}")["status"] == "running"
        installation.cli("stop", pid)
        assert (await agent.detail(pid))["status"] == "terminated"


async def test_error_execution_failed(installation):
    async with installation.agent() as agent:
        reply = await agent.execute("nonexistent_cmd", directory="/tmp")
        assert reply.code == "command_execution_error"


async def test_error_execute_timeout(installation):
    async with installation.agent() as agent:
        reply = await agent.execute("sleep", "100", directory="/tmp", timeout=1)
        assert reply.code == "command_timeout"


async def test_error_execute_timeout_tells_the_limit_and_the_end(installation):
    async with installation.agent(env={"OSTLER_STOP_GRACE_MS": "800"}) as agent:
        script = "trap '' TERM; while :; do sleep 0.1; done"
        reply = await agent.execute("sh", "-c", script, directory="/tmp", timeout=1)
        said = re.search(r"its timeout of 1 s and was ended with its process tree, after (\S+) s;", reply.text)
        assert said and 1.8 <= float(said[1]) < 5, reply.text


async def test_error_background_failed(installation):
    async with installation.agent() as agent:
        reply = await agent.call(
            "command_bg_start", command="nonexistent_cmd", directory="/tmp", description="desc",
        )
        assert reply.code == "command_execution_error"


async def test_error_background_timeout(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "100", timeout=1)
        detail = await agent.ended(pid, installation)
        assert detail["status"] == "terminated" and "time" in detail["error_message"].lower()
        assert installation.cli("wait", pid, check=False).returncode != 0


async def test_error_process_not_found(installation):
    async with installation.agent() as agent:
        for tool in ("command_ps_logs", "command_ps_stop", "command_ps_detail"):
            assert (await agent.call(tool, pid="nonexistent")).code in ("process_not_found", "value_error")


async def test_error_invalid_arguments(installation):
    async with installation.agent() as agent:
        assert (await agent.execute("")).code == "value_error"
        assert (await agent.execute("true", directory="")).code == "value_error"
        bad = await agent.call("command_bg_start", command="", directory="/tmp", description="d")
        assert bad.code == "value_error"


async def test_error_permission(unprivileged_installation):
    locked = unprivileged_installation.work / "locked"
    locked.mkdir()
    unprivileged_installation.give(locked)
    locked.chmod(0)
    async with unprivileged_installation.agent() as agent:
        assert (await agent.execute("ls", directory=str(locked))).code == "permission_error"
    locked.chmod(0o700)


def broken(installation, pid):
    directory = installation.state / "executions" / installation.json("info", pid)["uuid"]
    installation.kill_daemon()
    for path in directory.glob("output.*"):
        path.unlink()
        path.mkdir()


async def test_error_output_retrieval(installation):
    async with installation.agent(session="kept") as agent:
        pid = await agent.start("echo", "hello")
        await agent.ended(pid, installation)
    broken(installation, pid)
    async with installation.agent(session="kept") as agent:
        assert (await agent.logs(pid)).code == "output_retrieval_error"


async def test_error_process_control(installation):
    async with installation.agent() as agent:
        pid = await agent.start("true")
        await agent.ended(pid, installation)
        reply = await agent.stop(pid)
        # Stopping an ended command changes nothing: it is reported as ended, or refused.
        assert reply.code in (None, "process_control_error")
        assert (await agent.detail(pid))["status"] == "completed"
        with pytest.raises(ProblemError) as refused:
            installation.rest("POST", f"/api/v1/executions/{pid}/signal", {"signal": "SIGKILL"})
        assert refused.value.code == "process_control_error"


async def test_error_list_retrieval(installation):
    async with installation.agent(session="kept") as agent:
        pid = await agent.start("echo", "hello")
        await agent.ended(pid, installation)
    broken(installation, pid)
    async with installation.agent(session="kept") as agent:
        reply = await agent.call("command_ps_list")
        assert reply.code in (None, "process_list_retrieval_error")


async def test_error_clean(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert (await agent.clean(pid))[pid].startswith("failed")
        await agent.stop(pid)


async def test_error_initialize(installation):
    installation.state.write_text("a file where the state directory should be")
    done = installation.cli("run", "--", "true", check=False)
    assert done.returncode not in (0, 101, 134) and done.stderr
    installation.state.unlink()


# Together


async def test_end_to_end(each_installation):
    async with each_installation.agent() as agent:
        reply = await agent.execute("echo", "test", directory="/tmp")
        assert not reply.is_error and "test" in reply.text and reply.value("exit_code") == 0


async def test_background_life_cycle(each_installation):
    async with each_installation.agent() as agent:
        pid = await agent.start_sh("while :; do echo tick; sleep 0.1; done")
        until(lambda: b"tick" in each_installation.cli("logs", pid, "--raw").stdout)
        # Equal lines are counted.
        assert (await agent.lines(pid))[0].startswith("tick")
        await agent.stop(pid)
        assert (await agent.detail(pid))["status"] == "terminated"


async def test_concurrent_background(installation):
    async with installation.agent() as agent:
        ids = []

        async def one():
            ids.append(await agent.start("sleep", "300"))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(one)
        assert {entry["pid"] for entry in await agent.list(status="running")} == set(ids)
        for pid in ids:
            await agent.stop(pid, force=True)


async def test_environment_and_encoding(installation):
    async with installation.agent() as agent:
        octal = "".join(f"\\{byte:03o}" for byte in "值".encode("gbk"))
        reply = await agent.sh(f'printf "$KEY {octal}\\n"', envs={"KEY": "VALUE"}, encoding="gbk")
        assert "VALUE 值" in reply.text


async def test_concurrent_stop_and_clean(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        async with anyio.create_task_group() as group:
            group.start_soon(agent.stop, pid)
            group.start_soon(agent.clean, pid)
        last = await agent.call("command_ps_detail", pid=pid)
        assert last.code == "process_not_found" or last.value("status") == "terminated"


async def test_recovery_and_release(installation):
    async with installation.agent() as agent:
        refused = await agent.call(
            "command_bg_start", command="invalid_cmd", directory="/tmp", description="fail",
        )
        assert refused.is_error
        assert "fine" in (await agent.execute("echo", "fine")).text


async def test_integration_shutdown(installation):
    async with installation.agent() as agent:
        await agent.execute("true")
        daemon = installation.daemon()
    installation.rest("POST", "/api/v1/shutdown")
    assert daemon.gone(10)


async def test_integration_get_process_manager(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert pid in [entry["id"] for entry in installation.json("ps")]
        await agent.stop(pid)


async def test_integration_error_execution_failed(installation):
    async with installation.agent() as agent:
        assert (await agent.execute("nonexistent_cmd", directory="/tmp")).code == "command_execution_error"


async def test_integration_error_execute_timeout(each_installation):
    async with each_installation.agent() as agent:
        reply = await agent.execute("sleep", "100", directory="/tmp", timeout=1)
        assert reply.code == "command_timeout"
        assert await agent.list(status="running") == []


async def test_integration_error_background_failed(installation):
    async with installation.agent() as agent:
        reply = await agent.call(
            "command_bg_start", command="nonexistent_cmd", directory="/tmp", description="desc",
        )
        assert reply.code == "command_execution_error"


async def test_integration_error_process_not_found(installation):
    async with installation.agent() as agent:
        assert (await agent.logs("zzzzzzzz")).code == "process_not_found"
        assert (await agent.stop("zzzzzzzz")).code == "process_not_found"
        assert (await agent.call("command_ps_detail", pid="zzzzzzzz")).code == "process_not_found"


async def test_error_invalid_execute(installation):
    async with installation.agent() as agent:
        assert (await agent.execute("", directory="/tmp")).code == "value_error"


async def test_error_invalid_start(installation):
    async with installation.agent() as agent:
        reply = await agent.call("command_bg_start", command="", directory="/tmp", description="desc")
        assert reply.code == "value_error"


async def test_error_invalid_logs(installation):
    async with installation.agent() as agent:
        assert (await agent.logs("")).code == "value_error"


async def test_error_invalid_stop(installation):
    async with installation.agent() as agent:
        assert (await agent.stop("")).code == "value_error"


async def test_error_invalid_detail(installation):
    async with installation.agent() as agent:
        assert (await agent.call("command_ps_detail", pid="")).code == "value_error"


async def test_error_invalid_clean(installation):
    async with installation.agent() as agent:
        assert (await agent.call("command_ps_clean", pids=[])).code == "value_error"


async def test_integration_error_permission(unprivileged_installation):
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


async def test_integration_error_output_retrieval(installation):
    pid = installation.cli("run", "-d", "--", "echo", "x").stdout.decode().strip()
    installation.cli("wait", pid)
    broken(installation, pid)
    done = installation.cli("logs", pid, check=False)
    assert done.returncode == 74 and done.stderr


async def test_integration_error_process_control(installation):
    pid = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", pid)
    assert installation.cli("kill", "-s", "TERM", pid, check=False).returncode == 71


async def test_integration_error_list_retrieval(installation):
    pid = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", pid)
    broken(installation, pid)
    assert installation.cli("ps", "--all", check=False).returncode in (0, 74)


async def test_integration_error_clean(installation):
    pid = installation.cli("run", "-d", "--", "sleep", "300").stdout.decode().strip()
    assert installation.cli("rm", pid, check=False).returncode == 71
    installation.cli("stop", pid)


async def test_integration_error_initialize(installation):
    done = installation.cli("run", "--", "true", check=False, env={"OSTLER_STATE_DIR": "/proc/nowhere"})
    assert done.returncode not in (0, 101, 134) and done.stderr


async def test_logs_say_why_there_are_none(installation):
    async with installation.agent() as agent:
        pid = await agent.start("echo", "hi")
        await agent.ended(pid, installation)
        end = (await agent.logs(pid)).value("cursor")
        assert "[no newer output]" in (await agent.logs(pid, since=end)).text
        assert "[tail is 0: no output is shown]" in (await agent.logs(pid, tail=0)).text
        assert "[no output matches]" in (await agent.logs(pid, grep="no")).text
        assert (await agent.lines(pid, since="0"))[0] == "hi"


async def test_the_answer_about_many_ids_to_clean_is_bounded(installation):
    async with installation.agent() as agent:
        reply = await agent.must("command_ps_clean", pids=[f"x{n:07}" for n in range(2_000)])
        assert len(reply.text) < 12_000 and 0 < len(reply.structured["results"]) < 2_000, len(reply.text)
        omitted = reply.structured["omitted"]
        assert omitted["failed"] == 2_000 - len(reply.structured["results"]) and omitted["success"] == 0, omitted
