"""Approval by a person: the question shows the whole start, and the approval is bound to it."""

import os
import shutil

import anyio
import pytest
from mcp.types import ElicitResult

from harness import TerminalUser, HttpDaemon, ClientTransport
from harness.installation import ProblemError
from test_terminal_text import harmless, shown

pytestmark = pytest.mark.anyio

RULES = """
default = "ask"

[[rule]]
id = "fine"
prefix = ["true"]
decision = "allow"
justification = "does nothing"
match = ["true"]
not_match = ["false"]
"""
TRICK = "rm -rf important #\rgit status"


@pytest.fixture
def asking_policy(each_installation):
    """An installation with a policy that asks about everything."""
    each_installation.write_policy(RULES)
    return each_installation


def script(installation, name, text, mode=0o755):
    path = installation.work / name
    path.write_text(text)
    path.chmod(mode)
    installation.give(installation.work)
    return path


def start(installation, words, session="agent", **body):
    """A start by REST: its answer, or the problem."""
    command = {"argv": {"program": words[0], "args": words[1:]}} if isinstance(words, list) else {
        "shell": {"shell": "sh", "script": words}}
    body = {"command": command, "cwd": str(installation.work), "base_env": [["PATH", "/usr/bin:/bin"]], **body}
    try:
        return installation.rest("POST", "/api/v1/executions", body, session=session)
    except ProblemError as refused:
        return refused


def request_approval(installation, words, **body):
    """The id of the question a start leads to."""
    refused = start(installation, words, **body)
    assert isinstance(refused, ProblemError) and refused.status == 403, refused
    return refused.problem["approval"]["interaction"] if isinstance(refused.problem["approval"], dict) else refused.problem["approval"]


def question(installation, id_):
    return next(it for it in installation.rest("GET", "/api/v1/interactions")["interactions"] if it["id"] == id_)


def ended(installation, answer):
    installation.rest("POST", f"/api/v1/executions/{answer['id']}/wait", {"until": "exit", "at_most_ms": 20_000})


def test_control_characters_are_shown_and_not_played(asking_policy):
    asking_policy.cli("run", "--", "true")
    id_ = request_approval(asking_policy, TRICK)
    opened = question(asking_policy, id_)
    assert opened["approval"]["command"] == r"rm -rf important #\rgit status", opened
    assert r"rm -rf important #\rgit status" in opened["message"] and "\r" not in opened["message"], opened
    for seen in (shown(asking_policy, "approvals"), asking_policy.cli("approvals").stdout):
        text = harmless(seen)
        assert r"rm -rf important #\rgit status" in text, text
    for seen in (shown(asking_policy, "approve", "--deny", id_),):
        assert r"rm -rf important #\rgit status" in harmless(seen)


def test_nothing_of_a_command_is_left_out(asking_policy):
    """Its end, its variables and its input are part of the approval."""
    asking_policy.cli("run", "--", "true")
    padded = "echo " + "x" * 5_000 + "; rm -rf important"
    opened = question(asking_policy, request_approval(asking_policy, padded))
    assert opened["approval"]["command"].endswith("rm -rf important"), opened["approval"]["command"][-200:]
    assert "rm -rf important" in opened["message"]
    opened = question(asking_policy, request_approval(asking_policy, ["echo", "hi"], env=[["LD_PRELOAD", "/tmp/x.so"]],
                                  stdin={"given": "import os"}))
    assert "LD_PRELOAD=/tmp/x.so" in opened["message"] and "import os" in opened["message"], opened
    refused = start(asking_policy, "echo " + "x" * 100_000)
    assert isinstance(refused, ProblemError) and "cannot be asked" in str(refused.problem), refused


def test_the_terminals_question_plays_nothing(asking_policy):
    with TerminalUser(asking_policy, "run", "--", "sh", "-c", TRICK, cols=400) as person:
        seen = person.wait_for(rb".*\[y/N\] ")[0]
        person.type("n\n")
        person.wait_exit()
    assert r"important #\rgit status" in harmless(seen), seen


async def test_the_clients_form_plays_nothing(make_installation):
    installation = make_installation()
    installation.write_policy(RULES)
    forms = []

    async def ask(_context, params):
        forms.append(params.message)
        return ElicitResult(action="decline")

    http_daemon = HttpDaemon(installation, "--no-token")
    try:
        async with ClientTransport("http", "auto", installation, http_daemon).agent(elicitation_callback=ask) as agent:
            await agent.call("exec", script=TRICK + "\u202e")
        assert len(forms) == 1 and r"important #\rgit status\u{202e}" in forms[0], forms
        assert "\r" not in forms[0] and "\u202e" not in forms[0], forms
    finally:
        http_daemon.end()


