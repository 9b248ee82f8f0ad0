"""Command policy: allow, ask, deny, over every interface; rules are named."""

import json

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
match = ["curl https://a.example"]
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
def installation_with_rules(make_installation):
    """An installation with its own rules."""
    installation = make_installation()
    installation.write_policy(RULES)
    return installation


DENIED = {
    "plainly": ["curl", "https://a.example"],
    "by path": ["/usr/bin/curl", "https://a.example"],
    "in a script": ["sh", "-c", "echo a; curl https://a.example"],
    "by env": ["env", "X=1", "curl", "https://a.example"],
    "by timeout": ["timeout", "5", "curl", "https://a.example"],
    "by xargs": ["xargs", "curl"],
    "by find": ["find", ".", "-exec", "curl", "{}", ";"],
    "in a substitution": ["sh", "-c", "echo $(curl https://a.example)"],
    "quoted": ["bash", "-c", "cu'r'l https://a.example"],
    "in a pipe": ["sh", "-c", "true | curl https://a.example"],
}


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("how", DENIED)
def test_a_denial_names_the_rule_and_starts_nothing(installation_with_rules, interface, how):
    result = INTERFACES[interface](installation_with_rules, DENIED[how], IsolationOptions(level="medium"))
    assert "no-curl" in result.text and "the network is not for this" in result.text, result.text
    assert installation_with_rules.json("ps", "-a") == []
    if interface == "cli":
        assert result.exit_code == 77, result


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("words", [["echo", "curl"], ["sh", "-c", "echo 'curl x'"], ["cat", "/dev/null"], ["git", "--version"]])
def test_what_no_rule_is_about_runs(installation_with_rules, interface, words):
    assert INTERFACES[interface](installation_with_rules, words, IsolationOptions(level="medium")).exit_code == 0


def test_rest_refuses_too(installation_with_rules):
    installation_with_rules.cli("run", "--", "true")
    with pytest.raises(ProblemError) as refused:
        installation_with_rules.rest("POST", "/api/v1/executions", {
            "command": {"argv": {"program": "curl", "args": ["x"]}}, "cwd": str(installation_with_rules.work)})
    assert refused.value.status == 403 and refused.value.code == "security_error"
    assert "no-curl" in str(refused.value.problem)


def test_rest_shows_the_rules_and_its_verdict_and_starts_nothing(installation_with_rules):
    installation = installation_with_rules
    installation.cli("ps")
    shown = installation.rest("GET", "/api/v1/policy")
    assert shown == installation.json("policy", "show")
    assert [it["id"] for it in shown["rules"]] == ["no-curl", "ask-touch"] and shown["default"] == "allow"

    def verdict(*words, **options):
        body = {"command": {"argv": {"program": words[0], "args": words[1:]}}, "cwd": str(installation.work), **options}
        answer = installation.rest("POST", "/api/v1/policy/check", body)
        return answer["decision"], answer["rule"]

    for words in DENIED.values():
        assert verdict(*words) == ("deny", "no-curl")
        told = installation.cli("policy", "check", "--json", "--", *words, check=False).stdout
        assert json.loads(told)["decision"] == "deny"
    assert verdict("touch", "made") == ("ask", "ask-touch")
    assert verdict("echo", "curl") == ("allow", "default")
    assert verdict("echo", env=[["LD_PRELOAD", "x.so"]]) == ("ask", "variable")
    file = installation.work / ".ostler" / "policy.toml"
    file.parent.mkdir()
    file.write_text('[[rule]]\nid = "no-echo"\nprefix = ["echo"]\ndecision = "deny"\njustification = "quiet"\n'
                    'match = ["echo a"]\nnot_match = ["cat a"]\n')
    assert verdict("echo", "a") == ("deny", "no-echo")
    in_workspace = installation.rest("GET", f"/api/v1/policy?cwd={installation.work}")
    assert ("no-echo", "workspace") in [(it["id"], it["tier"]) for it in in_workspace["rules"]]
    with pytest.raises(ProblemError) as refused:
        installation.rest("GET", "/api/v1/policy?cwd=relative")
    assert refused.value.status in (400, 422) and "absolute" in str(refused.value.problem)
    assert installation.rest("GET", "/api/v1/executions")["executions"] == []
    assert installation.rest("GET", "/api/v1/interactions")["interactions"] == []


