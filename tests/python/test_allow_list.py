"""ALLOWED_COMMANDS cannot be passed by paths, links, wrappers, the environment or quoting."""

import os
import stat

import pytest

pytestmark = pytest.mark.anyio

ALLOWED = {"ALLOWED_COMMANDS": "ls,git"}


@pytest.fixture
def evil(any_place):
    """A place with programs of allowed names that are not the allowed ones."""
    directory = any_place.work / "evil"
    directory.mkdir()
    for name in ("ls", "git", "ls\n", " ls", "ls;id"):
        path = directory / name
        path.write_text("#!/bin/sh\necho passed\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    os.symlink("/bin/sh", directory / "link")
    any_place.give(any_place.work)
    return any_place


def attempts(directory):
    evil = f"{directory}/evil"
    hostile_path = {"PATH": f"{evil}:/usr/bin:/bin"}
    return {
        "an absolute path": ({"command": f"{evil}/ls"}, evil),
        "a path from here": ({"command": "./ls"}, evil),
        "a path with dots": ({"command": f"{directory}/../{os.path.basename(directory)}/evil/ls"}, evil),
        "a symbolic link": ({"command": f"{evil}/link", "args": ["-c", "echo passed"]}, evil),
        "env": ({"command": "env", "args": ["sh", "-c", "echo passed"]}, evil),
        "sh": ({"command": "sh", "args": ["-c", "echo passed"]}, evil),
        "busybox-like multi-call": ({"command": "/bin/sh", "args": ["-c", "echo passed"]}, evil),
        "nice": ({"command": "nice", "args": ["sh", "-c", "echo passed"]}, evil),
        "xargs": ({"command": "xargs", "args": ["echo", "passed"]}, evil),
        "a newline": ({"command": "ls\n"}, evil),
        "a leading blank": ({"command": " ls"}, evil),
        "a suffix": ({"command": "ls;id"}, evil),
        "a NUL": ({"command": "ls\0/evil"}, evil),
        "a NUL in an argument": ({"command": "ls", "args": ["a\0b"]}, evil),
        "upper case": ({"command": "LS"}, evil),
        "a list": ({"command": "ls,git"}, evil),
        "PATH in envs": ({"command": "ls", "envs": hostile_path}, evil),
        "LD_PRELOAD in envs": ({"command": "ls", "envs": {"LD_PRELOAD": f"{evil}/x.so"}}, evil),
        "an empty name": ({"command": ""}, evil),
    }


@pytest.mark.parametrize("way", attempts("/d").keys())
async def test_no_way_around_the_list(evil, way):
    arguments, directory = attempts(evil.work)[way]
    async with evil.agent(env=ALLOWED) as agent:
        reply = await agent.call("command_execute", directory=directory, **arguments)
        assert "passed" not in reply.text.replace("cannot be passed", ""), reply
        if way in ("PATH in envs", "LD_PRELOAD in envs"):
            # Either refused, or the trusted program ran without them.
            assert not reply.is_error or reply.code in ("security_error", "value_error"), reply
        else:
            assert reply.code in ("security_error", "value_error"), reply


async def test_what_is_listed_runs(evil):
    async with evil.agent(env=ALLOWED) as agent:
        reply = await agent.execute("ls", directory=str(evil.work))
        assert not reply.is_error and "evil" in reply.text
        absolute = await agent.execute("/usr/bin/ls", directory=str(evil.work))
        # The allowed program by its own path may be accepted; if so it must be that program.
        assert absolute.code in (None, "security_error")
        refused = await agent.execute("cat", "/etc/hostname")
        assert refused.code == "security_error"
        assert "ls" in refused.text and "git" in refused.text, "the answer says what is allowed"


async def test_a_refusal_is_kept_in_the_ledger(evil):
    async with evil.agent(env=ALLOWED) as agent:
        await agent.execute("cat", "/etc/hostname")
    ledger = b"".join(path.read_bytes() for path in sorted((evil.state / "ledger").iterdir()))
    assert b"refused" in ledger.lower() and b"/etc/hostname" in ledger
    assert evil.executions() == [], "nothing was started"


WIDE = {"ALLOWED_COMMANDS": "ls,awk,vim"}


def test_programs_that_run_others_are_told(place):
    """A list with `awk` on it allows everything; whoever set it hears so, with the reason."""
    for words in (["config", "explain"], ["config", "explain", "--json"], ["doctor"], ["policy", "check", "--", "ls"]):
        done = place.cli(*words, env=WIDE, check=False, timeout=180)
        told = (done.stdout + done.stderr).decode()
        for program in ("awk", "vim"):
            assert f"'{program}' can run any program" in told, (words, told)
        assert "'ls' can run" not in told
    narrow = place.cli("config", "explain", env={"ALLOWED_COMMANDS": "ls,cat"})
    assert b"can run any program" not in narrow.stdout + narrow.stderr


def test_a_front_warns_when_it_starts(place):
    done = place.cli("mcp", env=WIDE, check=False)
    assert b"'awk' can run any program" in done.stderr and b"'vim'" in done.stderr, done
    assert b"can run any program" not in done.stdout, "standard output is the wire"
