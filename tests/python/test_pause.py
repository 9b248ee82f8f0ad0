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


def begin(place, who, level, *more, script=COUNT):
    directory = place.dir / f"pause-{time.monotonic_ns()}"
    directory.mkdir()
    place.give(directory)
    asked = isolation(who) if level == "high" else IsolationOptions(level=level)
    done = place.cli("run", "-d", *asked.words(), *more, "--cwd", directory, "--", "sh", "-c", script)
    return done.stdout.decode().strip(), directory


def counts(directory):
    return [(directory / f"count-{n}").read_text() for n in (1, 2, 3)]


def all_count(directory):
    return all((directory / f"count-{n}").exists() for n in (1, 2, 3))


def moves(directory, seconds=5.0):
    """Whether every process of the tree goes on."""
    before = counts(directory)
    return until(lambda: all(a != b for a, b in zip(before, counts(directory)) if b), seconds, "the tree to go on")


def stands(directory):
    """Nothing changes for a while: the one fact that can only be seen by waiting."""
    before = counts(directory)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        assert counts(directory) == before, "it goes on"
    return True


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("who", USERS)
def test_the_whole_tree_stands_still_and_goes_on(places, who, level):
    place = places.of(who)
    pid, directory = begin(place, who, level)
    until(lambda: all_count(directory), 10)
    for _ in range(2):
        place.cli("pause", pid)
        assert stands(directory)
        assert "paused" in str(place.json("info", pid)), place.json("info", pid)
        place.cli("pause", pid)
        place.cli("resume", pid)
        assert moves(directory)
    place.cli("stop", "--force", pid)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("who", USERS)
async def test_agents_pause_and_resume(places, who, level):
    place = places.of(who)
    asked = isolation(who) if level == "high" else IsolationOptions(level=level)
    directory = place.dir / f"agent-{who}-{level}"
    directory.mkdir()
    place.give(directory)
    async with place.agent() as agent:
        begun = await agent.must("exec", script=COUNT, wait_ms=0, cwd=str(directory), **asked.arguments())
        pid = begun.value("id")
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
@pytest.mark.parametrize("who", FIRST)
def test_a_stop_ends_what_is_paused(places, who, level, polite):
    place = places.of(who)
    script = "trap 'echo goodbye; exit 7' TERM; echo up; while :; do sleep 0.05; done"
    pid, _ = begin(place, who, level, script=script)
    until(lambda: b"up" in place.cli("logs", pid, "--raw").stdout)
    uuid = place.json("info", pid)["uuid"]
    place.cli("pause", pid)
    begun = time.monotonic()
    place.cli("stop", *([] if polite else ["--force"]), pid)
    assert time.monotonic() - begun < 4, "not only after the grace"
    until(lambda: not members(uuid), 5)
    info = place.json("info", pid)
    assert info["status"] == "terminated"
    if polite:
        assert info["exit_code"] == 7, info


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("who", FIRST)
def test_time_limits_stand_still(places, who, level):
    place = places.of(who)
    pid, _ = begin(place, who, level, "--timeout", "2", script="sleep 1; echo done")
    place.cli("pause", pid)
    end = time.monotonic() + 2.5
    until(lambda: time.monotonic() > end, 5)
    assert place.json("info", pid)["status"] == "running"
    place.cli("resume", pid)
    assert place.cli("wait", pid, check=False).returncode == 0
    assert place.cli("logs", pid, "--raw").stdout == b"done\n"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("who", FIRST)
def test_a_pause_outlives_the_daemon(places, who, level):
    place = places.of(who)
    pid, directory = begin(place, who, level)
    until(lambda: all_count(directory), 10)
    place.cli("pause", pid)
    place.kill_daemon()
    assert stands(directory)
    assert "paused" in str(place.json("info", pid))
    place.cli("resume", pid)
    assert moves(directory)
    place.cli("stop", "--force", pid)


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_has_ended_or_is_unknown_cannot_be_paused(places, verb):
    place = places.of(USERS[0])
    place.cli("run", "--label", "over", "--", "true")
    [entry] = place.json("ps", "-a", "--label", "over", "-n", "1")
    ended = place.cli(verb, entry["id"], check=False)
    assert ended.returncode not in (0, 101), ended
    unknown = place.cli(verb, "zzzzzzzz", check=False)
    assert unknown.returncode == 66, unknown
    with pytest.raises(ProblemError) as refused:
        place.rest("POST", f"/api/v1/executions/zzzzzzzz/{verb}")
    assert refused.value.status == 404
