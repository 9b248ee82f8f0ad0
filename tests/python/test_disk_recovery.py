"""A full disk that gets room again: output returns to it, offsets stay, readers see no seam."""

import json
import subprocess

import pytest

from test_service_life import kill, shim_of

from harness import until
from harness.disk import fill, mounted
from harness.service_client import ServiceClient

pytestmark = [pytest.mark.anyio, pytest.mark.small_disk]

#: What stays free: less than the commands here print, and with the ring in memory more.
LEFT = 512 << 10


def waits_for(name):
    """Shell: until this file is there."""
    return f"until [ -e {name} ]; do sleep .02; done"


def numbers(first, last):
    return subprocess.run(["seq", str(first), str(last)], stdout=subprocess.PIPE, check=True).stdout


def run_d(installation, script):
    return installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()


def degraded(installation, pid):
    return installation.json("info", pid)["degraded"]


def test_what_was_in_memory_is_on_disk_once_there_is_room(small_disk):
    filler = fill(small_disk.disk, leave=LEFT)
    script = f"seq 150000; {waits_for('go')}; seq 150001 160000; exit 3"
    pid = run_d(small_disk, script)
    with subprocess.Popen(
        small_disk.argv("logs", "--raw", "--follow", pid), cwd=small_disk.work, env=small_disk.env(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as follower:
        until(lambda: degraded(small_disk, pid), 20, "the full disk")
        filler.unlink()
        (small_disk.work / "go").touch()
        assert small_disk.cli("wait", pid, check=False).returncode == 3
        whole = numbers(1, 160_000)
        offset = follower.communicate(timeout=30)
        assert (offset[0] == whole, follower.returncode) == (True, 0), offset[1]
    info = small_disk.json("info", pid)
    assert "nothing was lost" in info["degraded"][-1], info["degraded"]
    assert info["trimmed_bytes"] == 0, info
    # Nothing of it was in the daemon's memory only.
    small_disk.kill_daemon()
    shown = small_disk.cli("logs", "--raw", pid)
    assert shown.stdout == whole and not shown.stderr, shown.stderr
    lines = small_disk.cli("logs", "--no-time", pid).stdout
    assert lines == whole
    assert small_disk.json("info", pid)["trimmed_bytes"] == 0


def test_it_returns_as_often_as_it_has_to(small_disk):
    pid = run_d(small_disk, f"for n in 1 2 3; do seq 100000; touch full$n; {waits_for('go$n')}; done; echo end")
    for turn in (1, 2, 3):
        filler = fill(small_disk.disk, leave=LEFT if turn == 1 else 64 << 10)
        until(lambda: (small_disk.work / f"full{turn}").exists(), 20, "the output")
        filler.unlink()
        (small_disk.work / f"go{turn}").touch()
    assert small_disk.cli("wait", pid).returncode == 0
    small_disk.kill_daemon()
    whole = numbers(1, 100_000) * 3 + b"end\n"
    shown = small_disk.cli("logs", "--raw", pid, check=False)
    missing = len(whole) - len(shown.stdout)
    if missing:
        # More than the ring holds was printed while the disk was full: that is reported.
        assert shown.returncode == 74 and str(missing).encode() in shown.stderr, shown.stderr
    assert shown.stdout.endswith(b"end\n")
    assert small_disk.json("info", pid)["trimmed_bytes"] == missing


def test_output_lost_by_the_ring_is_reported_and_the_rest_is_there(small_disk):
    filler = fill(small_disk.disk, leave=LEFT)
    pid = run_d(small_disk, f"seq 1000000; {waits_for('go')}; seq 2000000 2000009; exit 3")
    until(lambda: degraded(small_disk, pid), 20, "the full disk")
    whole = numbers(1, 1_000_000) + numbers(2_000_000, 2_000_009)
    until(lambda: small_disk.json("info", pid)["output_bytes"] >= len(numbers(1, 1_000_000)), 20, "the output")
    filler.unlink()
    (small_disk.work / "go").touch()
    assert small_disk.cli("wait", pid, check=False).returncode == 3
    small_disk.kill_daemon()
    shown = small_disk.cli("logs", "--raw", pid, check=False)
    missing = len(whole) - len(shown.stdout)
    assert missing > 0 and shown.returncode == 74, shown.stderr
    assert str(missing).encode() in shown.stderr, (missing, shown.stderr)
    head = next(n for n in range(len(shown.stdout)) if shown.stdout[n] != whole[n])
    assert whole.startswith(shown.stdout[:head]) and whole.endswith(shown.stdout[head + 1:])
    info = small_disk.json("info", pid)
    assert (info["trimmed_bytes"], info["output_bytes"]) == (missing, len(whole)), info


async def test_a_later_attempt_begins_after_the_offsets_readers_have_seen(small_disk):
    manager = ServiceClient(small_disk)
    script = f"echo attempt; if [ -e first ]; then exec sleep 300; fi; touch first; {waits_for('print')}; seq 150000; exec sleep 300"
    await manager.start(["sh", "-c", script], name="again", restart="on-failure:5", wait_ms=0)
    pid = manager.service("again")["execution"]["id"]
    until(lambda: (small_disk.work / "first").exists(), 20, "the first attempt")
    filler = fill(small_disk.disk, leave=LEFT)
    (small_disk.work / "print").touch()
    offset = until(lambda: raw_end(small_disk, pid) > len(numbers(1, 150_000)) and raw_end(small_disk, pid), 20, "the output")
    assert degraded(small_disk, pid), "a part of it is in memory"
    filler.unlink()
    kill(shim_of(manager, "again"))
    until(lambda: manager.service("again")["execution"]["service"]["restarts"] == 1, 20, "the second attempt")
    frames = until(lambda: [it for it in raw(small_disk, pid, f"&cursor={offset}.0") if "data" in it], 20, "its output")
    assert frames[0]["offset"] >= offset, (frames[0], offset)
    assert frames[0]["data"] == "attempt\n", frames
    small_disk.cli("stop", pid)


def raw(installation, pid, query=""):
    """What there is now, as frames."""
    answer = installation.rest("GET", f"/api/v1/executions/{pid}/raw?follow=false{query}", raw=True)
    return [json.loads(line) for line in answer.splitlines()]


def raw_end(installation, pid):
    """The end of the output, as reported to a reader."""
    return int(str(raw(installation, pid)[-1]["next"]).split(".")[0])


@pytest.mark.parametrize("before", [150_000, 1_000_000], ids=["the ring holds it", "the ring overflowed"])
def test_a_burst_finds_the_room_that_came_back(make_installation, before):
    installation = make_installation()
    with mounted(installation.state, 96, installation) as disk:
        filler = fill(disk.outside, leave=LEFT)
        # While it prints little by little, the disk is tried ever less often. Then all at once.
        script = f"""seq {before}
            until [ -e still ]; do echo tick; sleep .05; done
            echo quiet; touch quiet; {waits_for('go')}; seq 7000000"""
        pid = run_d(installation, script)
        until(lambda: raw_end(installation, pid) > len(numbers(1, before)) + 60 * len("tick\n"), 60, "the ticks")
        (installation.work / "still").touch()
        until(lambda: (installation.work / "quiet").exists(), 20, "the last tick")
        frames = until(lambda: ends_with(raw(installation, pid), "quiet\n"), 20, "the output so far")
        lost = sum(frame["gap"]["lost_bytes"] for frame in frames if "gap" in frame)
        assert (lost > 0) == (before > 150_000), "what fits the ring is there"
        filler.unlink()
        (installation.work / "go").touch()
        assert installation.cli("wait", pid).returncode == 0
        installation.kill_daemon()
        shown = installation.cli("logs", "--raw", pid, check=False)
        assert shown.stdout.endswith(b"quiet\n" + numbers(1, 7_000_000)), shown.stderr
        info = installation.json("info", pid)
        assert info["output_bytes"] - len(shown.stdout) == lost == info["trimmed_bytes"], shown.stderr
        assert shown.returncode == (74 if lost else 0), shown.stderr
        installation.end_commands()
        installation.shut_down()


def ends_with(frames, text):
    data = "".join(frame["data"] for frame in frames if "data" in frame)
    return data.endswith(text) and frames


async def test_a_later_attempt_does_so_although_everybody_who_knew_was_killed(small_disk):
    script = f"echo attempt; if [ -e first ]; then exec sleep 300; fi; touch first; {waits_for('print')}; seq 300000; exec sleep 300"
    manager = ServiceClient(small_disk)
    await manager.start(["sh", "-c", script], name="again", restart="on-failure:5", wait_ms=0)
    pid = manager.service("again")["execution"]["id"]
    until(lambda: (small_disk.work / "first").exists(), 20, "the first attempt")
    filler = fill(small_disk.disk, leave=LEFT)
    (small_disk.work / "print").touch()
    offset = until(lambda: raw_end(small_disk, pid) > len(numbers(1, 300_000)) and raw_end(small_disk, pid), 30, "the output")
    shim = shim_of(manager, "again")
    # The process that held the end of it in memory is gone.
    small_disk.kill_daemon()
    kill(shim)
    filler.unlink()
    small_disk.cli("ps")
    until(lambda: manager.service("again")["execution"]["service"]["restarts"] == 1, 30, "the second attempt")
    frames = until(lambda: [it for it in raw(small_disk, pid, f"&cursor={offset}.0") if "data" in it], 30, "its output")
    assert frames[0]["data"] == "attempt\n", frames
    assert offset <= frames[0]["offset"] < offset + (256 << 10) + 1, (frames[0], offset)
    small_disk.cli("stop", pid)
