"""A hundred megabytes, a gigabyte: complete on disk, memory flat, tail and grep at once."""

import subprocess
import time

import pytest

from harness import procs

pytestmark = [pytest.mark.anyio, pytest.mark.serial]

MEGABYTE = 1_000_000
GROWTH_BYTES = 25 * MEGABYTE


def resident(pid):
    return int(procs.status(pid, "VmRSS") or 0) * 1024


def numbers_reaching(size):
    """The last number of a `seq` that prints about this many bytes, and how many it prints."""
    total, digits, last = 0, 1, 0
    while True:
        count = 9 * 10 ** (digits - 1)
        if total + count * (digits + 1) >= size:
            more = (size - total) // (digits + 1)
            return last + more, total + more * (digits + 1)
        total, last, digits = total + count * (digits + 1), last + count, digits + 1


async def flood(installation, size, seconds):
    last, size = numbers_reaching(size)
    async with installation.agent() as agent:
        await agent.execute("true")
        daemon = installation.daemon().pid
        before = resident(daemon)
        pid = await agent.start("seq", str(last))
        detail = await agent.ended(pid, installation, seconds)
        assert detail["status"] == "completed", detail
        info = installation.rest("GET", f"/api/v1/executions/{pid}")
        assert info["output_bytes"] == size, "every byte was kept"
        begin = time.monotonic()
        tail = await agent.lines(pid, tail=3)
        assert [line for line in tail if line.isdigit()] == [str(n) for n in range(last - 2, last + 1)]
        assert time.monotonic() - begin < 2
        begin = time.monotonic()
        found = await agent.lines(pid, grep=f"^{last // 2}$")
        assert str(last // 2) in found
        assert time.monotonic() - begin < max(5, size / (200 * MEGABYTE))
        assert resident(daemon) - before < GROWTH_BYTES, "the daemon's memory is flat"
        with subprocess.Popen(
            installation.argv("logs", pid, "--raw"), env=installation.env(), stdout=subprocess.PIPE,
        ) as reader, subprocess.Popen(["seq", str(last)], stdout=subprocess.PIPE) as oracle:
            same = subprocess.run(
                ["cmp", f"/dev/fd/{reader.stdout.fileno()}", f"/dev/fd/{oracle.stdout.fileno()}"],
                pass_fds=[reader.stdout.fileno(), oracle.stdout.fileno()], check=False,
            )
        assert same.returncode == 0, "what is read is what was printed"


@pytest.mark.limit(90)
async def test_a_hundred_megabytes(each_installation):
    await flood(each_installation, 100 * MEGABYTE, 40)


@pytest.mark.full
@pytest.mark.limit(600)
async def test_a_gigabyte(installation):
    await flood(installation, 1000 * MEGABYTE, 40)


async def test_a_line_without_an_end(installation):
    async with installation.agent() as agent:
        pid = await agent.start_sh("head -c 5000000 /dev/zero | tr '\\0' x")
        await agent.ended(pid, installation)
        reply = await agent.logs(pid)
        assert len(reply.text) <= 21_000
        assert installation.rest("GET", f"/api/v1/executions/{pid}")["output_bytes"] == 5_000_000


async def test_a_client_that_stops_reading_stops_no_other(installation):
    pid = installation.cli("run", "-d", "--", "sh", "-c", "seq 2000000; exit 3").stdout.decode().strip()
    follower = installation.connect()
    follower.request("GET", f"/api/v1/executions/{pid}/raw?follow=true")
    follower.getresponse()
    assert installation.cli("wait", pid, check=False).returncode == 3
    assert installation.cli("run", "--", "echo", "up").stdout == b"up\n"
    follower.close()
