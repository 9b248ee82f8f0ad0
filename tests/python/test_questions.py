"""Questions that clients open: over REST, a WebSocket and the command line; who answers first, and what is recorded."""

import json
import os
import random
import signal
import subprocess
import termios
import threading

import pytest

from harness import HttpDaemon, Installation, TerminalUser, WsRecorder, serve_two_principals, until
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
            assert problem.status == 422 and problem.code == "interaction_error" and f"a file in {host.work}" in str(problem) or "control" in str(problem)
    assert answer(host, free, "notes.txt")["status"] == "answered"
    assert answer(host, bound, str(host.work / "notes.txt"))["status"] == "answered"
    assert output(host, execution) == f"got <{host.work}/notes.txt>\n"
    listed = opened(host, "file_selection", options=["a.txt", "b.txt"])["id"]
    assert "one of a.txt | b.txt" in str(refused(answer, host, listed, "notes.txt"))
    assert answer(host, listed, "b.txt")["status"] == "answered"


@pytest.mark.parametrize(("fields", "problem"), [
    ({"kind": "riddle"}, "kind"), ({"message": " "}, "message is empty"), ({"message": "x" * 5_000}, "longer than 4096 bytes"),
    ({"kind": "choice_selection"}, "a choice needs one"), ({"options": ["x"] * 1_000}, "options are more than"),
    ({"kind": "choice_selection", "options": ["go", "stay", "go"]}, "option 'go' is there twice"),
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
    assert "32 questions of this session are open" in str(refused(opened, host))
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


class Racers:
    """What several callers do at once to one question: each its own thread, all let go together."""

    def __init__(self, calls):
        self.results = [None] * len(calls)
        self.barrier = threading.Barrier(len(calls))
        threads = [threading.Thread(target=self.run, args=(at, call)) for at, call in enumerate(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run(self, at, call):
        self.barrier.wait()
        try:
            self.results[at] = call()
        except ProblemError as problem:
            self.results[at] = problem


def by_cli(host, id_, value):
    """An answer at the command line: the program is there already and gets the answer when it is called."""
    words = host.argv("interactions", "answer", id_)
    program = subprocess.Popen(words, cwd=host.work, env=host.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def call():
        told, error = program.communicate(value.encode(), timeout=30)
        if program.returncode == 0:
            return {"status": "answered", "told": told}
        assert program.returncode == 71, error
        raise ProblemError(409, {"code": "interaction_error", "message": error.decode()})

    return call


def test_exactly_one_of_many_wins_and_the_others_are_told_how_it_ended(host):
    """A random walk: answers and cancellations over three interfaces at once, of free and of bound questions."""
    seed = int(os.environ.get("OSTLER_WALK_SEED", random.randrange(1 << 32)))
    rng = random.Random(seed)
    with WsRecorder(host, None, query="", path="/api/v1/interactions/events") as socket:
        for _ in range(12):
            execution = reader(host) if rng.random() < 0.5 else None
            id_ = opened(host, **({"execution": execution} if execution else {}))["id"]
            answers = [f"answer{number}" for number in range(3)]
            calls = [lambda value=value: answer(host, id_, value) for value in answers[:2]]
            calls.append(by_cli(host, id_, answers[2]))
            calls.append(lambda: cancel(host, id_))
            if execution and rng.random() < 0.3:
                calls.append(lambda: host.rest("POST", f"/api/v1/executions/{execution}/stop", {"force": True}) and None)
            calls.append(lambda: socket.say(type="answer", id=id_, value="answer3"))
            rng.shuffle(calls)
            results = [it for it in Racers(calls).results if it is not None]
            end = shown(host, id_)
            won = [it for it in results if isinstance(it, dict)]
            lost = [it for it in results if not isinstance(it, dict)]
            socket.wait_message("opened")
            told = socket.wait_message("ended")["interaction"]
            assert told["status"] == end["status"], seed
            by_socket = end["end"].get("answer") == "answer3"
            by_end = end["end"]["text"] == "cancelled: the process has ended"
            assert len(won) + by_socket + by_end == 1, (seed, end, results)
            for loser in lost:
                assert end["end"]["text"] in str(loser) or "has ended" in str(loser), (seed, loser, end)
            if execution and (value := end["end"].get("answer")):
                host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "exit", "at_most_ms": 10_000})
                assert output(host, execution) in (f"got <{value}>\n", ""), seed
            if not by_socket:
                assert end["end"]["text"] in socket.wait_message("refused")["message"] or by_end, seed
            entries = audited(host, id_)
            assert [it["state"]["status"] for it in entries] == ["open", end["status"]], (seed, entries)


def test_an_answer_at_the_deadline_wins_or_is_told_that_time_ran_out(host):
    """The timeout of a first question is the signal to answer those that time out a moment later."""
    first = opened(host, timeout_ms=1_000)["id"]
    ids = [opened(host, timeout_ms=1_000, default="default")["id"] for _ in range(12)]

    def at_the_deadline(id_):
        shown(host, first)
        return answer(host, id_, "in time")

    results = Racers([lambda id_=id_: at_the_deadline(id_) for id_ in ids]).results
    for id_, result in zip(ids, results, strict=True):
        end = shown(host, id_)
        if isinstance(result, dict):
            assert end["status"] == "answered" and end["end"]["answer"] == "in time", end
        else:
            assert "timed out, and its default was taken" in str(result), result
            assert end["end"]["took_default"] and end["end"]["answer"] == "default", end
        assert [it["state"]["status"] for it in audited(host, id_)] == ["open", end["status"]]


def test_a_question_ends_with_its_daemon_and_the_next_one_has_it_on_record(host):
    id_ = opened(host, message="Before the end?")["id"]
    with WsRecorder(host, None, query="", path="/api/v1/interactions/events") as socket:
        socket.wait_message("up_to_date")
        host.cli("shutdown")
        socket.to_the_end()
        assert socket.close_frame[:2] == (1001).to_bytes(2, "big"), socket.close_frame
    host.cli("ps")
    assert host.rest("GET", "/api/v1/interactions")["total"] == 0
    [left] = host.rest("GET", "/api/v1/interactions?all=true")["interactions"]
    assert (left["id"], left["status"]) == (id_, "cancelled")
    assert [it["state"] for it in audited(host, id_)] == [
        {"status": "open"}, {"status": "cancelled", "reason": {"kind": "shutdown"}},
    ]
    lines = host.cli("events", "--no-follow").stdout.decode()
    assert f"{id_} asks: Before the end?" in lines and f"{id_} cancelled: the engine is shutting down" in lines


def test_an_answer_after_the_end_of_its_command_is_told_so(host):
    execution = reader(host)
    id_ = opened(host, execution=execution)["id"]
    host.rest("POST", f"/api/v1/executions/{execution}/stop", {"force": True})
    assert shown(host, id_)["end"]["text"] == "cancelled: the process has ended"
    for call in (lambda: answer(host, id_, "x"), lambda: cancel(host, id_), by_cli(host, id_, "x")):
        assert "the process has ended" in str(refused(call))
    assert (refused(opened, host, execution=execution).status, refused(shown, host, "q9999").status) == (409, 404)


def test_the_command_line_lists_answers_and_cancels(host):
    execution = reader(host)
    one = opened(host, "choice_selection", options=["red\x1b[2J", "green"], default="green")["id"]
    other = opened(host, "confirmation", execution=execution)["id"]
    table = host.cli("interactions").stdout.decode()
    heading, second, first = table.splitlines()
    assert heading.split() == ["ID", "KIND", "FROM", "LEFT", "QUESTION", "OPTIONS", "DEFAULT"]
    assert first.split()[:2] == [one, "choice_selection"] and "red\\x1b[2J | green" in first and first.endswith("green")
    assert second.split()[:3] == [other, "confirmation", execution]
    for words in (["interactions"], ["interactions", "list"]):
        assert [it["id"] for it in json.loads(host.cli(*words, "--json").stdout)] == [other, one]
    wrong = host.cli("interactions", "answer", one, "blue", check=False)
    assert wrong.returncode == 71 and b"one of red" in wrong.stderr and b"\x1b" not in wrong.stderr
    assert host.cli("interactions", "answer", one, input=b"\n", stdin=None).stdout.startswith(f"{one} answered by".encode())
    assert b"no longer open: answered by" in host.cli("interactions", "answer", one, "green", check=False).stderr
    cancelled = host.cli("interactions", "cancel", other, "--reason", "not now").stdout.decode()
    assert cancelled.startswith(f"{other} cancelled by") and cancelled.endswith(": not now\n")
    assert host.cli("interactions").stdout.splitlines() == [b"ID   KIND   FROM   LEFT   QUESTION   OPTIONS   DEFAULT"]
    assert b"cancelled by" in host.cli("interactions", "--all").stdout
    unknown = host.cli("interactions", "answer", "i99", "x", check=False)
    assert unknown.returncode == 71 and b"not found or access denied" in unknown.stderr
    for bad in (["answer"], ["cancel"], ["answer", "i1", "a", "b"], ["ponder"], ["-n", "0"]):
        assert host.cli("interactions", *bad, check=False).returncode == 64, bad
    not_text = host.cli("interactions", "answer", opened(host)["id"], input=b"\xff", stdin=None, check=False)
    assert not_text.returncode == 64 and b"UTF-8" in not_text.stderr


def echoes(user):
    return bool(termios.tcgetattr(user.fd)[3] & termios.ECHO)


def test_a_secret_is_typed_unseen_or_read_from_standard_input(host):
    ids = [opened(host, message="Password:", execution=reader(host, "read -r line; echo ${#line} characters"), secret=True)
           for _ in range(2)]
    refused_ = host.cli("interactions", "answer", ids[0]["id"], "hunter2", check=False)
    assert refused_.returncode == 64 and b"standard input" in refused_.stderr and b"hunter2" not in refused_.stderr
    done = host.cli("interactions", "answer", ids[0]["id"], input=b"hunter2\n", stdin=None)
    assert done.stdout.startswith(f"{ids[0]['id']} answered by".encode())
    assert output(host, ids[0]["execution"]) == "7 characters\n"
    for end in (lambda user: user.type("\x03"), lambda user: user.held.kill(signal.SIGTERM), lambda user: user.held.kill(signal.SIGHUP)):
        user = TerminalUser(host, "interactions", "answer", ids[1]["id"])
        user.wait_for(rb"answer: ")
        until(lambda: not echoes(user), 5, "the end of the echo")
        end(user)
        assert user.wait_exit() == 130 and echoes(user), "the terminal is as it was"
    user = TerminalUser(host, "interactions", "answer", ids[1]["id"])
    user.wait_for(rb"secret from .*Password:.*answer: ")
    until(lambda: not echoes(user), 5, "the end of the echo")
    user.type("swordfish\n")
    shown_after = user.wait_for(rb"answered by")
    assert user.wait_exit() == 0 and b"swordfish" not in shown_after[0]
    assert output(host, ids[1]["execution"]) == "9 characters\n"


def test_a_person_is_asked_at_the_terminal(host):
    id_ = opened(host, "choice_selection", options=["red", "green"], default="red")["id"]
    user = TerminalUser(host, "interactions", "answer", id_)
    user.wait_for(rb"Which\?.*  red.*  green.*answer \[red\]: ")
    user.type("\x03")
    assert user.wait_exit() == 130
    assert shown(host, id_, wait_ms=0)["status"] == "open"
    user = TerminalUser(host, "interactions", "answer", id_)
    user.wait_for(rb"answer \[red\]: ")
    user.type("\n")
    assert user.wait_exit() == 0 and shown(host, id_)["end"]["answer"] == "red"


def test_watch_shows_questions_until_ctrl_c(host):
    before = opened(host, "confirmation", default="no")["id"]
    user = TerminalUser(host, "interactions", "watch", cols=200)
    user.wait_for(f"{before} asks .confirmation from .* left.: Which. .default no.".encode())
    during = opened(host, options=["a", "b"], message="Bell\a?")["id"]
    user.wait_for(rf"{during} asks .*Bell\\x07\? \[a \| b\]".encode())
    cancel(host, during)
    user.wait_for(f"{during} cancelled by".encode())
    user.type("\x03")
    assert user.wait_exit() == 0
    words = host.argv("interactions", "watch", "--json")
    with subprocess.Popen(words, cwd=host.work, env=host.env(), stdout=subprocess.PIPE) as watch:
        lines = (json.loads(line) for line in watch.stdout)
        assert next(lines)["interaction"]["id"] == before and next(lines) == {"type": "up_to_date"}
        answer(host, before, "yes")
        ended = next(lines)
        assert ended["type"] == "ended" and ended["interaction"]["status"] == "answered"
        lost = opened(host)["id"]
        assert next(lines)["type"] == "opened"
        host.kill_daemon()
        assert next(lines) == {"type": "up_to_date"}, f"the next daemon has no {lost}"
        watch.send_signal(signal.SIGINT)
        assert watch.wait(timeout=10) == 0


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
