"""Idle means idle."""

import contextlib
import re
import subprocess
import time

import pytest

from harness import procs

pytestmark = pytest.mark.anyio

FOLLOWERS = 100
#: The aftermath of a hundred connections: threads of the runtime that helped out end after ten
#: seconds without work, and attaching a tracer interrupts every thread once.
SETTLE_SECONDS = 12
IDLE_SECONDS = 10
#: The execution that is followed is sampled once in ten seconds, perhaps twice within the time that is
#: traced. One call for each follower would be as many again.
SAMPLE_CALLS = 120
#: What a follower would cost: its connection is written or read.
CONNECTION_CALLS = ("send", "recv", "writev", "readv", "accept")


@pytest.mark.limit(90)
async def test_a_hundred_followers_of_silence_cost_no_system_call(installation, tmp_path):
    pid = installation.cli("run", "-d", "--", "sh", "-c", "echo up; exec sleep 300").stdout.decode().strip()
    daemon = installation.daemon()
    with contextlib.ExitStack() as stack:
        for _ in range(FOLLOWERS):
            follower = stack.enter_context(contextlib.closing(installation.connect()))
            follower.request("GET", f"/api/v1/executions/{pid}/raw?follow=true")
            answer = follower.getresponse()
            assert b"up" in answer.readline()
        calls = traced(daemon.pid, tmp_path / "trace")
    served = [call for call in calls if call.startswith(CONNECTION_CALLS)]
    assert served == [] and len(calls) < 2 * SAMPLE_CALLS, f"{len(calls)} system calls, for example {served[:5] or calls[:5]}"
    installation.cli("stop", pid)


def traced(pid, log):
    """System calls that begin after the tracer has settled."""
    tracer = subprocess.Popen(["strace", "-f", "-ttt", "-o", str(log), "-p", str(pid)], stderr=subprocess.PIPE)
    assert b"attached" in tracer.stderr.readline()
    begin = time.time()
    with contextlib.suppress(subprocess.TimeoutExpired):
        tracer.wait(SETTLE_SECONDS + IDLE_SECONDS)
    end = time.time()
    tracer.terminate()
    tracer.wait(10)
    tracer.stderr.close()
    calls = []
    for line in log.read_text().splitlines():
        match = re.match(r"\d+\s+(\d+\.\d+) (.*)", line)
        if match and begin + SETTLE_SECONDS < float(match[1]) < end and "detached" not in match[2]:
            calls.append(match[2])
    return calls


async def test_shims_of_silent_commands_do_not_wake_either(installation):
    ids = [installation.cli("run", "-d", "--", "sleep", "300").stdout.decode().strip() for _ in range(5)]
    shims = [p for p in installation.ours() if procs.comm(p) == "ostler-shim"]
    assert len(shims) >= 5
    before = {p: switches(p) for p in shims}
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(["sleep", "60"], timeout=3, check=False)
    assert {p: switches(p) for p in shims} == before
    for pid in ids:
        installation.cli("stop", pid)


def switches(pid):
    return int(procs.status(pid, "voluntary_ctxt_switches"))
