"""Which commands may run: allow, ask, deny, through every face; rules are named."""

import anyio
import pytest
from mcp.types import ElicitResult

from harness import TerminalUser
from harness.installation import ProblemError
from harness.isolation_client import INTERFACES, IsolationOptions

pytestmark = pytest.mark.anyio

RULES = """
default = "allow"

[[rule]]
id = "no-curl"
prefix = ["curl"]
decision = "deny"
justification = "the network is not for this"
match = ["curl https://a.org"]
not_match = ["echo curl"]

[[rule]]
id = "ask-touch"
prefix = ["touch"]
decision = "ask"
justification = "makes files"
match = ["touch a"]
not_match = ["cat touch"]
"""


@pytest.fixture
def ruled(make_place):
    """A place with rules of its own."""
    place = make_place()
    config = place.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (config / "policy.toml").write_text(RULES)
    return place


DENIED = {
    "plainly": ["curl", "https://a.org"],
    "by path": ["/usr/bin/curl", "https://a.org"],
    "in a script": ["sh", "-c", "echo a; curl https://a.org"],
    "by env": ["env", "X=1", "curl", "https://a.org"],
    "by timeout": ["timeout", "5", "curl", "https://a.org"],
    "by xargs": ["xargs", "curl"],
    "by find": ["find", ".", "-exec", "curl", "{}", ";"],
    "in a substitution": ["sh", "-c", "echo $(curl https://a.org)"],
    "quoted": ["bash", "-c", "cu'r'l https://a.org"],
    "in a pipe": ["sh", "-c", "true | curl https://a.org"],
}


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("how", DENIED)
def test_a_denial_names_the_rule_and_starts_nothing(ruled, face, how):
    ran = INTERFACES[face](ruled, DENIED[how], IsolationOptions(level="medium"))
    assert "no-curl" in ran.text and "the network is not for this" in ran.text, ran.text
    assert ruled.json("ps", "-a") == []
    if face == "cli":
        assert ran.exit_code == 77, ran


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("words", [["echo", "curl"], ["sh", "-c", "echo 'curl x'"], ["cat", "/dev/null"], ["git", "--version"]])
def test_what_no_rule_is_about_runs(ruled, face, words):
    assert INTERFACES[face](ruled, words, IsolationOptions(level="medium")).exit_code == 0


def test_rest_refuses_too(ruled):
    ruled.cli("run", "--", "true")
    with pytest.raises(ProblemError) as refused:
        ruled.rest("POST", "/api/v1/executions", {
            "command": {"argv": {"program": "curl", "args": ["x"]}}, "cwd": str(ruled.work)})
    assert refused.value.status == 403 and refused.value.code == "security_error"
    assert "no-curl" in str(refused.value.problem)


@pytest.mark.parametrize("answer", ["accept", "decline"])
async def test_a_person_is_asked_through_the_client(ruled, answer):
    asked = []

    async def ask(_context, params):
        asked.append(params.message)
        if answer == "decline":
            return ElicitResult(action="decline")
        properties = params.requested_schema["properties"]
        return ElicitResult(action="accept", content={name: agree(it) for name, it in properties.items()})

    from harness import HttpDaemon, ClientTransport

    serving = HttpDaemon(ruled, "--no-token")
    try:
        async with ClientTransport("http", "auto", ruled, serving).agent(elicitation_callback=ask) as agent:
            reply = await agent.call("exec", command=["touch", "made"])
        assert len(asked) == 1 and "touch made" in asked[0], (asked, reply)
        assert (ruled.work / "made").exists() == (answer == "accept"), reply
    finally:
        serving.end()


def agree(schema):
    if schema.get("type") == "boolean":
        return True
    words = schema.get("enum") or [each["const"] for each in schema.get("oneOf", [])] or ["y"]
    return next((word for word in words if word.lower() in ("y", "yes", "approve", "allow", "once")), words[0])


