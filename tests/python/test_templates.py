"""Command templates: their files, and starts made from them, over every interface."""

import json
from urllib.parse import quote

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult

from harness import ClientTransport, HttpDaemon
from harness.installation import ProblemError
from test_policy import agree

pytestmark = pytest.mark.anyio

USER = """
[[template]]
id = "show"
description = "Print what it is given"
category = "demo"
command = "printf"
args_template = ["[%s]", "{text}", "n={count}", "{{}}"]
estimated_duration = 1

[template.parameters.text]
type = "string"
description = "What to print"

[template.parameters.count]
type = "integer"
default = 2

[[template]]
id = "make"
command = "touch"
args_template = ["{file}"]
requires_confirmation = true

[template.parameters.file]
type = "path"
"""
HOSTILE = ["two words", "$(touch made); `x` | {count} \\ ' \"", "", "-n", "--", "line\nend\r\x1b[2J", "*", "é"]
SHIPPED = ["analyze_code", "generate_docs", "generate_tests", "init_project", "refactor_code"]


def define(directory, name, text):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)


def of_one(template, command="true"):
    return f'[[template]]\nid = "{template}"\ncommand = "{command}"\n'


@pytest.fixture
def defined(installation):
    """An installation whose user has templates."""
    define(installation.dir / "config" / "ostler" / "templates", "mine.toml", USER)
    return installation


def execute(installation, fields):
    installation.cli("ps")
    project = quote(str(installation.work), safe="")
    return installation.rest("POST", f"/api/v1/projects/{project}/execute", {"interactive": False, **fields})


def ids(listing):
    return [template["id"] for template in listing["templates"]]


def test_the_five_are_shipped_with_all_their_fields(installation):
    listing = installation.json("template", "list")
    assert ids(listing) == SHIPPED and "problems" not in listing
    refactor = installation.json("template", "show", "refactor_code")
    installation.cli("ps")
    assert installation.rest("GET", "/api/v1/command-templates/refactor_code") == refactor
    assert refactor["args_template"] == ["refactor", "--file", "{file_path}", "--style", "{style}"]
    assert refactor["required_permissions"] == ["project:write"] and refactor["requires_confirmation"] is True
    assert refactor["estimated_duration"] == 120 and refactor["command"] == "claude" and refactor["source"] == "shipped"
    assert refactor["parameters"]["style"]["default"] == "clean" and refactor["parameters"]["file_path"]["required"] is True
    tests = installation.rest("GET", "/api/v1/command-templates?category=testing")
    assert ids(tests) == ["generate_tests"]
    with pytest.raises(ProblemError) as unknown:
        installation.rest("GET", "/api/v1/command-templates/nothing")
    assert unknown.value.status == 404 and unknown.value.code == "template_error", unknown.value


def test_the_shipped_policy_lets_the_shipped_templates_run(installation):
    for template in installation.json("template", "list")["templates"]:
        verdict = installation.cli("policy", "check", "--shipped", "--", template["command"], *template["args_template"])
        assert verdict.stdout.startswith(b"allow"), verdict


def test_a_project_adds_templates_and_replaces_none(defined):
    define(defined.dir / "config" / "ostler" / "templates", "shadow.toml", of_one("init_project"))
    project = defined.work / ".ostler" / "templates"
    define(project, "a.toml", of_one("build"))
    define(project, "b.toml", of_one("show", "reboot"))
    define(project, "c.toml", of_one("analyze_code", "reboot"))
    define(project, "d.toml", "[[template]]\nid = 3\n")
    listing = defined.json("template", "list")
    by_id = {template["id"]: template for template in listing["templates"]}
    assert by_id["build"]["source"] == "project" and by_id["show"]["command"] == "printf"
    assert by_id["analyze_code"]["command"] == "claude" and by_id["init_project"]["replaces_shipped"] is True
    problems = "\n".join(listing["problems"])
    assert "b.toml: template 'show' is not used" in problems and "c.toml" in problems and "d.toml:2: " in problems
    defined.cli("ps")
    cwd = quote(str(defined.work), safe="")
    assert defined.rest("GET", f"/api/v1/command-templates?cwd={cwd}") == listing
    assert "build" not in ids(defined.rest("GET", "/api/v1/command-templates"))
    shown = defined.cli("template", "list")
    assert b"user, replaces shipped" in shown.stdout and b"is not used" in shown.stderr


@pytest.mark.parametrize("text", HOSTILE)
def test_a_value_is_one_argument_whatever_it_holds(defined, text):
    printed = defined.cli("template", "run", "show", f"--param=text={text}", "-p", "count=7").stdout.decode()
    assert printed == f"[{text}][n=7][{{}}]"
    started = execute(defined, {"template_id": "show", "parameters": {"text": text, "count": 7}})
    defined.cli("wait", started["task_id"])
    assert defined.cli("logs", "--raw", started["task_id"]).stdout.decode() == printed
    assert not (defined.work / "made").exists()


