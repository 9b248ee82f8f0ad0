"""Tokens with `project:read=PROJECT` and `project:write=PROJECT`: they see and change what belongs to these projects; for anything
else every route and every tool answers as for an id that does not exist."""

import json
import re
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from harness import ClientTransport, HttpDaemon, Installation
from harness.api_surface import profiles, rest_routes
from harness.ws_recorder import WsRecorder
from test_tool_fuzz import META, REVISION

pytestmark = pytest.mark.anyio

#: Occurs in the name of the project of others, and so in all that it holds.
CANARY = "canaryalpha"
REDACTED = re.compile(r'"(?:request_id|X-Request-Id|uptime_ms|at|now)": *"?[^",}]*"?')
TEMPLATE = '[[template]]\nid = "of_{0}"\ncommand = "echo"\nargs_template = ["{0}"]\nrequired_permissions = ["project:read"]\n'
MANIFEST = '[services.manifest_{0}]\ncommand = "sleep 1000"\n'
#: Routes that need a scope that no token here has, or that are about nothing of a project.
ELSEWHERE = {
    ("GET", "/api/v1/tokens"), ("POST", "/api/v1/tokens"), ("DELETE", "/api/v1/tokens/{name}"), ("POST", "/api/v1/shutdown"),
    ("GET", "/api/docs"), ("GET", "/api/openapi.json"), ("GET", "/api/v1/version"), ("GET", "/api/v1/health"),
}
#: Routes that answer who sees all sessions of all projects.
ALL_PROJECTS = {("GET", "/metrics"), ("GET", "/api/v1/audit/verify"), ("GET", "/api/v1/doctor"), ("POST", "/api/v1/history/rebuild")}
#: Bodies of requests that would do something.
BODIES = {
    "wait": {"at_most_ms": 1}, "stop": {}, "again": {}, "signal": {"signal": "SIGKILL"}, "keys": {"text": "x"},
    "resize": {"cols": 90, "rows": 30}, "run": {"command": "true", "wait_ms": 1}, "answer": {"value": "yes"}, "cancel": {},
    "commit": {}, "discard": {}, "restart": {}, "dismiss": {}, "clean": {}, "pause": None, "resume": None,
}


def command(*words):
    return {"argv": {"program": words[0], "args": list(words[1:])}}


@pytest.fixture(scope="module")
def served(binary):
    """A daemon, two projects, and tokens for each; the first one, alpha, holds something of every kind."""
    installation = Installation(binary)
    try:
        projects = {}
        for name, directory in (("alpha", CANARY), ("beta", "beta")):
            path = (installation.work / directory).resolve()
            (path / ".ostler" / "templates").mkdir(parents=True)
            (path / ".ostler" / "templates" / "a.toml").write_text(TEMPLATE.format(directory))
            (path / "ostler.toml").write_text(MANIFEST.format(directory))
            projects[name] = str(path)
        alpha, beta = projects["alpha"], projects["beta"]
        scopes = {
            "all": ["sessions:all"],
            "alpha": ["sessions:all", f"project:write={alpha}"],
            "beta": ["sessions:all", f"project:write={beta}"],
            "beta_reader": ["sessions:all", f"project:read={beta}"],
            "beta_session": [f"project:write={beta}"],
            "mixed": ["sessions:all", f"project:read={alpha}", f"project:write={beta}"],
            "both": ["sessions:all", f"project:write={alpha}", f"project:write={beta}"],
        }
        secrets = {name: made(installation, name, words) for name, words in scopes.items()}
        daemon = HttpDaemon(installation, "--legacy-sse")
        daemon.secrets, daemon.projects = secrets, SimpleNamespace(**projects)
        daemon.alpha = fill(daemon)
        yield daemon
        daemon.end()
    finally:
        installation.close()


def made(installation, name, scopes):
    words = [word for scope in scopes for word in ("--scope", scope)]
    return json.loads(installation.cli("token", "new", name, *words, "--json").stdout)["token"]


def ask(daemon, name, method, path, body=None, **headers):
    """The status and the body of a response, which is JSON where it can be."""
    connection = daemon.connect()
    content = body if isinstance(body, (str, bytes, type(None))) else json.dumps(body)
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, content, {"Authorization": f"Bearer {daemon.secrets[name]}", **headers})
    response = connection.getresponse()
    text = response.read().decode(errors="replace")
    connection.close()
    try:
        return response.status, json.loads(text or "null")
    except json.JSONDecodeError:
        return response.status, text


