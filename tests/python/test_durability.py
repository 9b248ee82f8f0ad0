"""Commands outlive the daemon; none of their output is lost or invented."""

import shutil
import signal

import pytest

from harness import members, procs, until

pytestmark = pytest.mark.anyio


def numbered(count):
    return "".join(f"line {n}\n" for n in range(1, count + 1)).encode()


SLOW = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line $i; sleep 0.03; done; exit 7"


async def test_the_daemon_is_killed_in_the_middle_and_the_next_call_works(each_installation):
    installation = each_installation
    async with installation.agent(session="kept") as agent:
        pid = await agent.start_sh(SLOW, labels=["slow"])
        until(lambda: b"line 5\n" in installation.cli("logs", pid, "--raw").stdout)
        first = installation.kill_daemon()
    async with installation.agent(session="kept") as agent:
        assert [entry["pid"] for entry in await agent.list(labels=["slow"])] == [pid]
        detail = await agent.ended(pid, installation)
        assert detail["status"] == "failed" and detail["exit_code"] == 7
        assert installation.cli("logs", pid, "--raw").stdout == numbered(60)
    assert installation.rest("GET", "/api/v1/health")["pid"] != first


async def test_the_command_line_finds_everything_after_a_kill(each_installation):
    installation = each_installation
    pid = installation.cli("run", "-d", "--", "sh", "-c", SLOW).stdout.decode().strip()
    until(lambda: b"line 5\n" in installation.cli("logs", pid, "--raw").stdout)
    installation.kill_daemon()
    assert installation.cli("wait", pid, check=False).returncode == 7
    assert installation.cli("logs", pid, "--raw").stdout == numbered(60)


async def test_an_end_without_a_daemon_is_known_later(each_installation):
    installation = each_installation
    pid = installation.cli("run", "-d", "--", "sh", "-c", "sleep 0.6; echo late; exit 9").stdout.decode().strip()
    uuid = installation.json("info", pid)["uuid"]
    installation.kill_daemon()
    until(lambda: not members(uuid), 10, "its end")
    info = installation.json("info", pid)
    assert (info["status"], info["exit_code"]) == ("failed", 9)
    assert installation.cli("logs", pid, "--raw").stdout == b"late\n"


async def test_a_zygote_killed_in_the_middle_is_replaced(each_installation):
    installation = each_installation
    pid = installation.cli("run", "-d", "--", "sh", "-c", SLOW).stdout.decode().strip()
    keepers = [p for p in installation.ours() if procs.comm(p) == "ostler-keeper"]
    assert len(keepers) == 1
    procs.ProcessHandle(keepers[0]).kill()
    assert installation.cli("run", "--", "echo", "still here").stdout == b"still here\n"
    assert installation.cli("wait", pid, check=False).returncode == 7
    assert installation.cli("logs", pid, "--raw").stdout == numbered(60)


async def test_a_stopped_zygote_does_not_stop_us(each_installation):
    installation = each_installation
    installation.cli("run", "--", "true")
    keeper = procs.ProcessHandle(next(p for p in installation.ours() if procs.comm(p) == "ostler-keeper"))
    keeper.kill(signal.SIGSTOP)
    try:
        for _ in range(8):
            runs = [installation.cli("run", "-d", "--", "sleep", "2").stdout for _ in range(2)]
            assert all(runs)
    finally:
        keeper.kill(signal.SIGCONT)


async def test_a_killed_shim_takes_its_tree_and_is_reported_as_lost(each_installation):
    installation = each_installation
    script = "setsid sleep 300 & echo up; while :; do sleep 0.1; done"
    pid = installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
    until(lambda: b"up" in installation.cli("logs", pid, "--raw").stdout)
    info = installation.json("info", pid)
    shim = int(procs.status(info["os_pid"], "PPid"))
    assert procs.comm(shim) == "ostler-shim" and shim in installation.ours()
    procs.ProcessHandle(shim).kill()
    until(lambda: not members(info["uuid"]), 5, "the end of the tree")
    assert installation.cli("wait", pid, check=False).returncode != 0
    info = installation.json("info", pid)
    assert info["status"] == "error" and info["exit_code"] is None, info
    assert "lost" in info["error_message"] or "shim" in info["error_message"]


