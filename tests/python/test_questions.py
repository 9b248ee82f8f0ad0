"""Questions that clients open: over REST, a WebSocket and the command line; who answers first, and what is recorded."""

import json
import os
import threading

import pytest

from harness import HttpDaemon, Installation, WsRecorder, serve_two_principals
from harness.installation import ProblemError

READS = 'read -r line; echo "got <$line>"'


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def opened(host, kind="input_request", **fields):
    return host.rest("POST", "/api/v1/interactions", {"kind": kind, "message": "Which?", **fields})


def reader(host, script=READS):
    """The id of a command that reads one line."""
    command = {"shell": {"shell": "sh", "script": script}}
    body = {"command": command, "cwd": str(host.work), "stdin": "open", "base_env": [["PATH", "/usr/bin:/bin"]]}
    return host.rest("POST", "/api/v1/executions", body)["id"]


def answer(host, id_, value):
    return host.rest("POST", f"/api/v1/interactions/{id_}/answer", {"value": value})


def cancel(host, id_, **body):
    return host.rest("POST", f"/api/v1/interactions/{id_}/cancel", body)


def shown(host, id_, wait_ms=20_000):
    return host.rest("GET", f"/api/v1/interactions/{id_}?wait_ms={wait_ms}")


def refused(call, *args, **fields):
    with pytest.raises(ProblemError) as problem:
        call(*args, **fields)
    return problem.value


def output(host, execution):
    host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "exit", "at_most_ms": 10_000})
    lines = host.rest("GET", f"/api/v1/executions/{execution}/raw", raw=True).splitlines()
    return "".join(json.loads(line).get("data", "") for line in lines)


def audited(host, id_):
    """The entries of the audit log about a question."""
    entries = host.rest("GET", "/api/v1/audit?limit=1000")["entries"]
    return [it for it in entries if it["event"] == "interaction" and it["interaction"] == id_]


def test_a_client_opens_a_question_and_waits_for_its_answer(host):
    asked = opened(host, "choice_selection", options=["red", "green"], default="red")
    assert asked["status"] == "open" and asked["source"] == "api" and asked["default"] == "red", asked
    assert 299_000 < asked["remaining_ms"] <= 300_000, "five minutes by default"
    assert [it["id"] for it in host.rest("GET", "/api/v1/interactions")["interactions"]] == [asked["id"]]
    assert "one of red | green" in str(refused(answer, host, asked["id"], "blue"))
    waiting = []
    thread = threading.Thread(target=lambda: waiting.append(shown(host, asked["id"])))
    thread.start()
    answered = answer(host, asked["id"], "green")
    assert answered["status"] == "answered" and "answer" not in answered["end"], "it is told to those who wait"
    thread.join()
    assert waiting[0]["end"]["answer"] == "green" and waiting[0]["end"]["by"] == answered["end"]["by"]
    assert host.rest("GET", "/api/v1/interactions")["interactions"] == []
    ended = host.rest("GET", "/api/v1/interactions?all=true")["interactions"]
    assert [it["id"] for it in ended] == [asked["id"]] and "remaining_ms" not in ended[0]
    first, last = audited(host, asked["id"])
    assert first["state"] == {"status": "open"} and first["detail"]["message"] == "Which?"
    assert last["state"]["status"] == "answered" and last["detail"] == {"answer": "green"}


def test_a_timeout_takes_the_default_or_leaves_the_question_unanswered(host):
    with_default = opened(host, "confirmation", default="no", timeout_ms=1_000)["id"]
    execution = reader(host)
    typed = opened(host, default="by default", timeout_ms=1_000, execution=execution)["id"]
    without = opened(host, timeout_ms=1_000, wait_ms=20_000)
    assert without["status"] == "timed_out" and not without["end"].get("took_default"), without
    taken = shown(host, with_default)["end"]
    assert taken["took_default"] and taken["answer"] == "no", taken
    assert output(host, execution) == "got <by default>\n"
    assert "its default was taken" in str(refused(answer, host, with_default, "yes"))
    assert "no longer open: timed out" in str(refused(cancel, host, without["id"]))
    ends = [audited(host, id_)[-1]["state"] for id_ in (with_default, typed, without["id"])]
    assert ends == [{"status": "timed_out", "took_default": took} for took in (True, True, False)]


