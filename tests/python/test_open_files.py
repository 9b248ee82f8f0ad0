"""The limit on open files: one descriptor for each execution, a named refusal at the limit, and
commands that see the limit their caller had."""

import concurrent.futures
import contextlib
import os
import resource
import signal

import anyio
import pytest

from harness import procs, until
from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


def limited(soft, hard):
    """What a child does before it becomes `ostler`: the daemon it starts inherits it."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def begin(place, soft, hard):
    """Starts the daemon under these limits; it, held."""
    place.cli("ps", preexec_fn=limited(soft, hard))
    return place.daemon()


def start(place, *words):
    program, *args = words
    body = {"command": {"argv": {"program": program, "args": args}}, "cwd": "/"}
    return place.rest("POST", "/api/v1/executions", body)


def end(place, ids):
    """Stops them all, one after another: each request takes descriptors."""
    for id in ids:
        place.rest("POST", f"/api/v1/executions/{id}/stop", {"force": True})


def crowd(count, ask):
    """So many clients at the same time, each on a connection of its own; what each was answered."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: ask(), range(count)))


def at_the_limit(place, limit, most):
    """A daemon with as many executions as it takes; it, held, and their ids."""
    daemon = begin(place, limit, limit)
    ids, refused = fill(place, most)
    assert refused is not None and refused.code == "quota_exceeded", refused
    return daemon, ids


def open_files(daemon):
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def fill(place, most):
    """Starts sleeping executions until one is refused; their ids, and the refusal."""
    ids = []
    with contextlib.suppress(IndexError):
        while len(ids) < most:
            try:
                ids.append(start(place, "sleep", "1000")["id"])
            except ProblemError as refused:
                return ids, refused
    return ids, None


def holds(place, count, limit):
    """`count` executions run at the same time under a limit of `limit` open files."""
    daemon = begin(place, limit, limit)
    idle = open_files(daemon)
    ids, refused = fill(place, count)
    assert len(ids) == count, f"{len(ids)} of {count}: {refused}, {refused and refused.problem}"
    # The shims that were kept ready were open before.
    assert open_files(daemon) <= idle + count, "one descriptor each"
    assert len(place.rest("GET", "/api/v1/executions?status=running&limit=5000")["executions"]) == count
    daemon.close()
    return ids


async def test_three_hundred_run_within_three_hundred_and_thirty_files(place):
    holds(place, 300, 330)


@pytest.mark.full
@pytest.mark.limit(600)
async def test_a_thousand_run_within_1024_files(place):
    ids = holds(place, 1000, 1024)
    assert start_refused_or_not(place) in ("started", "quota_exceeded")
    assert place.rest("GET", f"/api/v1/executions/{ids[0]}")["status"] == "running"


def start_refused_or_not(place):
    try:
        start(place, "true")
    except ProblemError as refused:
        return refused.code
    return "started"


@pytest.mark.limit(180)
async def test_at_the_limit_a_start_is_refused_by_name_and_all_else_goes_on(any_place):
    place = any_place
    begin(place, 64, 64).close()
    ids, refused = fill(place, 64)
    assert refused is not None and 30 <= len(ids) < 60, len(ids)
    assert refused.code == "quota_exceeded", refused.problem
    told = str(refused.problem)
    assert "RLIMIT_NOFILE" in told and "64" in told and str(len(ids)) in told and "ulimit -Hn" in told, told
    # Everything else goes on.
    assert place.rest("GET", "/api/v1/health")["pid"]
    assert place.json("info", ids[0])["status"] == "running"
    assert place.cli("logs", ids[0], "--raw").stdout == b""
    place.cli("stop", "--force", ids[0])
    assert place.cli("run", "--", "echo", "room").stdout == b"room\n"
    async with place.agent() as agent:
        assert len(await agent.list()) >= 0
    # The next daemon finds all of them, as many as they are.
    place.kill_daemon()
    place.cli("ps", preexec_fn=limited(64, 64))
    running = place.rest("GET", "/api/v1/executions?status=running&limit=500")["executions"]
    assert {one["id"] for one in running} >= {*ids[1:]}, (len(running), len(ids))
    end(place, ids[1:])


def restarted(place, limit):
    """The next daemon, which finds what runs; held."""
    place.kill_daemon()
    place.cli("ps", preexec_fn=limited(limit, limit))
    return place.daemon()


@pytest.mark.parametrize("limit", [64, pytest.param(1024, marks=[pytest.mark.full, pytest.mark.limit(600)])])
async def test_thirty_two_connections_at_the_limit_are_all_answered(any_place, limit):
    place = any_place
    daemon, ids = at_the_limit(place, limit, limit)
    daemon.close()
    place.cli("stop", "--force", ids.pop())
    said = place.cli("run", "-d", "--", "sh", "-c", "echo said; sleep 1000").stdout.decode().strip()
    until(lambda: place.cli("logs", "--raw", said).stdout == b"said\n", 10, "its output")
    for _ in range(2):
        crowded(place, ids, said)
        restarted(place, limit).close()


def crowded(place, ids, said):
    """Looks, lists, readings of output and stops of many clients at the same time."""
    show = f"/api/v1/executions/{ids[0]}"
    lines = f"/api/v1/executions/{said}/output"
    assert crowd(32, lambda: place.rest("GET", show)["status"]) == ["running"] * 32
    heard = crowd(32, lambda: place.rest("GET", lines))
    assert all("said" in str(one) for one in heard), heard
    raw = crowd(32, lambda: place.rest("GET", f"/api/v1/executions/{said}/raw", raw=True))
    assert all(b"said" in one and b"problem" not in one for one in raw), raw
    force = iter([ids.pop() for _ in range(12)])
    stops = crowd(12, lambda: place.rest("POST", f"/api/v1/executions/{next(force)}/stop", {"force": True})["status"])
    assert stops == ["terminated"] * 12, stops


