"""Executions of other owners respond as if they did not exist: every route, every tool, every list, enumerated
from the declarations in the source, so that a new one cannot be forgotten."""

import base64
import http.client
import json
import os
import re
import socket
import time
from urllib.parse import urlsplit

import pytest

from harness import Installation, serve_two_principals
from harness.api_surface import profiles, rest_routes
from harness.protected_env import USERS_BY_INTERFACE, USERS, isolation
from harness.isolation_client import INTERFACES, IsolationOptions

pytestmark = pytest.mark.anyio

SECRET = "only-mine-to-see-7315"
#: Prints two words that are not in its text: one at once, one when it gets input.
SCRIPT = f"echo {SECRET} p''rinted; printf 'Your name: '; read -r name; echo g''ot $name"
UNKNOWN = "zzzzzzzz"
#: Routes of a project have no id of another owner: who asks gets what is his own of it.
#: Those of tokens refuse every token (test_tokens.py). The page /api/docs is the same for everybody, who has a token or
#: not (test_route_tokens.py). Those that sign in and out are about who asks (test_web_session.py).
ROUTES = [it for it in rest_routes() if not re.search("/projects/{id}/|/tokens|/api/docs|/v1/web/", it[1])]

#: Bodies of requests that need one to come as far as the id.
BODIES = {
    ("POST", "/api/v1/executions/{id}/wait"): {"until": "exit", "at_most_ms": 100},
    ("POST", "/api/v1/executions/{id}/stop"): {"force": True},
    ("POST", "/api/v1/executions/{id}/signal"): {"signal": "TERM"},
    ("POST", "/api/v1/executions/{id}/input"): {"text": "x"},
    ("POST", "/api/v1/executions/{id}/keys"): {"pieces": [{"key": "enter"}]},
    ("POST", "/api/v1/executions/{id}/resize"): {"cols": 80, "rows": 24},
    ("POST", "/api/v1/executions/{id}/shell/run"): {"script": "true"},
    ("POST", "/api/v1/interactions/{id}/answer"): {"value": "x"},
    ("POST", "/api/v1/tasks/{id}/input"): {"input": "x"},
}
#: What must follow a path for the id to be looked up.
QUERIES = {"/api/v1/executions/{id}/export": "?format=text", "/api/v1/executions/{id}/output/find": "?q=printed"}
#: Bodies of requests without an id in their path; ID stands for the id of another owner.
LISTS = {
    ("GET", "/api/openapi.json"): None,
    ("POST", "/api/process/clean_all"): None,
    ("POST", "/api/process/clean_selected"): {"pids": ["ID"]},
    ("GET", "/api/processes"): None,
    ("GET", "/api/v1/executions"): None,
    ("GET", "/api/v1/events"): None,
    ("GET", "/api/v1/health"): None,
    ("GET", "/api/v1/history"): None,
    ("GET", "/api/v1/interactions"): None,
    ("GET", "/api/v1/approvals"): None,
    ("GET", "/api/v1/audit"): None,
    ("GET", "/api/v1/version"): None,
    ("GET", "/api/v1/command-templates"): None,
    ("GET", "/api/v1/contexts"): None,
    ("GET", "/api/v1/policy"): None,
    ("GET", "/api/v1/resources"): None,
    ("POST", "/api/v1/policy/check"): {"command": {"argv": {"program": "true", "args": []}}, "cwd": "/"},
    ("GET", "/api/v1/services"): None,
    ("POST", "/api/v1/detect"): {"command": {"argv": {"program": "true", "args": []}}, "cwd": "/"},
}
#: What must follow the path of a list to request all of it.
WHOLE = {"/api/v1/events": "?cursor=0"}
#: What starts something of one's own, or ends the daemon for everybody (a scope of its own).
OTHER = {
    ("POST", "/api/v1/executions"), ("POST", "/api/v1/shells"), ("POST", "/api/v1/shutdown"), ("POST", "/api/v1/interactions"),
    # A WebSocket: what it tells is in test_questions.py.
    ("GET", "/api/v1/interactions/events"),
    ("POST", "/api/v1/contexts"),
    # Refused to a session: no list.
    ("GET", "/metrics"), ("POST", "/api/v1/history/rebuild"), ("GET", "/api/v1/audit/verify"), ("GET", "/api/v1/doctor"),
    ("POST", "/api/v1/services"), ("POST", "/api/v1/services/ensure"), ("POST", "/api/v1/services/up"),
}
#: A definition of one's own: its name is not an id.
DEFINES = ("PUT", "/api/v1/services/{name}")

