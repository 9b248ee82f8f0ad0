"""At the quota a start waits its turn (D6)."""

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
def narrow(make_place):
    """A place whose sessions, and whose user, run two at a time."""
    place = make_place()
    directory = place.dir / "config" / "ostler"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.toml").write_text(
        f"[quotas]\nfinite_per_session = {FINITE}\nothers_per_principal = {OTHERS}\n"
    )
    return place


def minted():
    """A version 7 id of about now."""
    value = int(time.time() * 1000) << 80 | 7 << 76 | secrets.randbits(12) << 64
    return str(uuid.UUID(int=value | 2 << 62 | secrets.randbits(62)))


def start_body(place, *argv, **more):
    program, *args = argv
    command = {"argv": {"program": program, "args": args}}
    return {"command": command, "cwd": str(place.work), **more}


def queued(place, start, session=None):
    """How a start waits; None where it does not."""
    try:
        return place.rest("GET", f"/api/v1/starts/{start}", session=session)
    except ProblemError as refused:
        assert refused.status == 404, refused
        return None


def background(place, *argv, session=None, **more):
    """A REST start in a thread of its own, and its id."""
    start = minted()
    body = start_body(place, *argv, id=start, **more)
    asked = asyncio.create_task(
        asyncio.to_thread(place.rest, "POST", "/api/v1/executions", body, session)
    )
    return start, asked


async def is_so(fact, what):
    await asyncio.to_thread(until, fact, 30, what)


async def waiting_starts(place, count, session):
    """Until so many starts wait: as many are before one that comes behind them."""
    for _ in range(200):
        probe, asked = background(place, "true", session=session, place_wait_ms=400)
        await is_so(lambda: asked.done() or queued(place, probe, session), "it waits")  # noqa: B023
        seen = queued(place, probe, session)
        with pytest.raises(ProblemError):
            await asked
        if seen and seen["ahead"] == count:
            return
    raise AssertionError(f"not {count} of them wait: {seen}")


async def full(agent):
    return [await agent.start("sleep", "300") for _ in range(FINITE)]


async def test_a_start_waits_its_turn_and_says_how_long(narrow):
    async with narrow.agent(session="s") as agent:
        held = await full(agent)
        start, first = background(narrow, "sleep", "300", session="s")
        await is_so(lambda: queued(narrow, start, "s"), "the first one waits")
        later, last = background(narrow, "true", session="s")
        await is_so(lambda: (queued(narrow, later, "s") or {}).get("ahead") == 1, "two wait")
        waiting = asyncio.create_task(agent.call("exec", command=["echo", "mine"], wait_ms=40000))
        await waiting_starts(narrow, 3, "s")
        told = queued(narrow, start, "s")
        assert told["ahead"] == 0 and told["limit"] == FINITE, told
        assert [it["id"] for it in told["holders"]] == held, told
        assert told["holders"][0]["command"] == "sleep 300", told
        await agent.stop(held[0], force=True)
        info = await first
        assert info["queued"]["limit"] == FINITE and info["queued"]["waited"] > 0, info
        assert not waiting.done() and not last.done(), "nobody overtakes"
        await agent.stop(held[1], force=True)
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
    narrow, tool, arguments
):
    args = ["--tools", "core,command,shell"]
    async with narrow.agent(args=args) as agent:
        held = await full(agent)
        if tool == "command_execute":
            arguments = {"directory": agent.directory, **arguments}
        refused = await agent.call(tool, **arguments)
        assert refused.code == "quota_exceeded", refused
        assert all(f"{pid} (sleep 300)" in refused.text for pid in held), refused
        assert len(await agent.list(status="running")) == FINITE, "none was killed to make room"


async def test_a_cancelled_call_leaves_the_queue(narrow):
    async with narrow.agent(session="s") as agent:
        held = await full(agent)
        call = asyncio.create_task(agent.call("exec", command=["touch", "never"], wait_ms=40000))
        await waiting_starts(narrow, 1, "s")
        start, other = background(narrow, "true", session="s")
        await is_so(lambda: (queued(narrow, start, "s") or {}).get("ahead") == 1, "two wait")
        call.cancel()
        await is_so(lambda: (queued(narrow, start, "s") or {}).get("ahead") == 0, "one waits")
        await agent.stop(held[0], force=True)
        await other
        assert not (narrow.work / "never").exists()