async def test_mcp_clients_at_the_limit_are_served_in_turn(place):
    daemon, _ = at_the_limit(place, 64, 64)
    answered = []

    async def one():
        async with place.agent() as agent:
            answered.append(len(await agent.list()))

    with anyio.fail_after(50):
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)
    assert len(answered) == 8
    daemon.close()


async def test_silent_connections_at_the_limit_hold_nobody_up(place):
    daemon, ids = at_the_limit(place, 64, 64)
    daemon.close()
    calls = [place.connect() for _ in range(8)]
    for call in calls:
        call.connect()
    # Behind all of those that say nothing.
    assert crowd(2, lambda: place.rest("GET", f"/api/v1/executions/{ids[0]}")["status"]) == ["running"] * 2
    for call in calls:
        call.close()
    end(place, ids)


async def test_what_lasts_is_refused_by_name_where_it_would_lock_others_out(place):
    daemon, ids = at_the_limit(place, 64, 64)
    follow = f"/api/v1/executions/{ids[0]}/raw?follow=true"
    following = [place.connect() for _ in range(8)]
    for call in following:
        call.request("GET", follow, headers={"Host": "localhost"})
    statuses = [call.getresponse().status for call in following]
    assert set(statuses) <= {200, 429} and 429 in statuses, statuses
    # A forced stop gets through all the same.
    end(place, ids[1:])
    for call in following:
        call.close()
    end(place, ids[:1])
    daemon.close()


@pytest.mark.parametrize("how", ["request", "signal"])
async def test_a_daemon_at_the_limit_ends_when_it_is_told_to(place, how):
    daemon, ids = at_the_limit(place, 64, 64)
    calls = [place.connect() for _ in range(8)]
    for call in calls:
        call.connect()
    if how == "request":
        place.rest("POST", "/api/v1/shutdown")
    else:
        daemon.kill(signal.SIGTERM)
    assert daemon.gone(10), "it goes on"
    for call in calls:
        call.close()
    daemon.close()
    # The next one finds what runs.
    place.cli("ps", preexec_fn=limited(64, 64))
    end(place, ids)


@pytest.mark.limit(120)
async def test_recovered_executions_take_one_descriptor_each(any_place):
    place = any_place
    place.cli("ps")
    idle = place.daemon()
    before = open_files(idle)
    idle.close()
    ids, refused = fill(place, 100)
    assert refused is None, refused.problem
    started = place.daemon()
    # And the ledger's file, once it is written to.
    until(lambda: open_files(started) <= before + len(ids) + 1, 5, "one descriptor each")
    started.close()
    place.kill_daemon()
    place.cli("ps")
    recovered = place.daemon()
    running = place.rest("GET", "/api/v1/executions?status=running&limit=500")["executions"]
    assert len(running) == len(ids)
    until(lambda: open_files(recovered) <= before + len(ids) + 1, 5, "one descriptor each")
    recovered.close()
    end(place, ids)


async def test_ended_executions_give_their_descriptors_to_those_who_wait(place):
    daemon, ids = at_the_limit(place, 64, 64)
    daemon.close()
    recovered = restarted(place, 64)
    end(place, ids)
    # Their shims are idle now, and kept only as long as nobody needs their descriptors.
    assert crowd(32, lambda: place.rest("GET", "/api/v1/health")["pid"]) == [recovered.pid] * 32
    again, refused = fill(place, len(ids))
    assert refused is None and len(again) == len(ids)
    recovered.close()
    end(place, again)


async def test_a_front_that_lives_keeps_its_session_at_the_limit(place):
    begin(place, 64, 64).close()
    async with place.agent() as agent:
        own = await agent.start_sh("sleep 1000")
        ids, refused = fill(place, 64)
        assert refused is not None
        restarted(place, 64).close()
        assert place.json("info", ids[0])["status"] == "running"
        assert place.json("info", own)["status"] == "running"
        end(place, ids)


async def test_connections_beyond_the_limit_do_not_end_the_listening(place):
    begin(place, 64, 64).close()
    calls = [place.connect() for _ in range(100)]
    for call in calls:
        with contextlib.suppress(OSError):
            call.connect()
    for call in calls:
        call.close()

    def answers():
        with contextlib.suppress(OSError, ValueError):
            return place.rest("GET", "/api/v1/health")["pid"]

    until(answers, 10, "an answer")
    async with place.agent() as agent:
        assert await agent.list() == []


async def test_a_small_soft_limit_is_raised_and_commands_get_it_back(any_place):
    place = any_place
    daemon = begin(place, 64, 20_000)
    ids, refused = fill(place, 80)
    assert refused is None, refused.problem
    assert len(ids) == 80
    daemon.close()
    limits = ["sh", "-c", "ulimit -Sn; ulimit -Hn"]
    assert place.cli("run", "--", *limits).stdout.split() == [b"64", b"20000"]
    # A keeper that was started anew gives it back too.
    keeper = next(pid for pid in place.ours() if procs.comm(pid) == "ostler-keeper")
    procs.ProcessHandle(keeper).kill()
    until(lambda: not procs.alive(keeper), 5, "its end")
    for _ in range(6):
        assert place.cli("run", "--", *limits).stdout.split() == [b"64", b"20000"]
    assert place.cli("run", "--isolation", "medium", "--files", "32", "--", *limits).stdout.split() == [b"32", b"32"]
    end(place, ids)
