"""Prompts of running commands that nobody waits for: each is one question, with what shows it, until it is answered or
the command goes on."""

import json
import os

import pytest

from harness import TerminalUser, WsRecorder, procs, until
from harness.installation import ProblemError

ENV = [["PATH", "/usr/bin:/bin"], ["TERM", "xterm-256color"]]
#: What prints a question and reads a line: of a pipe, or of a terminal.
OVERWRITE = 'printf "Overwrite? [y/N] "; read -r answer; echo "got <$answer>"'
TERMINAL = {"cols": 80, "rows": 24}


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def started(host, script, terminal=False, **fields):
    """The id of a shell script that accepts input."""
    body = {"command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(host.work), "base_env": ENV, **fields}
    body |= {"pty": TERMINAL} if terminal else {"stdin": "open"}
    return host.rest("POST", "/api/v1/executions", body)["id"]


def argv(program, *args):
    return {"argv": {"program": program, "args": args}}


def of(host, execution, **query):
    words = "&".join(f"{key}={value}" for key, value in query.items())
    found = host.rest("GET", f"/api/v1/interactions?{words}")["interactions"]
    return [it for it in found if it["execution"] == execution]


def asked(host, execution):
    """The question of a command, which nobody waits for but by looking at the list."""
    until(lambda: of(host, execution), 15, f"the question of {execution}")
    question, = of(host, execution)
    return question


def answer(host, question, value):
    return host.rest("POST", f"/api/v1/interactions/{question['id']}/answer", {"value": value})


def ended(host, execution):
    host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "exit", "at_most_ms": 15_000})
    lines = host.rest("GET", f"/api/v1/executions/{execution}/raw", raw=True).splitlines()
    return "".join(json.loads(line).get("data", "") for line in lines)


def stop(host, execution):
    host.rest("POST", f"/api/v1/executions/{execution}/stop", {"force": True})


def ends_of(host, id_):
    entries = host.rest("GET", "/api/v1/audit?limit=1000")["entries"]
    return [it["state"] for it in entries if it["event"] == "interaction" and it["interaction"] == id_]


@pytest.mark.parametrize(("terminal", "evidence"), [(False, "reads_pipe"), (True, "reads_terminal")])
def test_a_prompt_that_nobody_waits_for_is_a_question(host, terminal, evidence):
    execution = started(host, OVERWRITE, terminal)
    question = asked(host, execution)
    assert question["source"] == "command" and question["kind"] == "confirmation" and question["message"] == "Overwrite? [y/N]"
    assert question["evidence"] == [evidence, "prompt_words"] and question["directory"] == str(host.work)
    assert question["default"] == "N" and "holder" not in question
    assert answer(host, question, "yes")["status"] == "answered"
    assert "got <y>" in ended(host, execution)
    assert [it["status"] for it in ends_of(host, question["id"])] == ["open", "answered"]


def test_echo_off_is_evidence_of_a_secret(host):
    execution = started(host, 'stty -echo; printf "Kennwort "; read -r word; echo; echo "${#word} characters"', terminal=True)
    question = asked(host, execution)
    assert question["secret"] is True and question["evidence"] == ["reads_terminal", "echo_off"]
    answer(host, question, "hunter2")
    assert "7 characters" in ended(host, execution)
    assert "hunter2" not in host.rest("GET", "/api/v1/audit?limit=1000", raw=True).decode()


def test_the_socket_tells_of_a_prompt_and_of_its_end(host):
    with WsRecorder(host, None, query="", path="/api/v1/interactions/events") as socket:
        socket.wait_message("up_to_date")
        execution = started(host, 'printf "Name: "; read -r name; echo "hello $name"')
        told = socket.wait_message("opened")["interaction"]
        assert told["execution"] == execution and told["message"] == "Name:"
        assert told["evidence"] == ["reads_pipe", "prompt_words"] and told["directory"] == str(host.work)
        socket.say(type="answer", id=told["id"], value="Ada")
        assert socket.wait_message("ended")["interaction"]["status"] == "answered"
        assert "hello Ada" in ended(host, execution)


