"""A person's consent: the question shows the truth, and the yes is bound to what it was about."""

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
def asking(any_place):
    """A place that asks about everything."""
    config = any_place.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (config / "policy.toml").write_text(RULES)
    any_place.give(config)
    return any_place


def script(place, name, text, mode=0o755):
    path = place.work / name
    path.write_text(text)
    path.chmod(mode)
    place.give(place.work)
    return path


def start(place, words, session="agent", **body):
    """A start by REST: its answer, or the problem."""
    command = {"argv": {"program": words[0], "args": words[1:]}} if isinstance(words, list) else {
        "shell": {"shell": "sh", "script": words}}
    body = {"command": command, "cwd": str(place.work), "base_env": [["PATH", "/usr/bin:/bin"]], **body}
    try:
        return place.rest("POST", "/api/v1/executions", body, session=session)
    except ProblemError as refused:
        return refused


def asked(place, words, **body):
    """The id of the question a start leads to."""
    refused = start(place, words, **body)
    assert isinstance(refused, ProblemError) and refused.status == 403, refused
    return refused.problem["approval"]["interaction"] if isinstance(refused.problem["approval"], dict) else refused.problem["approval"]


def question(place, id_):
    return next(it for it in place.rest("GET", "/api/v1/interactions")["interactions"] if it["id"] == id_)


def ended(place, answer):
    place.rest("POST", f"/api/v1/executions/{answer['id']}/wait", {"until": "exit", "at_most_ms": 20_000})


def test_control_characters_are_shown_and_not_played(asking):
    asking.cli("run", "--", "true")
    id_ = asked(asking, TRICK)
    told = question(asking, id_)
    assert told["approval"]["command"] == r"rm -rf important #\rgit status", told
    assert r"rm -rf important #\rgit status" in told["message"] and "\r" not in told["message"], told
    for seen in (shown(asking, "approvals"), asking.cli("approvals").stdout):
        text = harmless(seen)
        assert r"rm -rf important #\rgit status" in text, text
    for seen in (shown(asking, "approve", "--deny", id_),):
        assert r"rm -rf important #\rgit status" in harmless(seen)


def test_nothing_of_a_command_is_left_out(asking):
    """Its end, its variables and its input are part of what is agreed to."""
    asking.cli("run", "--", "true")
    padded = "echo " + "x" * 5_000 + "; rm -rf important"
    told = question(asking, asked(asking, padded))
    assert told["approval"]["command"].endswith("rm -rf important"), told["approval"]["command"][-200:]
    assert "rm -rf important" in told["message"]
    told = question(asking, asked(asking, ["echo", "hi"], env=[["LD_PRELOAD", "/tmp/x.so"]],
                                  stdin={"given": "import os"}))
    assert "LD_PRELOAD=/tmp/x.so" in told["message"] and "import os" in told["message"], told
    refused = start(asking, "echo " + "x" * 100_000)
    assert isinstance(refused, ProblemError) and "cannot be asked" in str(refused.problem), refused


def test_the_terminals_question_plays_nothing(asking):
    with TerminalUser(asking, "run", "--", "sh", "-c", TRICK, cols=400) as person:
        seen = person.wait_for(rb".*\[y/N\] ")[0]
        person.type("n\n")
        person.wait_exit()
    assert r"important #\rgit status" in harmless(seen), seen


async def test_the_clients_form_plays_nothing(make_place):
    place = make_place()
    (place.dir / "config" / "ostler").mkdir(exist_ok=True)
    (place.dir / "config" / "ostler" / "policy.toml").write_text(RULES)
    forms = []

    async def ask(_context, params):
        forms.append(params.message)
        return ElicitResult(action="decline")

    serving = HttpDaemon(place, "--no-token")
    try:
        async with ClientTransport("http", "auto", place, serving).agent(elicitation_callback=ask) as agent:
            await agent.call("exec", script=TRICK + "\u202e")
        assert len(forms) == 1 and r"important #\rgit status\u{202e}" in forms[0], forms
        assert "\r" not in forms[0] and "\u202e" not in forms[0], forms
    finally:
        serving.end()


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
def test_a_script_that_is_swapped_after_the_yes_is_not_run(asking, how, swap):
    asking.cli("run", "--", "true")
    path = script(asking, "deploy.sh", GOOD)
    (asking.work / "link").symlink_to("deploy.sh")
    words = NAMED[how]
    # The control: what was agreed to runs.
    id_ = asked(asking, words)
    told = question(asking, id_)["message"]
    assert "deploy.sh" in told and ("SHA-256" in told), told
    asking.cli("approve", id_)
    ended(asking, start(asking, words, approval=id_))
    assert (asking.work / "good").exists()
    # The denial.
    id_ = asked(asking, words)
    asking.cli("approve", id_)
    swap(path)
    asking.give(asking.work)
    refused = start(asking, words, approval=id_)
    assert isinstance(refused, ProblemError) and "changed after a person agreed" in str(refused.problem), refused
    assert not (asking.work / "evil").exists()
    # What is there now is a question of its own.
    again = asked(asking, words)
    assert again != id_


def test_data_may_change_between_yes_and_start(asking):
    asking.cli("run", "--", "true")
    data = script(asking, "app.log", "one\n", mode=0o644)
    id_ = asked(asking, ["cat", "app.log"])
    asking.cli("approve", id_)
    data.write_text("two\n")
    ended(asking, start(asking, ["cat", "app.log"], approval=id_))


def test_a_program_in_the_workspace_is_bound_too(asking):
    asking.cli("run", "--", "true")
    program = asking.work / "tool"
    shutil.copy("/usr/bin/echo", program)
    asking.give(asking.work)
    for level in ("medium", "high"):
        id_ = asked(asking, ["./tool", "ran"], isolation=level)
        asking.cli("approve", id_)
        answer = start(asking, ["./tool", "ran"], isolation=level, approval=id_)
        ended(asking, answer)
        assert asking.cli("logs", "--no-time", answer["id"]).stdout == b"ran\n", level
        id_ = asked(asking, ["./tool", "ran"], isolation=level)
        asking.cli("approve", id_)
        program.write_bytes(program.read_bytes() + b"\0")
        refused = start(asking, ["./tool", "ran"], isolation=level, approval=id_)
        assert isinstance(refused, ProblemError) and "tool changed" in str(refused.problem), (level, refused)


async def test_by_mcp_and_by_the_command_line_it_is_not_run_either(asking):
    path = script(asking, "deploy.sh", GOOD)
    async with asking.agent(session="kept") as agent:
        refused = await agent.call("exec", command=["./deploy.sh"])
        id_ = refused.value_or("approval") or refused.value("interaction", "id")
        await anyio.to_thread.run_sync(lambda: asking.cli("approve", id_))
        swap_by_writing(path)
        again = await agent.call("exec", command=["./deploy.sh"], approval=id_)
        assert again.is_error and "changed after a person agreed" in again.text, again
    swap_by_writing(path)
    with TerminalUser(asking, "run", "--", "./deploy.sh", cols=400) as person:
        person.wait_for(rb"\[y/N\] ")
        path.write_text(GOOD + "# another\n")
        person.type("y\n")
        code = person.wait_exit()
        assert code == 77 and b"changed after a person agreed" in person.seen, (code, person.seen)
    assert not (asking.work / "evil").exists() and not (asking.work / "good").exists()
