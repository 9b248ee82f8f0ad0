"""No process is left behind, whatever it did to get away."""

import json
import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from harness import named, until
from harness.agent import Agent

pytestmark = pytest.mark.anyio

GRACE_SECONDS = 5


def escapees():
    """A script with every way out of a process group, and the words to find its processes by."""
    mark = f"300.{random.randrange(10**8, 10**9)}"
    script = (
        f"setsid sleep {mark} & nohup sleep {mark} >/dev/null 2>&1 & "
        f"(trap '' TERM; sleep {mark}; sleep {mark}) & "
        f"python3 -c \"import os,time; os.fork() and os._exit(0); os.setsid(); "
        f"os.fork() and os._exit(0); os.execvp('sleep', ['sleep', '{mark}'])\" & "
        f"sleep {mark}"
    )
    return script, f"sleep {mark}"


def nobody_left(words, seconds=5):
    until(lambda: not named(words), seconds, f"the end of every `{words}`")


async def test_a_timeout_ends_the_whole_tree(each_installation):
    script, words = escapees()
    async with each_installation.agent() as agent:
        begin = time.monotonic()
        reply = await agent.execute("sh", "-c", f"echo before; {script}", timeout=2)
        took = time.monotonic() - begin
        assert reply.code == "command_timeout", reply
        assert "before" in reply.text, "the output so far"
        assert took < 2 + GRACE_SECONDS + 3
        nobody_left(words, 1)


async def test_a_stop_ends_the_whole_tree(each_installation):
    script, words = escapees()
    async with each_installation.agent() as agent:
        pid = await agent.start_sh(script)
        until(lambda: len(named(words)) >= 4, 10, "the tree")
        assert not (await agent.stop(pid)).is_error
        nobody_left(words, 1)
        assert (await agent.detail(pid))["status"] == "terminated"


async def test_a_forced_stop_gives_no_grace(each_installation):
    async with each_installation.agent() as agent:
        pid = await agent.start_sh("trap '' TERM; echo up; while :; do sleep 1; done")
        until(lambda: b"up" in each_installation.cli("logs", pid, "--raw").stdout)
        begin = time.monotonic()
        assert not (await agent.stop(pid, force=True)).is_error
        assert time.monotonic() - begin < 2


async def test_a_polite_stop_lets_the_command_say_goodbye(each_installation):
    async with each_installation.agent() as agent:
        pid = await agent.start_sh("trap 'echo goodbye; exit 7' TERM; echo up; while :; do sleep 0.1; done")
        until(lambda: b"up" in each_installation.cli("logs", pid, "--raw").stdout)
        assert not (await agent.stop(pid)).is_error
        assert "goodbye" in await agent.lines(pid)
        detail = await agent.detail(pid)
        assert detail["status"] == "terminated" and detail["exit_code"] == 7


async def test_a_background_child_holding_the_pipe_does_not_hold_the_result(each_installation):
    mark = f"300.{random.randrange(10**8, 10**9)}"
    async with each_installation.agent() as agent:
        begin = time.monotonic()
        reply = await agent.execute("sh", "-c", f"sleep {mark} & echo done")
        assert time.monotonic() - begin < 5
        assert not reply.is_error and "done" in reply.text
        nobody_left(f"sleep {mark}")


async def test_a_cleaned_execution_leaves_nothing(each_installation):
    script, words = escapees()
    async with each_installation.agent() as agent:
        pid = await agent.start_sh(script)
        until(lambda: len(named(words)) >= 4, 10, "the tree")
        running = await agent.clean(pid)
        assert running[pid].startswith("failed"), "a running process is never cleaned"
        assert named(words)
        await agent.stop(pid, force=True)
        assert (await agent.clean(pid))[pid] == "success"
        nobody_left(words, 1)
        assert each_installation.executions() == []


async def test_the_end_of_a_session_ends_its_commands(each_installation):
    script, words = escapees()
    async with each_installation.agent() as agent:
        await agent.start_sh(script)
        until(lambda: len(named(words)) >= 4, 10, "the tree")
    nobody_left(words, GRACE_SECONDS + 5)
    until(lambda: each_installation.executions() == [], 5, "the cleaning of an ended session")


async def test_a_named_session_is_kept(each_installation):
    mark = f"300.{random.randrange(10**8, 10**9)}"
    async with each_installation.agent(session="kept") as agent:
        pid = await agent.start("sleep", mark)
    async with each_installation.agent(session="kept") as agent:
        assert (await agent.detail(pid))["status"] == "running"
        assert named(f"sleep {mark}")
        await agent.stop(pid, force=True)
    nobody_left(f"sleep {mark}", 1)


async def test_an_orderly_shutdown_leaves_durable_commands_running(each_installation):
    mark = f"300.{random.randrange(10**8, 10**9)}"
    pid = each_installation.cli("run", "-d", "--", "sleep", mark).stdout.decode().strip()
    before = each_installation.daemon()
    each_installation.rest("POST", "/api/v1/shutdown")
    assert before.gone(10)
    assert named(f"sleep {mark}"), "a durable execution goes on"
    assert each_installation.json("info", pid)["status"] == "running", "and the next daemon finds it"
    each_installation.cli("stop", pid)
    nobody_left(f"sleep {mark}", 1)


async def test_a_shutdown_under_a_proxy_leaves_no_tree_without_owner(each_installation):
    script, words = escapees()
    server = each_installation.argv("mcp")
    async with Agent.connect(server, each_installation.env(), each_installation.work) as agent:
        pid = await agent.start_sh(script)
        until(lambda: len(named(words)) >= 4, 10, "the tree")
        uuid = each_installation.rest("GET", f"/api/v1/executions/{pid}")["uuid"]
        before = each_installation.daemon()
        each_installation.rest("POST", "/api/v1/shutdown")
        assert before.gone(10)
    # The session is over, so the next daemon must not let its commands run for ever.
    info = until(lambda: each_installation.json("ps", "--all"), 5) if named(words) else []
    for entry in info:
        if entry["uuid"] == uuid and entry["status"] == "running":
            each_installation.cli("stop", entry["id"])
    nobody_left(words, GRACE_SECONDS + 5)


@pytest.mark.full
@pytest.mark.root
@pytest.mark.limit(120)
async def test_a_fork_bomb_stays_under_its_limit(installation):
    async with installation.agent() as agent:
        reply = await agent.execute(
            "python3", "-c",
            "import os\nn=0\ntry:\n  while True:\n    p=os.fork()\n    if not p: os.execvp('sleep',['sleep','77.5'])\n    n+=1\n"
            "except OSError: print('stopped at', n)",
            timeout=60,
        )
        assert "stopped at" in reply.text
        nobody_left("sleep 77.5", 10)


#: Takes minutes on one line of some megabytes, and cannot be interrupted there.
COSTLY = "(a{1,200}){1,200}b"


def test_a_shutdown_waits_for_no_search(installation):
    line = "head -c 8000000 /dev/zero | tr '\\0' a"
    ended = json.loads(installation.cli("run", "-d", "--json", "--", "sh", "-c", line).stdout)["id"]
    installation.cli("wait", ended)
    with subprocess.Popen(
        installation.argv("logs", "--grep", COSTLY, ended), cwd=installation.work, env=installation.env(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as search:
        # It computes: nothing else runs in the daemon.
        daemon = installation.daemon()
        until(lambda: busy_seconds(daemon.pid) > 1, 60, "the search")
        search.kill()
    installation.cli("shutdown", timeout=60)
    daemon.close()
    assert installation.cli("run", "--", "echo", "anew").stdout == b"anew\n"


def busy_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
