"""Tokens with `project:read` and `project:write`: what each may do over REST, and which templates it may start."""

import json
from urllib.parse import quote

import pytest

from harness import ClientTransport, HttpDaemon, Installation
from harness.http_daemon import ask

pytestmark = pytest.mark.anyio

TEMPLATES = """
[[template]]
id = "reads"
command = "echo"
args_template = ["looked"]
required_permissions = ["project:read"]

[[template]]
id = "silent"
command = "true"

[[template]]
id = "writes"
command = "true"
required_permissions = ["project:read", "project:write"]
"""
OWN_TEMPLATE = '[[template]]\nid = "own"\ncommand = "true"\nrequired_permissions = ["project:read"]\n'
TOKENS = {"plain": [], "reader": ["project:read"], "writer": ["project:write"], "both": ["project:read", "project:write"]}


@pytest.fixture(scope="module")
def served(binary):
    """A daemon with templates of its user and of a project; `secrets` has a token of each kind."""
    installation = Installation(binary)
    try:
        for directory, text in [(installation.dir / "config" / "ostler", TEMPLATES), (installation.work / ".ostler", OWN_TEMPLATE)]:
            (directory / "templates").mkdir(parents=True)
            (directory / "templates" / "a.toml").write_text(text)
        secrets = {name: made(installation, name, scopes) for name, scopes in TOKENS.items()}
        http_daemon = HttpDaemon(installation)
        http_daemon.secrets = secrets
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()


def made(installation, name, scopes):
    words = ["--scopes", ",".join(scopes)] if scopes else []
    return json.loads(installation.cli("token", "create", name, *words, "--json").stdout)["token"]


def execute(http_daemon, name, **body):
    project = quote(str(http_daemon.installation.work), safe="")
    return ask(http_daemon, name, "POST", f"/api/v1/projects/{project}/execute", {"interactive": False, **body})


def refused(answer):
    status, problem = answer
    return status == 403 and problem["code"] == "permission_error" and "project:write" in problem["message"]


@pytest.mark.parametrize("name", ["plain", "writer", "both"])
def test_who_may_write_starts_and_stops(served, name):
    command = {"argv": {"program": "sleep", "args": ["100"]}}
    status, started = ask(served, name, "POST", "/api/v1/executions", {"command": command, "cwd": str(served.installation.work)})
    assert status == 201, started
    seen = ask(served, "reader", "GET", f"/api/v1/executions/{started['id']}")
    assert seen[0] == 200, "a reader of the same principal sees it"
    assert refused(ask(served, "reader", "POST", f"/api/v1/executions/{started['id']}/stop", {}))
    assert ask(served, "reader", "POST", f"/api/v1/executions/{started['id']}/wait", {"at_most_ms": 1})[0] == 200
    assert ask(served, name, "POST", f"/api/v1/executions/{started['id']}/stop", {})[0] == 200
    assert execute(served, name, command="true")[0] == 202


def test_a_reader_starts_templates_that_only_read(served):
    assert refused(execute(served, "reader", command="true"))
    assert refused(execute(served, "reader", template_id="reads", context=True))
    for template in ("silent", "writes", "own"):
        assert refused(execute(served, "reader", template_id=template)), template
        assert execute(served, "plain", template_id=template)[0] == 202, template
    status, task = execute(served, "reader", template_id="reads")
    assert status == 202, task
    wait = ask(served, "reader", "POST", f"/api/v1/executions/{task['task_id']}/wait", {"at_most_ms": 20000})
    assert wait[0] == 200 and ask(served, "reader", "GET", f"/api/v1/executions/{task['task_id']}/output")[1]["lines"][0]["text"] == "looked"


async def test_a_reader_starts_them_over_mcp_too(served):
    headers = {"Authorization": f"Bearer {served.secrets['reader']}"}
    transport = ClientTransport("http", "auto", served.installation, served, headers=headers, path="/p/template")
    async with transport.agent() as agent:
        cwd = str(served.installation.work)
        for template in ("silent", "own"):
            answer = await agent.call("template_run", id=template, cwd=cwd)
            assert answer.is_error and answer.code == "permission_error" and "project:write" in answer.text, answer
        assert "looked" in (await agent.must("template_run", id="reads", cwd=cwd)).text


def test_the_command_line_says_what_each_scope_allows(served):
    shown = served.installation.cli("token", "create", "--help").stdout.decode()
    for scope in ("sessions:all", "daemon:stop", "project:read", "project:write"):
        assert f"- {scope}:" in shown, shown
    listed = json.loads(served.installation.cli("token", "list", "--json").stdout)
    assert {token["name"]: token["scopes"] for token in listed} == TOKENS
    wrong = served.installation.cli("token", "create", "x", "--scopes", "project:all", check=False)
    assert wrong.returncode == 64 and b"project:read" in wrong.stderr, wrong