async def test_without_a_person_it_is_refused_and_can_be_approved_outside(ruled):
    async with ruled.agent(session="kept") as agent:
        refused = await agent.call("exec", command=["touch", "made"])
        assert refused.is_error and "ask-touch" in refused.text, refused
        assert not (ruled.work / "made").exists()
        identity = refused.value_or("approval") or refused.value("interaction", "id")
        assert identity in refused.text
        # The agent cannot say yes to itself.
        own = await agent.call("exec", command=["touch", "made"], approval=identity)
        assert own.is_error and not (ruled.work / "made").exists()
        await anyio.to_thread.run_sync(lambda: ruled.cli("approve", identity))
        other = await agent.call("exec", command=["touch", "another"], approval=identity)
        assert other.is_error and not (ruled.work / "another").exists(), "for what was asked, nothing else"
        again = await agent.must("exec", command=["touch", "made"], approval=identity)
        assert (ruled.work / "made").exists(), again
        (ruled.work / "made").unlink()
        twice = await agent.call("exec", command=["touch", "made"], approval=identity)
        assert twice.is_error and not (ruled.work / "made").exists(), "once"


async def test_a_denied_approval_stays_denied(ruled):
    async with ruled.agent(session="kept") as agent:
        refused = await agent.call("exec", command=["touch", "made"])
        identity = refused.value_or("approval") or refused.value("interaction", "id")
        await anyio.to_thread.run_sync(lambda: ruled.cli("approve", identity, "--deny"))
        again = await agent.call("exec", command=["touch", "made"], approval=identity)
        assert again.is_error and not (ruled.work / "made").exists()


async def test_an_agent_does_not_answer_through_the_interaction_tools(ruled):
    async with ruled.agent(session="kept", args=["--tools", "core,interaction"]) as agent:
        refused = await agent.call("exec", command=["touch", "made"])
        identity = refused.value_or("approval") or refused.value("interaction", "id")
        for answer in ("y", "yes", "true", "approve", "allow"):
            said = await agent.call("interaction_answer", id=identity, answer=answer)
            assert said.is_error, said
        again = await agent.call("exec", command=["touch", "made"], approval=identity)
        assert again.is_error and not (ruled.work / "made").exists()


@pytest.mark.parametrize(("answer", "made"), [("y", True), ("n", False), ("", False)])
def test_the_command_line_asks_at_a_terminal(ruled, answer, made):
    with TerminalUser(ruled, "run", "--", "touch", "made") as person:
        person.wait_for(rb"touch made.*\[y/N\]")
        person.type(answer + "\n")
        code = person.wait_exit()
    assert (code == 0) == made
    assert (ruled.work / "made").exists() == made


def test_the_command_line_does_not_ask_where_nobody_can_answer(ruled):
    done = ruled.cli("run", "--", "touch", "made", check=False)
    assert done.returncode == 77 and b"ask-touch" in done.stderr, done
    assert not (ruled.work / "made").exists()


def test_check_tells_without_running(ruled):
    for words, decision, code in ((["curl", "x"], b"deny", 77), (["touch", "a"], b"ask", None), (["echo", "a"], b"allow", 0)):
        done = ruled.cli("policy", "check", "--", *words, check=False)
        assert decision in done.stdout, done
        if code is not None:
            assert done.returncode == code, done
    assert ruled.json("ps", "-a") == []


def test_rules_are_tested_by_their_own_examples(ruled):
    fine = ruled.cli("policy", "test")
    assert fine.returncode == 0
    file = ruled.dir / "config" / "ostler" / "policy.toml"
    file.write_text(RULES.replace('match = ["curl https://a.org"]', 'match = ["wget https://a.org"]'))
    done = ruled.cli("policy", "test", check=False)
    assert done.returncode != 0 and b"no-curl" in done.stdout + done.stderr, done


def test_half_a_policy_is_none(make_place):
    """A file that cannot be read lets nothing run."""
    place = make_place()
    config = place.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (config / "policy.toml").write_text(RULES + "\n[[rule]\n")
    done = place.cli("run", "--", "echo", "ran", check=False)
    assert done.returncode == 78 and b"policy.toml" in done.stderr, done


@pytest.mark.parametrize("face", INTERFACES)
def test_a_workspace_tightens_and_never_loosens(ruled, face):
    (ruled.work / ".ostler").mkdir()
    file = ruled.work / ".ostler" / "policy.toml"
    file.write_text('[[rule]]\nid = "no-cat"\nprefix = ["cat"]\ndecision = "deny"\njustification = "here"\nmatch = ["cat x"]\n')
    assert "no-cat" in INTERFACES[face](ruled, ["cat", "/dev/null"], IsolationOptions(level="medium")).text
    file.write_text('disable = ["no-curl"]\n')
    ran = INTERFACES[face](ruled, ["curl", "x"], IsolationOptions(level="medium"))
    assert ran.exit_code != 0 and ("no-curl" in ran.text or "loosen" in ran.text), ran.text