def test_one_prompt_is_one_question_whoever_finds_it(host):
    """A wait finds it at once; later checks find the same one, also after somebody declined to answer."""
    execution = started(host, OVERWRITE)
    waited = host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "prompt", "at_most_ms": 10_000})
    assert waited["why"] == "prompt", waited
    question = of(host, execution)[0]
    host.rest("POST", f"/api/v1/interactions/{question['id']}/cancel", {"reason": "not now"})
    # A second command that asks is the sign that the checks have come round.
    other = started(host, OVERWRITE)
    asked(host, other)
    host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "prompt", "at_most_ms": 10_000})
    assert of(host, execution) == [], "the same prompt is not asked again"
    assert [it["id"] for it in of(host, execution, all="true")] == [question["id"]]
    for id_ in (execution, other):
        stop(host, id_)


def test_the_next_prompt_is_the_next_question(host):
    execution = started(host, 'printf "One: "; read -r one; printf "Two: "; read -r two; echo "$one-$two"')
    first = asked(host, execution)
    assert first["message"] == "One:"
    answer(host, first, "a")
    second = asked(host, execution)
    assert second["message"] == "Two:" and second["id"] != first["id"]
    host.rest("POST", f"/api/v1/executions/{execution}/input", b"b\n")
    assert "a-b" in ended(host, execution)
    assert ends_of(host, second["id"])[-1] == {"status": "cancelled", "reason": {"kind": "answered_elsewhere"}}


def test_a_question_is_withdrawn_when_its_command_goes_on(host):
    go_on = host.work / "go-on"
    script = f'printf "Continue? [Y/n] "; until read -t 1 -r line || test -e {go_on}; do :; done; echo; echo on; exec sleep 60'
    execution = started(host, script, command=argv("/bin/bash", "-c", script))
    question = asked(host, execution)
    go_on.touch()
    until(lambda: of(host, execution) == [], 15, "the end of the question")
    assert ends_of(host, question["id"])[-1] == {"status": "cancelled", "reason": {"kind": "prompt_gone"}}
    late = pytest.raises(AssertionError, answer, host, question, "y")
    assert "does not wait for it any more" in str(late.value)
    stop(host, execution)


@pytest.mark.parametrize("wrapper", ["setsid --wait", "su root -c"])
def test_the_prompt_of_another_session_on_the_terminal_is_a_question(host, wrapper):
    if wrapper.startswith("su ") and os.geteuid() != 0:
        pytest.skip("su asks for a password")
    script = host.work / "ask.sh"
    script.write_text(f"#!/bin/bash\n{OVERWRITE}\n")
    script.chmod(0o755)
    execution = started(host, f"{wrapper} {script}; exit 0", terminal=True)
    question = asked(host, execution)
    assert (question["message"], question["evidence"]) == ("Overwrite? [y/N]", ["reads_terminal", "prompt_words"])
    answer(host, question, "y")
    assert "got <y>" in ended(host, execution)


@pytest.mark.parametrize("command", [
    ["/bin/cat"], ["/bin/sh", "-c", "echo listening on stdio; exec cat"], ["/usr/bin/python3", "-i", "-q"], ["/bin/sleep", "60"],
])
def test_what_waits_for_data_or_for_commands_asks_nothing(host, command):
    terminal = command[0].endswith("python3")
    execution = started(host, "", terminal, command=argv(*command))
    asking = started(host, OVERWRITE)
    asked(host, asking)
    # Both are checked at the same samples; the second one's question shows that these were.
    again = started(host, OVERWRITE)
    asked(host, again)
    assert of(host, execution, all="true") == []
    for id_ in (execution, asking, again):
        stop(host, id_)


def test_a_shell_at_its_prompt_asks_nothing_but_its_command_does(host):
    body = {"kind": "bash", "cwd": str(host.work), "base_env": ENV}
    shell = host.rest("POST", "/api/v1/shells", body)["id"]
    asking = started(host, OVERWRITE)
    asked(host, asking)
    assert of(host, shell, all="true") == []
    host.rest("POST", f"/api/v1/executions/{shell}/input", b"read -r -p 'Which colour? ' c; echo \"it is $c\"\n")
    question = asked(host, shell)
    assert "Which colour?" in question["message"] and question["evidence"][0] in ("reads_terminal", "polls_input")
    answer(host, question, "red")
    waited = {"until": "pattern", "pattern": "it is red", "at_most_ms": 10_000}
    host.rest("POST", f"/api/v1/executions/{shell}/wait", waited)
    for id_ in (shell, asking):
        stop(host, id_)


