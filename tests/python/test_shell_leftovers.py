"""A shell that ends and leaves processes which take time to end: it is told as ended, with its own exit code."""

import json

import pytest

#: Left behind in a session of its own; ends by SIGKILL only.
LEFTOVER = 'trap "" HUP TERM; setsid sh -c "trap : TERM HUP; while :; do sleep .1; done" & disown'


@pytest.mark.parametrize("kind", ["bash", "zsh"])
def test_the_exit_code_of_a_shell_that_left_something_is_its_own(installation, kind):
    session = json.loads(installation.cli("shell", kind, "--detach", "--json").stdout)["id"]
    assert installation.cli("exec", session, LEFTOVER).returncode == 0
    done = installation.cli("exec", session, "exit 3", check=False)
    assert done.returncode == 3, (done.returncode, done.stderr)
    assert b"another program" not in done.stderr, done.stderr
    assert installation.json("info", session)["exit_code"] == 3


def test_a_program_that_takes_the_place_of_the_shell_is_still_told(installation):
    session = json.loads(installation.cli("shell", "bash", "--detach", "--json").stdout)["id"]
    done = installation.cli("exec", session, "exec sleep 300", check=False)
    assert done.returncode == 125 and b"another program" in done.stderr, done
    installation.cli("stop", "--force", session)