def test_what_was_started_says_from_which_template(defined):
    started = execute(defined, {"template_id": "show", "command": "printf", "parameters": {"text": "x"}})
    defined.cli("wait", started["task_id"])
    assert [row["id"] for row in defined.json("ps", "-a", "--filter", "label=template:show")]
    assert defined.json("history", "--label", "template:show")["executions"][0]["uuid"] == started["task_id"]
    entry = next(json.loads(line) for file in sorted(defined.state.rglob("ledger/*")) for line in read_lines(file) if b'"template"' in line)
    assert entry["detail"]["template"] == {"id": "show", "parameters": {"text": "x", "count": "2"}}, entry


def read_lines(file):
    return file.read_bytes().splitlines() if file.is_file() else []


@pytest.mark.parametrize("fields, words", [
    ({"template_id": "show", "parameters": {"count": "x", "more": 1}}, ["'text' is missing", "'count' is 'x'", "'more' is unknown"]),
    ({"template_id": "show", "parameters": {"text": ["a"], "count": {}}}, ["'count', 'text'"]),
    ({"template_id": "make", "parameters": {"file": "--help"}}, ["'file'", "look like an option"]),
    ({"template_id": "show", "parameters": {"text": "a\u0000b"}}, ["'text' contains a NUL"]),
    ({"template_id": "nothing"}, ["template_id", "show"]),
    ({"template_id": "show", "command": "sh", "parameters": {"text": "x"}}, ["'command' is not that of template"]),
    ({"template_id": "show", "args": ["x"], "parameters": {"text": "x"}}, ["'args' does not go with"]),
    ({"command": "true", "parameters": {"text": "x"}}, ["'parameters' does not go without"])])
def test_a_bad_start_names_everything_wrong_and_starts_nothing(defined, fields, words):
    with pytest.raises(ProblemError) as refused:
        execute(defined, fields)
    assert refused.value.status in (400, 422), refused.value
    for word in words:
        assert word in json.dumps(refused.value.problem), refused.value.problem
    assert defined.json("ps", "-a") == []


def test_the_command_line_names_everything_wrong_too(defined):
    refused = defined.cli("template", "run", "show", "-p", "count=x", "-p", "more=1", check=False)
    assert refused.returncode == 64, refused
    for word in (b"'text' is missing", b"'count' is 'x'", b"'more' is unknown"):
        assert word in refused.stderr, refused.stderr
    for words in (["-p", "text"], ["-p", "text=a", "-p", "text=b"]):
        assert defined.cli("template", "run", "show", *words, check=False).returncode == 64
    define(defined.work, "bad.toml", USER.replace('"integer"', '"number"'))
    checked = defined.cli("template", "check", "bad.toml", check=False)
    assert checked.returncode == 78 and b"bad.toml:15: " in checked.stderr, checked
    define(defined.work, "good.toml", USER)
    assert defined.cli("template", "check", "good.toml").stdout == b"good.toml: show, make\n"


def test_a_confirmation_is_a_persons_and_for_one_start(defined):
    fields = {"template_id": "make", "parameters": {"file": "made"}}
    with pytest.raises(ProblemError) as asked:
        execute(defined, fields)
    assert asked.value.status == 403 and "template:make" in str(asked.value.problem), asked.value.problem
    assert not (defined.work / "made").exists()
    question = asked.value.problem["approval"]
    question = question.get("interaction", question) if isinstance(question, dict) else question
    defined.cli("approve", question)
    defined.cli("wait", execute(defined, fields)["task_id"])
    assert (defined.work / "made").exists()
    ended = defined.json("ps", "-a")[0]["id"]
    for again in (lambda: execute(defined, fields), lambda: defined.rest("POST", f"/api/v1/executions/{ended}/again", {})):
        with pytest.raises(ProblemError) as asked:
            again()
        assert "template:make" in str(asked.value.problem), asked.value.problem
    refused = defined.cli("template", "run", "make", "-p", "file=other", check=False)
    assert refused.returncode == 77 and b"template:make" in refused.stderr, refused