#: A call of every tool that takes an id; None for those that take none.
TOOLS = {
    "template_list": None, "template_run": None, "context_create": None,
    "context_list": [{}, {"id": "ID"}], "context_run": [{"id": "ID", "command": "true"}], "context_close": [{"id": "ID", "force": True}],
    "exec": None, "command_execute": None, "command_bg_start": None, "execute_shell": None, "pty_start": None,
    "process": [{"action": action, "ids": ["ID"], "wait_ms": 0} if action == "wait" else {"action": action, "ids": ["ID"]}
                for action in ("output", "wait", "detail")],
    "process_control": [
        {"action": "write", "ids": ["ID"], "text": "x"}, {"action": "close_input", "ids": ["ID"]},
        {"action": "signal", "ids": ["ID"], "signal": "TERM"}, {"action": "pause", "ids": ["ID"]},
        {"action": "resume", "ids": ["ID"]}, {"action": "stop", "ids": ["ID"], "force": True},
        {"action": "clean", "ids": ["ID"]}, {"action": "clear_output", "ids": ["ID"]},
        {"action": "notify", "ids": ["ID"], "pattern": "x"},
    ],
    "service": [{"action": action, "name": "ID"} for action in ("status", "why", "logs", "stop", "restart", "forget")],
    "workspace": [{"action": action, "id": "ID"} for action in ("changes", "diff", "commit", "discard")],
    "command_ps_list": [{}], "command_ps_detail": [{"pid": "ID"}], "command_ps_stop": [{"pid": "ID"}],
    "command_ps_logs": [{"pid": "ID", "follow_seconds": 0}], "command_ps_clean": [{"pids": ["ID"]}],
    "poll_process": [{"process_id": "ID"}], "kill_process": [{"process_id": "ID"}],
    "read_process_output": [{"process_id": "ID", "stream": "stdout"}], "list_processes": [{}],
    "history_search": [{}, {"id": "ID"}], "interaction_list": [{}], "interaction_answer": [{"id": "QUESTION", "answer": "x"}, {"id": "QUESTION", "cancel": True}],
    "pty_list": [{}], "pty_read": [{"session": "ID"}, {"session": "ID", "view": "raw"}],
    "pty_write": [{"session": "ID", "text": "x"}], "pty_run": [{"session": "ID", "script": "true"}],
    "pty_resize": [{"session": "ID", "cols": 80, "rows": 24}], "pty_close": [{"sessions": ["ID"]}],
}


@pytest.fixture(scope="module")
def token_daemon(binary):
    """A daemon that asks for tokens, with two principals."""
    with serve_two_principals(Installation(binary), "--legacy-sse") as http_daemon:
        yield http_daemon


def ask(http_daemon, name, method, path, body=None, headers=None):
    """Asks; again while the history is behind the ledger, which takes a busy machine some seconds."""
    deadline = time.monotonic() + 30
    while True:
        status, text = ask_once(http_daemon, name, method, path, body, headers)
        if status != 503 or '"retryable":true' not in text or time.monotonic() > deadline:
            return status, text


