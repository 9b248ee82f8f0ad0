"""At the quota a start waits for a slot."""

import asyncio
import json
import re
import secrets
import signal
import subprocess
import time
import uuid

import pytest

from harness import until
from harness.installation import ProblemError
from harness.wire import RawMcpClient

pytestmark = pytest.mark.anyio

FINITE, OTHERS = 2, 2
WAITED = re.compile(r"\[waited \d+\.\d s for one of 2 places\]")


@pytest.fixture
def small_quota(make_installation):
    """An installation with a quota of two per session and per user."""
    installation = make_installation()
    directory = installation.dir / "config" / "ostler"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.toml").write_text(
        f"[quotas]\nfinite_per_session = {FINITE}\nothers_per_principal = {OTHERS}\n"
    )
    return installation


def minted():
    """A version 7 id of about now."""
    value = int(time.time() * 1000) << 80 | 7 << 76 | secrets.randbits(12) << 64
    return str(uuid.UUID(int=value | 2 << 62 | secrets.randbits(62)))


def start_body(installation, *argv, **more):
    program, *args = argv
    command = {"argv": {"program": program, "args": args}}
    return {"command": command, "cwd": str(installation.work), **more}


def queued(installation, start, session=None):
    """How a start waits; None where it does not."""
    try:
        return installation.rest("GET", f"/api/v1/starts/{start}", session=session)
    except ProblemError as refused:
        assert refused.status == 404, refused
        return None


def background(installation, *argv, session=None, **more):
    """A REST start in a thread of its own, and its id."""
    start = minted()
    body = start_body(installation, *argv, id=start, **more)
    waiting = asyncio.create_task(
        asyncio.to_thread(installation.rest, "POST", "/api/v1/executions", body, session)
    )
    return start, waiting


async def is_so(fact, what):
    await asyncio.to_thread(until, fact, 30, what)


async def waiting_starts(installation, count, session):
    """Waits until this many starts are queued: the number ahead of the next one."""
    for _ in range(200):
        probe, waiting = background(installation, "true", session=session, place_wait_ms=400)
        await is_so(lambda: waiting.done() or queued(installation, probe, session), "it waits")  # noqa: B023
        seen = queued(installation, probe, session)
        with pytest.raises(ProblemError):
            await waiting
        if seen and seen["ahead"] == count:
            return
    raise AssertionError(f"not {count} of them wait: {seen}")


async def full(agent):
    return [await agent.start("sleep", "300") for _ in range(FINITE)]


async def test_a_start_waits_its_turn_and_says_how_long(small_quota):
    async with small_quota.agent(session="s") as agent:
        running = await full(agent)
        start, first = background(small_quota, "sleep", "300", session="s")
        await is_so(lambda: queued(small_quota, start, "s"), "the first one waits")
        later, last = background(small_quota, "true", session="s")
        await is_so(lambda: (queued(small_quota, later, "s") or {}).get("ahead") == 1, "two wait")
        waiting = asyncio.create_task(agent.call("exec", command=["echo", "mine"], wait_ms=40000))
        await waiting_starts(small_quota, 3, "s")
        position = queued(small_quota, start, "s")
        assert position["ahead"] == 0 and position["limit"] == FINITE, position
        assert [it["id"] for it in position["holders"]] == running, position
        assert position["holders"][0]["command"] == "sleep 300", position
        await agent.stop(running[0], force=True)
        info = await first
        assert info["queued"]["limit"] == FINITE and info["queued"]["waited"] > 0, info
        assert not waiting.done() and not last.done(), "nobody overtakes"
        await agent.stop(running[1], force=True)
        reply = await waiting
        assert "mine" in reply.text and WAITED.search(reply.text), reply
        assert (await last)["queued"]["limit"] == FINITE
        free = await agent.call("exec", command=["true"])
        assert "waited" not in free.text, free


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("command_execute", {"command": "true", "timeout": 1}),
        ("exec", {"command": ["true"], "wait_ms": 700}),
        ("exec", {"command": ["true"], "wait_ms": 0}),
        ("execute_shell", {"command": "true", "run_mode": "sync", "timeout": 1}),
    ],
)
async def test_after_its_own_wait_a_start_is_refused_and_the_holders_are_named(
    small_quota, tool, arguments
):
    args = ["--tools", "core,command,shell"]
    async with small_quota.agent(args=args) as agent:
        running = await full(agent)
        if tool == "command_execute":
            arguments = {"directory": agent.directory, **arguments}
        refused = await agent.call(tool, **arguments)
        assert refused.code == "quota_exceeded", refused
        assert all(f"{pid} (sleep 300)" in refused.text for pid in running), refused
        assert len(await agent.list(status="running")) == FINITE, "none was killed to make room"


async def test_a_cancelled_call_leaves_the_queue(small_quota):
    async with small_quota.agent(session="s") as agent:
        running = await full(agent)
        call = asyncio.create_task(agent.call("exec", command=["touch", "never"], wait_ms=40000))
        await waiting_starts(small_quota, 1, "s")
        start, other = background(small_quota, "true", session="s")
        await is_so(lambda: (queued(small_quota, start, "s") or {}).get("ahead") == 1, "two wait")
        call.cancel()
        await is_so(lambda: (queued(small_quota, start, "s") or {}).get("ahead") == 0, "one waits")
        await agent.stop(running[0], force=True)
        await other
        assert not (small_quota.work / "never").exists()


