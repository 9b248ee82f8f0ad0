"""An egress proxy that is killed while its command runs: the command loses its network, which is told wherever one looks."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import procs, until
from harness.protected_env import FIRST, USERS, isolation

#: Runs until there is a file `go`, which it removes; then it says whether it reaches the test's listener.
ASK = """
import os, socket, sys, time
address = (sys.argv[1], int(sys.argv[2]))
def reaches():
    try:
        with socket.create_connection(address, 5): return "reached"
    except OSError: return "failed"
print(reaches(), "before", flush=True)
while not os.path.exists("go"): time.sleep(0.05)
os.remove("go")
print(reaches(), "after", flush=True)
"""


def info(installation, id_):
    return installation.json("info", id_)


def proxy_of(installation, id_):
    """The egress proxy beside a command."""
    shim = int(procs.status(info(installation, id_)["os_pid"], "PPid"))
    assert procs.comm(shim) == "ostler-shim"
    [proxy] = [pid for pid in procs.pids() if procs.status(pid, "PPid") == str(shim) and procs.comm(pid) == "ostler-gate"]
    return proxy


def listed(installation):
    """The host and port of the test's own listener."""
    facts = installation.outside.facts
    return facts["address"], str(facts["tcp_port"])


def options(installation, user):
    return isolation(user, network=[":".join(listed(installation))])


def output(installation, id_):
    return installation.cli("logs", id_, "--raw").stdout.decode()


def start(installation, user):
    """A command that has reached the listed host, and its directory."""
    directory = Path(tempfile.mkdtemp(dir=installation.dir))
    installation.give(directory)
    words = options(installation, user).words()
    done = installation.cli("run", "-d", *words, "--cwd", directory, "--", "python3", "-c", ASK, *listed(installation))
    id_ = done.stdout.decode().strip()
    until(lambda: "reached before" in output(installation, id_), 10, "the listed host is reached")
    return id_, directory


def losses(installation, id_):
    """The events about what was lost."""
    events = installation.rest("GET", f"/api/v1/events?id={id_}&cursor=0")["events"]
    return [event for event in events if event["event"] == "degraded"]


def is_told(text):
    return "egress proxy" in text and "SIGKILL" in text and "listed hosts" in text


@pytest.mark.parametrize("user", USERS)
def test_a_killed_proxy_is_told_everywhere_and_once(protected_envs, user):
    installation = protected_envs.of(user)
    id_, directory = start(installation, user)
    assert losses(installation, id_) == [] and info(installation, id_)["degraded"] == []
    os.kill(proxy_of(installation, id_), signal.SIGKILL)
    [loss] = until(lambda: losses(installation, id_), 10, "the event")
    assert loss["ability"] == {"enforcement": "gate"} and is_told(loss["detail"]), loss
    found = info(installation, id_)
    [told] = found["degraded"]
    assert is_told(told) and found["isolation"]["lost"] == [{"ability": "gate", "reason": told}], found
    assert is_told(installation.cli("info", id_).stdout.decode())
    assert "ability=gate" in installation.cli("events", id_, "--no-follow").stdout.decode()
    entries = installation.rest("GET", "/api/v1/audit?limit=1000")["entries"]
    entries = [it for it in entries if it.get("event") == "degraded" and it.get("execution") == found["uuid"]]
    assert [it["event_detail"] for it in entries] == [told], entries
    # The next daemon is told of it, and knows.
    installation.kill_daemon()
    assert info(installation, id_)["degraded"] == [told]

    (directory / "go").touch()
    done = installation.cli("wait", id_)
    assert "failed after" in output(installation, id_), done
    ended = info(installation, id_)
    assert ended["degraded"] == [told] and ended["exit_code"] == 0, ended
    assert len(losses(installation, id_)) == 1


@pytest.mark.parametrize("user", USERS)
def test_a_proxy_whose_helper_was_killed_ends_and_is_told(protected_envs, user):
    """The helper makes the sockets inside: without it no forwarded port leads anywhere."""
    installation = protected_envs.of(user)
    id_, _directory = start(installation, user)
    proxy = proxy_of(installation, id_)
    [helper] = [pid for pid in procs.pids() if procs.status(pid, "PPid") == str(proxy) and procs.comm(pid) == "ostler-netns"]
    os.kill(helper, signal.SIGKILL)
    [loss] = until(lambda: losses(installation, id_), 10, "the event")
    assert loss["ability"] == {"enforcement": "gate"} and "egress proxy" in loss["detail"], loss
    assert not procs.alive(proxy)
    installation.cli("stop", id_)