#: How a script may be named that is swapped between the yes and the start.
NAMED = {
    "by its path": ["./deploy.sh", "now"],
    "to an interpreter": ["sh", "deploy.sh", "now"],
    "behind a wrapper": ["env", "A=1", "timeout", "9", "./deploy.sh"],
    "in a script": "cd . && sh ./deploy.sh",
    "as input": "sh < deploy.sh",
    "through a link": ["./link"],
}
GOOD, EVIL = "#!/bin/sh\necho good > good\n", "#!/bin/sh\necho evil > evil\n"


def swap_by_writing(path):
    path.write_text(EVIL)


def swap_by_renaming(path):
    other = path.with_name("other")
    other.write_text(EVIL)
    other.chmod(0o755)
    os.rename(other, path)


@pytest.mark.parametrize("swap", [swap_by_writing, swap_by_renaming])
@pytest.mark.parametrize("how", NAMED)
def test_a_script_that_is_swapped_after_the_yes_is_not_run(asking_policy, how, swap):
    asking_policy.cli("run", "--", "true")
    path = script(asking_policy, "deploy.sh", GOOD)
    (asking_policy.work / "link").symlink_to("deploy.sh")
    words = NAMED[how]
    # The control: the approved command runs.
    id_ = request_approval(asking_policy, words)
    opened = question(asking_policy, id_)["message"]
    assert "deploy.sh" in opened and ("SHA-256" in opened), opened
    asking_policy.cli("approve", id_)
    ended(asking_policy, start(asking_policy, words, approval=id_))
    assert (asking_policy.work / "good").exists()
    # The denial.
    id_ = request_approval(asking_policy, words)
    asking_policy.cli("approve", id_)
    swap(path)
    asking_policy.give(asking_policy.work)
    refused = start(asking_policy, words, approval=id_)
    assert isinstance(refused, ProblemError) and "changed after a person agreed" in str(refused.problem), refused
    assert not (asking_policy.work / "evil").exists()
    # The new content needs its own approval.
    again = request_approval(asking_policy, words)
    assert again != id_


def test_data_may_change_between_yes_and_start(asking_policy):
    asking_policy.cli("run", "--", "true")
    data = script(asking_policy, "app.log", "one\n", mode=0o644)
    id_ = request_approval(asking_policy, ["cat", "app.log"])
    asking_policy.cli("approve", id_)
    data.write_text("two\n")
    ended(asking_policy, start(asking_policy, ["cat", "app.log"], approval=id_))


def test_a_program_in_the_workspace_is_bound_too(asking_policy):
    asking_policy.cli("run", "--", "true")
    program = asking_policy.work / "tool"
    shutil.copy("/usr/bin/echo", program)
    asking_policy.give(asking_policy.work)
    for level in ("medium", "high"):
        id_ = request_approval(asking_policy, ["./tool", "ran"], isolation=level)
        asking_policy.cli("approve", id_)
        answer = start(asking_policy, ["./tool", "ran"], isolation=level, approval=id_)
        ended(asking_policy, answer)
        assert asking_policy.cli("logs", "--no-time", answer["id"]).stdout == b"ran\n", level
        id_ = request_approval(asking_policy, ["./tool", "ran"], isolation=level)
        asking_policy.cli("approve", id_)
        program.write_bytes(program.read_bytes() + b"\0")
        refused = start(asking_policy, ["./tool", "ran"], isolation=level, approval=id_)
        assert isinstance(refused, ProblemError) and "tool changed" in str(refused.problem), (level, refused)


async def test_by_mcp_and_by_the_command_line_it_is_not_run_either(asking_policy):
    path = script(asking_policy, "deploy.sh", GOOD)
    async with asking_policy.agent(session="kept") as agent:
        refused = await agent.call("exec", command=["./deploy.sh"])
        id_ = refused.value_or("approval") or refused.value("interaction", "id")
        await anyio.to_thread.run_sync(lambda: asking_policy.cli("approve", id_))
        swap_by_writing(path)
        again = await agent.call("exec", command=["./deploy.sh"], approval=id_)
        assert again.is_error and "changed after a person agreed" in again.text, again
    swap_by_writing(path)
    with TerminalUser(asking_policy, "run", "--", "./deploy.sh", cols=400) as person:
        person.wait_for(rb"\[y/N\] ")
        path.write_text(GOOD + "# another\n")
        person.type("y\n")
        code = person.wait_exit()
        assert code == 77 and b"changed after a person agreed" in person.seen, (code, person.seen)
    assert not (asking_policy.work / "evil").exists() and not (asking_policy.work / "good").exists()