def test_a_connection_that_closes_leaves_the_queue(small_quota):
    """A queued start whose client goes away is not started."""
    with RawMcpClient(small_quota) as wire:
        wire.shake()
        for _ in range(FINITE):
            assert "running" in wire.text(wire.call("exec", command=["sleep", "300"], wait_ms=0))
        call = wire.call("exec", command=["touch", "never"], wait_ms=40000)
        # Answered after the call above was read.
        wire.answer(wire.ask("ping"))
        wire.close_input()
        until(lambda: json.dumps(call) in wire.answers or wire.ended, 30, "the end")
        assert wire.process.wait(30) == 0
    until(lambda: small_quota.executions() == [], 20, "the cleaning of the session")
    assert not (small_quota.work / "never").exists()


async def test_the_same_start_sent_again_waits_once(small_quota):
    async with small_quota.agent(session="s") as agent:
        running = await full(agent)
        start, first = background(small_quota, "sleep", "300", session="s")
        await is_so(lambda: queued(small_quota, start, "s"), "it waits")
        body = start_body(small_quota, "sleep", "300", id=start)
        again = asyncio.create_task(
            asyncio.to_thread(small_quota.rest, "POST", "/api/v1/executions", body, "s")
        )
        other, last = background(small_quota, "true", session="s")
        await is_so(lambda: (queued(small_quota, other, "s") or {}).get("ahead") == 1, "two wait")
        await agent.stop(running[0], force=True)
        assert (await first)["uuid"] == (await again)["uuid"] == start
        await agent.stop(running[1], force=True)
        await last


async def test_a_start_waits_on_under_the_next_daemon(small_quota):
    async with small_quota.agent(session="s") as agent:
        running = await full(agent)
        call = asyncio.create_task(
            agent.call("exec", command=["sh", "-c", "echo ran >> once"], wait_ms=40000)
        )
        await waiting_starts(small_quota, 1, "s")
        start, other = background(small_quota, "true", session="s")
        await is_so(lambda: (queued(small_quota, start, "s") or {}).get("ahead") == 1, "two wait")
        await asyncio.to_thread(small_quota.kill_daemon)
        with pytest.raises(Exception):  # noqa: B017 - the connection broke, in whatever words
            await other
        await agent.stop(running[0], force=True)
        reply = await call
        assert not reply.is_error, reply
        assert (small_quota.work / "once").read_text() == "ran\n"


def at_prompt(installation, *args, **options):
    return subprocess.Popen(
        installation.argv(*args), cwd=installation.work, env=installation.env(), text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )


def filled(installation):
    return [installation.cli("run", "-d", "sleep", "300").stdout.decode().strip() for _ in range(OTHERS)]


@pytest.mark.parametrize("detached", [False, True])
def test_at_the_prompt_a_start_says_that_it_waits(small_quota, detached):
    running = filled(small_quota)
    words = ["-d", "true"] if detached else ["echo", "ran"]
    run = at_prompt(small_quota, "run", *words)
    line = run.stderr.readline()
    assert "waiting for one of 2 places" in line and f"{running[0]} (sleep 300)" in line, line
    small_quota.cli("stop", "--force", running[0])
    out, err = run.communicate(timeout=30)
    assert run.returncode == 0, (out, err)
    assert "waiting for" not in err, "once"
    assert "s for one of 2 places" in err, err
    assert detached or out == "ran\n"


def test_ctrl_c_leaves_the_queue(small_quota):
    filled(small_quota)
    run = at_prompt(small_quota, "run", "touch", "never")
    assert "waiting for" in run.stderr.readline()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    assert run.returncode == 130
    running = small_quota.json("ps")
    start = minted()
    with pytest.raises(ProblemError) as refused:
        small_quota.rest("POST", "/api/v1/executions", start_body(small_quota, "true", id=start, place_wait_ms=0))
    assert refused.value.problem["code"] == "quota_exceeded", refused.value
    small_quota.cli("stop", "--force", running[0]["id"])
    small_quota.cli("run", "true")
    assert not (small_quota.work / "never").exists()


async def test_a_shutdown_answers_who_waits(small_quota):
    await asyncio.to_thread(filled, small_quota)
    start, waiting = background(small_quota, "true")
    await is_so(lambda: queued(small_quota, start), "it waits")
    await asyncio.to_thread(small_quota.cli, "shutdown")
    with pytest.raises(ProblemError) as refused:
        await waiting
    assert refused.value.problem["code"] == "initialization_error", refused.value
    # The next daemon counts the running executions against the quota.
    assert len(small_quota.json("ps")) == OTHERS


def test_terminals_and_services_of_a_user_count_together(small_quota):
    # The command line is outside sessions, so that its commands count, too.
    small_quota.cli("service", "start", "--name", "one", "--no-wait", "--", "sleep", "300")
    small_quota.rest("POST", "/api/v1/executions", start_body(small_quota, "sh", pty={"cols": 80, "rows": 24}))
    refused = small_quota.cli("service", "start", "--name", "two", "--no-wait", "--", "sleep", "300", check=False, timeout=120)
    text = refused.stderr.decode()
    assert refused.returncode == 75 and "quota_exceeded" in text and "one" in text, refused
    assert small_quota.json("config", "explain", "quotas.others_per_principal"), "it is a setting"
    small_quota.cli("service", "stop", "one")
    small_quota.cli("service", "start", "--name", "two", "--no-wait", "--", "sleep", "300")
