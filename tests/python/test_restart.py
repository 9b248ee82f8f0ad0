"""`ostler restart`: the same again, with the same walls, limits and secrets, and asked about anew."""

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
def asking(place):
    """A place that asks before anything sleeps."""
    config = place.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (config / "policy.toml").write_text(RULES)
    return place


def approved(place):
    """A command that a person agreed to."""
    person = TerminalUser(place, "run", "-d", "--", "sleep", "300")
    person.wait_for(b"nobody sleeps unasked")
    person.wait_for(rb"\[y/N\]")
    person.type("y\r")
    person.wait_exit()
    return place.json("ps")[0]["id"]


def test_a_person_is_asked_anew_before_anything_is_stopped(asking):
    pid = approved(asking)
    refused = asking.cli("restart", pid, check=False)
    assert refused.returncode == 77, refused
    assert [it["id"] for it in asking.json("ps")] == [pid], "it runs as before"
    person = TerminalUser(asking, "restart", pid)
    person.wait_for(b"nobody sleeps unasked")
    person.wait_for(rb"\[y/N\]")
    person.type("n\r")
    assert person.wait_exit() != 0
    assert [it["id"] for it in asking.json("ps")] == [pid], "it runs as before"
    person = TerminalUser(asking, "restart", pid)
    person.wait_for(rb"\[y/N\]")
    person.type("y\r")
    assert person.wait_exit() == 0
    running = asking.json("ps")
    assert len(running) == 1 and running[0]["id"] != pid, running
    assert asking.json("info", pid)["status"] == "terminated"


def test_what_cannot_start_again_is_not_stopped(place):
    (place.work / "here").mkdir()
    pid = place.cli("run", "-d", "--cwd", place.work / "here", "sleep", "300").stdout.decode().strip()
    (place.work / "here").rmdir()
    refused = place.cli("restart", pid, check=False)
    assert refused.returncode != 0, refused
    assert [it["id"] for it in place.json("ps")] == [pid]


def test_level_limits_and_secrets_are_as_they_were(place):
    token = "s3cr3t-t0k3n-0815"
    place.cli("run", "true")
    read = place.dir / "extra"
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
    first = place.cli(*words, env=env).stdout.decode().strip()
    place.cli("wait", first)
    # Neither this front nor the daemon has it.
    without = place.cli("restart", first, check=False)
    assert without.returncode != 0 and token.encode() not in without.stderr + without.stdout, without
    assert b"TOKEN" in without.stderr, without
    for kill in (False, True):
        if kill:
            place.kill_daemon()
        again = place.cli("restart", first, env=env).stdout.decode().strip()
        place.cli("wait", again)
        one, other = place.json("info", first), place.json("info", again)
        for key in ("asked", "in_force", "missing", "limits", "confinement"):
            assert one["isolation"][key] == other["isolation"][key], key
        for key in ("argv", "directory", "labels", "timeout", "exit_code"):
            assert one[key] == other[key], key
        printed = place.cli("logs", "--no-time", first).stdout
        assert b"has-secret\nseen\n99\n" in printed, printed
        assert place.cli("logs", "--no-time", again).stdout == printed
