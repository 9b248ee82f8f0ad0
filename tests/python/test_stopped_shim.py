"""Shims that a signal stops or kills: what is asked of them is done, and what they recorded is told."""

import os
import shutil
import signal

import pytest

from harness import procs, until

ENV = [["PATH", "/usr/bin:/bin"]]


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def start(host, script="echo up; exec sleep 600", **fields):
    """A command that prints `up`, and the pid of its shim."""
    body = {"command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(host.work), "base_env": ENV, **fields}
    id_ = host.rest("POST", "/api/v1/executions", body)["id"]
    host.rest("POST", f"/api/v1/executions/{id_}/wait", {"until": "pattern", "pattern": "up", "at_most_ms": 9000})
    return id_, int(procs.status(info(host, id_)["os_pid"], "PPid"))


def info(host, id_):
    return host.rest("GET", f"/api/v1/executions/{id_}")


def stop_shim(pid):
    assert procs.comm(pid) == "ostler-shim"
    os.kill(pid, signal.SIGSTOP)
    until(lambda: procs.status(pid, "State").startswith("T"), 5, "the shim stopped")


def test_a_stopped_shim_carries_out_a_stop(host):
    for force in (True, False):
        id_, shim = start(host)
        stop_shim(shim)
        ended = host.rest("POST", f"/api/v1/executions/{id_}/stop", {"force": force, "reason": "enough"})
        assert (ended["status"], ended["stop_reason"]) == ("terminated", "enough"), ended
    id_, shim = start(host)
    stop_shim(shim)
    host.rest("POST", f"/api/v1/executions/{id_}/signal", {"signal": "KILL"})
    until(lambda: info(host, id_)["status"] != "running", 20, "the end by the signal")


def test_the_next_daemon_continues_a_stopped_shim(host):
    id_, shim = start(host)
    stop_shim(shim)
    host.kill_daemon()
    host.cli("ps")
    assert info(host, id_)["status"] == "running"
    until(lambda: not procs.status(shim, "State").startswith("T"), 5, "it goes on")


@pytest.mark.parametrize("under_daemon", [True, False], ids=["under the daemon", "between two daemons"])
def test_what_a_killed_shim_recorded_is_told(host, under_daemon):
    id_, shim = start(host, "echo up; echo down; exec sleep 600")
    until(lambda: info(host, id_)["output_bytes"] == 8, 10, "the output")
    if not under_daemon:
        host.kill_daemon()
    os.kill(shim, signal.SIGKILL)
    if not under_daemon:
        host.cli("ps")
    until(lambda: info(host, id_)["status"] != "running", 20, "the loss")
    assert info(host, id_)["output_bytes"] == 8
    until(lambda: host.rest("GET", f"/api/v1/history/{id_}").get("ended_at"), 20, "its end in the history")
    row = host.rest("GET", f"/api/v1/history/{id_}")
    assert (row["totals"]["output_bytes"], row["totals"]["output_lines"]) == (8, 2), row


def test_idle_shims_that_were_stopped_run_the_next_commands(host):
    host.cli("run", "--", "true")
    idle = [pid for pid in host.ours() if procs.comm(pid) == "ostler-shim"]
    assert idle
    for pid in idle:
        stop_shim(pid)
    for _ in range(len(idle) + 1):
        host.cli("run", "--", "true", timeout=20)


def test_no_stopped_shim_is_left_behind_by_a_shutdown(host):
    host.cli("run", "--", "true")
    for pid in host.ours():
        if procs.comm(pid) == "ostler-shim":
            stop_shim(pid)
    assert host.shut_down() == []


@pytest.mark.limit(60)
def test_a_timeout_and_input_reach_a_command_whose_shim_was_stopped(host):
    """The next reading of what it uses, at most ten seconds later, continues the shim."""
    limited = host.cli("run", "-d", "--timeout", "1s", "--", "sleep", "600").stdout.decode().strip()
    reader, shim = start(host, "echo up; read -r line; echo got $line", stdin="open")
    stop_shim(shim)
    stop_shim(int(procs.status(info(host, limited)["os_pid"], "PPid")))
    host.rest("POST", f"/api/v1/executions/{reader}/input", b"it\n")
    for id_, status in ((limited, "terminated"), (reader, "completed")):
        until(lambda id_=id_: info(host, id_)["status"] != "running", 30, f"the end: {status}")


def test_what_runs_on_without_its_directory_is_ended(host):
    id_, shim = start(host)
    uuid, command = info(host, id_)["uuid"], info(host, id_)["os_pid"]
    host.kill_daemon()
    shutil.rmtree(host.state / "executions" / uuid)
    host.cli("ps")
    until(lambda: not procs.alive(command) and not procs.alive(shim), 20, "the end of both")
    until(lambda: host.rest("GET", f"/api/v1/history/{id_}").get("ended_at"), 20, "its end in the history")
    assert host.rest("GET", f"/api/v1/history/{id_}")["cause"] == "lost"
