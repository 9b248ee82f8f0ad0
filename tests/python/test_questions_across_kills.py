"""Questions that are open when the daemon is killed: the next one ends each, once, and says so to whoever answers."""

import json

import pytest

from harness import until
from harness.installation import ProblemError

ENV = [["PATH", "/usr/bin:/bin"]]
GONE = {"status": "cancelled", "reason": {"kind": "engine_killed"}}


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def opened(host, kind="input_request", **fields):
    return host.rest("POST", "/api/v1/interactions", {"kind": kind, "message": "Which?", **fields})


def killed(host):
    """The next daemon, after a kill -9."""
    host.kill_daemon()
    host.cli("ps")


def states(host, id_):
    """What the audit log says of a question, oldest first."""
    entries = host.rest("GET", "/api/v1/audit?limit=1000")["entries"]
    return [it["state"] for it in entries if it["event"] == "interaction" and it["interaction"] == id_]


def refused(host, verb, id_, body):
    with pytest.raises(ProblemError) as problem:
        host.rest("POST", f"/api/v1/interactions/{id_}/{verb}", body)
    return problem.value


def in_overlay_context(host):
    """A command that reads a line, over an overlay, in a context."""
    context = host.rest("POST", "/api/v1/contexts", {"project": "demo", "env": [["COLOUR", "blue"]]})
    body = {"command": {"shell": {"shell": "sh", "script": "echo $COLOUR > kept; printf 'Name: '; read -r line; echo got $line"}},
            "cwd": context["directory"], "context": context["id"], "stdin": "open", "base_env": ENV,
            "isolation": "high", "confine": {"overlay": True}}
    return host.rest("POST", "/api/v1/executions", body)["id"], context


def reader(host):
    body = {"command": {"shell": {"shell": "sh", "script": "read -r line; echo ${#line} characters"}}, "cwd": str(host.work),
            "stdin": "open", "base_env": ENV}
    return host.rest("POST", "/api/v1/executions", body)["id"]


def test_every_open_question_ends_once_with_the_reason(host):
    (host.work / "notes.txt").write_text("x")
    host.give(host.work)
    overlaid, _context = in_overlay_context(host)
    questions = {
        "free": opened(host),
        "with a default": opened(host, "confirmation", default="no"),
        "a choice": opened(host, "choice_selection", options=["a", "b"]),
        "a file": opened(host, "file_selection", directory=str(host.work)),
        "of a command": opened(host, execution=reader(host)),
        "a secret": opened(host, message="Password:", execution=reader(host), secret=True),
        "over an overlay": opened(host, execution=overlaid),
        "a file over an overlay": opened(host, "file_selection", execution=overlaid),
    }
    until(lambda: [it for it in host.rest("GET", "/api/v1/interactions")["interactions"] if it["source"] == "command"],
          20, "the command's own question")
    own, = (it for it in host.rest("GET", "/api/v1/interactions")["interactions"] if it["source"] == "command")
    assert own["execution"] == overlaid
    answered = opened(host)
    host.rest("POST", f"/api/v1/interactions/{answered['id']}/answer", {"value": "x"})
    before = host.rest("GET", "/api/v1/audit?limit=1000")["entries"][-1]["seq"]
    killed(host)
    for about, question in {**questions, "its own": own}.items():
        id_ = question["id"]
        assert states(host, id_) == [{"status": "open"}, GONE], about
        shown = host.rest("GET", f"/api/v1/interactions/{id_}")
        assert shown["status"] == "cancelled" and "gone with the engine" in shown["end"]["text"], about
        assert (shown["message"], shown["kind"], shown["source"]) == (question["message"], question["kind"], question["source"])
        assert shown.get("execution") == question.get("execution") and shown.get("directory") == question.get("directory")
        for verb, body in (("answer", {"value": "yes"}), ("cancel", {})):
            told = refused(host, verb, id_, body)
            assert (told.status, told.code) == (409, "interaction_error") and "gone with the engine" in str(told), about
    assert states(host, answered["id"])[-1]["status"] == "answered"
    feed = host.rest("GET", f"/api/v1/events?cursor={before + 1}")["events"]
    ends = [it["interaction"] for it in feed if it["event"] == "interaction" and it["state"] == GONE]
    assert sorted(ends) == sorted(it["id"] for it in (*questions.values(), own)), "followers of events learn of it"
    later = opened(host)
    assert int(later["id"][1:]) > int(answered["id"][1:]), "an id is not used for two questions"
    killed(host)
    for about, question in questions.items():
        assert states(host, question["id"]) == [{"status": "open"}, GONE], about
    assert states(host, later["id"]) == [{"status": "open"}, GONE]


def test_an_end_is_recorded_once_also_where_the_file_is_older_than_the_ledger(host):
    """As after a kill between the entry and the file: the file of before is put back."""
    question = opened(host)
    path = host.state / "interactions.json"
    old = path.read_bytes()
    assert json.loads(old)["open"][0]["message"] == "Which?"
    host.rest("POST", f"/api/v1/interactions/{question['id']}/answer", {"value": "x"})
    other = opened(host)
    host.kill_daemon()
    path.write_bytes(old)
    host.give(host.state)
    host.cli("ps")
    assert [it["status"] for it in states(host, question["id"])] == ["open", "answered"]
    assert states(host, other["id"]) == [{"status": "open"}, GONE]
    assert int(opened(host)["id"][1:]) > int(other["id"][1:])


def test_a_secret_answer_is_in_no_file_of_questions(host):
    execution = reader(host)
    question = opened(host, message="Password:", execution=execution, secret=True)
    host.rest("POST", f"/api/v1/interactions/{question['id']}/answer", {"value": "hunter2"})
    killed(host)
    assert not any(b"hunter2" in path.read_bytes() for path in host.state.rglob("*") if path.is_file())
