"""The limit on open files: one descriptor for each execution, a specific refusal at the limit, and commands that
see the limit of their caller."""

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


def begin(installation, soft, hard):
    """Starts the daemon under these limits; it, held."""
    installation.cli("ps", preexec_fn=limited(soft, hard))
    return installation.daemon()


def start(installation, *words):
    program, *args = words
    body = {"command": {"argv": {"program": program, "args": args}}, "cwd": "/"}
    return installation.rest("POST", "/api/v1/executions", body)


def end(installation, ids):
    """Stops them all, one after another: each request takes descriptors."""
    for id in ids:
        installation.rest("POST", f"/api/v1/executions/{id}/stop", {"force": True})


def crowd(count, ask):
    """This many clients at the same time, each on its own connection; returns the responses."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: ask(), range(count)))


def at_the_limit(installation, limit, most):
    """A daemon with as many executions as it takes; it, held, and their ids."""
    daemon = begin(installation, limit, limit)
    ids, refused = fill(installation, most)
    assert refused is not None and refused.code == "quota_exceeded", refused
    return daemon, ids


#: The file of the ledger and the three of the history's database, which a daemon opens with the first change.
OPENED_LATER = 4


def open_files(daemon):
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def fill(installation, most):
    """Starts sleeping executions until one is refused; their ids, and the refusal."""
    ids = []
    with contextlib.suppress(IndexError):
        while len(ids) < most:
            try:
                ids.append(start(installation, "sleep", "1000")["id"])
            except ProblemError as refused:
                return ids, refused
    return ids, None


def holds(installation, count, limit):
    """`count` executions run at the same time under a limit of `limit` open files."""
    daemon = begin(installation, limit, limit)
    idle = open_files(daemon)
    ids, refused = fill(installation, count)
    assert len(ids) == count, f"{len(ids)} of {count}: {refused}, {refused and refused.problem}"
    # The shims that were kept ready were open before.
    assert open_files(daemon) <= idle + count, "one descriptor each"
    assert len(installation.rest("GET", "/api/v1/executions?status=running&limit=5000")["executions"]) == count
    daemon.close()
    return ids


async def test_three_hundred_run_within_three_hundred_and_thirty_files(installation):
    holds(installation, 300, 330)


@pytest.mark.full
@pytest.mark.limit(600)
async def test_a_thousand_run_within_1024_files(installation):
    ids = holds(installation, 1000, 1024)
    assert start_refused_or_not(installation) in ("started", "quota_exceeded")
    assert installation.rest("GET", f"/api/v1/executions/{ids[0]}")["status"] == "running"


def start_refused_or_not(installation):
    try:
        start(installation, "true")
    except ProblemError as refused:
        return refused.code
    return "started"


@pytest.mark.limit(180)
async def test_at_the_limit_a_start_is_refused_by_name_and_all_else_goes_on(each_installation):
    installation = each_installation
    begin(installation, 64, 64).close()
    ids, refused = fill(installation, 64)
    assert refused is not None and 30 <= len(ids) < 60, len(ids)
    assert refused.code == "quota_exceeded", refused.problem
    problem = str(refused.problem)
    assert "RLIMIT_NOFILE" in problem and "64" in problem and "ulimit -Hn" in problem, problem
    # Everything else continues.
    assert installation.rest("GET", "/api/v1/health")["pid"]
    assert installation.json("info", ids[0])["status"] == "running"
    assert installation.cli("logs", ids[0], "--raw").stdout == b""
    installation.cli("stop", "--force", ids[0])
    assert installation.cli("run", "--", "echo", "room").stdout == b"room\n"
    async with installation.agent() as agent:
        assert len(await agent.list()) >= 0
    # The next daemon finds all of them, as many as they are.
    installation.kill_daemon()
    installation.cli("ps", preexec_fn=limited(64, 64))
    running = installation.rest("GET", "/api/v1/executions?status=running&limit=500")["executions"]
    assert {one["id"] for one in running} >= {*ids[1:]}, (len(running), len(ids))
    end(installation, ids[1:])


def restarted(installation, limit):
    """The next daemon, which finds what runs; held."""
    installation.kill_daemon()
    installation.cli("ps", preexec_fn=limited(limit, limit))
    return installation.daemon()


@pytest.mark.parametrize("limit", [64, pytest.param(1024, marks=[pytest.mark.full, pytest.mark.limit(600)])])
async def test_thirty_two_connections_at_the_limit_are_all_answered(each_installation, limit):
    installation = each_installation
    daemon, ids = at_the_limit(installation, limit, limit)
    daemon.close()
    installation.cli("stop", "--force", ids.pop())
    execution = installation.cli("run", "-d", "--", "sh", "-c", "echo said; sleep 1000").stdout.decode().strip()
    until(lambda: installation.cli("logs", "--raw", execution).stdout == b"said\n", 10, "its output")
    for _ in range(2):
        crowded(installation, ids, execution)
        restarted(installation, limit).close()


def crowded(installation, ids, execution):
    """Views, lists, reads of output and stops of many clients at the same time."""
    show = f"/api/v1/executions/{ids[0]}"
    lines = f"/api/v1/executions/{execution}/output"
    assert crowd(32, lambda: installation.rest("GET", show)["status"]) == ["running"] * 32
    pages = crowd(32, lambda: installation.rest("GET", lines))
    assert all("said" in str(one) for one in pages), pages
    raw = crowd(32, lambda: installation.rest("GET", f"/api/v1/executions/{execution}/raw", raw=True))
    assert all(b"said" in one and b"problem" not in one for one in raw), raw
    force = iter([ids.pop() for _ in range(12)])
    stops = crowd(12, lambda: installation.rest("POST", f"/api/v1/executions/{next(force)}/stop", {"force": True})["status"])
    assert stops == ["terminated"] * 12, stops


async def test_mcp_clients_at_the_limit_are_served_in_turn(installation):
    daemon, _ = at_the_limit(installation, 64, 64)
    answered = []

    async def one():
        async with installation.agent() as agent:
            answered.append(len(await agent.list()))

    with anyio.fail_after(50):
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)
    assert len(answered) == 8
    daemon.close()


async def test_silent_connections_at_the_limit_delay_no_other(installation):
    daemon, ids = at_the_limit(installation, 64, 64)
    daemon.close()
    calls = [installation.connect() for _ in range(8)]
    for call in calls:
        call.connect()
    # Behind all silent connections.
    assert crowd(2, lambda: installation.rest("GET", f"/api/v1/executions/{ids[0]}")["status"]) == ["running"] * 2
    for call in calls:
        call.close()
    end(installation, ids)


async def test_what_lasts_is_refused_by_name_where_it_would_lock_others_out(installation):
    daemon, ids = at_the_limit(installation, 64, 64)
    follow = f"/api/v1/executions/{ids[0]}/raw?follow=true"
    following = [installation.connect() for _ in range(8)]
    for call in following:
        call.request("GET", follow, headers={"Host": "localhost"})
    statuses = [call.getresponse().status for call in following]
    assert set(statuses) <= {200, 429} and 429 in statuses, statuses
    # A forced stop gets through all the same.
    end(installation, ids[1:])
    for call in following:
        call.close()
    end(installation, ids[:1])
    daemon.close()


@pytest.mark.parametrize("how", ["request", "signal"])
async def test_a_daemon_at_the_limit_ends_on_request(installation, how):
    daemon, ids = at_the_limit(installation, 64, 64)
    calls = [installation.connect() for _ in range(8)]
    for call in calls:
        call.connect()
    if how == "request":
        installation.rest("POST", "/api/v1/shutdown")
    else:
        daemon.kill(signal.SIGTERM)
    assert daemon.gone(10), "it goes on"
    for call in calls:
        call.close()
    daemon.close()
    # The next one finds what runs.
    installation.cli("ps", preexec_fn=limited(64, 64))
    end(installation, ids)


@pytest.mark.limit(120)
async def test_recovered_executions_take_one_descriptor_each(each_installation):
    installation = each_installation
    installation.cli("ps")
    idle = installation.daemon()
    before = open_files(idle)
    idle.close()
    ids, refused = fill(installation, 100)
    assert refused is None, refused.problem
    started = installation.daemon()
    until(lambda: open_files(started) <= before + len(ids) + OPENED_LATER, 30, "one descriptor each")
    started.close()
    installation.kill_daemon()
    installation.cli("ps")
    recovered = installation.daemon()
    running = installation.rest("GET", "/api/v1/executions?status=running&limit=500")["executions"]
    assert len(running) == len(ids)
    until(lambda: open_files(recovered) <= before + len(ids) + OPENED_LATER, 30, "one descriptor each")
    recovered.close()
    end(installation, ids)


async def test_ended_executions_give_their_descriptors_to_those_who_wait(installation):
    daemon, ids = at_the_limit(installation, 64, 64)
    daemon.close()
    recovered = restarted(installation, 64)
    end(installation, ids)
    # Their shims are idle now, and kept only until their descriptors are needed.
    assert crowd(32, lambda: installation.rest("GET", "/api/v1/health")["pid"]) == [recovered.pid] * 32
    again, refused = fill(installation, len(ids))
    assert refused is None and len(again) == len(ids)
    recovered.close()
    end(installation, again)


async def test_a_running_proxy_keeps_its_session_at_the_limit(installation):
    begin(installation, 64, 64).close()
    async with installation.agent() as agent:
        own = await agent.start_sh("sleep 1000")
        ids, refused = fill(installation, 64)
        assert refused is not None
        restarted(installation, 64).close()
        assert installation.json("info", ids[0])["status"] == "running"
        assert installation.json("info", own)["status"] == "running"
        end(installation, ids)


async def test_connections_beyond_the_limit_do_not_end_the_listening(installation):
    begin(installation, 64, 64).close()
    calls = [installation.connect() for _ in range(100)]
    for call in calls:
        with contextlib.suppress(OSError):
            call.connect()
    for call in calls:
        call.close()

    def answers():
        with contextlib.suppress(OSError, ValueError):
            return installation.rest("GET", "/api/v1/health")["pid"]

    until(answers, 10, "an answer")
    async with installation.agent() as agent:
        assert await agent.list() == []


async def test_a_small_soft_limit_is_raised_and_commands_get_it_back(each_installation):
    installation = each_installation
    daemon = begin(installation, 64, 20_000)
    ids, refused = fill(installation, 80)
    assert refused is None, refused.problem
    assert len(ids) == 80
    daemon.close()
    limits = ["sh", "-c", "ulimit -Sn; ulimit -Hn"]
    assert installation.cli("run", "--", *limits).stdout.split() == [b"64", b"20000"]
    # A restarted zygote gives it back too.
    keeper = next(pid for pid in installation.ours() if procs.comm(pid) == "ostler-keeper")
    procs.ProcessHandle(keeper).kill()
    until(lambda: not procs.alive(keeper), 5, "its end")
    for _ in range(6):
        assert installation.cli("run", "--", *limits).stdout.split() == [b"64", b"20000"]
    assert installation.cli("run", "--isolation", "medium", "--files", "32", "--", *limits).stdout.split() == [b"32", b"32"]
    end(installation, ids)