def test_a_file_is_one_of_the_workspace_or_of_the_options(host):
    (host.work / "notes.txt").write_text("x")
    os.symlink("/etc/passwd", host.work / "link")
    host.give(host.work)
    outside = ["/etc/passwd", "../state", "link", "missing", ".", "", "notes.txt\0", "n\ttes"]
    free = opened(host, "file_selection", directory=str(host.work))["id"]
    execution = reader(host)
    bound = opened(host, "file_selection", execution=execution)["id"]
    for id_ in (free, bound):
        for path in outside:
            problem = refused(answer, host, id_, path)
            assert problem.code == "interaction_error" and f"a file in {host.work}" in str(problem) or "control" in str(problem)
    assert answer(host, free, "notes.txt")["status"] == "answered"
    assert answer(host, bound, str(host.work / "notes.txt"))["status"] == "answered"
    assert output(host, execution) == f"got <{host.work}/notes.txt>\n"
    listed = opened(host, "file_selection", options=["a.txt", "b.txt"])["id"]
    assert "one of a.txt | b.txt" in str(refused(answer, host, listed, "notes.txt"))
    assert answer(host, listed, "b.txt")["status"] == "answered"


@pytest.mark.parametrize(("fields", "problem"), [
    ({"kind": "riddle"}, "kind"), ({"message": " "}, "message is empty"), ({"message": "x" * 5_000}, "longer than 4096 bytes"),
    ({"kind": "choice_selection"}, "a choice needs one"), ({"options": ["x"] * 1_000}, "options are more than"),
    ({"kind": "choice_selection", "options": ["a"], "default": "b"}, "default 'b' is no answer"),
    ({"timeout_ms": 999}, "allowed: 1000 to 86400000"), ({"timeout_ms": 86_400_001}, "allowed: 1000 to 86400000"),
    ({"timeout_ms": -1}, "timeout_ms"), ({"wait_ms": 60_001}, "allowed: 0 to 60000"), ({"secret": True}, "'secret'"),
    ({"kind": "file_selection"}, "a file_selection needs"), ({"directory": "/"}, "'directory' is for"),
    ({"kind": "file_selection", "directory": "no/slash"}, "is no directory that exists"),
    ({"kind": "file_selection", "directory": "/no/such"}, "is no directory that exists"),
    ({"colour": "red"}, "colour"), ({"execution": "zzzzzzzz"}, "not found or access denied"),
])
def test_a_wrong_question_is_refused(host, fields, problem):
    error = refused(opened, host, **fields)
    assert error.status in (404, 409, 422) and problem in str(error), error
    assert host.rest("GET", "/api/v1/interactions?all=true")["total"] == 0


def test_one_too_many_questions_are_refused(host):
    ids = [opened(host)["id"] for _ in range(32)]
    assert "32 of 32" in str(refused(opened, host))
    cancel(host, ids[0])
    opened(host)


def test_a_secret_is_recorded_and_shown_nowhere(host):
    execution = reader(host, "read -r line; echo ${#line} characters")
    with WsRecorder(host, None, query="", path="/api/v1/interactions/events") as socket:
        asked = opened(host, message="Password:", execution=execution, secret=True)
        assert asked["secret"] is True
        answer(host, asked["id"], "hunter2")
        socket.wait_message("ended")
        assert "hunter2" not in json.dumps(socket.messages)
    assert output(host, execution) == "7 characters\n"
    assert "answer" not in shown(host, asked["id"])["end"]
    assert audited(host, asked["id"])[-1]["state"]["status"] == "answered"
    assert "hunter2" not in json.dumps(host.rest("GET", "/api/v1/audit?limit=1000"))
    files = (path for path in host.state.rglob("*") if path.is_file())
    assert not any(b"hunter2" in path.read_bytes() for path in files)