@pytest.mark.parametrize("user", FIRST)
def test_a_proxy_killed_without_a_daemon_is_told_by_the_next(protected_envs, user):
    installation = protected_envs.of(user)
    for ends in (False, True):
        id_, directory = start(installation, user)
        proxy, leader = proxy_of(installation, id_), info(installation, id_)["os_pid"]
        installation.kill_daemon()
        os.kill(proxy, signal.SIGKILL)
        until(lambda: not procs.alive(proxy), 5, "the end of the proxy")
        if ends:
            os.kill(leader, signal.SIGTERM)
            until(lambda: not procs.alive(leader), 5, "the end of the command")
        until(lambda: losses(installation, id_) if installation.json("ps", "-a") else None, 10, "the event")
        assert len(losses(installation, id_)) == 1
        [told] = info(installation, id_)["degraded"]
        assert is_told(told)
        if not ends:
            (directory / "go").touch()
            installation.cli("wait", id_)
            assert len(losses(installation, id_)) == 1


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "ends with it"])
@pytest.mark.parametrize("user", FIRST)
async def test_the_result_of_a_command_tells_that_its_proxy_was_killed(protected_envs, user, killed):
    installation = protected_envs.of(user)
    directory = Path(tempfile.mkdtemp(dir=installation.dir))
    installation.give(directory)
    async with installation.agent() as agent:
        began = await agent.call(
            "exec", command=["python3", "-c", ASK, *listed(installation)], until="pattern", pattern="reached before",
            wait_ms=20_000, cwd=str(directory), **options(installation, user).arguments())
        id_ = began.value("id")
        assert not is_told(began.text), began.text
        if killed:
            os.kill(proxy_of(installation, id_), signal.SIGKILL)
            until(lambda: losses(installation, id_), 10, "the event")
        (directory / "go").touch()
        ended = await agent.call("process", action="wait", ids=[id_], wait_ms=20_000)
        assert len(losses(installation, id_)) == killed
    assert ("failed after" if killed else "reached after") in ended.text, ended.text
    assert is_told(ended.text) == killed, ended.text


@pytest.mark.parametrize("user", FIRST)
def test_run_tells_at_its_end_that_the_proxy_was_killed(protected_envs, user):
    installation = protected_envs.of(user)
    directory = Path(tempfile.mkdtemp(dir=installation.dir))
    installation.give(directory)
    words = ["run", *options(installation, user).words(), "--cwd", directory, "--", "python3", "-c", ASK, *listed(installation)]
    with subprocess.Popen(installation.argv(*words), env=installation.env(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"reached before\n"
        id_ = info(installation, "@last")["id"]
        os.kill(proxy_of(installation, id_), signal.SIGKILL)
        until(lambda: losses(installation, id_), 10, "the event")
        (directory / "go").touch()
        _, stderr = running.communicate(timeout=20)
    assert is_told(stderr.decode()), stderr


@pytest.mark.parametrize("user", FIRST)
def test_a_restarted_service_has_a_proxy_again(protected_envs, user):
    installation = protected_envs.of(user)
    words = options(installation, user).words()
    installation.cli("service", "start", "--name", "lonely", *words, "--", "sh", "-c", "echo up; sleep 600")

    def why():
        return installation.cli("service", "why", "lonely").stdout.decode()

    id_ = installation.json("info", "@last")["id"]
    until(lambda: info(installation, id_)["os_pid"], 10, "the start")
    for times in (1, 2):
        assert not is_told(why())
        os.kill(proxy_of(installation, id_), signal.SIGKILL)
        until(lambda: is_told(why()), 10, "the reason")
        first = info(installation, id_)["os_pid"]
        assert len(losses(installation, id_)) == times
        installation.cli("service", "restart", "lonely")
        until(lambda: info(installation, id_)["os_pid"] not in (None, first), 10, "the next attempt")  # noqa: B023
    installation.cli("service", "stop", "lonely")