def must(daemon, name, method, path, body=None, **headers):
    status, answer = ask(daemon, name, method, path, body, **headers)
    assert status < 300, (method, path, status, answer)
    return answer


def start(daemon, name, words, cwd, **options):
    return must(daemon, name, "POST", "/api/v1/executions", {"command": command(*words), "cwd": cwd, **options})["id"]


def fill(daemon):
    """Something of every kind in the project alpha, which its token is the only one for."""
    alpha = daemon.projects.alpha
    service = {"command": command("sleep", "1000"), "cwd": alpha, "name": f"served-{CANARY}", "wait_ms": 0}
    must(daemon, "alpha", "POST", "/api/v1/services", service)
    must(daemon, "alpha", "PUT", f"/api/v1/services/stored-{CANARY}", {"command": command("sleep", "1000"), "cwd": alpha})
    ended = start(daemon, "alpha", ["echo", CANARY], alpha)
    must(daemon, "alpha", "POST", f"/api/v1/executions/{ended}/wait", {"until": "exit", "at_most_ms": 20000})
    question = {"kind": "input_request", "message": f"what of {CANARY}?"}
    return SimpleNamespace(
        ended=ended,
        running=start(daemon, "alpha", ["cat"], alpha, stdin="open"),
        terminal=start(daemon, "alpha", ["cat"], alpha, pty={"cols": 80, "rows": 24}),
        shell=must(daemon, "alpha", "POST", "/api/v1/shells", {"kind": "bash", "cwd": alpha})["id"],
        context=must(daemon, "alpha", "POST", "/api/v1/contexts", {"project": alpha})["id"],
        question=must(daemon, "alpha", "POST", "/api/v1/interactions", question)["id"],
        service=f"served-{CANARY}", stored=f"stored-{CANARY}",
    )


def unknown(identifier):
    """An id of the same form that nothing has."""
    if re.fullmatch(r"[0-9a-f-]{36}", identifier):
        return "01920000-0000-7000-8000-00000000ffff"
    if identifier.startswith("ctx-"):
        return "ctx-ffffffffffff"
    return {True: "99999999"}.get(identifier.isdigit(), "nothing")


def plain(answer, identifier):
    """A response without what differs between two requests or two ids."""
    status, body = answer
    text = json.dumps(body, sort_keys=True)
    short = re.sub(r"^(?:.*-)?(.*)$", r"\1", identifier)
    for word in sorted({identifier, short, identifier[:8]}, key=len, reverse=True):
        text = text.replace(word, "ID")
    return status, REDACTED.sub("", text)


def ids_of(alpha, path):
    """The ids of alpha that a route with this path can be about."""
    if "/contexts/" in path:
        return [alpha.context]
    if "/interactions/" in path:
        return [alpha.question]
    if "/services/" in path:
        return [alpha.service, alpha.stored]
    if "/command-templates/" in path:
        return [f"of_{CANARY}"]
    return [alpha.running, alpha.terminal, alpha.shell, alpha.ended]


def body_of(method, path):
    if method != "POST":
        return {"command": command("true"), "cwd": "/"} if method == "PUT" else None
    return BODIES.get(path.rsplit("/", 1)[-1], {})


def test_no_route_shows_or_changes_what_belongs_to_another_project(served):
    alpha = served.alpha
    routes = [route for route in rest_routes() if route not in ELSEWHERE | ALL_PROJECTS and "{" in route[1]]
    assert len(routes) > 60
    for method, path in routes:
        if "/projects/" in path or (method, path) == ("PUT", "/api/v1/services/{name}"):
            continue  # Their names are no ids: see below.
        for identifier in ids_of(alpha, path):
            for name in ("beta", "beta_reader", "beta_session"):
                answers = []
                for value in (identifier, unknown(identifier)):
                    where = re.sub(r"\{\w+\}", quote(value), path)
                    answers.append(plain(ask(served, name, method, where, body_of(method, path)), value))
                assert answers[0] == answers[1], (name, method, path, identifier)
                assert CANARY not in answers[0][1].replace("ID", ""), (name, method, path, answers[0])
                assert answers[0][0] >= 400, (name, method, path, answers[0])
    assert_untouched(served)