def test_who_types_in_the_terminal_is_named_and_is_not_asked_twice(host):
    execution = started(host, OVERWRITE, terminal=True)
    question = asked(host, execution)
    user = TerminalUser(host, "attach", execution)
    user.wait_for(rb"Overwrite")
    until(lambda: "holder" in of(host, execution)[0], 15, "the holder")
    held, = of(host, execution)
    assert held["id"] == question["id"] and held["holder"].startswith("ostler attach"), held
    refused = pytest.raises(AssertionError, answer, host, question, "y")
    assert held["holder"] in str(refused.value)
    user.type("y\n")
    user.wait_for(rb"got <y>")
    assert user.wait_exit() == 0
    assert ends_of(host, question["id"])[-1]["reason"] == {"kind": "answered_elsewhere"}


def test_a_question_of_a_file_and_an_approval_name_their_directory(host):
    (host.work / "notes.txt").write_text("x")
    host.give(host.work)
    body = {"kind": "file_selection", "message": "Which?", "directory": str(host.work)}
    opened = host.rest("POST", "/api/v1/interactions", body)
    assert opened["directory"] == str(host.work) and "evidence" not in opened
    execution = started(host, "read -r line")
    body = {"kind": "input_request", "message": "Which?", "execution": execution}
    assert host.rest("POST", "/api/v1/interactions", body)["directory"] == str(host.work)
    stop(host, execution)


def test_a_prompt_is_found_again_by_the_next_daemon(host):
    execution = started(host, OVERWRITE)
    before = asked(host, execution)
    host.kill_daemon()
    host.cli("ps")
    until(lambda: of(host, execution), 20, "the question under the next daemon")
    after, = of(host, execution)
    assert after["message"] == before["message"] and after["evidence"] == before["evidence"]
    assert after["id"] != before["id"] and ends_of(host, before["id"])[-1]["reason"] == {"kind": "engine_killed"}
    answer(host, after, "y")
    assert "got <y>" in ended(host, execution)


def bash(host, script, **fields):
    """As `started`, by a shell that gives up reading after a time."""
    return started(host, "", command={"shell": {"shell": "bash", "script": script}}, **fields)


def went_on(host, execution):
    """Waits until the shell has become the program that it executes next."""
    pid = host.rest("GET", f"/api/v1/executions/{execution}")["os_pid"]
    until(lambda: procs.comm(pid) == "sleep", 15, "the end of the read")


def refused_as_gone(host, question, value):
    with pytest.raises(ProblemError) as error:
        answer(host, question, value)
    assert error.value.status == 409, error.value.problem
    assert host.rest("GET", f"/api/v1/interactions/{question['id']}")["status"] == "cancelled"
    assert ends_of(host, question["id"])[-1] == {"status": "cancelled", "reason": {"kind": "prompt_gone"}}


@pytest.mark.parametrize("terminal", [False, True])
def test_an_answer_after_the_command_gave_up_is_not_typed(host, terminal):
    """It would answer whatever the command asks next."""
    script = 'printf "Keep the old file? [y/N] "; read -r -t 3 answer; exec sleep 300'
    execution = bash(host, script, terminal=terminal)
    question = asked(host, execution)
    went_on(host, execution)
    refused_as_gone(host, question, "y")
    stop(host, execution)


#: Asks the same for each file, and gives up the question for the first one after a time.
DELETE_EACH = """for file in old.log important.db; do
    echo "About to delete $file"; printf 'Proceed? [y/N] '; read -t 6 -r x; [ "$x" = y ] && echo "DELETED $file"
done; exec sleep 300"""
#: Asks for the same secret for each host, with echo off.
TWO_HOSTS = """stty -echo
for name in bank evil; do printf "connecting to $name\\nPassword: "; read -t 6 -r word; echo; echo "$name got <$word>"; done
exec sleep 300"""


def at_prompt(host, execution):
    """Waits for the prompt at which the command is now, as an agent does."""
    waited = host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "prompt", "at_most_ms": 15_000})
    assert waited["why"] == "prompt", waited


def seen(host, execution, text):
    pattern = {"until": "pattern", "pattern": text, "at_most_ms": 20_000}
    assert host.rest("POST", f"/api/v1/executions/{execution}/wait", pattern)["why"] == "pattern"


def printed(host, execution):
    lines = host.rest("GET", f"/api/v1/executions/{execution}/raw", raw=True).splitlines()
    return "".join(json.loads(line).get("data", "") for line in lines)


