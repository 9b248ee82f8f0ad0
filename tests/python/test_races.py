"""Stop, clean, exit and list on the same execution at the same time."""

import concurrent.futures

import anyio
import pytest

from harness import procs, until

pytestmark = pytest.mark.anyio

STATUSES = {"running", "completed", "failed", "terminated", "error"}
#: Stops that one client asks for at the same time.
STOPS = 80


async def storm(agent, installation, rounds):
    for number in range(rounds):
        code = number % 2
        pid = await agent.start_sh(f"sleep 0.0{number % 9}; exit {code}")
        seen = []

        async def stop():
            reply = await agent.stop(pid, force=True)
            assert reply.code in (None, "process_control_error", "process_not_found"), reply

        async def clean():
            outcome = await agent.call("command_ps_clean", pids=[pid])
            seen.append(outcome.text)

        async def look():
            for entry in await agent.list():
                assert entry["status"] in STATUSES
            detail = await agent.call("command_ps_detail", pid=pid)
            assert detail.code in (None, "process_not_found"), detail

        async with anyio.create_task_group() as group:
            for act in (stop, clean, look, clean, look):
                group.start_soon(act)
        last = await agent.call("command_ps_detail", pid=pid)
        if not last.is_error:
            status = last.value("status")
            assert status in STATUSES - {"running", "error"}, last
            assert (await agent.clean(pid))[pid] == "success"
    assert await agent.list() == []
    until(lambda: installation.executions() == [], 5, "the removal of every directory")


@pytest.mark.limit(120)
async def test_concurrent_stop_clean_exit_and_list(each_installation):
    async with each_installation.agent() as agent:
        await storm(agent, each_installation, 100)


@pytest.mark.full
@pytest.mark.limit(1200)
async def test_concurrent_stop_clean_exit_and_list_thousands_of_times(installation):
    async with installation.agent() as agent:
        daemon = installation.daemon()
        before = len(list((procs.Path(f"/proc/{daemon.pid}/fd")).iterdir()))
        await storm(agent, installation, 3000)
        after = len(list((procs.Path(f"/proc/{daemon.pid}/fd")).iterdir()))
        assert after <= before + 20, "descriptors leak"


async def test_the_exit_wins_or_the_stop_wins_but_the_status_is_true(installation):
    async with installation.agent() as agent:
        for number in range(40):
            pid = await agent.start_sh(f"sleep 0.0{number % 5}; exit 0")
            await agent.stop(pid)
            detail = await agent.ended(pid, installation)
            assert detail["status"] in ("completed", "terminated"), detail
            if detail["status"] == "completed":
                assert detail["exit_code"] == 0


@pytest.mark.limit(120)
async def test_parallel_stops_of_one_client_find_every_execution(each_installation):
    each_installation.cli("ps")
    for _ in range(4):
        ids = [start(each_installation) for _ in range(STOPS)]
        with concurrent.futures.ThreadPoolExecutor(STOPS) as pool:
            ended = list(pool.map(lambda id: stop(each_installation, id), ids))
        assert ended == ["terminated"] * STOPS, ended


def start(installation):
    body = {"command": {"argv": {"program": "sleep", "args": ["1000"]}}, "cwd": "/"}
    return installation.rest("POST", "/api/v1/executions", body)["id"]


def stop(installation, id):
    return installation.rest("POST", f"/api/v1/executions/{id}/stop", {"force": True})["status"]