def assert_untouched(served):
    alpha = served.alpha
    for identifier in (alpha.running, alpha.terminal, alpha.shell):
        shown = must(served, "all", "GET", f"/api/v1/executions/{identifier}")
        assert shown["status"] == "running" and not shown.get("paused"), shown
    assert must(served, "all", "GET", f"/api/v1/executions/{alpha.ended}")
    assert must(served, "all", "GET", f"/api/v1/executions/{alpha.ended}/output")["lines"][0]["text"] == CANARY
    assert must(served, "all", "GET", f"/api/v1/contexts/{alpha.context}")["status"] in ("idle", "busy", "warm")
    assert must(served, "all", "GET", f"/api/v1/interactions/{alpha.question}")["status"] == "open"
    for name in (alpha.service, alpha.stored, f"manifest_{CANARY}"):
        assert must(served, "all", "GET", f"/api/v1/services/{name}?cwd={served.projects.alpha}"), name
    own = must(served, "all", "GET", f"/api/v1/services/{alpha.service}")
    assert own["status"] in ("running", "ready", "starting", "listening"), own


def test_no_list_names_what_belongs_to_another_project(served):
    cwd = f"cwd={quote(served.projects.alpha)}"
    lists = [path for method, path in rest_routes() if method == "GET" and "{" not in path]
    for path in lists:
        route = ("GET", path)
        if route in ELSEWHERE or path.endswith("/interactions/events"):
            continue
        for name in ("beta", "beta_reader", "beta_session"):
            status, body = ask(served, name, "GET", path)
            if route in ALL_PROJECTS:
                assert status == 403 and "names a project" in body["message"] or "sessions:all" in body["message"], (name, path, body)
                continue
            assert status == 200 and CANARY not in json.dumps(body), (name, path, body)
            seen = ask(served, name, "GET", f"{path}?{cwd}")
            text = json.dumps(seen[1]).replace(served.projects.alpha, "")
            assert seen[0] in (200, 403, 422) and CANARY not in text, (name, path, seen)
    everything = [must(served, "alpha", "GET", path) for path in ("/api/v1/executions", "/api/v1/history", "/api/v1/audit", "/api/v1/services")]
    assert all(CANARY in json.dumps(body) for body in everything)
    project = quote(served.projects.alpha, safe="")
    assert must(served, "beta", "GET", f"/api/v1/projects/{project}/executions")["executions"] == []
    assert must(served, "beta", "GET", f"/api/v1/history?project={project}")["executions"] == []
    for path in ("/api/v1/detect", "/api/v1/policy/check"):
        body = {"command": command("npm", "start"), "cwd": served.projects.alpha}
        assert ask(served, "beta_reader", "POST", path, body)[0] == 403
        assert ask(served, "beta_reader", "POST", path, {**body, "cwd": served.projects.beta})[0] == 200


def test_bulk_routes_reach_only_what_is_seen(served):
    alpha = served.alpha
    selected = must(served, "beta", "POST", "/api/process/clean_selected", {"pids": [alpha.ended, alpha.running]})
    assert len(selected["not_found"]) == 2 and not selected["success"], selected
    assert must(served, "beta", "POST", "/api/process/clean_all")["count"] == 0
    assert_untouched(served)


def test_a_start_belongs_to_a_project_that_the_token_may_change(served):
    alpha, beta = served.projects.alpha, served.projects.beta
    own = start(served, "beta", ["true"], beta)
    assert must(served, "all", "GET", f"/api/v1/history/{own}")["project"] == beta
    project = quote(alpha, safe="")
    for name in ("beta", "beta_session", "mixed"):
        status, problem = ask(served, name, "POST", f"/api/v1/projects/{project}/execute", {"command": "true", "interactive": False})
        assert (status, problem["code"]) == (403, "permission_error") and beta in problem["message"], problem
        status, problem = ask(served, name, "POST", "/api/v1/contexts", {"project": alpha})
        assert (status, problem["code"]) == (403, "permission_error"), problem
    for body in ({"command": "true"}, {"template_id": f"of_{CANARY}"}):
        assert ask(served, "beta_reader", "POST", f"/api/v1/projects/{project}/execute", {**body, "interactive": False})[0] == 403
    # A template of the user that only reads, in a directory of another project: its files could be read by it.
    reader = {"template_id": "analyze_code", "interactive": False, "cwd": alpha, "parameters": {"file_path": "a"}}
    status, problem = ask(served, "beta_reader", "POST", f"/api/v1/projects/{quote(beta, safe='')}/execute", reader)
    assert status == 403 and "no project" in problem["message"], problem
    # With several projects one is named.
    status, problem = ask(served, "both", "POST", "/api/v1/executions", {"command": command("true"), "cwd": beta})
    assert status == 403 and "Ostler-Project" in problem["hint"] and beta in problem["message"], problem
    named = must(served, "both", "POST", "/api/v1/executions", {"command": command("true"), "cwd": beta}, Ostler_Project=alpha)["id"]
    assert must(served, "all", "GET", f"/api/v1/history/{named}")["project"] == alpha
    assert ask(served, "beta", "GET", "/api/v1/executions", Ostler_Project=alpha)[0] == 403
    assert ask(served, "all", "GET", "/api/v1/executions", Ostler_Project=alpha)[0] == 422