def test_the_socket_tells_all_that_happens_and_takes_answers(host):
    before = opened(host, default="x")["id"]
    with WsRecorder(host, None, query="", path="/api/v1/interactions/events") as socket:
        assert socket.wait_message("opened")["interaction"]["id"] == before
        socket.wait_message("up_to_date")
        during = opened(host, "confirmation")["id"]
        assert socket.wait_message("opened")["interaction"]["id"] == during
        socket.say(type="answer", id=during, value="perhaps")
        told = socket.wait_message("refused", id=during)
        assert told["code"] == "interaction_error" and "yes or no" in told["message"]
        socket.say(type="answer", id=during, value="yes")
        ended = socket.wait_message("ended")["interaction"]
        assert ended["id"] == during and ended["status"] == "answered" and ended["end"]["text"].startswith("answered by")
        for wrong in ({"type": "answer", "id": "i99", "value": "x"}, {"type": "nonsense"}, {"type": "cancel"}):
            socket.say(**wrong)
            assert socket.wait_message("refused")["message"]
        for opcode, data in ((1, b"["), (2, b"\xff")):
            socket.send(opcode, data)
            assert "id" not in socket.wait_message("refused")
        socket.say(type="cancel", id=before, reason="not needed")
        assert socket.wait_message("ended")["interaction"]["end"]["text"].endswith(": not needed")
        short = opened(host, timeout_ms=1_000)["id"]
        assert socket.wait_message("ended")["interaction"] == shown(host, short)
        socket.say(type="answer", id=short, value="late")
        assert "timed out" in socket.wait_message("refused", id=short)["message"]


def test_what_is_no_websocket_is_told(host):
    assert refused(host.rest, "GET", "/api/v1/interactions/events").status == 426


def test_the_socket_ends_with_its_token(installation):
    def token(name):
        return json.loads(installation.cli("token", "new", name, "--principal", "ann", "--json").stdout)["token"]

    headers = {"Authorization": f"Bearer {token('mine')}"}
    http_daemon = HttpDaemon(installation)
    with WsRecorder(http_daemon, None, query="", headers=headers, path="/api/v1/interactions/events") as socket:
        socket.wait_message("up_to_date")
        installation.cli("token", "revoke", "mine")
        socket.to_the_end()
        assert socket.close_frame[:2] == (1008).to_bytes(2, "big"), socket.close_frame


@pytest.fixture(scope="module")
def token_daemon(binary):
    with serve_two_principals(Installation(binary)) as http_daemon:
        yield http_daemon


def test_the_socket_tells_nothing_of_other_owners(token_daemon):
    sockets = {}
    for name, secret in token_daemon.tokens.items():
        headers = {"Authorization": f"Bearer {secret}"}
        sockets[name] = WsRecorder(token_daemon, None, query="", headers=headers, path="/api/v1/interactions/events")
        sockets[name].wait_message("up_to_date")
    for name in ("ann", "bob"):
        connection = token_daemon.connect()
        headers = {"Authorization": f"Bearer {token_daemon.tokens[name]}", "Content-Type": "application/json"}
        body = json.dumps({"kind": "confirmation", "message": f"of {name}"})
        connection.request("POST", "/api/v1/interactions", body=body, headers=headers)
        asked = json.loads(connection.getresponse().read())
        connection.close()
        if name == "ann":
            sockets["bob"].say(type="answer", id=asked["id"], value="yes")
            foreign = sockets["bob"].wait_message("refused", id=asked["id"])
            sockets["bob"].say(type="answer", id="i99", value="yes")
            unknown = sockets["bob"].wait_message("refused", id="i99")
            assert foreign["message"] == unknown["message"]
    for name, socket in sockets.items():
        assert socket.wait_message("opened")["interaction"]["message"] == f"of {name}", "the first it is told of"
        socket.close()
