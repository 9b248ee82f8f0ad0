"""`ostler events`: what happens, as it happens, also under the next daemon."""

import json
import os
import select
import signal
import subprocess

import pytest

from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


class Following:
    """`ostler events` under way."""

    def __init__(self, place, *args):
        self.process = subprocess.Popen(
            place.argv("events", *args), cwd=place.work, env=place.env(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def line(self, seconds=30):
        while b"\n" not in self.rest:
            assert select.select([self.process.stdout], [], [], seconds)[0], self.rest
            piece = os.read(self.process.stdout.fileno(), 65536)
            assert piece, (self.rest, self.process.stderr.read())
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def until(self, *words):
        """Lines up to the one that has all of these words."""
        lines = []
        while not lines or not all(word in lines[-1] for word in words):
            lines.append(self.line())
        return lines

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


def started(place, *words):
    return place.cli("run", "-d", *words).stdout.decode().strip()


def test_everything_is_told_as_it_happens(place):
    before = started(place, "true")
    place.cli("wait", before)
    with Following(place) as events:
        # It begins now, whenever that is: what comes until it is told belongs to it.
        ids = []
        while True:
            ids.append(started(place, "sh", "-c", "exit 3"))
            if select.select([events.process.stdout], [], [], 1)[0]:
                break
        lines = events.until(ids[-1], "finished", "exit")
        assert not any(before in line for line in lines), lines
        assert any(ids[-1] in line and "created" in line and "exit 3" in line for line in lines), lines
        assert events.interrupt() == 0


def test_one_is_told_from_its_beginning_to_its_end(place):
    pid = started(place, "sh", "-c", "read line")
    other = started(place, "true")
    with Following(place, pid) as events:
        events.until("created", pid)
        place.cli("stop", "--force", pid)
        lines = events.until("finished", pid)
        assert events.process.wait(30) == 0
        assert not any(other in line for line in lines), lines
    ended = place.cli("events", pid).stdout.decode()
    assert ended.splitlines()[-1].split()[3] == "finished", ended
    assert place.cli("events", "zzzzzzzz", check=False).returncode == 66


def test_a_follower_goes_on_under_the_next_daemon(place):
    first = started(place, "true")
    place.cli("wait", first)
    with Following(place, "--json", "--since", "1h") as events:
        seen = [json.loads(line) for line in events.until(first, "finished")]
        place.kill_daemon()
        second = started(place, "true")
        seen += [json.loads(line) for line in events.until(second, "finished")]
    cursors = [it["cursor"] for it in seen]
    assert cursors == sorted(set(cursors)), "in order, each once"
    assert {(it["id"], it["event"]) for it in seen} >= {
        (id_, event) for id_ in (first, second) for event in ("created", "started", "finished")
    }, seen
    after = place.cli("events", "--json", "--no-follow", "--since-cursor", str(cursors[2])).stdout
    again = [json.loads(line)["cursor"] for line in after.splitlines()]
    assert again[: len(cursors) - 3] == cursors[3:], (again, cursors)


async def test_a_session_is_told_of_its_own_only(place):
    async with place.agent(session="one") as one, place.agent(session="two") as two:
        mine, theirs = await one.start("true"), await two.start("true")
    told = place.rest("GET", "/api/v1/events?cursor=0", session="one")["events"]
    assert mine in [it.get("id") for it in told], told
    assert theirs not in [it.get("id") for it in told], told
    with pytest.raises(ProblemError) as refused:
        place.rest("GET", f"/api/v1/events?id={theirs}", session="one")
    assert refused.value.status == 404
    with pytest.raises(ProblemError):
        place.rest("GET", "/api/v1/events?since=cursor:5", session="one")
