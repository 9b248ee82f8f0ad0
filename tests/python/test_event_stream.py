"""`GET /api/v1/events` as server-sent events: as they happen, and on where a client was under the next daemon."""

import contextlib
import json
import os
import socket

import pytest

from harness import until
from harness.installation import ProblemError

ACCEPT = {"Host": "localhost", "Accept": "text/event-stream"}


class EventSource:
    """A client as the HTML standard describes it."""

    def __init__(self, installation, query="", last=None):
        self.connection = installation.connect(timeout=30)
        headers = ACCEPT if last is None else {**ACCEPT, "Last-Event-ID": last}
        self.connection.request("GET", f"/api/v1/events{query}", headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self.last, self.retry = last, None

    def next(self):
        """The next event; none at the end of the stream."""
        data = []
        while line := self.response.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                self.last = value
            elif name == "retry":
                self.retry = int(value)
            elif name == "data":
                data.append(value)
            elif not name and data:
                return json.loads("\n".join(data))
        return None

    def until(self, kind):
        """Events up to one of this kind."""
        found = []
        while not found or found[-1]["event"] != kind:
            found.append(self.next())
            assert found[-1] is not None, found
        return found


@contextlib.contextmanager
def event_source(installation, query="", last=None):
    source = EventSource(installation, query, last)
    try:
        yield source
    finally:
        source.connection.close()


def test_events_come_as_they_happen(installation):
    before = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", before)
    with event_source(installation) as source:
        assert source.response.headers["Content-Type"] == "text/event-stream"
        assert source.response.headers["Cache-Control"] == "no-store"
        pid = installation.cli("run", "-d", "--", "sh", "-c", "exit 3").stdout.decode().strip()
        events = source.until("finished")
        assert [event["event"] for event in events] == ["created", "started", "finished"]
        assert {event["id"] for event in events} == {pid}, "none from before"
        assert events[-1]["ending"]["code"] == 3
        assert (source.retry, source.last) == (1000, str(events[-1]["cursor"]))


def test_it_says_the_same_as_the_pages(installation):
    installation.cli("run", "--", "true")
    installation.cli("run", "--", "false", check=False)
    pages = installation.rest("GET", "/api/v1/events?cursor=0")["events"]
    with event_source(installation, "?cursor=0") as source:
        assert [source.next() for _ in pages] == pages
    with event_source(installation, f"?id={pages[0]['id']}") as source:
        assert source.until("finished") == [event for event in pages if event["id"] == pages[0]["id"]]


def test_nothing_is_missed_or_sent_twice_under_the_next_daemon(installation):
    installation.cli("ps")
    with event_source(installation) as source:
        first = installation.cli("run", "-d", "--", "sleep", "60").stdout.decode().strip()
        seen = source.until("started")
        installation.kill_daemon()
        with contextlib.suppress(ConnectionError):
            assert source.next() is None, "the stream ends with the daemon"
    installation.cli("stop", first)
    with event_source(installation, "?cursor=0", last=source.last) as source:
        rest = source.until("finished")
    cursors = [event["cursor"] for event in seen + rest]
    assert cursors == list(range(1, len(cursors) + 1)), "all of them, each once"


def test_a_stream_ends_with_an_orderly_shutdown(installation):
    installation.cli("run", "--", "true")
    with event_source(installation) as source:
        installation.shut_down()
        assert source.next() is None


def test_those_of_others_are_not_sent(installation):
    installation.cli("run", "--", "true")
    connection = installation.connect()
    connection.request("GET", "/api/v1/events", headers={**ACCEPT, "Ostler-Session": "own"})
    response = connection.getresponse()
    installation.cli("run", "--", "echo", "other")
    body = {"command": {"argv": {"program": "true", "args": []}}, "cwd": "/"}
    mine = installation.rest("POST", "/api/v1/executions", body, session="own")["id"]
    received = []
    while not received or received[-1]["event"] != "finished":
        line = response.readline()
        if line.startswith(b"data: "):
            received.append(json.loads(line[6:]))
    connection.close()
    assert {event["id"] for event in received} == {mine}


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "18446744073709551616"])
def test_an_id_that_is_none_is_refused(installation, last):
    installation.cli("run", "--", "true")
    connection = installation.connect()
    connection.request("GET", "/api/v1/events", headers={**ACCEPT, "Last-Event-ID": last})
    response = connection.getresponse()
    problem = json.loads(response.read())
    connection.close()
    assert (response.status, problem["code"]) == (422, "value_error"), problem
    assert f"Last-Event-ID' is '{last}'" in problem["message"], problem
    with pytest.raises(ProblemError):
        installation.rest("GET", "/api/v1/events?cursor=x")


def test_a_client_that_goes_leaves_nothing(installation):
    installation.cli("run", "--", "true")
    pid = installation.daemon().pid

    def descriptors():
        return len(os.listdir(f"/proc/{pid}/fd"))

    before = descriptors()
    sources = [EventSource(installation) for _ in range(50)]
    assert descriptors() > before + 40
    for source in sources:
        source.connection.sock.shutdown(socket.SHUT_RDWR)
        source.connection.close()
    installation.cli("run", "--", "true")
    until(lambda: descriptors() < before + 10, 10, "closed connections")