def test_what_may_only_be_read_is_told_apart_from_what_is_unknown(served):
    running = served.alpha.running
    assert must(served, "mixed", "GET", f"/api/v1/executions/{running}")["status"] == "running"
    for path, body in ((f"executions/{running}/stop", {}), (f"executions/{running}/input", "x"), (f"interactions/{served.alpha.question}/answer", {"value": "x"})):
        status, problem = ask(served, "mixed", "POST", f"/api/v1/{path}", body)
        assert status == 403 and "may only read" in problem["message"] and served.projects.alpha in problem["message"], (path, problem)
    assert ask(served, "mixed", "DELETE", f"/api/v1/contexts/{served.alpha.context}")[0] == 403
    assert must(served, "mixed", "GET", "/api/v1/command-templates/of_" + CANARY + "?cwd=" + served.projects.alpha)
    assert_untouched(served)


def test_the_history_of_several_projects_is_one_list(served):
    """Pages of a merged list hold each row once, newest first, also with an offset."""
    for number in range(4):
        for project in (served.projects.alpha, served.projects.beta):
            body = {"command": command("echo", str(number)), "cwd": project, "labels": ["merged"]}
            must(served, "both", "POST", "/api/v1/executions", body, Ostler_Project=project)
    whole = [row["id"] for row in must(served, "all", "GET", "/api/v1/history?label=merged")["executions"]]
    assert len(whole) == 8
    paged, before = [], ""
    while True:
        page = must(served, "both", "GET", f"/api/v1/history?label=merged&limit=3{before}")
        paged += [row["id"] for row in page["executions"]]
        if "next" not in page or page["next"] is None:
            break
        before = f"&before={page['next']}"
    assert paged == whole
    skipped = must(served, "both", "GET", "/api/v1/history?label=merged&limit=3&offset=4")["executions"]
    assert [row["id"] for row in skipped] == whole[4:7]
    rows = must(served, "mixed", "GET", "/api/v1/history?label=merged")["executions"]
    assert [row["id"] for row in rows] == whole
    own = must(served, "beta", "GET", "/api/v1/history?label=merged")["executions"]
    assert {row["project"] for row in own} == {served.projects.beta} and len(own) == 4


def test_streams_carry_only_what_is_seen(served):
    """Server-sent events: all of them from the beginning on."""
    connection = served.connect()
    headers = {"Authorization": f"Bearer {served.secrets['beta']}", "Accept": "text/event-stream"}
    connection.request("GET", "/api/v1/events?cursor=0", headers=headers)
    response = connection.getresponse()
    for name in ("alpha", "both"):
        path = f"/api/v1/projects/{quote(served.projects.alpha, safe='')}/execute"
        assert ask(served, name, "POST", path, {"template_id": "refused-of-alpha", "interactive": False})[0] == 422
    last = start(served, "beta", ["echo", "last"], served.projects.beta)
    lines = [""]
    while last not in lines[-1]:
        lines.append(response.readline().decode())
    connection.close()
    # A refusal repeats what its own request named.
    text = "".join(line for line in lines if '"event":"refused"' not in line)
    assert CANARY not in text and served.projects.beta in text
    assert "refused-of-alpha" not in "".join(lines)
    of_alpha = json.dumps(must(served, "alpha", "GET", "/api/v1/events?cursor=0"))
    assert CANARY in of_alpha and "refused-of-alpha" in of_alpha