async def test_an_agent_lists_and_runs_templates(defined):
    define(defined.work / ".ostler" / "templates", "a.toml", of_one("build", "pwd"))
    (defined.work / "deep").mkdir()
    async with defined.agent(args=["--tools", "core,template"]) as agent:
        listed = (await agent.must("template_list")).value("templates")
        by_id = {template["id"]: template for template in listed}
        assert set(by_id) == {*SHIPPED, "show", "make", "build"} and by_id["make"]["requires_confirmation"] is True
        assert by_id["show"]["parameters"] == ["count", "text"] and by_id["show"]["required"] == ["text"]
        shown = await agent.must("template_list", id="refactor_code")
        assert shown.value("parameters")["style"]["options"] == ["clean", "optimize", "modern"]
        assert [it["id"] for it in (await agent.must("template_list", category="demo")).value("templates")] == ["show"]
        text = HOSTILE[1]
        ran = await agent.must("template_run", id="show", parameters={"text": text, "count": 7})
        assert f"[{text}][n=7][{{}}]" in ran.text and "exit 0" in ran.text, ran
        inside = await agent.must("template_run", id="build", cwd="deep", wait_ms=9000)
        assert str(defined.work / "deep") in inside.text
        refused = await agent.call("template_run", id="show", parameters={"count": "x", "more": True})
        assert refused.is_error and all(word in refused.text for word in ("'text' is missing", "'count' is 'x'", "'more' is unknown"))
        for arguments, word in (({"id": "nothing"}, "allowed: analyze_code"), ({"id": "show", "parameters": {"text": []}}, "parameters.text")):
            refused = await agent.call("template_run", **arguments)
            assert refused.is_error and word in refused.text, refused
    assert not (defined.work / "made").exists()


@pytest.mark.parametrize("answer", ["accept", "decline"])
async def test_a_person_confirms_through_the_agents_client(defined, answer):
    messages = []

    async def ask(_context, params):
        messages.append(params.message)
        names = params.requested_schema["properties"]
        return ElicitResult(action=answer, content={name: agree(it) for name, it in names.items()} if answer == "accept" else None)

    http_daemon = HttpDaemon(defined, "--no-token")
    try:
        async with ClientTransport("http", "auto", defined, http_daemon, path="/p/template").agent(elicitation_callback=ask) as agent:
            reply = await agent.call("template_run", id="make", parameters={"file": "made"}, cwd=str(defined.work))
        assert len(messages) == 1 and "touch made" in messages[0] and "template:make" in messages[0], (messages, reply)
        assert (defined.work / "made").exists() == (answer == "accept"), reply
    finally:
        http_daemon.end()


async def test_templates_are_prompts_of_their_profile_alone(defined):
    async with defined.agent(args=["--tools", "template"]) as agent:
        prompts = {prompt.name: prompt for prompt in (await agent.client.list_prompts()).prompts}
        assert set(prompts) == {*SHIPPED, "show", "make"}
        assert {it.name: it.required for it in prompts["refactor_code"].arguments} == {"file_path": True, "style": False}
        got = await agent.client.get_prompt("refactor_code", {"file_path": "a b.py"})
        text = got.messages[0].content.text
        assert "template_run" in text and "claude refactor --file 'a b.py' --style clean" in text and "person" in text, text
        for name, arguments, word in (("refactor_code", {"style": "x"}, "'file_path' is missing"), ("nothing", {}, "no template")):
            with pytest.raises(MCPError) as refused:
                await agent.client.get_prompt(name, arguments)
            assert word in str(refused.value), refused.value
    async with defined.agent(args=["--tools", "core"]) as agent:
        with pytest.raises(MCPError):
            await agent.client.list_prompts()


def test_a_session_lacks_what_the_whole_principal_may(defined):
    define(defined.dir / "config" / "ostler" / "templates", "all.toml", of_one("all") + 'required_permissions = ["sessions:all"]\n')
    defined.cli("ps")
    path = f"/api/v1/projects/{quote(str(defined.work), safe='')}/execute"
    with pytest.raises(ProblemError) as refused:
        defined.rest("POST", path, {"template_id": "all"}, session="agent")
    assert refused.value.status == 403 and "requires sessions:all" in str(refused.value.problem), refused.value
    assert defined.json("ps", "-a") == []
    assert defined.rest("POST", path, {"template_id": "all"})["task_id"]


def test_texts_of_definitions_control_no_terminal(defined):
    hostile = r'"\u001b[2J\u0007\u202e x"'
    define(defined.work / ".ostler" / "templates", "a.toml",
           f"{of_one('trap')}name = {hostile}\ndescription = {hostile}\nargs_template = [{hostile}]\n")
    define(defined.work / ".ostler" / "templates", "b.toml", of_one(r"\u001b[2J"))
    for words in (["list"], ["list", "--json"], ["show", "trap"], ["show", "trap", "--json"], ["show", "\x1b[2J"]):
        done = defined.cli("template", *words, check=False)
        printed = (done.stdout + done.stderr).decode()
        hidden = "\x1b\x07" if "--json" in words else "\x1b\x07\u202e"
        assert "2J" in printed and not any(c in printed for c in hidden), (words, printed)


async def test_a_cursor_of_no_list_is_refused(defined):
    async with defined.agent(args=["--tools", "template"]) as agent:
        refused = await agent.call("template_list", cursor="zzz")
        assert refused.is_error and "the 'next' of an earlier list" in refused.text, refused
        for listed in (agent.client.list_prompts, agent.client.list_tools, agent.client.list_resource_templates):
            with pytest.raises(MCPError, match="cursor is none that an earlier"):
                await listed(cursor="zzz")
