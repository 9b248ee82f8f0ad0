"""ALLOWED_COMMANDS cannot be passed by paths, links, wrappers, the environment or quoting."""

import os
import stat

import pytest

pytestmark = pytest.mark.anyio

ALLOWED = {"ALLOWED_COMMANDS": "ls,git"}


@pytest.fixture
def lookalikes(each_installation):
    """An installation with programs of allowed names that are not the allowed ones."""
    directory = each_installation.work / "evil"
    directory.mkdir()
    for name in ("ls", "git", "ls\n", " ls", "ls;id"):
        path = directory / name
        path.write_text("#!/bin/sh\necho passed\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    os.symlink("/bin/sh", directory / "link")
    each_installation.give(each_installation.work)
    return each_installation


def attempts(directory):
    lookalikes = f"{directory}/evil"
    hostile_path = {"PATH": f"{lookalikes}:/usr/bin:/bin"}
    return {
        "an absolute path": ({"command": f"{lookalikes}/ls"}, lookalikes),
        "a path from here": ({"command": "./ls"}, lookalikes),
        "a path with dots": ({"command": f"{directory}/../{os.path.basename(directory)}/evil/ls"}, lookalikes),
        "a symbolic link": ({"command": f"{lookalikes}/link", "args": ["-c", "echo passed"]}, lookalikes),
        "env": ({"command": "env", "args": ["sh", "-c", "echo passed"]}, lookalikes),
        "sh": ({"command": "sh", "args": ["-c", "echo passed"]}, lookalikes),
        "busybox-like multi-call": ({"command": "/bin/sh", "args": ["-c", "echo passed"]}, lookalikes),
        "nice": ({"command": "nice", "args": ["sh", "-c", "echo passed"]}, lookalikes),
        "xargs": ({"command": "xargs", "args": ["echo", "passed"]}, lookalikes),
        "a newline": ({"command": "ls\n"}, lookalikes),
        "a leading blank": ({"command": " ls"}, lookalikes),
        "a suffix": ({"command": "ls;id"}, lookalikes),
        "a NUL": ({"command": "ls\0/evil"}, lookalikes),
        "a NUL in an argument": ({"command": "ls", "args": ["a\0b"]}, lookalikes),
        "upper case": ({"command": "LS"}, lookalikes),
        "a list": ({"command": "ls,git"}, lookalikes),
        "PATH in envs": ({"command": "ls", "envs": hostile_path}, lookalikes),
        "LD_PRELOAD in envs": ({"command": "ls", "envs": {"LD_PRELOAD": f"{lookalikes}/x.so"}}, lookalikes),
        "an empty name": ({"command": ""}, lookalikes),
    }


@pytest.mark.parametrize("transport", attempts("/d").keys())
async def test_no_way_around_the_list(lookalikes, transport):
    arguments, directory = attempts(lookalikes.work)[transport]
    async with lookalikes.agent(env=ALLOWED) as agent:
        reply = await agent.call("command_execute", directory=directory, **arguments)
        assert "passed" not in reply.text.replace("cannot be passed", ""), reply
        if transport in ("PATH in envs", "LD_PRELOAD in envs"):
            # Either refused, or the trusted program ran without them.
            assert not reply.is_error or reply.code in ("security_error", "value_error"), reply
        else:
            assert reply.code in ("security_error", "value_error"), reply


async def test_what_is_listed_runs(lookalikes):
    async with lookalikes.agent(env=ALLOWED) as agent:
        reply = await agent.execute("ls", directory=str(lookalikes.work))
        assert not reply.is_error and "evil" in reply.text
        absolute = await agent.execute("/usr/bin/ls", directory=str(lookalikes.work))
        # The allowed program by its own path may be accepted; if so it must be that program.
        assert absolute.code in (None, "security_error")
        refused = await agent.execute("cat", "/etc/hostname")
        assert refused.code == "security_error"
        assert "ls" in refused.text and "git" in refused.text, "the answer says what is allowed"


async def test_a_refusal_is_kept_in_the_ledger(lookalikes):
    async with lookalikes.agent(env=ALLOWED) as agent:
        await agent.execute("cat", "/etc/hostname")
    ledger = b"".join(path.read_bytes() for path in sorted((lookalikes.state / "ledger").iterdir()))
    assert b"refused" in ledger.lower() and b"/etc/hostname" in ledger
    assert lookalikes.executions() == [], "nothing was started"


WIDE = {"ALLOWED_COMMANDS": "ls,awk,vim"}


def test_programs_that_run_others_are_reported(installation):
    """A list with `awk` allows everything; the user is warned, with the reason."""
    for words in (["config", "explain"], ["config", "explain", "--json"], ["doctor"], ["policy", "check", "--", "ls"]):
        done = installation.cli(*words, env=WIDE, check=False, timeout=180)
        stderr = (done.stdout + done.stderr).decode()
        for program in ("awk", "vim"):
            assert f"'{program}' can run any program" in stderr, (words, stderr)
        assert "'ls' can run" not in stderr
    small_quota = installation.cli("config", "explain", env={"ALLOWED_COMMANDS": "ls,cat"})
    assert b"can run any program" not in small_quota.stdout + small_quota.stderr


def test_a_proxy_warns_when_it_starts(installation):
    done = installation.cli("mcp", env=WIDE, check=False)
    assert b"'awk' can run any program" in done.stderr and b"'vim'" in done.stderr, done
    assert b"can run any program" not in done.stdout, "standard output is the wire"