def ask_once(http_daemon, name, method, path, body=None, headers=None):
    """One request as a principal: `(status, text)`."""
    where = urlsplit(http_daemon.base)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
    identifier = {"Authorization": f"Bearer {http_daemon.tokens[name]}", "X-Request-Id": "same-in-all", **(headers or {})}
    data = None
    if body is not None:
        data = json.dumps(body)
        identifier["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body=data, headers=identifier)
        answer = connection.getresponse()
        # A stream that is let in would not end.
        return answer.status, answer.read(1 << 20).decode(errors="replace")
    finally:
        connection.close()


@pytest.fixture
def ann_execution(token_daemon):
    """Something of Ann's that runs: its id."""
    status, text = ask(token_daemon, "ann", "POST", "/api/v1/executions", {
        "command": {"shell": {"shell": "sh", "script": SCRIPT}}, "cwd": str(token_daemon.installation.work),
        "stdin": "open", "labels": [SECRET], "description": SECRET,
    })
    assert status < 300, text
    pid = json.loads(text)["id"]
    wait = {"until": "pattern", "pattern": "printed", "at_most_ms": 10_000}
    ask(token_daemon, "ann", "POST", f"/api/v1/executions/{pid}/wait", wait)
    yield pid
    ask(token_daemon, "ann", "POST", f"/api/v1/executions/{pid}/stop", {"force": True})


def still_hers(http_daemon, pid):
    status, text = ask(http_daemon, "ann", "GET", f"/api/v1/executions/{pid}")
    assert status == 200 and json.loads(text)["status"] == "running", text
    status, text = ask(http_daemon, "ann", "GET", f"/api/v1/executions/{pid}/raw")
    assert "printed" in text, "her output was cleared"
    assert "got" not in text, "somebody typed into it"


@pytest.mark.parametrize(("method", "path"), [it for it in ROUTES if "{" in it[1] and it != DEFINES])
async def test_no_route_tells_a_foreign_id_from_an_unknown_one(token_daemon, ann_execution, method, path):
    headers = websocket() if path.endswith("/terminal") else {}
    uuid = json.loads(ask(token_daemon, "ann", "GET", f"/api/v1/executions/{ann_execution}")[1])["uuid"]
    name = re.search(r"\{(\w+)", path)[0] + "}"
    # A question of hers, where that is what the route is about.
    question = hers(token_daemon) if "interactions" in path else None
    answers = {
        identifier: ask(token_daemon, "bob", method, path.replace(name, identifier) + QUERIES.get(path, ""), BODIES.get((method, path)), headers)
        for identifier in filter(None, (ann_execution, uuid, question, UNKNOWN))
    }
    unknown = answers.pop(UNKNOWN)
    assert unknown[0] == 404, unknown
    for identifier, (status, text) in answers.items():
        assert status == unknown[0], (status, text)
        assert text.replace(identifier, "ID") == unknown[1].replace(UNKNOWN, "ID")
        assert SECRET not in text
    still_hers(token_daemon, ann_execution)


@pytest.mark.parametrize("wrong", ["body", "query", "json"])
@pytest.mark.parametrize(("method", "path"), [it for it in ROUTES if "{id}" in it[1]])
async def test_a_foreign_id_is_unknown_whatever_else_is_wrong(token_daemon, ann_execution, method, path, wrong):
    """404 precedes every error about body and query."""
    headers = websocket() if path.endswith("/terminal") else {}
    question = (hers(token_daemon) or UNKNOWN) if "interactions" in path else ann_execution
    query = "?nobody_knows=this" if wrong == "query" else ""
    body = {"body": {"nobody_knows": 1, "signal": 7, "pieces": 3}, "json": "no object", "query": None}[wrong]
    for identifier in (question, UNKNOWN):
        status, text = ask(token_daemon, "bob", method, path.replace("{id}", identifier) + query, body, headers)
        assert status == 404, (status, text)
    if wrong == "body" and method == "POST" and not path.endswith(("/pause", "/resume", "/commit", "/discard", "/input")) and "/api/v1/executions" in path:
        status, text = ask(token_daemon, "ann", method, path.replace("{id}", question), body, headers)
        assert status == 422, "her own is told what is wrong"
    still_hers(token_daemon, ann_execution)


async def test_health_counts_what_the_caller_sees(token_daemon, ann_execution):
    running = {name: json.loads(ask(token_daemon, name, "GET", "/api/v1/health")[1])["running"] for name in ("ann", "bob")}
    assert running["ann"] >= 1 and running["bob"] == 0, running


@pytest.mark.parametrize(("method", "path"), [it for it in ROUTES if "/services/{name}" in it[1] and it != DEFINES])
async def test_a_service_of_hers_is_unknown_to_him_by_name_and_by_id(token_daemon, method, path):
    body = {"command": {"shell": {"shell": "sh", "script": f"echo {SECRET}; exec cat"}}, "cwd": str(token_daemon.installation.work),
            "name": "hers", "ready_when": {"quiet_ms": 10}, "wait_ms": 10_000, "description": SECRET}
    status, text = ask(token_daemon, "ann", "POST", "/api/v1/services", body)
    assert status < 300, text
    service = json.loads(text)["service"]["execution"]["id"]
    try:
        names = ("hers", service, UNKNOWN)
        theirs, by_id, unknown = (ask(token_daemon, "bob", method, path.replace("{name}", name)) for name in names)
        assert unknown[0] == 404, unknown
        for identifier, answer in (("hers", theirs), (service, by_id)):
            assert answer[0] == 404 and SECRET not in answer[1], answer
            assert answer[1].replace(identifier, "ID") == unknown[1].replace(UNKNOWN, "ID")
        listed = json.loads(ask(token_daemon, "bob", "GET", "/api/v1/services")[1])
        assert SECRET not in json.dumps(listed) and service not in json.dumps(listed), listed
        proxies = json.loads(ask(token_daemon, "ann", "GET", "/api/v1/services/hers")[1])
        assert proxies["status"] == "ready" and proxies["execution"]["id"] == service, proxies
    finally:
        ask(token_daemon, "ann", "POST", "/api/v1/services/hers/stop", {"force": True})


def hers(http_daemon):
    """One of Ann's open questions; none where the prompt was not detected yet."""
    listed = json.loads(ask(http_daemon, "ann", "GET", "/api/v1/interactions")[1])["interactions"]
    return listed[0]["id"] if listed else None


def websocket():
    key = base64.b64encode(os.urandom(16)).decode()
    return {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}


@pytest.mark.parametrize(("method", "path"), [it for it in ROUTES if "{" not in it[1] and it not in OTHER])
async def test_no_list_shows_executions_of_other_owners(token_daemon, ann_execution, method, path):
    assert (method, path) in LISTS, "a new route: say here how it is asked"
    body = json.loads(json.dumps(LISTS[method, path]).replace("ID", ann_execution))
    status, text = ask(token_daemon, "bob", method, path + WHOLE.get(path, ""), body)
    assert status < 300, (status, text)
    assert SECRET not in text
    if ann_execution in text:
        # The requested id is repeated, as not found.
        assert ann_execution in json.dumps(body), text
        summary = json.loads(text)
        assert [it["pid"] for it in summary["not_found"]] == [ann_execution], text
    still_hers(token_daemon, ann_execution)


@pytest.mark.parametrize("query", ["", "?status=all", "?limit=500", f"?label={SECRET}", "?session=all", "?principal=ann"])
async def test_no_filter_widens_what_is_seen(token_daemon, ann_execution, query):
    _status, text = ask(token_daemon, "bob", "GET", f"/api/v1/executions{query}")
    assert ann_execution not in text
    assert SECRET not in text.replace(query, "")


async def test_every_tool_is_in_the_sweep(token_daemon):
    installation = token_daemon.installation
    async with with_all_tools(installation) as agent:
        offered = {tool.name for tool in (await agent.client.list_tools()).tools}
    assert offered - set(TOOLS) == set(), "a new tool: say here how it is called"


def with_all_tools(installation):
    return installation.agent(args=["--tools", ",".join(profiles())])


@pytest.fixture(scope="module")
def proxies(binary):
    """An installation whose stdio proxies are sessions of one principal."""
    installation = Installation(binary)
    try:
        yield installation
        installation.end_commands()
        assert installation.shut_down() == []
    finally:
        installation.close()


@pytest.mark.parametrize("tool", [name for name, calls in TOOLS.items() if calls])
async def test_no_tool_tells_a_foreign_id_from_an_unknown_one(proxies, tool):
    async with with_all_tools(proxies) as ann, with_all_tools(proxies) as bob:
        start = await ann.must("exec", script=SCRIPT, input="open", on_prompt="ask", wait_ms=10_000, description=SECRET)
        pid = start.value("id")
        pty = (await ann.must("pty_start", command=["sh", "-c", f"echo {SECRET}; exec cat"], wait_ms=0)).id
        listed = (await ann.must("interaction_list")).structured["interactions"]
        question = next(it["id"] for it in listed if it["execution"] == pid)
        own = {"ID": pty if tool.startswith("pty_") else pid, "QUESTION": question}
        for arguments in TOOLS[tool]:
            foreign = await bob.call(tool, **filled(arguments, own))
            unknown = await bob.call(tool, **filled(arguments, dict.fromkeys(own, UNKNOWN)))
            identifier = own["QUESTION"] if "QUESTION" in str(arguments) else own["ID"]
            assert SECRET not in whole_text(foreign), arguments
            if "ID" not in str(arguments) and "QUESTION" not in str(arguments):
                assert not any(it in whole_text(foreign) for it in (pid, pty, question))
                continue
            assert same(foreign, identifier) == same(unknown, UNKNOWN), arguments
        detail = await ann.must("process", action="detail", ids=[pid])
        assert "running" in whole_text(detail), detail
        output = await ann.must("process", action="output", ids=[pid])
        assert "printed" in output.text and "got" not in output.text
        assert "running" in whole_text(await ann.must("pty_list"))
        await ann.must("process_control", action="stop", ids=[pid], force=True)
        await ann.must("pty_close", sessions=[pty])


def filled(arguments, spell):
    return {
        name: [spell.get(item, item) for item in value] if isinstance(value, list) else spell.get(value, value)
        if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def whole_text(reply):
    return reply.text + json.dumps(reply.structured or {}) + json.dumps(reply.meta)


def same(reply, identifier):
    """A response without the requested id and without the parts that differ from call to call."""
    text = whole_text(reply).replace(identifier, "ID")
    return re.sub(r"news|\d+\.\d+ ?m?s", "", text)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
async def test_without_a_token_no_route_answers(token_daemon, ann_execution, method):
    where = urlsplit(token_daemon.base)
    for known, path in ROUTES:
        if known != method:
            continue
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
        connection.request(method, re.sub(r"\{\w+\}", ann_execution, path))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 401, (method, path, answer.status)
        assert SECRET not in text and ann_execution not in text


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_at_level_high_nothing_of_the_engine_is_in_sight(protected_envs, user, interface):
    """Neither its directories nor its sockets, by whichever name."""
    installation = protected_envs.of(user)
    targets = [installation.state, installation.state / "executions", installation.outside.facts["other"], installation.socket,
               installation.socket.parent, installation.dir / "config" / "ostler", installation.dir / "config" / "ostler" / "config.toml"]
    script = "; ".join(f"ls -laR {path} 2>&1; cat {path} 2>/dev/null" for path in targets)
    seen = INTERFACES[interface](installation, ["sh", "-c", script + f"; grep -r {installation.outside.secret} / "
                               "--include='*' -l -s --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr 2>/dev/null; echo over"],
                       isolation(user), cwd=fresh(installation))
    lines = seen.text.splitlines()
    assert any("over" in line for line in lines), seen.text
    assert installation.outside.secret not in seen.text
    state = installation.state
    control = INTERFACES[interface](installation, ["sh", "-c", f"ls -laR {state} | wc -l; grep -rl {installation.outside.secret} {state}"],
                          IsolationOptions(level="medium"))
    assert "executions/" in control.text, "the control must find it"


def fresh(installation):
    directory = installation.dir / f"fresh-{os.urandom(4).hex()}"
    directory.mkdir()
    installation.give(directory)
    return directory


@pytest.mark.parametrize("user", USERS)
def test_two_commands_of_level_high_do_not_meet(protected_envs, user):
    """Neither by processes, nor temporary files, nor abstract sockets, nor the loopback."""
    installation = protected_envs.of(user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one, other = fresh(installation), fresh(installation)
    serve = ("import socket,sys,time\nopen('/tmp/left','w').write('x'); open('/dev/shm/left','w').write('x')\n"
             f"s=socket.socket(); s.bind(('127.0.0.1',{port})); s.listen()\n"
             f"u=socket.socket(socket.AF_UNIX); u.bind(chr(0)+'meet-{port}'); u.listen(); print('up', flush=True); time.sleep(300)")
    started = installation.cli("run", "-d", *isolation(user).words(), "--cwd", str(one), "--", "python3", "-c", serve, f"mark-{port}")
    pid = started.stdout.decode().strip()
    installation.rest("POST", f"/api/v1/executions/{pid}/wait", {"until": "pattern", "pattern": "up", "at_most_ms": 10_000})
    probe = ("import os,socket\n"
             "def attempt(name, what):\n try: what(); print('MET', name)\n except OSError: pass\n"
             f"attempt('tcp', lambda: socket.create_connection(('127.0.0.1',{port}),1))\n"
             f"attempt('unix', lambda: socket.socket(socket.AF_UNIX).connect(chr(0)+'meet-{port}'))\n"
             "attempt('tmp', lambda: os.stat('/tmp/left'))\nattempt('shm', lambda: os.stat('/dev/shm/left'))\n"
             f"attempt('workspace', lambda: os.listdir('{one}'))\n"
             f"[print('MET process', p) for p in os.listdir('/proc') if p.isdigit() and 'mark-'+'{port}' in open('/proc/'+p+'/cmdline').read()]\n"
             "print('over')")
    result = INTERFACES["cli"](installation, ["python3", "-c", probe], isolation(user), cwd=other)
    installation.rest("POST", f"/api/v1/executions/{pid}/stop", {"force": True})
    assert "over" in result.text and "MET" not in result.text, result.text
