"""`ostler events`: what happens, as it happens, also under the next daemon."""

import json
import os
import select
import signal
import subprocess

import pytest

from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


class EventFollower:
    """`ostler events` under way."""

    def __init__(self, installation, *args):
        self.process = subprocess.Popen(
            installation.argv("events", *args), cwd=installation.work, env=installation.env(), stdin=subprocess.DEVNULL,
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
        """Lines up to the one that contains all of these words."""
        lines = []
        while not lines or not all(word in lines[-1] for word in words):
            lines.append(self.line())
        return lines

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


def started(installation, *words):
    return installation.cli("run", "-d", *words).stdout.decode().strip()


def test_events_are_shown_as_they_happen(installation):
    before = started(installation, "true")
    installation.cli("wait", before)
    with EventFollower(installation) as events:
        # It begins at some moment from now: what is started after its first event is followed whole.
        while not select.select([events.process.stdout], [], [], 1)[0]:
            started(installation, "true")
        followed = started(installation, "sh", "-c", "exit 3")
        lines = events.until(followed, "finished", "exit")
        assert not any(before in line for line in lines), lines
        assert any(followed in line and "created" in line and "exit 3" in line for line in lines), lines
        assert events.interrupt() == 0


def test_one_execution_is_followed_from_beginning_to_end(installation):
    pid = started(installation, "sh", "-c", "read line")
    other = started(installation, "true")
    with EventFollower(installation, pid) as events:
        events.until("created", pid)
        installation.cli("stop", "--force", pid)
        lines = events.until("finished", pid)
        assert events.process.wait(30) == 0
        assert not any(other in line for line in lines), lines
    ended = installation.cli("events", pid).stdout.decode()
    assert ended.splitlines()[-1].split()[3] == "finished", ended
    assert installation.cli("events", "zzzzzzzz", check=False).returncode == 66


def test_a_follower_goes_on_under_the_next_daemon(installation):
    first = started(installation, "true")
    installation.cli("wait", first)
    with EventFollower(installation, "--json", "--since", "1h") as events:
        seen = [json.loads(line) for line in events.until(first, "finished")]
        installation.kill_daemon()
        second = started(installation, "true")
        seen += [json.loads(line) for line in events.until(second, "finished")]
    cursors = [it["cursor"] for it in seen]
    assert cursors == sorted(set(cursors)), "in order, each once"
    assert {(it["id"], it["event"]) for it in seen} >= {
        (id_, event) for id_ in (first, second) for event in ("created", "started", "finished")
    }, seen
    after = installation.cli("events", "--json", "--no-follow", "--since-cursor", str(cursors[2])).stdout
    again = [json.loads(line)["cursor"] for line in after.splitlines()]
    assert again[: len(cursors) - 3] == cursors[3:], (again, cursors)


async def test_a_session_sees_its_own_events_only(installation):
    async with installation.agent(session="one") as one, installation.agent(session="two") as two:
        own, theirs = await one.start("true"), await two.start("true")
    events = installation.rest("GET", "/api/v1/events?cursor=0", session="one")["events"]
    assert own in [it.get("id") for it in events], events
    assert theirs not in [it.get("id") for it in events], events
    with pytest.raises(ProblemError) as refused:
        installation.rest("GET", f"/api/v1/events?id={theirs}", session="one")
    assert refused.value.status == 404
    with pytest.raises(ProblemError):
        installation.rest("GET", "/api/v1/events?since=cursor:5", session="one")


def test_no_page_of_events_is_empty_while_more_are_to_come(installation):
    """Also where those of others take more than one reading of the ledger."""
    start = {"command": {"argv": {"program": "true", "args": []}}, "cwd": "/"}

    def others(count):
        for _ in range(count):
            with pytest.raises(ProblemError):
                installation.rest("POST", "/api/v1/executions", {**start, "cwd": "/no/such"}, session="two")

    installation.cli("ps")
    first = installation.rest("POST", "/api/v1/executions", start, session="one")["id"]
    installation.cli("wait", first)
    others(2_100)
    last = installation.rest("POST", "/api/v1/executions", start, session="one")["id"]
    installation.cli("wait", last)
    page = installation.rest("GET", f"/api/v1/events?id={last}", session="one")
    assert page["events"] and {it["id"] for it in page["events"]} == {last}, page
    found, cursor, more = [], 0, True
    while more:
        page = installation.rest("GET", f"/api/v1/events?cursor={cursor}", session="one")
        assert page["events"], page
        found, cursor, more = found + page["events"], page["next"], page["behind"]
    assert {it["id"] for it in found} == {first, last}
    others(1)
    page = installation.rest("GET", f"/api/v1/audit?before={cursor - 20}", session="one")
    assert {it["execution"] for it in page["entries"]} == {page["entries"][0]["execution"]} and not page["more"], page