@pytest.mark.parametrize("terminal", [False, True])
def test_an_answer_is_not_typed_into_a_later_prompt_with_the_same_text(host, terminal):
    execution = bash(host, DELETE_EACH, terminal=terminal)
    question = asked(host, execution)
    seen(host, execution, "important.db")
    refused_as_gone(host, question, "y")
    at_prompt(host, execution)
    later = asked(host, execution)
    assert later["id"] != question["id"] and later["message"] == question["message"]
    until(lambda: procs.comm(host.rest("GET", f"/api/v1/executions/{execution}")["os_pid"]) == "sleep", 20, "the end")
    assert "DELETED" not in printed(host, execution)
    stop(host, execution)


def test_a_secret_is_not_typed_into_a_later_prompt_with_the_same_text(host):
    execution = bash(host, TWO_HOSTS, terminal=True)
    question = asked(host, execution)
    assert question["secret"] is True and question["message"] == "Password:"
    seen(host, execution, "connecting to evil")
    refused_as_gone(host, question, "bank-secret")
    seen(host, execution, "evil got")
    assert "evil got <>" in printed(host, execution)
    stop(host, execution)


def test_the_question_of_a_later_prompt_with_the_same_text_is_its_own(host):
    execution = bash(host, DELETE_EACH)
    question = asked(host, execution)
    seen(host, execution, "important.db")
    until(lambda: [it["id"] for it in of(host, execution)] not in ([], [question["id"]]), 6, "the second question")
    assert ends_of(host, question["id"])[-1] == {"status": "cancelled", "reason": {"kind": "prompt_gone"}}
    answer(host, asked(host, execution), "y")
    seen(host, execution, "DELETED important.db")
    assert "DELETED old.log" not in printed(host, execution)
    stop(host, execution)


def test_a_prompt_that_a_line_editor_draws_again_is_the_same_question(host):
    script = "import readline; print('got <' + input('Which colour? ') + '>')"
    execution = started(host, "", terminal=True, command=argv("/usr/bin/python3", "-c", script))
    question = asked(host, execution)
    host.rest("POST", f"/api/v1/executions/{execution}/resize", {"cols": 100, "rows": 30})
    at_prompt(host, execution)
    assert asked(host, execution)["id"] == question["id"]
    answer(host, question, "red")
    assert "got <red>" in ended(host, execution)


def test_a_question_ends_once_the_command_silently_went_on(host):
    execution = bash(host, 'printf "Keep the old file? [y/N] "; read -r -t 3 answer; exec sleep 300')
    question = asked(host, execution)
    went_on(host, execution)
    until(lambda: not of(host, execution), 30, "the end of the question")
    assert ends_of(host, question["id"])[-1] == {"status": "cancelled", "reason": {"kind": "prompt_gone"}}
    stop(host, execution)


def test_a_secret_is_not_typed_at_the_next_prompt(host):
    script = 'read -r -s -t 3 -p "Password: " p; printf "\\nUser name: "; read -r u; echo "got <$u>"'
    execution = bash(host, script, terminal=True)
    question = asked(host, execution)
    assert question["secret"] is True
    until(lambda: "User name" in shown_output(host, execution), 15, "the next prompt")
    refused_as_gone(host, question, "hunter2")
    following = until(lambda: of(host, execution), 15, "the next question")[0]
    answer(host, following, "ann")
    text = ended(host, execution)
    assert "got <ann>" in text and "hunter2" not in text


def shown_output(host, execution):
    lines = host.rest("GET", f"/api/v1/executions/{execution}/raw", raw=True).splitlines()
    return "".join(json.loads(line).get("data", "") for line in lines)


@pytest.mark.parametrize("terminal", [False, True])
def test_the_answer_to_a_secret_question_is_not_recorded(host, terminal):
    script = 'read -r first; read -r second; printf "%s characters\\n" "${#second}"'
    execution = started(host, script, terminal=terminal, record_input=True)
    body = {"kind": "input_request", "message": "Name", "execution": execution}
    answer(host, host.rest("POST", "/api/v1/interactions", body), "visible")
    answer(host, host.rest("POST", "/api/v1/interactions", body | {"secret": True}), "hunter2")
    assert "7 characters" in ended(host, execution)
    recorded = host.cli("logs", "--stream", "stdin", execution).stdout.decode()
    assert "visible" in recorded and "hunter2" not in recorded, recorded