@pytest.mark.parametrize("answer", ["accept", "decline"])
async def test_a_person_is_asked_through_the_client(installation_with_rules, answer):
    messages = []

    async def ask(_context, params):
        messages.append(params.message)
        if answer == "decline":
            return ElicitResult(action="decline")
        properties = params.requested_schema["properties"]
        return ElicitResult(action="accept", content={name: agree(it) for name, it in properties.items()})

    from harness import HttpDaemon, ClientTransport

    http_daemon = HttpDaemon(installation_with_rules, "--no-token")
    try:
        async with ClientTransport("http", "auto", installation_with_rules, http_daemon).agent(elicitation_callback=ask) as agent:
            reply = await agent.call("exec", command=["touch", "made"])
        assert len(messages) == 1 and "touch made" in messages[0], (messages, reply)
        assert (installation_with_rules.work / "made").exists() == (answer == "accept"), reply
    finally:
        http_daemon.end()


def agree(schema):
    if schema.get("type") == "boolean":
        return True
    words = schema.get("enum") or [each["const"] for each in schema.get("oneOf", [])] or ["y"]
    return next((word for word in words if word.lower() in ("y", "yes", "approve", "allow", "once")), words[0])


async def test_without_a_person_it_is_refused_and_can_be_approved_outside(installation_with_rules):
    async with installation_with_rules.agent(session="kept") as agent:
        refused = await agent.call("exec", command=["touch", "made"])
        assert refused.is_error and "ask-touch" in refused.text, refused
        assert not (installation_with_rules.work / "made").exists()
        identity = refused.value_or("approval") or refused.value("interaction", "id")
        assert identity in refused.text
        # The agent cannot approve its own start.
        own = await agent.call("exec", command=["touch", "made"], approval=identity)
        assert own.is_error and not (installation_with_rules.work / "made").exists()
        await anyio.to_thread.run_sync(lambda: installation_with_rules.cli("approve", identity))
        other = await agent.call("exec", command=["touch", "another"], approval=identity)
        assert other.is_error and not (installation_with_rules.work / "another").exists(), "for what was asked, nothing else"
        again = await agent.must("exec", command=["touch", "made"], approval=identity)
        assert (installation_with_rules.work / "made").exists(), again
        (installation_with_rules.work / "made").unlink()
        twice = await agent.call("exec", command=["touch", "made"], approval=identity)
        assert twice.is_error and not (installation_with_rules.work / "made").exists(), "once"


async def test_a_denied_approval_stays_denied(installation_with_rules):
    async with installation_with_rules.agent(session="kept") as agent:
        refused = await agent.call("exec", command=["touch", "made"])
        identity = refused.value_or("approval") or refused.value("interaction", "id")
        await anyio.to_thread.run_sync(lambda: installation_with_rules.cli("approve", identity, "--deny"))
        again = await agent.call("exec", command=["touch", "made"], approval=identity)
        assert again.is_error and not (installation_with_rules.work / "made").exists()


async def test_an_agent_does_not_answer_through_the_interaction_tools(installation_with_rules):
    async with installation_with_rules.agent(session="kept", args=["--tools", "core,interaction"]) as agent:
        refused = await agent.call("exec", command=["touch", "made"])
        identity = refused.value_or("approval") or refused.value("interaction", "id")
        for answer in ("y", "yes", "true", "approve", "allow"):
            reply = await agent.call("interaction_answer", id=identity, answer=answer)
            assert reply.is_error, reply
        again = await agent.call("exec", command=["touch", "made"], approval=identity)
        assert again.is_error and not (installation_with_rules.work / "made").exists()


@pytest.mark.parametrize(("answer", "made"), [("y", True), ("n", False), ("", False)])
def test_the_command_line_asks_at_a_terminal(installation_with_rules, answer, made):
    with TerminalUser(installation_with_rules, "run", "--", "touch", "made") as person:
        person.wait_for(rb"touch made.*\[y/N\]")
        person.type(answer + "\n")
        code = person.wait_exit()
    assert (code == 0) == made
    assert (installation_with_rules.work / "made").exists() == made


def test_the_command_line_does_not_ask_without_a_terminal(installation_with_rules):
    done = installation_with_rules.cli("run", "--", "touch", "made", check=False)
    assert done.returncode == 77 and b"ask-touch" in done.stderr, done
    assert not (installation_with_rules.work / "made").exists()


