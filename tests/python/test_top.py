"""`ostler top`: what runs and what it uses, on one screen."""

import os
import signal

import pytest

from harness import TerminalUser
from harness.installation import ProblemError

BUSY = "while :; do :; done"


@pytest.fixture
def running(installation):
    """A command that works and one that holds memory and waits."""
    installation.cli("run", "-d", "--", "sh", "-c", BUSY)
    installation.cli("run", "-d", "--", "python3", "-c", "kept = bytearray(64 << 20); import time; time.sleep(600)")
    yield installation
    ids = [it["id"] for it in installation.json("ps")]
    installation.cli("kill", *ids, check=False)


def test_it_prints_once_without_a_terminal(running):
    shown = running.cli("top").stdout.decode().splitlines()
    assert shown[0].split()[:2] == ["ID", "CPU"] and len(shown) == 3, shown
    listed = running.json("top")
    assert not listed["more"] and {it["command"].split()[0] for it in listed["executions"]} == {"sh", "python3"}
    assert running.cli("top", "--sort", "heat", check=False).returncode == 64
    one = running.rest("GET", "/api/v1/resources?limit=1")
    assert one["more"] and len(one["executions"]) == 1
    with pytest.raises(ProblemError) as refused:
        running.rest("GET", "/api/v1/resources?limit=0")
    assert refused.value.status == 422


def test_the_screen_is_redrawn_sorted_and_given_back(running):
    with TerminalUser(running, "top", cols=120) as person:
        modes = person.modes()
        person.wait_for(rb"\x1b\[\?1049h")
        # The one that works comes first, once it was sampled twice.
        person.wait_for(rb"2 running, cpu [1-9]\d*%[^\n]*by cpu[^\n]*\r\n\r\nID [^\n]*\r\n\w+ +[1-9]\d*% [^\n]*while")
        person.type("m")
        person.wait_for(rb"by memory[^\n]*\r\n\r\nID [^\n]*\r\n[^\n]*python3[^\n]*\r\n[^\n]*while")
        person.resize(40, 3)
        person.wait_for(rb"\x1b\[H\x1b\[J[^\n]{1,48}\r\n\r\n(\x1b|$)")
        person.type("q")
        assert person.wait_exit() == 0
        assert b"\x1b[?1049l" in person.seen and b"\x1b[?25h" in person.seen and person.modes() == modes


@pytest.mark.parametrize("end", ["ctrl-c", "TERM", "HUP"])
def test_every_way_out_restores_the_terminal(running, end):
    with TerminalUser(running, "top") as person:
        modes = person.modes()
        person.wait_for(rb"running")
        if end == "ctrl-c":
            person.type(b"\x03")
        else:
            os.kill(person.pid, getattr(signal, f"SIG{end}"))
        person.wait_exit()
        assert b"\x1b[?1049l" in person.seen and person.modes() == modes


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(running):
    with TerminalUser(running, "top") as person:
        modes = person.modes()
        person.wait_for(rb"running")
        person.type(b"\x1a")
        person.wait_for(rb"\x1b\[\?1049l.*stopped; `fg` goes on")
        _, status = os.waitpid(person.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and person.modes() == modes
        os.kill(person.pid, signal.SIGCONT)
        person.wait_for(rb"\x1b\[\?1049h.*running")
        person.type("q")
        assert person.wait_exit() == 0


@pytest.mark.parametrize("words", [["top"], ["ps", "-w"], ["stats", "-w"]])
def test_a_dumb_terminal_gets_plain_lines(running, words):
    with TerminalUser(running, *words, env={"TERM": "dumb"}) as person:
        person.wait_for(rb"\A[^\x1b]*python3")
        if words != ["top"]:
            person.type(b"\x03")
        assert person.wait_exit() == 0
        assert b"\x1b" not in person.seen, person.seen
