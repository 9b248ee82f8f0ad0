"""Questions that are open when the daemon is killed: the next one ends each, once, and says so to whoever answers."""

import json
import subprocess

import pytest

from harness import until
from harness.installation import ASK_TOUCH, ProblemError, is_root

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


def shut_down(host):
    """The next daemon, after an orderly shutdown."""
    daemon = host.daemon()
    host.rest("POST", "/api/v1/shutdown")
    assert daemon.gone(30)
    daemon.close()
    host.cli("ps")


@pytest.mark.parametrize("restart", [killed, shut_down])
def test_an_answer_waits_for_who_asked_under_the_next_daemon(host, restart):
    asked = [opened(host)["id"] for _ in range(3)]
    for number, id_ in enumerate(asked[:2]):
        host.rest("POST", f"/api/v1/interactions/{id_}/answer", {"value": f"answer {number}"})
    typed = opened(host, execution=reader(host))["id"]
    host.rest("POST", f"/api/v1/interactions/{typed}/answer", {"value": "typed text"})
    host.rest("POST", f"/api/v1/interactions/{asked[2]}/cancel", {"reason": "enough"})
    before = [host.rest("GET", f"/api/v1/interactions/{id_}") for id_ in asked]
    assert b"typed text" not in (host.state / "interactions.json").read_bytes()
    for _ in range(2):
        restart(host)
        assert [host.rest("GET", f"/api/v1/interactions/{id_}") for id_ in asked] == before
    listed = host.rest("GET", "/api/v1/interactions?all=true")["interactions"]
    assert {it["id"] for it in listed} >= set(asked)


def test_what_a_shutdown_cancelled_is_told_by_the_next_daemon(host):
    question = opened(host)["id"]
    shut_down(host)
    assert "shutting down" in host.rest("GET", f"/api/v1/interactions/{question}")["end"]["text"]


@pytest.fixture
def asking(installation):
    """A daemon that asks before each `touch`."""
    return with_policy(installation)


def with_policy(host):
    host.write_policy(ASK_TOUCH)
    host.cli("ps")
    return host


def touch(host, name, session="agent"):
    body = {"command": {"argv": {"program": "touch", "args": [name]}}, "cwd": str(host.work), "base_env": ENV}
    return host.rest("POST", "/api/v1/executions", body, session=session)


def asked(host, name):
    with pytest.raises(ProblemError) as problem:
        touch(host, name)
    assert problem.value.status == 403, problem.value
    return problem.value.problem["approval"]


def approve(host, id_, value="yes"):
    host.rest("POST", f"/api/v1/interactions/{id_}/answer", {"value": value})


@pytest.mark.parametrize("restart", [killed, shut_down])
def test_an_approval_holds_once_under_the_next_daemon(asking, restart):
    one, other = asked(asking, "one"), asked(asking, "other")
    approve(asking, one)
    approve(asking, other, "no")
    restart(asking)
    assert touch(asking, "one")["id"]
    assert asked(asking, "other") not in (one, other), "a no is no approval"
    again = asked(asking, "one")
    assert again != one, "it was for one start"
    restart(asking)
    assert asked(asking, "one") not in (one, again), "also under the next daemon"


@pytest.mark.parametrize("restart", [killed, shut_down])
def test_many_other_questions_displace_no_approval_and_no_answer(asking, restart):
    approve(asking, asked(asking, "one"))
    answered = opened(asking)["id"]
    approve(asking, answered, "blue")
    for session in ("a", "b", "c"):
        for number in range(30):
            asking.rest("POST", "/api/v1/interactions", {"kind": "input_request", "message": f"{number}?"}, session=session)
    for number in range(70):
        question = asking.rest("POST", "/api/v1/interactions", {"kind": "input_request", "message": "m" * 4000}, session="d")["id"]
        asking.rest("POST", f"/api/v1/interactions/{question}/answer", {"value": "x"}, session="d")
    for _ in range(2):
        restart(asking)
        assert asking.rest("GET", f"/api/v1/interactions/{answered}")["end"]["answer"] == "blue"
    assert touch(asking, "one")["id"]


@pytest.mark.skipif(not is_root(), reason="mounts")
def test_a_start_whose_approval_cannot_be_marked_as_used_is_refused(asking):
    """Otherwise the next daemon would start it again."""
    approve(asking, asked(asking, "one"))
    path = asking.state / "interactions.json"
    # Nothing can be renamed over the place of a mount.
    subprocess.run(["mount", "--bind", path, path], check=True)
    try:
        with pytest.raises(ProblemError) as problem:
            touch(asking, "one")
        assert problem.value.code == "storage_error" and not (asking.work / "one").exists()
    finally:
        subprocess.run(["umount", path], check=True)
    ended = touch(asking, "one")["id"]
    asking.rest("POST", f"/api/v1/executions/{ended}/wait", {"until": "exit", "at_most_ms": 9000})
    killed(asking)
    asked(asking, "one")
