"""What is somebody else's is as if it were not there: every route, every tool, every list, swept
from what the source declares, so that a new one cannot be forgotten."""

import base64
import http.client
import json
import os
import re
import socket
from urllib.parse import urlsplit

import pytest

from harness import Installation, serving_two_principals
from harness.api_surface import profiles, rest_routes
from harness.protected_env import USERS_BY_INTERFACE, USERS, isolation
from harness.isolation_client import INTERFACES, IsolationOptions

pytestmark = pytest.mark.anyio

SECRET = "only-mine-to-see-7315"
#: Prints two words that do not stand in it: one at once, one when it is typed to.
SCRIPT = f"echo {SECRET} p''rinted; printf 'Your name: '; read -r name; echo g''ot $name"
UNKNOWN = "zzzzzzzz"
ROUTES = rest_routes()

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
}
#: What must follow a path for the id to be looked at.
QUERIES = {"/api/v1/executions/{id}/export": "?format=text"}
#: Bodies of requests without an id in their path; ID stands for somebody else's.
LISTS = {
    ("POST", "/api/process/clean_all"): None,
    ("POST", "/api/process/clean_selected"): {"pids": ["ID"]},
    ("GET", "/api/processes"): None,
    ("GET", "/api/v1/executions"): None,
    ("GET", "/api/v1/events"): None,
    ("GET", "/api/v1/health"): None,
    ("GET", "/api/v1/interactions"): None,
    ("GET", "/api/v1/approvals"): None,
    ("GET", "/api/v1/services"): None,
    ("POST", "/api/v1/detect"): {"command": {"argv": {"program": "true", "args": []}}, "cwd": "/"},
}
#: What must follow the path of a list for all of it to be asked for.
WHOLE = {"/api/v1/events": "?cursor=0"}
#: What starts something of one's own, or ends the daemon for everybody (a scope of its own).
OTHER = {
    ("POST", "/api/v1/executions"), ("POST", "/api/v1/shells"), ("POST", "/api/v1/shutdown"),
    ("POST", "/api/v1/services"), ("POST", "/api/v1/services/ensure"), ("POST", "/api/v1/services/up"),
}
#: A definition of one's own: its name is nobody's id.
DEFINES = ("PUT", "/api/v1/services/{name}")

#: A call of every tool that takes an id; None for those that take none.
TOOLS = {
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
    "interaction_list": [{}], "interaction_answer": [{"id": "QUESTION", "answer": "x"}, {"id": "QUESTION", "cancel": True}],
    "pty_list": [{}], "pty_read": [{"session": "ID"}, {"session": "ID", "view": "raw"}],
    "pty_write": [{"session": "ID", "text": "x"}], "pty_run": [{"session": "ID", "script": "true"}],
    "pty_resize": [{"session": "ID", "cols": 80, "rows": 24}], "pty_close": [{"sessions": ["ID"]}],
}


@pytest.fixture(scope="module")
def guarded(binary):
    """A daemon that asks for tokens, with two principals."""
    with serving_two_principals(Installation(binary), "--legacy-sse") as serving:
        yield serving


