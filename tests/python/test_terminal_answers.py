"""Responses of the terminal tools about real programs: the reply and nothing else, all of it, once."""

import re
import shutil
import time

import pytest

from harness import Terminals, until
from harness.tiers import each_once
from test_terminal_programs import PYTHON, node

pytestmark = pytest.mark.anyio

#: A prompt that comes later than any program needs to echo a line, in seconds.
PAUSE = 1.0


async def timed(call):
    first = time.monotonic()
    return await call, time.monotonic() - first


# Patterns


async def test_a_pattern_does_not_match_the_prompt_that_was_answered(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        python = await terminals.start(PYTHON, "-q", "-i", "-E")
        await python.shows(r"^>>>$")
        await python.must("pty_write", text="import time", pattern=r">>> $")
        sleep = f"time.sleep({PAUSE})"
        reply, took = await timed(python.must("pty_write", text=sleep, pattern=r">>> "))
        assert reply.value("why") == "pattern" and took >= PAUSE, (took, reply)
        reply, took = await timed(python.must("pty_write", text=f"{sleep}; print('>>> ', 6 * 7)", pattern=r">>>  42"))
        assert reply.value("why") == "pattern" and took >= PAUSE, (took, reply)


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
async def test_patterns_are_tried_on_the_text_of_the_reply(installation, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await shell.must("pty_run", script="true")
        reply, took = await timed(shell.must("pty_write", text=f"sleep {PAUSE}; echo fin", pattern="^fin$"))
        assert reply.value("why") == "pattern" and took >= PAUSE, (took, reply)


async def test_a_program_that_echoes_nothing_is_answered_by_what_it_prints(installation):
    async with Terminals.connect(installation) as terminals:
        cat = await terminals.start("sh", "-c", "stty raw -echo; echo go; exec cat")
        await cat.wrote(rb"go")
        reply = await cat.must("pty_write", text="token", pattern="token")
        assert reply.value("why") == "pattern", reply


async def test_a_pattern_is_found_at_the_end_of_an_endless_line(installation):
    async with Terminals.connect(installation) as terminals:
        script = "import sys,time; [sys.stdout.write('x' * 1_000_000) for _ in range(16)]; sys.stdout.write('the end'); sys.stdout.flush(); time.sleep(60)"
        long = await terminals.start(PYTHON, "-c", script)
        reply = await long.must("pty_read", pattern="the end$", wait_ms=40_000)
        assert reply.value("why") == "pattern", reply.text[:300]


async def test_control_write_and_wait_of_the_core_profile(installation):
    async with Terminals.connect(installation, tools="core") as terminals:
        started = await terminals.must(
            "exec", command=[PYTHON, "-q", "-i", "-E"], input="open", until="pattern", pattern=">>> "
        )
        texts = started.id
        await terminals.must("process_control", action="write", ids=[texts], text="import time")
        await terminals.must("process", action="wait", ids=[texts], until="pattern", pattern=">>> ")
        await terminals.must("process_control", action="write", ids=[texts], text=f"time.sleep({PAUSE})", wait_ms=0)
        reply, took = await timed(
            terminals.must("process", action="wait", ids=[texts], until="pattern", pattern=">>> ")
        )
        assert took >= PAUSE * 0.9, (took, reply)


# Nothing skipped, nothing twice


async def test_output_between_two_calls_is_part_of_the_next_answer(installation):
    async with Terminals.connect(installation) as terminals:
        script = "n=0; while read -r line; do n=$((n+1)); echo got $n; (sleep 0.3; echo late $n) & done"
        loop = await terminals.start("sh", "-c", script)
        texts = []
        for n in range(1, 5):
            reply = await loop.must("pty_write", text="x", until="output")
            texts.append(reply.text)
            # It was printed after the response; it was not reported yet.
            until(lambda: f"late {n}".encode() in installation.cli("logs", loop.id, "--raw").stdout, 10, f"late {n}")
        reply = await loop.must("pty_read", view="text")
        texts.append(reply.text)
        lines = re.findall(r"^(?:got|late) \d$", "\n".join(texts), re.MULTILINE)
        assert sorted(lines) == sorted(f"{word} {n}" for word in ("got", "late") for n in range(1, 5)), texts
        reply = await loop.must("pty_read", view="text")
        assert "no new output" in reply.text, reply


def letters(reply):
    """The parts of a word that was printed alone, without the response's own text."""
    return "".join(line for line in reply.text.splitlines() if line and line in "token")


async def test_output_is_answered_as_it_was_written(installation):
    async with Terminals.connect(installation) as terminals:
        script = "import sys,time\nfor line in sys.stdin:\n for c in 'token':\n  sys.stdout.write(c); sys.stdout.flush(); time.sleep(0.0005)\n print()"
        slow = await terminals.start("sh", "-c", f"stty -echo; echo go; exec {PYTHON} -c \"$0\"", script)
        await slow.wrote(rb"go")
        answers, whole, deadline = "", 0, time.monotonic() + 15
        for count in range(1, 11):
            reply = await slow.must("pty_write", text="x", until="output")
            whole += "token" in reply.text
            answers += letters(reply)
            # On a loaded machine the program may pause within the word; then the rest comes next.
            while len(answers) < count * len("token"):
                assert time.monotonic() < deadline, answers
                answers += letters(await slow.must("pty_read", view="text", until="output"))
        assert answers == "token" * 10
        assert whole, "no word came whole"


# pty_run


#: Keys before a command, separated by spaces.
KEYS = ["ctrl-q", "ctrl-l", "tab", "escape", "up", "up down", "left", "ctrl-r", "e c h"]


@pytest.mark.parametrize(("keys", "kind"), each_once(KEYS, ["bash", "zsh", "fish"]))
async def test_a_command_runs_whatever_keys_were_typed_before(installation, keys, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await shell.must("pty_run", script="echo before")
        await shell.keys(*keys.split())
        reply = await shell.must("pty_run", script="echo $((6 * 7))" if kind != "fish" else "math 6 x 7")
        assert reply.value("exit_status") == 0, reply
        assert re.search(r"^42$", reply.text, re.MULTILINE), reply
        reply = await shell.must("pty_run", script="echo again")
        assert reply.value("exit_status") == 0 and "again" in reply.text, reply


# Prompts


PROGRAMS = {
    "gdb": (["gdb", "-q", "-nx"], r"(gdb)"),
    "sqlite3": (["sqlite3"], "sqlite>"),
    "python3": ([PYTHON, "-q", "-i", "-E"], ">>>"),
    "node": ([node()], ">"),
    "irb": (["irb", "-f"], "irb(main):001"),
    "psql": (["psql", "--version"], None),
}


@pytest.mark.parametrize("name", ["gdb", "sqlite3", "python3", "node", "irb"])
async def test_prompts_of_interpreters_are_known(installation, name):
    command, prompt = PROGRAMS[name]
    assert command[0] and shutil.which(command[0]), f"{name} is not here"
    async with Terminals.connect(installation) as terminals:
        program = await terminals.start(*command)
        reply = await program.must("pty_read", until="prompt", wait_ms=20_000)
        assert reply.value("why") == "prompt", reply
        prompt_fields = reply.value("prompt")
        assert prompt in prompt_fields["text"] and prompt_fields["default"] is None and prompt_fields["options"] == [], prompt_fields


async def test_a_silent_program_that_computes_is_not_called_settled(installation):
    async with Terminals.connect(installation) as terminals:
        python = await terminals.start(PYTHON, "-q", "-i", "-E")
        await python.shows(r"^>>>$")
        reply = await python.must("pty_write", text="sum(n * n for n in range(10**9))")
        assert "still computes" in reply.text, reply
        assert reply.value("activity") == "computing", reply
        await python.keys("ctrl-c")
        await python.must("pty_read", until="prompt")
        reply = await python.must("pty_write", text="import time; time.sleep(30)")
        assert "does not read its terminal" in reply.text, reply
        assert reply.value("activity") == "waiting", reply


async def test_a_command_in_a_terminal_is_answered_with_its_time(installation):
    async with installation.agent() as agent:
        done = await agent.must("exec", command="echo hi", input="tty", wait_ms=10_000)
        assert re.match(r"\[\w{8} exited 0, \d+\.\d+s\b", done.text), done
        running = await agent.must("exec", command="echo hi; exec sleep 300", input="tty", wait_ms=500)
        assert re.match(r"\[\w{8} running \d+\.\d+s\b", running.text), running