def test_a_connection_that_closes_leaves_the_queue(narrow):
    """What waits when its client goes is started for nobody."""
    with RawMcpClient(narrow) as wire:
        wire.shake()
        for _ in range(FINITE):
            assert "running" in wire.text(wire.call("exec", command=["sleep", "300"], wait_ms=0))
        call = wire.call("exec", command=["touch", "never"], wait_ms=40000)
        # Answered after the call above was read.
        wire.answer(wire.ask("ping"))
        wire.close_input()
        until(lambda: json.dumps(call) in wire.answers or wire.ended, 30, "the end")
        assert wire.process.wait(30) == 0
    until(lambda: narrow.executions() == [], 20, "the cleaning of the session")
    assert not (narrow.work / "never").exists()


async def test_the_same_start_sent_again_waits_once(narrow):
    async with narrow.agent(session="s") as agent:
        held = await full(agent)
        start, first = background(narrow, "sleep", "300", session="s")
        await is_so(lambda: queued(narrow, start, "s"), "it waits")
        body = start_body(narrow, "sleep", "300", id=start)
        again = asyncio.create_task(
            asyncio.to_thread(narrow.rest, "POST", "/api/v1/executions", body, "s")
        )
        other, last = background(narrow, "true", session="s")
        await is_so(lambda: (queued(narrow, other, "s") or {}).get("ahead") == 1, "two wait")
        await agent.stop(held[0], force=True)
        assert (await first)["uuid"] == (await again)["uuid"] == start
        await agent.stop(held[1], force=True)
        await last


async def test_a_start_waits_on_under_the_next_daemon(narrow):
    async with narrow.agent(session="s") as agent:
        held = await full(agent)
        call = asyncio.create_task(
            agent.call("exec", command=["sh", "-c", "echo ran >> once"], wait_ms=40000)
        )
        await waiting_starts(narrow, 1, "s")
        start, other = background(narrow, "true", session="s")
        await is_so(lambda: (queued(narrow, start, "s") or {}).get("ahead") == 1, "two wait")
        await asyncio.to_thread(narrow.kill_daemon)
        with pytest.raises(Exception):  # noqa: B017 - the connection broke, in whatever words
            await other
        await agent.stop(held[0], force=True)
        reply = await call
        assert not reply.is_error, reply
        assert (narrow.work / "once").read_text() == "ran\n"


def at_prompt(place, *args, **options):
    return subprocess.Popen(
        place.argv(*args), cwd=place.work, env=place.env(), text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )


def filled(place):
    return [place.cli("run", "-d", "sleep", "300").stdout.decode().strip() for _ in range(OTHERS)]


@pytest.mark.parametrize("detached", [False, True])
def test_at_the_prompt_a_start_says_that_it_waits(narrow, detached):
    held = filled(narrow)
    words = ["-d", "true"] if detached else ["echo", "ran"]
    run = at_prompt(narrow, "run", *words)
    line = run.stderr.readline()
    assert "waiting for one of 2 places" in line and f"{held[0]} (sleep 300)" in line, line
    narrow.cli("stop", "--force", held[0])
    out, err = run.communicate(timeout=30)
    assert run.returncode == 0, (out, err)
    assert "waiting for" not in err, "once"
    assert "s for one of 2 places" in err, err
    assert detached or out == "ran\n"


def test_ctrl_c_leaves_the_queue(narrow):
    filled(narrow)
    run = at_prompt(narrow, "run", "touch", "never")
    assert "waiting for" in run.stderr.readline()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    assert run.returncode == 130
    held = narrow.json("ps")
    start = minted()
    with pytest.raises(ProblemError) as refused:
        narrow.rest("POST", "/api/v1/executions", start_body(narrow, "true", id=start, place_wait_ms=0))
    assert refused.value.problem["code"] == "quota_exceeded", refused.value
    narrow.cli("stop", "--force", held[0]["id"])
    narrow.cli("run", "true")
    assert not (narrow.work / "never").exists()


async def test_a_shutdown_answers_who_waits(narrow):
    await asyncio.to_thread(filled, narrow)
    start, waiting = background(narrow, "true")
    await is_so(lambda: queued(narrow, start), "it waits")
    await asyncio.to_thread(narrow.cli, "shutdown")
    with pytest.raises(ProblemError) as refused:
        await waiting
    assert refused.value.problem["code"] == "initialization_error", refused.value
    # The next daemon finds those that hold the places.
    assert len(narrow.json("ps")) == OTHERS
