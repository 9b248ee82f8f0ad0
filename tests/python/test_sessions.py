"""Sessions cannot see each other, and have their quota."""

from pathlib import Path

import pytest

from harness import until

pytestmark = pytest.mark.anyio

DENIED = "Process not found or access denied"
QUOTA = 20


async def test_sessions_do_not_see_each_other(each_installation):
    async with each_installation.agent() as one, each_installation.agent() as other:
        pid = await one.start_sh("echo secret; exec sleep 300")
        assert await other.list() == []
        unknown = [
            await other.call(tool, pid="zzzzzzzz", **extra) for tool, extra in EVERY
        ]
        foreign = [await other.call(tool, pid=pid, **extra) for tool, extra in EVERY]
        for first, second in zip(unknown, foreign, strict=True):
            assert first.code == second.code == "process_not_found"
            assert DENIED in first.text and DENIED in second.text
            assert first.text.replace("zzzzzzzz", "ID") == second.text.replace(pid, "ID")
        cleaned = await other.call("command_ps_clean", pids=[pid])
        assert "success" not in cleaned.text
        assert (await one.detail(pid))["status"] == "running"
        await one.stop(pid, force=True)


EVERY = [
    ("command_ps_detail", {}),
    ("command_ps_logs", {"follow_seconds": 0}),
    ("command_ps_stop", {}),
]


async def test_a_guessed_whole_id_is_denied_too(installation):
    async with installation.agent() as one, installation.agent() as other:
        pid = await one.start("sleep", "300")
        uuid = installation.rest("GET", f"/api/v1/executions/{pid}")["uuid"]
        assert (await one.detail(uuid))["status"] == "running"
        assert (await other.call("command_ps_detail", pid=uuid)).code == "process_not_found"
        await one.stop(pid, force=True)


async def test_the_command_line_sees_everything_of_its_user(installation):
    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert pid in [entry["id"] for entry in installation.json("ps")]
        await agent.stop(pid, force=True)


async def test_at_the_quota_a_start_that_waited_is_refused_and_its_holders_named(each_installation):
    async with each_installation.agent() as agent:
        held = [await agent.start("sleep", "300") for _ in range(QUOTA)]
        refused = await agent.execute("true", timeout=1)
        assert refused.code == "quota_exceeded", refused
        assert all(f"{pid} (sleep 300)" in refused.text for pid in held), "holders are named"
        running = await agent.list(status="running")
        assert len(running) == QUOTA, "no running one was killed to make room"
        await agent.stop(held[0], force=True)
        assert not (await agent.execute("true")).is_error
        async with each_installation.agent() as other:
            assert not (await other.execute("true")).is_error, "the quota is per session"
    until(lambda: each_installation.executions() == [], 20, "the cleaning of the session")


async def test_the_end_of_a_session_with_many_commands_takes_few_threads(installation):
    """Idle threads stay for ten seconds, so that a burst of them is still there when all is removed."""
    async with installation.agent() as agent:
        for _ in range(120):
            await agent.execute("true")
    until(lambda: installation.json("ps", "--all") == [], 30, "the removal")
    status = Path(f"/proc/{installation.daemon().pid}/status").read_text()
    threads = int(status.split("Threads:")[1].split()[0])
    assert threads < 40, threads
