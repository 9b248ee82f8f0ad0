"""Commands outlive the daemon; nothing of theirs is lost, nothing is invented."""

import shutil
import signal

import pytest

from harness import members, procs, until

pytestmark = pytest.mark.anyio


def numbered(count):
    return "".join(f"line {n}\n" for n in range(1, count + 1)).encode()


SLOW = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line $i; sleep 0.03; done; exit 7"


async def test_the_daemon_is_killed_in_the_middle_and_the_next_call_works(any_place):
    place = any_place
    async with place.agent(session="kept") as agent:
        pid = await agent.start_sh(SLOW, labels=["slow"])
        until(lambda: b"line 5\n" in place.cli("logs", pid, "--raw").stdout)
        first = place.kill_daemon()
    async with place.agent(session="kept") as agent:
        assert [entry["pid"] for entry in await agent.list(labels=["slow"])] == [pid]
        detail = await agent.ended(pid, place)
        assert detail["status"] == "failed" and detail["exit_code"] == 7
        assert place.cli("logs", pid, "--raw").stdout == numbered(60)
    assert place.rest("GET", "/api/v1/health")["pid"] != first


async def test_the_command_line_finds_everything_after_a_kill(any_place):
    place = any_place
    pid = place.cli("run", "-d", "--", "sh", "-c", SLOW).stdout.decode().strip()
    until(lambda: b"line 5\n" in place.cli("logs", pid, "--raw").stdout)
    place.kill_daemon()
    assert place.cli("wait", pid, check=False).returncode == 7
    assert place.cli("logs", pid, "--raw").stdout == numbered(60)


async def test_an_end_without_a_daemon_is_known_later(any_place):
    place = any_place
    pid = place.cli("run", "-d", "--", "sh", "-c", "sleep 0.6; echo late; exit 9").stdout.decode().strip()
    uuid = place.json("info", pid)["uuid"]
    place.kill_daemon()
    until(lambda: not members(uuid), 10, "its end")
    info = place.json("info", pid)
    assert (info["status"], info["exit_code"]) == ("failed", 9)
    assert place.cli("logs", pid, "--raw").stdout == b"late\n"


async def test_a_keeper_killed_in_the_middle_is_replaced(any_place):
    place = any_place
    pid = place.cli("run", "-d", "--", "sh", "-c", SLOW).stdout.decode().strip()
    keepers = [p for p in place.ours() if procs.comm(p) == "ostler-keeper"]
    assert len(keepers) == 1
    procs.ProcessHandle(keepers[0]).kill()
    assert place.cli("run", "--", "echo", "still here").stdout == b"still here\n"
    assert place.cli("wait", pid, check=False).returncode == 7
    assert place.cli("logs", pid, "--raw").stdout == numbered(60)


async def test_a_stopped_keeper_does_not_stop_us(any_place):
    place = any_place
    place.cli("run", "--", "true")
    keeper = procs.ProcessHandle(next(p for p in place.ours() if procs.comm(p) == "ostler-keeper"))
    keeper.kill(signal.SIGSTOP)
    try:
        for _ in range(8):
            runs = [place.cli("run", "-d", "--", "sleep", "2").stdout for _ in range(2)]
            assert all(runs)
    finally:
        keeper.kill(signal.SIGCONT)


async def test_a_killed_shim_takes_its_tree_and_is_told_as_lost(any_place):
    place = any_place
    script = "setsid sleep 300 & echo up; while :; do sleep 0.1; done"
    pid = place.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
    until(lambda: b"up" in place.cli("logs", pid, "--raw").stdout)
    info = place.json("info", pid)
    shim = int(procs.status(info["os_pid"], "PPid"))
    assert procs.comm(shim) == "ostler-shim" and shim in place.ours()
    procs.ProcessHandle(shim).kill()
    until(lambda: not members(info["uuid"]), 5, "the end of the tree")
    assert place.cli("wait", pid, check=False).returncode != 0
    info = place.json("info", pid)
    assert info["status"] == "error" and info["exit_code"] is None, info
    assert "lost" in info["error_message"] or "shim" in info["error_message"]


