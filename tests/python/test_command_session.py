"""The session (setsid(2)) of a command: no other execution has processes in it, and what concerns sessions works as in a shell."""

import os
import pty
import subprocess

import pytest

from harness import procs, until

LEVELS = ("basic", "medium", "high")


def start(installation, script, *flags):
    """A command in the background: its id and its process."""
    pid = installation.cli("run", "-d", *flags, "--", "sh", "-c", script).stdout.decode().strip()
    until(lambda: installation.json("info", pid)["os_pid"], 20, "its process")
    return pid, installation.json("info", pid)["os_pid"]


def session(pid):
    return os.getsid(pid)


@pytest.mark.parametrize("level", LEVELS)
def test_no_other_execution_has_processes_in_its_session(each_installation, level):
    flags = ["--isolation", level]
    commands = [start(each_installation, "sleep 300 & exec sleep 300", *flags) for _ in range(3)]
    sessions = [session(pid) for _, pid in commands]
    assert len(set(sessions)) == 3, sessions
    daemon = each_installation.daemon()
    others = [session(pid) for pid in each_installation.ours() if procs.comm(pid) in ("ostler-daemon", "ostler-keeper")]
    assert others and not set(sessions) & set(others)
    daemon.close()
    for id, _ in commands:
        each_installation.cli("stop", "--force", id)


@pytest.mark.parametrize("name", ["TSTP", "TTIN", "TTOU"])
def test_a_signal_that_stops_jobs_stops_a_command(each_installation, name):
    id, pid = start(each_installation, "while :; do sleep 0.2; done")
    each_installation.cli("kill", "-s", name, id)
    until(lambda: procs.status(pid, "State").startswith("T"), 10, "a stopped process")
    each_installation.cli("kill", "-s", "CONT", id)
    until(lambda: not procs.status(pid, "State").startswith("T"), 10, "a process that goes on")
    each_installation.cli("stop", "--force", id)


def test_a_terminal_that_a_command_opens_does_not_become_its_own(installation):
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    wait = "while [ ! -e go ]; do sleep 0.05; done"
    id, pid = start(installation, f"exec 3<>{name}; echo open; {wait}; echo alive")
    until(lambda: b"open" in installation.cli("logs", id).stdout, 20, "the open terminal")
    terminal = subprocess.run(["ps", "-o", "tty=", "-p", str(pid)], capture_output=True, check=True).stdout
    assert terminal.strip() == b"?"
    os.close(master)
    (installation.work / "go").touch()
    assert installation.cli("wait", id, check=False).returncode == 0
    assert installation.cli("logs", id).stdout.endswith(b" alive\n")
