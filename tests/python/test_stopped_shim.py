"""Shims that a signal stops or kills: what is asked of them is done, and what they recorded is told."""

import os
import signal

import pytest

from harness import procs, until

ENV = [["PATH", "/usr/bin:/bin"]]


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def start(host, script="echo up; exec sleep 600"):
    """A command that prints `up`, and the pid of its shim."""
    body = {"command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(host.work), "base_env": ENV}
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