def test_check_tells_without_running(installation_with_rules):
    for words, decision, code in ((["curl", "x"], b"deny", 77), (["touch", "a"], b"ask", None), (["echo", "a"], b"allow", 0)):
        done = installation_with_rules.cli("policy", "check", "--", *words, check=False)
        assert decision in done.stdout, done
        if code is not None:
            assert done.returncode == code, done
    assert installation_with_rules.json("ps", "-a") == []


def test_rules_are_tested_by_their_own_examples(installation_with_rules):
    fine = installation_with_rules.cli("policy", "test")
    assert fine.returncode == 0
    file = installation_with_rules.dir / "config" / "ostler" / "policy.toml"
    file.write_text(RULES.replace('match = ["curl https://a.example"]', 'match = ["wget https://a.example"]'))
    done = installation_with_rules.cli("policy", "test", check=False)
    assert done.returncode != 0 and b"no-curl" in done.stdout + done.stderr, done


def test_half_a_policy_is_none(make_installation):
    """A file that cannot be read lets nothing run."""
    installation = make_installation()
    installation.write_policy(RULES + "\n[[rule]\n")
    done = installation.cli("run", "--", "echo", "ran", check=False)
    assert done.returncode == 78 and b"policy.toml" in done.stderr, done


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_workspace_tightens_and_never_loosens(installation_with_rules, interface):
    (installation_with_rules.work / ".ostler").mkdir()
    file = installation_with_rules.work / ".ostler" / "policy.toml"
    file.write_text('[[rule]]\nid = "no-cat"\nprefix = ["cat"]\ndecision = "deny"\njustification = "here"\nmatch = ["cat x"]\n')
    assert "no-cat" in INTERFACES[interface](installation_with_rules, ["cat", "/dev/null"], IsolationOptions(level="medium")).text
    file.write_text('disable = ["no-curl"]\n')
    result = INTERFACES[interface](installation_with_rules, ["curl", "x"], IsolationOptions(level="medium"))
    assert result.exit_code != 0 and ("no-curl" in result.text or "loosen" in result.text), result.text


def test_a_defined_service_is_refused_too(installation_with_rules):
    work = installation_with_rules.work
    (work / "ostler.toml").write_text(
        "[services.fetch]\ncommand = 'curl https://a.example'\n[services.made]\ncommand = 'touch made; sleep 300'\n")
    for name, rule in (("fetch", "no-curl"), ("made", "ask-touch")):
        refused = installation_with_rules.cli("service", "up", name, check=False)
        assert refused.returncode == 77 and rule in refused.stderr.decode(), refused
    assert not (work / "made").exists()
    assert not installation_with_rules.json("service", "ps")


@pytest.mark.parametrize("words", [
    ["cat", "../../../../../../../../etc/hostname"],
    ["cat", "--", "./../../../../../../../../etc/hostname"],
    ["sh", "-c", "cat ../../../../../../../../etc/hostname"],
    ["sh", "-c", "head -c 4 < ../../../../../../../../etc/hostname"],
    ["cat", "/usr/../etc/hostname"],
])
def test_a_rule_about_a_place_finds_it_however_it_is_named(make_installation, words):
    installation = make_installation()
    installation.write_policy(
        "default = 'allow'\n[[rule]]\nid = 'no-etc'\nwords = ['/etc/*']\ndecision = 'deny'\njustification = 'not for agents'\n"
        "match = ['cat /etc/hostname']\nnot_match = ['cat etc/hostname']\n")
    refused = installation.cli("run", "--", *words, check=False)
    assert refused.returncode == 77 and b"no-etc" in refused.stderr, refused
    refused = installation.cli("run", "--cwd", "/etc", "--", "cat", "hostname", check=False)
    assert refused.returncode == 77 and b"no-etc" in refused.stderr, refused
    # A program of the path is no file of the directory.
    assert installation.cli("run", "--cwd", "/etc", "--", "true").returncode == 0
    assert installation.cli("run", "--", "ls", ".").returncode == 0


@pytest.mark.parametrize("words", [["x86_64", "touch", "made"], ["choom", "-n", "1", "--", "touch", "made"]])
def test_a_denied_program_is_found_behind_another(installation_with_rules, words):
    rules = installation_with_rules.dir / "config" / "ostler" / "policy.toml"
    rules.write_text(rules.read_text().replace('decision = "ask"', 'decision = "deny"'))
    refused = installation_with_rules.cli("run", "--", *words, check=False)
    assert refused.returncode == 77 and b"ask-touch" in refused.stderr, refused
    assert not (installation_with_rules.work / "made").exists()
