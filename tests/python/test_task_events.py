"""What happens to a task as a stream of events, over server-sent events and over a WebSocket."""

import contextlib
import json
import sys
from datetime import datetime
from urllib.parse import quote

import pytest

from harness import WsRecorder
from harness.installation import ProblemError

ASKS = "print('first é'); a = input('Continue? [y/n] '); print('got ' + a, flush=True); b = input('Name: '); print('bye ' + b)"


def execute(installation, command, *args, **fields):
    installation.cli("ps")
    body = {"command": command, "args": list(args), **fields}
    return installation.rest("POST", f"/api/v1/projects/{quote(str(installation.work), safe='')}/execute", body)


def answer(installation, started, text):
    installation.rest("POST", f"/api/v1/tasks/{started['task_id']}/input", {"input": text})


class TaskSource:
    """The stream of a task's events: `(id, event)`."""

    def __init__(self, installation, started, stack, last=None, query=""):
        connection = stack.enter_context(contextlib.closing(installation.connect()))
        headers = {"Host": "localhost"} if last is None else {"Host": "localhost", "Last-Event-ID": last}
        connection.request("GET", started["events_url"] + query, headers=headers)
        self.response = connection.getresponse()

    def __iter__(self):
        name = None
        for line in self.response:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "id":
                name = value
            elif field == "data":
                yield name, json.loads(value)


def printed(events):
    return "".join(event["data"] for event in events if event["type"] == "output")


def test_output_questions_and_the_end_arrive_as_they_happen(installation):
    started = execute(installation, sys.executable, "-c", ASKS, timeout=60)
    seen, answers = [], iter(["y", "Ann"])
    with contextlib.ExitStack() as stack:
        source = TaskSource(installation, started, stack)
        assert source.response.headers["Content-Type"] == "text/event-stream"
        for name, event in source:
            seen.append(event)
            if event["type"] == "confirmation_required":
                answer(installation, started, next(answers))
    assert [event["type"] for event in seen if event["type"] != "output"] == [
        "confirmation_required", "confirmation_required", "completed"]
    questions = [event for event in seen if event["type"] == "confirmation_required"]
    assert "Continue?" in questions[0]["message"] and questions[0]["options"] and "Name" in questions[1]["message"], questions
    assert "first é" in printed(seen) and "got y" in printed(seen) and "bye Ann" in printed(seen), seen
    assert (seen[-1]["exit_code"], name) == (0, "end") and seen[-1]["duration"] > 0
    assert {event["task_id"] for event in seen} == {started["task_id"]}
    times = [datetime.fromisoformat(event["timestamp"]) for event in seen if event["type"] == "output"]
    assert times == sorted(times) and {event["stream"] for event in seen if event["type"] == "output"} == {"pty"}


def test_a_client_goes_on_where_it_was_and_is_told_of_the_end_once(installation):
    started = execute(installation, "sh", "-c", "echo one; echo two >&2; exec cat", interactive=False)
    installation.cli("wait", started["task_id"])
    with contextlib.ExitStack() as stack:
        everything = list(TaskSource(installation, started, stack))
        assert [event.get("stream") for _, event in everything] == ["stdout", "stderr", None], everything
        after = [event for _, event in TaskSource(installation, started, stack, last=everything[0][0])]
        assert after == [event for _, event in everything[1:]]
        query = f"?cursor={everything[1][1]['cursor']}"
        assert [event["type"] for _, event in TaskSource(installation, started, stack, query=query)] == ["completed"]
        assert TaskSource(installation, started, stack, last="end").response.status == 204
        refused = TaskSource(installation, started, stack, last="nowhere").response
        assert refused.status == 422 and "Last-Event-ID" in json.loads(refused.read())["message"]


@pytest.mark.parametrize("args, fields, kind, expected", [
    (["sleep", "600"], {"timeout": 1}, "error", {"code": "TIMEOUT"}),
    (["sh", "-c", "kill -KILL $$"], {}, "completed", {"exit_code": 137}),
    (["sh", "-c", "exit 3"], {"interactive": False}, "completed", {"exit_code": 3}),
])
def test_the_last_event_says_how_it_ended(installation, args, fields, kind, expected):
    started = execute(installation, *args, **fields)
    with contextlib.ExitStack() as stack:
        *_, (_, last) = TaskSource(installation, started, stack)
    assert last["type"] == kind and expected.items() <= last.items(), last


def test_bytes_that_are_no_text_are_replaced_and_characters_never_split(installation):
    script = r"printf '\303'; sleep 0.3; printf '\251 \377 \342\202'"
    started = execute(installation, "sh", "-c", script, interactive=False)
    with contextlib.ExitStack() as stack:
        assert printed(event for _, event in TaskSource(installation, started, stack)) == "é \ufffd \ufffd"


def test_the_same_over_a_websocket(installation):
    started = execute(installation, sys.executable, "-c", ASKS)
    with WsRecorder(installation, None, "", path=started["events_url"]) as socket:
        assert "Continue?" in socket.wait_message("confirmation_required")["message"]
        socket.say(type="anything")
        answer(installation, started, "n")
        while not any(message["type"] == "confirmation_required" for message in socket.messages):
            socket.frame()
        assert "got n" in printed(socket.messages), socket.messages
        answer(installation, started, "Bob")
        last = socket.to_the_end()[-1]
        assert (last["type"], last["exit_code"]) == ("completed", 0)
        assert socket.close_frame == (1000).to_bytes(2, "big") + b"the task ended"
        cursor = last["cursor"]
    with WsRecorder(installation, None, f"cursor={cursor}", path=started["events_url"]) as socket:
        assert [message["type"] for message in socket.to_the_end()] == ["completed"]


def test_at_the_daemon_s_end_the_stream_ends_and_goes_on_under_the_next(installation):
    started = execute(installation, "sh", "-c", "echo before; read line; echo after $line")
    with contextlib.ExitStack() as stack:
        events = iter(TaskSource(installation, started, stack))
        name, event = next(events)
        assert "before" in event["data"]
        installation.rest("POST", "/api/v1/shutdown")
        assert [event["type"] for _, event in events if event["type"] != "confirmation_required"] == []
        installation.cli("ps")
        resumed = TaskSource(installation, started, stack, last=name)
        answer(installation, started, "x")
        seen = [event for _, event in resumed]
    assert "before" not in printed(seen) and "after x" in printed(seen) and seen[-1]["exit_code"] == 0, seen


def test_a_request_that_is_no_websocket_is_told(installation):
    started = execute(installation, "true")
    connection = installation.connect()
    connection.request("GET", started["events_url"], headers={"Host": "localhost", "Connection": "Upgrade", "Upgrade": "h2c"})
    response = connection.getresponse()
    assert response.status == 426, response.read()
    connection.close()
    with pytest.raises(ProblemError) as refused:
        installation.rest("GET", started["events_url"] + "?wrong=1")
    assert refused.value.status == 422 and "wrong" in str(refused.value)


@pytest.mark.parametrize(("opcode", "data", "code", "word"), [
    (1, b"x" * 70_000, 1009, b"at most 65536 bytes"), (1, b"\xff", 1007, b"UTF-8"), (5, b"", 1002, b"WebSocket frame"),
])
def test_what_breaks_the_protocol_is_told_in_the_close(installation, opcode, data, code, word):
    started = execute(installation, "sleep", "300")
    with WsRecorder(installation, None, "", path=started["events_url"]) as socket:
        socket.send(opcode, data)
        socket.to_the_end()
    assert socket.close_frame[:2] == code.to_bytes(2, "big") and word in socket.close_frame, socket.close_frame