def test_the_socket_of_questions_tells_only_of_those_that_are_seen(served):
    headers = {"Authorization": f"Bearer {served.secrets['mixed']}"}
    socket = WsRecorder(served, None, query="", headers=headers, path="/api/v1/interactions/events")
    socket.wait_message("up_to_date")
    for name in ("alpha", "beta"):
        must(served, name, "POST", "/api/v1/interactions", {"kind": "confirmation", "message": f"of {name}"})
    first = socket.wait_message("opened")["interaction"]["message"]
    assert first == "of beta", "it answers questions, and so is told of those that it may answer"
    socket.say(type="answer", id=served.alpha.question, value="yes")
    assert "may only read" in socket.wait_message("refused", id=served.alpha.question)["message"]
    socket.close()


def test_a_definition_of_one_name_is_that_of_each_project(served):
    """Neither project replaces or deletes what the other one defined."""
    name = f"/api/v1/services/{served.alpha.stored}"
    must(served, "beta", "PUT", name, {"command": command("sleep", "3"), "cwd": served.projects.beta})
    assert must(served, "beta", "GET", name)["command"] == "sleep 3"
    assert must(served, "alpha", "GET", name)["command"] == "sleep 1000"
    must(served, "beta", "DELETE", name)
    assert ask(served, "beta", "GET", name)[0] == 404
    assert must(served, "alpha", "GET", name)["command"] == "sleep 1000"


def test_the_tokens_of_a_project_see_all_of_it(served):
    """What the sweep compares is there for those who may see it."""
    shown = 0
    for method, path in rest_routes():
        if method == "GET" and "{" in path and (method, path) not in ELSEWHERE and "/projects/" not in path:
            query = f"?cwd={served.projects.alpha}" if "command-templates" in path else ""
            paths = [re.sub(r"\{\w+\}", quote(value), path) + query for value in ids_of(served.alpha, path)]
            if path.endswith("/events"):
                continue
            shown += any(ask(served, "alpha", "GET", where)[0] == 200 for where in paths)
    assert shown >= 20