async def test_shim_and_daemon_killed_together(any_place):
    place = any_place
    pid = place.cli("run", "-d", "--", "sh", "-c", "setsid sleep 300 & echo up; exec sleep 300").stdout.decode().strip()
    until(lambda: b"up" in place.cli("logs", pid, "--raw").stdout)
    info = place.json("info", pid)
    shim = procs.ProcessHandle(int(procs.status(info["os_pid"], "PPid")))
    assert shim.pid in place.ours() and procs.comm(shim.pid) == "ostler-shim"
    daemon = place.daemon()
    for victim in (daemon, shim):
        victim.kill()
    info = place.json("info", pid)
    assert info["status"] == "error" and info["exit_code"] is None, info
    until(lambda: not members(info["uuid"]), 5, "the end of the orphaned tree")


async def test_one_daemon_however_many_ask_at_once(any_place):
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: any_place.cli("ps"), range(12)))
    assert sum(procs.comm(p) == "ostler-daemon" for p in any_place.ours()) == 1


async def test_without_a_daemon_a_front_serves_itself(any_place):
    async with any_place.agent(args=["--no-daemon"]) as agent:
        reply = await agent.execute("echo", "on my own")
        assert "on my own" in reply.text
        assert not [p for p in any_place.ours() if procs.comm(p) == "ostler-daemon"]


# ---- directories that are made before they are needed


def prepared(place):
    return sorted((place.state / "executions").glob(".ready-*"))


def warm(place):
    """Runs something, and waits until idle shims have their directories ready."""
    place.cli("run", "--", "true")
    until(lambda: [path for path in prepared(place) if (path / "events.jsonl").exists()], 10, "a prepared directory")


async def test_prepared_directories_are_nobodys_execution(any_place):
    place = any_place
    warm(place)
    assert len(place.rest("GET", "/api/v1/executions")["executions"]) == 1
    place.kill_daemon()
    assert len(place.rest("GET", "/api/v1/executions")["executions"] if place.cli("ps") else []) == 1
    assert place.cli("run", "--", "echo", "on").stdout == b"on\n"
    place.shut_down()
    until(lambda: not prepared(place), 10, "idle shims to take theirs along")


async def test_prepared_directories_of_the_dead_are_removed(any_place):
    place = any_place
    warm(place)
    held = [procs.ProcessHandle(pid) for pid in place.ours()]
    for one in held:
        one.kill(signal.SIGSTOP)
    before = set(prepared(place))
    for one in held:
        one.kill()
    assert before <= set(prepared(place)), "nobody was left to remove them"
    place.cli("ps")
    until(lambda: not before & set(prepared(place)), 10, "their removal")
    assert place.cli("run", "--", "echo", "on").stdout == b"on\n"
    assert not list((place.state / "executions").glob(".gone-*"))


async def test_starts_do_without_prepared_directories_that_are_gone(any_place):
    place = any_place
    for _ in range(3):
        warm(place)
        for path in prepared(place):
            shutil.rmtree(path, ignore_errors=True)
        for n in range(6):
            assert place.cli("run", "--", "echo", n).stdout.split() == [str(n).encode()]


async def test_a_start_of_which_nothing_is_left_but_its_directory_never_was(any_place):
    place = any_place
    kept = place.cli("run", "-d", "--", "true").stdout.decode().strip()
    place.cli("wait", kept)
    place.kill_daemon()
    executions = place.state / "executions"
    uuid = place.executions()[0].name
    # As a shim leaves it that is killed, or whose disk is full, before the spec is written.
    ends = [end for end in ("a0", "a1", "a2") if not uuid.endswith(end)]
    empty, bare = (executions / f"{uuid[:-2]}{end}" for end in ends[:2])
    for path in (empty, bare):
        path.mkdir(mode=0o700)
    (empty / "spec.json").touch(mode=0o600)
    place.give(executions)
    assert len(place.json("ps", "--all")) == 1
    assert not empty.exists() and not bare.exists()
    assert place.cli("run", "--", "echo", "on").stdout == b"on\n"


async def test_a_start_that_the_file_system_refuses_leaves_nothing(ordinary_place):
    place = ordinary_place
    place.cli("run", "--", "true")
    count = len(place.executions())
    executions = place.state / "executions"
    for path in prepared(place):
        shutil.rmtree(path, ignore_errors=True)
    executions.chmod(0o500)
    try:
        done = place.cli("run", "--", "echo", "on", check=False)
        assert done.returncode != 0 and b"storage" in done.stderr, done
    finally:
        executions.chmod(0o700)
    assert len(place.executions()) == count
    assert place.cli("run", "--", "echo", "on").stdout == b"on\n"
    place.kill_daemon()
    assert place.cli("run", "--", "echo", "on").stdout == b"on\n"
