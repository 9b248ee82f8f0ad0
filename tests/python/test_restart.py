"""`ostler restart`: the same command again, with the same isolation, limits and secrets, and a new approval."""

import pytest

from harness import TerminalUser

RULES = """
default = "allow"

[[rule]]
id = "ask-sleep"
prefix = ["sleep"]
decision = "ask"
justification = "nobody sleeps unasked"
match = ["sleep 1"]
not_match = ["true"]
"""


@pytest.fixture
def asking_policy(installation):
    """An installation with a policy that asks before a sleep."""
    installation.write_policy(RULES)
    return installation


def approved(installation):
    """A command that a person agreed to."""
    person = TerminalUser(installation, "run", "-d", "--", "sleep", "300")
    person.wait_for(b"nobody sleeps unasked")
    person.wait_for(rb"\[y/N\]")
    person.type("y\r")
    person.wait_exit()
    return installation.json("ps")[0]["id"]


def test_a_person_is_asked_again_before_anything_is_stopped(asking_policy):
    pid = approved(asking_policy)
    refused = asking_policy.cli("restart", pid, check=False)
    assert refused.returncode == 77, refused
    assert [it["id"] for it in asking_policy.json("ps")] == [pid], "it runs as before"
    person = TerminalUser(asking_policy, "restart", pid)
    person.wait_for(b"nobody sleeps unasked")
    person.wait_for(rb"\[y/N\]")
    person.type("n\r")
    assert person.wait_exit() != 0
    assert [it["id"] for it in asking_policy.json("ps")] == [pid], "it runs as before"
    person = TerminalUser(asking_policy, "restart", pid)
    person.wait_for(rb"\[y/N\]")
    person.type("y\r")
    assert person.wait_exit() == 0
    running = asking_policy.json("ps")
    assert len(running) == 1 and running[0]["id"] != pid, running
    assert asking_policy.json("info", pid)["status"] == "terminated"


def test_what_cannot_start_again_is_not_stopped(installation):
    (installation.work / "here").mkdir()
    pid = installation.cli("run", "-d", "--cwd", installation.work / "here", "sleep", "300").stdout.decode().strip()
    (installation.work / "here").rmdir()
    refused = installation.cli("restart", pid, check=False)
    assert refused.returncode != 0, refused
    assert [it["id"] for it in installation.json("ps")] == [pid]


def test_level_limits_and_secrets_are_as_they_were(installation):
    token = "s3cr3t-t0k3n-0815"
    installation.cli("run", "true")
    read = installation.dir / "extra"
    read.mkdir()
    (read / "data").write_text("seen\n")
    script = (
        f'test "$TOKEN" = {token} && echo has-secret; cat {read}/data; ulimit -n;'
        " touch kept 2>/dev/null; test -e /proc/self && grep -c NoNewPrivs /proc/self/status"
    )
    words = [
        "run", "-d", "--isolation", "high", "--network", "none", "--read", read, "--files", "99",
        "--overlay", "--secret", "TOKEN", "--timeout", "40s", "--label", "same", "--", "sh", "-c", script,
    ]
    env = {"OSTLER_SECRET_TOKEN": token}
    first = installation.cli(*words, env=env).stdout.decode().strip()
    installation.cli("wait", first)
    # Neither this proxy nor the daemon has it.
    without = installation.cli("restart", first, check=False)
    assert without.returncode != 0 and token.encode() not in without.stderr + without.stdout, without
    assert b"TOKEN" in without.stderr, without
    for kill in (False, True):
        if kill:
            installation.kill_daemon()
        again = installation.cli("restart", first, env=env).stdout.decode().strip()
        installation.cli("wait", again)
        one, other = installation.json("info", first), installation.json("info", again)
        for key in ("asked", "in_force", "missing", "limits", "confinement"):
            assert one["isolation"][key] == other["isolation"][key], key
        for key in ("argv", "directory", "labels", "timeout", "exit_code"):
            assert one[key] == other[key], key
        printed = installation.cli("logs", "--no-time", first).stdout
        assert b"has-secret\nseen\n99\n" in printed, printed
        assert installation.cli("logs", "--no-time", again).stdout == printed