def rpc(daemon, name, profile, method, params, path=""):
    """One request of MCP without a session; the result or the error."""
    headers = {
        "Authorization": f"Bearer {daemon.secrets[name]}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION, "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    connection = daemon.connect()
    connection.request("POST", f"/mcp{path}/p/{profile}", json.dumps(body), headers)
    text = connection.getresponse().read().decode()
    connection.close()
    events = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    answer = json.loads(events[-1] if events else text)
    return answer.get("result") or answer["error"]


#: Arguments of tools that name something of a project.
NAMING = {"id", "pid", "process_id", "session", "pids", "process_ids", "ids", "name", "context", "interaction", "serviceId", "service_id"}
OTHER = {"wait_ms": 0, "follow_seconds": 0, "value": "yes", "command": "true", "data": "x", "text": "x", "directory": "/", "cwd": "/"}


def calls_of(tool, alpha):
    """`(arguments, id)` of calls of a tool that name something of alpha; of each action where there are several."""
    properties = tool["inputSchema"]["properties"]
    naming = [name for name in properties if name in NAMING]
    actions = properties.get("action", {}).get("enum", [None])
    things = [alpha.running, alpha.terminal, alpha.shell, alpha.ended, alpha.service, alpha.stored, alpha.context, alpha.question, f"of_{CANARY}"]
    for name in naming:
        for action in actions:
            for identifier in things:
                arguments = {"action": action} if action else {}
                for needed in [*tool["inputSchema"].get("required", []), *(key for key in OTHER if key in properties)]:
                    if needed not in arguments and needed != name:
                        arguments[needed] = OTHER.get(needed, "x")
                value = [identifier] if properties[name].get("type") == "array" else identifier
                yield {**arguments, name: value}, identifier, name


@pytest.mark.limit(180)
def test_no_tool_shows_or_changes_what_belongs_to_another_project(served):
    count = 0
    for profile in profiles():
        tools = rpc(served, "beta", profile, "tools/list", {})["tools"]
        for tool in tools:
            for arguments, identifier, parameter in calls_of(tool, served.alpha):
                starts = tool["name"] in ("exec", "execute_shell", "command_execute", "command_bg_start", "pty_start", "context_create")
                if starts or (tool["name"] == "service" and arguments["action"] in ("start", "ensure", "up")):
                    continue  # A name is given to what is started.
                for name in ("beta", "beta_reader"):
                    answers = []
                    for value in (identifier, unknown(identifier)):
                        named = [value] if isinstance(arguments[parameter], list) else value
                        result = rpc(served, name, profile, "tools/call", {"name": tool["name"], "arguments": {**arguments, parameter: named}})
                        answers.append(plain((result.get("isError"), result), value))
                    about = (name, tool["name"], arguments)
                    assert answers[0] == answers[1], about
                    assert CANARY not in answers[0][1], (about, answers[0])
                    count += 1
            if not set(tool["inputSchema"].get("required", [])):
                result = rpc(served, "beta", profile, "tools/call", {"name": tool["name"], "arguments": {}})
                assert CANARY not in json.dumps(result), (tool["name"], result)
    assert count > 200
    for method, params in [("resources/list", {}), ("prompts/list", {}), ("resources/read", {"uri": "proc://"}), ("resources/read", {"uri": "proc://news"})]:
        assert CANARY not in json.dumps(rpc(served, "beta", "core,template", method, params)), method
    for part in ("", "/log", "/screen"):
        answers = [plain((0, rpc(served, "beta", "core", "resources/read", {"uri": f"proc://{value}{part}"})), value)
                   for value in (served.alpha.terminal, unknown(served.alpha.terminal))]
        assert answers[0] == answers[1] and CANARY not in answers[0][1]
    assert_untouched(served)


def transport(served, name, **options):
    headers = {"Authorization": f"Bearer {served.secrets[name]}"}
    return ClientTransport("http", "auto", served.installation, served, headers=headers, **options)


async def test_an_agent_works_in_the_project_of_its_token(served):
    async with transport(served, "beta").agent() as agent:
        assert (await agent.must("exec", command="pwd")).text.count(served.projects.beta)
        started = (await agent.must("exec", command="sleep 1000", wait_ms=0)).id
        row = must(served, "all", "GET", f"/api/v1/history/{started}")
        assert row["project"] == served.projects.beta, row
    async with transport(served, "alpha").agent() as agent:
        shown = await agent.call("process", action="detail", id=started)
        assert shown.is_error and shown.code == "process_not_found", shown
    async with transport(served, "mixed").agent() as agent:
        stopped = await agent.call("process_control", action="stop", id=served.alpha.running)
        assert stopped.is_error and stopped.code == "permission_error" and "may only read" in stopped.text, stopped


async def test_a_session_of_one_name_is_shared_only_within_a_project(served):
    """What one token starts in a named session is neither told to the other one nor ended by it."""
    path = "/s/common"
    async with transport(served, "alpha", path=path).agent() as one, transport(served, "beta", path=path).agent() as other:
        ended = (await one.must("exec", command=f"echo {CANARY}; exit 3", wait_ms=0)).id
        running = (await one.must("exec", command="sleep 1000", wait_ms=0)).id
        must(served, "all", "POST", f"/api/v1/executions/{ended}/wait", {"until": "exit", "at_most_ms": 20000})
        told = await other.must("process", action="list")
        assert ended not in told.text and running not in told.text and "news" not in told.text, told
        connection = served.connect()
        connection.request("DELETE", f"/mcp{path}", headers={"Authorization": f"Bearer {served.secrets['beta']}"})
        assert connection.getresponse().status == 204
        connection.close()
        assert must(served, "all", "GET", f"/api/v1/executions/{running}")["status"] == "running"
        told = await one.must("process", action="list", status="running")
        assert running in told.text
    connection = served.connect()
    connection.request("DELETE", f"/mcp{path}", headers={"Authorization": f"Bearer {served.secrets['alpha']}"})
    assert connection.getresponse().status == 204
    connection.close()
    assert ask(served, "all", "GET", f"/api/v1/executions/{running}")[0] == 404


def post(served, name, message, **headers):
    """One message to MCP: the status and the headers of the response."""
    connection = served.connect()
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, **message}),
                       {**accepted, **headers, "Authorization": f"Bearer {served.secrets[name]}"})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, response.headers


def test_an_mcp_session_is_continued_by_no_other_token(served):
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    session = post(served, "alpha", {"method": "initialize", "params": client})[1]["Mcp-Session-Id"]
    for name, status in (("beta", 404), ("all", 404), ("alpha", 200)):
        assert post(served, name, {"method": "tools/list"}, Mcp_Session_Id=session)[0] == status, name
