"""A pause stops the whole tree where it is, and the clocks of its time limits with it."""

import re
import time

import pytest

from harness import members, procs, until
from harness.protected_env import FIRST, USERS, isolation
from harness.installation import ProblemError
from harness.isolation_client import IsolationOptions

pytestmark = pytest.mark.anyio

LEVELS = ("medium", "high")
#: A tree of three that counts, each in a file of its own.
COUNT = """
count() { i=0; while :; do i=$((i+1)); echo $i > count-$1; sleep 0.02; done; }
count 1 & setsid sh -c 'i=0; while :; do i=$((i+1)); echo $i > count-2; sleep 0.02; done' & count 3
"""


def begin(installation, user, level, *more, script=COUNT):
    directory = installation.dir / f"pause-{time.monotonic_ns()}"
    directory.mkdir()
    installation.give(directory)
    options = isolation(user) if level == "high" else IsolationOptions(level=level)
    done = installation.cli("run", "-d", *options.words(), *more, "--cwd", directory, "--", "sh", "-c", script)
    return done.stdout.decode().strip(), directory


def counts(directory):
    return [(directory / f"count-{n}").read_text() for n in (1, 2, 3)]


def all_count(directory):
    return all((directory / f"count-{n}").exists() for n in (1, 2, 3))


def moves(directory, seconds=5.0):
    """Whether every process of the tree continues."""
    before = counts(directory)
    return until(lambda: all(a != b for a, b in zip(before, counts(directory)) if b), seconds, "the tree to go on")


def stands(directory):
    """Nothing changes for a while: the one fact that can only be observed by waiting."""
    before = counts(directory)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        assert counts(directory) == before, "it goes on"
    return True


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("user", USERS)
def test_the_whole_tree_stands_still_and_goes_on(protected_envs, user, level):
    installation = protected_envs.of(user)
    pid, directory = begin(installation, user, level)
    until(lambda: all_count(directory), 10)
    for _ in range(2):
        installation.cli("pause", pid)
        assert stands(directory)
        assert "paused" in str(installation.json("info", pid)), installation.json("info", pid)
        installation.cli("pause", pid)
        installation.cli("resume", pid)
        assert moves(directory)
    installation.cli("stop", "--force", pid)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("user", USERS)
async def test_agents_pause_and_resume(protected_envs, user, level):
    installation = protected_envs.of(user)
    options = isolation(user) if level == "high" else IsolationOptions(level=level)
    directory = installation.dir / f"agent-{user}-{level}"
    directory.mkdir()
    installation.give(directory)
    async with installation.agent() as agent:
        start = await agent.must("exec", script=COUNT, wait_ms=0, cwd=str(directory), **options.arguments())
        pid = start.value("id")
        until(lambda: all_count(directory), 10)
        await agent.must("process_control", action="pause", ids=[pid])
        assert stands(directory)
        detail = await agent.must("process", action="detail", ids=[pid])
        assert "paused" in detail.text + str(detail.structured), detail
        await agent.must("process_control", action="resume", ids=[pid])
        assert moves(directory)
        await agent.must("process_control", action="stop", ids=[pid], force=True)


@pytest.mark.parametrize("polite", [True, False])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("user", FIRST)
def test_a_stop_ends_what_is_paused(protected_envs, user, level, polite):
    installation = protected_envs.of(user)
    script = "trap 'echo goodbye; exit 7' TERM; echo up; while :; do sleep 0.05; done"
    pid, _ = begin(installation, user, level, script=script)
    until(lambda: b"up" in installation.cli("logs", pid, "--raw").stdout)
    uuid = installation.json("info", pid)["uuid"]
    installation.cli("pause", pid)
    start = time.monotonic()
    installation.cli("stop", *([] if polite else ["--force"]), pid)
    assert time.monotonic() - start < 4, "not only after the grace"
    until(lambda: not members(uuid), 5)
    info = installation.json("info", pid)
    assert info["status"] == "terminated"
    if polite:
        assert info["exit_code"] == 7, info


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("user", FIRST)
def test_time_limits_stand_still(protected_envs, user, level):
    installation = protected_envs.of(user)
    pid, _ = begin(installation, user, level, "--timeout", "2", script="sleep 1; echo done")
    installation.cli("pause", pid)
    end = time.monotonic() + 2.5
    until(lambda: time.monotonic() > end, 5)
    assert installation.json("info", pid)["status"] == "running"
    installation.cli("resume", pid)
    assert installation.cli("wait", pid, check=False).returncode == 0
    assert installation.cli("logs", pid, "--raw").stdout == b"done\n"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("user", FIRST)
def test_a_pause_outlives_the_daemon(protected_envs, user, level):
    installation = protected_envs.of(user)
    pid, directory = begin(installation, user, level)
    until(lambda: all_count(directory), 10)
    installation.cli("pause", pid)
    installation.kill_daemon()
    assert stands(directory)
    assert "paused" in str(installation.json("info", pid))
    installation.cli("resume", pid)
    assert moves(directory)
    installation.cli("stop", "--force", pid)


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_has_ended_or_is_unknown_cannot_be_paused(protected_envs, verb):
    installation = protected_envs.of(USERS[0])
    installation.cli("run", "--label", "over", "--", "true")
    [entry] = installation.json("ps", "-a", "--label", "over", "-n", "1")
    ended = installation.cli(verb, entry["id"], check=False)
    assert ended.returncode not in (0, 101), ended
    unknown = installation.cli(verb, "zzzzzzzz", check=False)
    assert unknown.returncode == 66, unknown
    with pytest.raises(ProblemError) as refused:
        installation.rest("POST", f"/api/v1/executions/zzzzzzzz/{verb}")
    assert refused.value.status == 404