async def test_shim_and_daemon_killed_together(each_installation):
    installation = each_installation
    pid = installation.cli("run", "-d", "--", "sh", "-c", "setsid sleep 300 & echo up; exec sleep 300").stdout.decode().strip()
    until(lambda: b"up" in installation.cli("logs", pid, "--raw").stdout)
    info = installation.json("info", pid)
    shim = procs.ProcessHandle(int(procs.status(info["os_pid"], "PPid")))
    assert shim.pid in installation.ours() and procs.comm(shim.pid) == "ostler-shim"
    daemon = installation.daemon()
    for victim in (daemon, shim):
        victim.kill()
    info = installation.json("info", pid)
    assert info["status"] == "error" and info["exit_code"] is None, info
    until(lambda: not members(info["uuid"]), 5, "the end of the orphaned tree")


async def test_one_daemon_however_many_ask_at_once(each_installation):
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: each_installation.cli("ps"), range(12)))
    assert sum(procs.comm(p) == "ostler-daemon" for p in each_installation.ours()) == 1


async def test_without_a_daemon_a_proxy_serves_itself(each_installation):
    async with each_installation.agent(args=["--no-daemon"]) as agent:
        reply = await agent.execute("echo", "on my own")
        assert "on my own" in reply.text
        assert not [p for p in each_installation.ours() if procs.comm(p) == "ostler-daemon"]


# ---- directories that are made before they are needed


def prepared(installation):
    return sorted((installation.state / "executions").glob(".ready-*"))


def warm(installation):
    """Runs something, and waits until idle shims have their directories ready."""
    installation.cli("run", "--", "true")
    until(lambda: [path for path in prepared(installation) if (path / "events.jsonl").exists()], 10, "a prepared directory")


async def test_prepared_directories_are_nobodys_execution(each_installation):
    installation = each_installation
    warm(installation)
    assert len(installation.rest("GET", "/api/v1/executions")["executions"]) == 1
    installation.kill_daemon()
    assert len(installation.rest("GET", "/api/v1/executions")["executions"] if installation.cli("ps") else []) == 1
    assert installation.cli("run", "--", "echo", "on").stdout == b"on\n"
    installation.shut_down()
    until(lambda: not prepared(installation), 10, "idle shims to take theirs along")


async def test_prepared_directories_of_the_dead_are_removed(each_installation):
    installation = each_installation
    warm(installation)
    handles = [procs.ProcessHandle(pid) for pid in installation.ours()]
    for one in handles:
        one.kill(signal.SIGSTOP)
    before = set(prepared(installation))
    for one in handles:
        one.kill()
    assert before <= set(prepared(installation)), "nobody was left to remove them"
    installation.cli("ps")
    until(lambda: not before & set(prepared(installation)), 10, "their removal")
    assert installation.cli("run", "--", "echo", "on").stdout == b"on\n"
    assert not list((installation.state / "executions").glob(".gone-*"))


async def test_starts_do_without_prepared_directories_that_are_gone(each_installation):
    installation = each_installation
    for _ in range(3):
        warm(installation)
        for path in prepared(installation):
            shutil.rmtree(path, ignore_errors=True)
        for n in range(6):
            assert installation.cli("run", "--", "echo", n).stdout.split() == [str(n).encode()]


async def test_a_start_of_which_nothing_is_left_but_its_directory_never_was(each_installation):
    installation = each_installation
    kept = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", kept)
    installation.kill_daemon()
    executions = installation.state / "executions"
    uuid = installation.executions()[0].name
    # As a shim leaves it that is killed, or whose disk is full, before the spec is written.
    ends = [end for end in ("a0", "a1", "a2") if not uuid.endswith(end)]
    empty, no_cgroups = (executions / f"{uuid[:-2]}{end}" for end in ends[:2])
    for path in (empty, no_cgroups):
        path.mkdir(mode=0o700)
    (empty / "spec.json").touch(mode=0o600)
    installation.give(executions)
    assert len(installation.json("ps", "--all")) == 1
    assert not empty.exists() and not no_cgroups.exists()
    assert installation.cli("run", "--", "echo", "on").stdout == b"on\n"


async def test_a_start_that_the_file_system_refuses_leaves_nothing(unprivileged_installation):
    installation = unprivileged_installation
    installation.cli("run", "--", "true")
    count = len(installation.executions())
    executions = installation.state / "executions"
    for path in prepared(installation):
        shutil.rmtree(path, ignore_errors=True)
    executions.chmod(0o500)
    try:
        done = installation.cli("run", "--", "echo", "on", check=False)
        assert done.returncode != 0 and b"storage" in done.stderr, done
    finally:
        executions.chmod(0o700)
    assert len(installation.executions()) == count
    assert installation.cli("run", "--", "echo", "on").stdout == b"on\n"
    installation.kill_daemon()
    assert installation.cli("run", "--", "echo", "on").stdout == b"on\n"