def ask(serving, name, method, path, body=None, headers=None):
    """One request as a principal: `(status, text)`."""
    where = urlsplit(serving.base)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
    given = {"Authorization": f"Bearer {serving.tokens[name]}", **(headers or {})}
    data = None
    if body is not None:
        data = json.dumps(body)
        given["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body=data, headers=given)
        answer = connection.getresponse()
        # A stream that is let in would not end.
        return answer.status, answer.read(1 << 20).decode(errors="replace")
    finally:
        connection.close()


@pytest.fixture
def anns(guarded):
    """Something of Ann's that runs: its id."""
    status, text = ask(guarded, "ann", "POST", "/api/v1/executions", {
        "command": {"shell": {"shell": "sh", "script": SCRIPT}}, "cwd": str(guarded.place.work),
        "stdin": "open", "labels": [SECRET], "description": SECRET,
    })
    assert status < 300, text
    pid = json.loads(text)["id"]
    wait = {"until": "pattern", "pattern": "printed", "at_most_ms": 10_000}
    ask(guarded, "ann", "POST", f"/api/v1/executions/{pid}/wait", wait)
    yield pid
    ask(guarded, "ann", "POST", f"/api/v1/executions/{pid}/stop", {"force": True})


def still_hers(serving, pid):
    status, text = ask(serving, "ann", "GET", f"/api/v1/executions/{pid}")
    assert status == 200 and json.loads(text)["status"] == "running", text
    status, text = ask(serving, "ann", "GET", f"/api/v1/executions/{pid}/raw")
    assert "printed" in text, "her output was cleared"
    assert "got" not in text, "somebody typed into it"


@pytest.mark.parametrize(("method", "path"), [it for it in ROUTES if "{" in it[1] and it != DEFINES])
async def test_no_route_tells_a_foreign_id_from_an_unknown_one(guarded, anns, method, path):
    headers = websocket() if path.endswith("/terminal") else {}
    uuid = json.loads(ask(guarded, "ann", "GET", f"/api/v1/executions/{anns}")[1])["uuid"]
    name = re.search(r"\{(\w+)", path)[0] + "}"
    # A question of hers, where that is what the route is about.
    question = hers(guarded) if "interactions" in path else None
    answers = {
        given: ask(guarded, "bob", method, path.replace(name, given) + QUERIES.get(path, ""), BODIES.get((method, path)), headers)
        for given in filter(None, (anns, uuid, question, UNKNOWN))
    }
    unknown = answers.pop(UNKNOWN)
    # An interaction's class of error is the documents' (409), whether unknown or foreign.
    assert unknown[0] == (409 if "interactions" in path else 404), unknown
    for given, (status, text) in answers.items():
        assert status == unknown[0], (status, text)
        assert text.replace(given, "ID") == unknown[1].replace(UNKNOWN, "ID")
        assert SECRET not in text
    still_hers(guarded, anns)


@pytest.mark.parametrize("wrong", ["body", "query", "json"])
@pytest.mark.parametrize(("method", "path"), [it for it in ROUTES if "{id}" in it[1]])
async def test_a_foreign_id_is_unknown_whatever_else_is_wrong(guarded, anns, method, path, wrong):
    """404 comes before everything that is said about body and query (409 for questions)."""
    headers = websocket() if path.endswith("/terminal") else {}
    question = (hers(guarded) or UNKNOWN) if "interactions" in path else anns
    query = "?nobody_knows=this" if wrong == "query" else ""
    body = {"body": {"nobody_knows": 1, "signal": 7, "pieces": 3}, "json": "no object", "query": None}[wrong]
    for given in (question, UNKNOWN):
        status, text = ask(guarded, "bob", method, path.replace("{id}", given) + query, body, headers)
        assert status == (409 if "interactions" in path else 404), (status, text)
    if wrong == "body" and method == "POST" and not path.endswith(("/pause", "/resume", "/commit", "/discard", "/input")) and "/api/v1/executions" in path:
        status, text = ask(guarded, "ann", method, path.replace("{id}", question), body, headers)
        assert status == 422, "her own is told what is wrong"
    still_hers(guarded, anns)


async def test_health_counts_what_the_caller_sees(guarded, anns):
    running = {name: json.loads(ask(guarded, name, "GET", "/api/v1/health")[1])["running"] for name in ("ann", "bob")}
    assert running["ann"] >= 1 and running["bob"] == 0, running


@pytest.mark.parametrize(("method", "path"), [it for it in ROUTES if "/services/{name}" in it[1] and it != DEFINES])
async def test_a_service_of_hers_is_unknown_to_him_by_name_and_by_id(guarded, method, path):
    body = {"command": {"shell": {"shell": "sh", "script": f"echo {SECRET}; exec cat"}}, "cwd": str(guarded.place.work),
            "name": "hers", "ready_when": {"quiet_ms": 10}, "wait_ms": 10_000, "description": SECRET}
    status, text = ask(guarded, "ann", "POST", "/api/v1/services", body)
    assert status < 300, text
    service = json.loads(text)["service"]["execution"]["id"]
    try:
        names = ("hers", service, UNKNOWN)
        theirs, by_id, unknown = (ask(guarded, "bob", method, path.replace("{name}", name)) for name in names)
        assert unknown[0] == 404, unknown
        for given, answer in (("hers", theirs), (service, by_id)):
            assert answer[0] == 404 and SECRET not in answer[1], answer
            assert answer[1].replace(given, "ID") == unknown[1].replace(UNKNOWN, "ID")
        listed = json.loads(ask(guarded, "bob", "GET", "/api/v1/services")[1])
        assert SECRET not in json.dumps(listed) and service not in json.dumps(listed), listed
        kept = json.loads(ask(guarded, "ann", "GET", "/api/v1/services/hers")[1])
        assert kept["status"] == "ready" and kept["execution"]["id"] == service, kept
    finally:
        ask(guarded, "ann", "POST", "/api/v1/services/hers/stop", {"force": True})


def hers(serving):
    """One of Ann's open questions; none where the prompt was not seen as one yet."""
    listed = json.loads(ask(serving, "ann", "GET", "/api/v1/interactions")[1])["interactions"]
    return listed[0]["id"] if listed else None


def websocket():
    key = base64.b64encode(os.urandom(16)).decode()
    return {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}


@pytest.mark.parametrize(("method", "path"), [it for it in ROUTES if "{" not in it[1] and it not in OTHER])
async def test_no_list_shows_what_is_somebody_elses(guarded, anns, method, path):
    assert (method, path) in LISTS, "a new route: say here how it is asked"
    body = json.loads(json.dumps(LISTS[method, path]).replace("ID", anns))
    status, text = ask(guarded, "bob", method, path + WHOLE.get(path, ""), body)
    assert status < 300, (status, text)
    assert SECRET not in text
    if anns in text:
        # What was asked about is named again, as not found.
        assert anns in json.dumps(body), text
        told = json.loads(text)
        assert [it["pid"] for it in told["not_found"]] == [anns], text
    still_hers(guarded, anns)


@pytest.mark.parametrize("query", ["", "?status=all", "?limit=500", f"?label={SECRET}", "?session=all", "?principal=ann"])
async def test_no_filter_widens_what_is_seen(guarded, anns, query):
    _status, text = ask(guarded, "bob", "GET", f"/api/v1/executions{query}")
    assert anns not in text
    assert SECRET not in text.replace(query, "")


async def test_every_tool_is_in_the_sweep(guarded):
    place = guarded.place
    async with with_all_tools(place) as agent:
        offered = {tool.name for tool in (await agent.client.list_tools()).tools}
    assert offered - set(TOOLS) == set(), "a new tool: say here how it is called"


def with_all_tools(place):
    return place.agent(args=["--tools", ",".join(profiles())])


@pytest.fixture(scope="module")
def kept(binary):
    """A place whose fronts are sessions of one principal."""
    place = Installation(binary)
    try:
        yield place
        place.end_commands()
        assert place.shut_down() == []
    finally:
        place.close()


@pytest.mark.parametrize("tool", [name for name, calls in TOOLS.items() if calls])
async def test_no_tool_tells_a_foreign_id_from_an_unknown_one(kept, tool):
    async with with_all_tools(kept) as ann, with_all_tools(kept) as bob:
        begun = await ann.must("exec", script=SCRIPT, input="open", on_prompt="ask", wait_ms=10_000, description=SECRET)
        pid = begun.value("id")
        pty = (await ann.must("pty_start", command=["sh", "-c", f"echo {SECRET}; exec cat"], wait_ms=0)).id
        listed = (await ann.must("interaction_list")).structured["interactions"]
        question = next(it["id"] for it in listed if it["execution"] == pid)
        mine = {"ID": pty if tool.startswith("pty_") else pid, "QUESTION": question}
        for arguments in TOOLS[tool]:
            foreign = await bob.call(tool, **filled(arguments, mine))
            unknown = await bob.call(tool, **filled(arguments, dict.fromkeys(mine, UNKNOWN)))
            given = mine["QUESTION"] if "QUESTION" in str(arguments) else mine["ID"]
            assert SECRET not in said(foreign), arguments
            if "ID" not in str(arguments) and "QUESTION" not in str(arguments):
                assert not any(it in said(foreign) for it in (pid, pty, question))
                continue
            assert same(foreign, given) == same(unknown, UNKNOWN), arguments
        detail = await ann.must("process", action="detail", ids=[pid])
        assert "running" in said(detail), detail
        output = await ann.must("process", action="output", ids=[pid])
        assert "printed" in output.text and "got" not in output.text
        assert "running" in said(await ann.must("pty_list"))
        await ann.must("process_control", action="stop", ids=[pid], force=True)
        await ann.must("pty_close", sessions=[pty])


def filled(arguments, spell):
    return {
        name: [spell.get(item, item) for item in value] if isinstance(value, list) else spell.get(value, value)
        if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def said(reply):
    return reply.text + json.dumps(reply.structured or {}) + json.dumps(reply.meta)


def same(reply, given):
    """An answer without the id that was asked for and without what differs from call to call."""
    text = said(reply).replace(given, "ID")
    return re.sub(r"news|\d+\.\d+ ?m?s", "", text)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
async def test_without_a_token_no_route_answers(guarded, anns, method):
    where = urlsplit(guarded.base)
    for known, path in ROUTES:
        if known != method:
            continue
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
        connection.request(method, re.sub(r"\{\w+\}", anns, path))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 401, (method, path, answer.status)
        assert SECRET not in text and anns not in text


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
def test_at_level_high_nothing_of_the_engine_is_in_sight(places, who, face):
    """Neither its directories nor its sockets, whatever they are asked for by."""
    place = places.of(who)
    targets = [place.state, place.state / "executions", place.outside.facts["other"], place.socket,
               place.socket.parent, place.dir / "config" / "ostler", place.dir / "config" / "ostler" / "config.toml"]
    script = "; ".join(f"ls -laR {path} 2>&1; cat {path} 2>/dev/null" for path in targets)
    seen = INTERFACES[face](place, ["sh", "-c", script + f"; grep -r {place.outside.secret} / "
                               "--include='*' -l -s --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr 2>/dev/null; echo over"],
                       isolation(who), cwd=fresh(place))
    lines = seen.text.splitlines()
    assert any("over" in line for line in lines), seen.text
    assert place.outside.secret not in seen.text
    control = INTERFACES[face](place, ["sh", "-c", f"ls -laR {place.state} | wc -l; grep -rl {place.outside.secret} {place.state}"],
                          IsolationOptions(level="medium"))
    assert "executions/" in control.text, "the control must find it"


def fresh(place):
    directory = place.dir / f"fresh-{os.urandom(4).hex()}"
    directory.mkdir()
    place.give(directory)
    return directory


@pytest.mark.parametrize("who", USERS)
def test_two_commands_of_level_high_do_not_meet(places, who):
    """Neither by processes, nor temporary files, nor abstract sockets, nor the loopback."""
    place = places.of(who)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one, other = fresh(place), fresh(place)
    serve = ("import socket,sys,time\nopen('/tmp/left','w').write('x'); open('/dev/shm/left','w').write('x')\n"
             f"s=socket.socket(); s.bind(('127.0.0.1',{port})); s.listen()\n"
             f"u=socket.socket(socket.AF_UNIX); u.bind(chr(0)+'meet-{port}'); u.listen(); print('up', flush=True); time.sleep(300)")
    started = place.cli("run", "-d", *isolation(who).words(), "--cwd", str(one), "--", "python3", "-c", serve, f"mark-{port}")
    pid = started.stdout.decode().strip()
    place.rest("POST", f"/api/v1/executions/{pid}/wait", {"until": "pattern", "pattern": "up", "at_most_ms": 10_000})
    probe = ("import os,socket\n"
             "def attempt(name, what):\n try: what(); print('MET', name)\n except OSError: pass\n"
             f"attempt('tcp', lambda: socket.create_connection(('127.0.0.1',{port}),1))\n"
             f"attempt('unix', lambda: socket.socket(socket.AF_UNIX).connect(chr(0)+'meet-{port}'))\n"
             "attempt('tmp', lambda: os.stat('/tmp/left'))\nattempt('shm', lambda: os.stat('/dev/shm/left'))\n"
             f"attempt('workspace', lambda: os.listdir('{one}'))\n"
             f"[print('MET process', p) for p in os.listdir('/proc') if p.isdigit() and 'mark-'+'{port}' in open('/proc/'+p+'/cmdline').read()]\n"
             "print('over')")
    ran = INTERFACES["cli"](place, ["python3", "-c", probe], isolation(who), cwd=other)
    place.rest("POST", f"/api/v1/executions/{pid}/stop", {"force": True})
    assert "over" in ran.text and "MET" not in ran.text, ran.text
