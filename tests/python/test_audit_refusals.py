"""The audit log holds requests that were refused before anything was started, whoever refused them."""

import json

import pytest

from harness import ClientTransport, HttpDaemon, Installation

pytestmark = pytest.mark.anyio

TOKENS = {
    "user": ["sessions:all"],
    "reader": ["sessions:all", "project:read"],
    "limited": ["sessions:all", "project:write=mine"],
}


@pytest.fixture(scope="module")
def served(binary):
    """A daemon with a token of each kind."""
    installation = Installation(binary)
    try:
        daemon = HttpDaemon(installation)
        daemon.secrets = {}
        for name, scopes in TOKENS.items():
            words = [word for scope in scopes for word in ("--scope", scope)]
            daemon.secrets[name] = json.loads(installation.cli("token", "new", name, *words, "--json").stdout)["token"]
        yield daemon
        daemon.end()
    finally:
        installation.close()


def ask(daemon, name, method, path, body=None, **headers):
    connection = daemon.connect()
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, body and json.dumps(body), {"Authorization": f"Bearer {daemon.secrets[name]}", **headers})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read() or "null")
    connection.close()
    return answer


def entries(daemon, start=0):
    return ask(daemon, "user", "GET", f"/api/v1/audit?from={start}&limit=1000")[1]["entries"]


def position(daemon):
    return entries(daemon)[-1]["seq"] + 1 if entries(daemon) else 0


def argv(*words):
    return {"argv": {"program": words[0], "args": list(words[1:])}}


def refused_once(daemon, name, method, path, body, status, **headers):
    """The one entry that a refused request adds."""
    start = position(daemon)
    answer = ask(daemon, name, method, path, body, **headers)
    assert answer[0] == status, answer
    [entry] = entries(daemon, start)
    assert entry["event"] == "refused" and answer[1]["code"].startswith(entry["code"]), entry
    assert entry["message"] == answer[1]["message"] and "execution" not in entry, entry
    return entry


@pytest.mark.parametrize(("method", "path", "body"), [
    ("POST", "/api/v1/executions", {"command": argv("true"), "cwd": "/tmp"}),
    ("POST", "/api/v1/contexts", {"project": "mine"}),
    ("DELETE", "/api/v1/executions/{id}", None),
    ("POST", "/api/v1/executions/{id}/signal", {"signal": "SIGKILL"}),
])
def test_what_the_scopes_do_not_permit_over_rest_is_recorded(served, method, path, body):
    path_given = path.replace("{id}", "nothing")
    entry = refused_once(served, "reader", method, path_given, body, 403, ostler_session="looking")
    assert entry["detail"] == {"request": f"{method} {path}", "face": "rest"}
    assert entry["by"]["session"] == "looking" and entry["by"]["channel"] == "network"
    assert "project:write" in entry["message"]


def test_a_shutdown_that_is_not_permitted_is_recorded(served):
    entry = refused_once(served, "user", "POST", "/api/v1/shutdown", {}, 403)
    assert entry["detail"]["request"] == "POST /api/v1/shutdown"


@pytest.mark.parametrize(("name", "body", "status", "detail"), [
    ("reader", {"command": "echo", "args": ["a b"], "cwd": "/tmp"}, 403, {"command": "echo 'a b'", "cwd": "/tmp"}),
    ("limited", {"command": "true", "cwd": "/tmp"}, 403, {"command": "true"}),
    ("user", {"template_id": "none", "cwd": "/tmp"}, 422, {"template": {"id": "none", "parameters": {}}}),
    ("user", {"command": "true"}, 422, {"command": "true"}),
    ("user", {"command": "true", "context": "ctx-0123456789ab"}, 404, {"command": "true"}),
])
def test_a_task_that_is_refused_is_recorded_with_what_is_known(served, name, body, status, detail):
    path = "/api/v1/projects/other/execute"
    entry = refused_once(served, name, "POST", path, {"interactive": False, **body}, status)
    expected = {"request": "POST /api/v1/projects/{id}/execute", "face": "rest", **detail}
    assert entry["by"]["project"] == "other"
    assert {key: entry["detail"].get(key) for key in expected} == expected


def test_a_context_that_is_refused_is_recorded_once(served):
    for path, body in [("/api/v1/contexts", {"project": "other"}), ("/api/v1/contexts", {"project": "mine", "cwd": "relative"})]:
        start = position(served)
        status, problem = ask(served, "limited", "POST", path, body)
        assert status in (403, 422), problem
        [entry] = entries(served, start)
        assert (entry["event"], entry["message"]) == ("refused", problem["message"])
        assert entry["by"]["project"] == body["project"]
    body = {"command": "true", "interactive": False, "context": True, "cwd": "/tmp"}
    refused_once(served, "user", "POST", "/api/v1/projects/%2Fno%2Fsuch%2Fdirectory/execute", body, 422)


def test_a_start_in_an_unknown_context_is_recorded(served):
    body = {"command": argv("true"), "cwd": "/tmp", "context": "ctx-0123456789ab"}
    start = position(served)
    status, problem = ask(served, "user", "POST", "/api/v1/executions", body)
    assert status >= 400
    [entry] = entries(served, start)
    assert (entry["event"], entry["detail"]["command"], entry["message"]) == ("refused", "true", problem["message"])


async def test_what_the_scopes_do_not_permit_over_mcp_is_recorded(served):
    headers = {"Authorization": f"Bearer {served.secrets['reader']}"}
    transport = ClientTransport("http", "auto", served.installation, served, headers=headers, path="/p/core,template")
    async with transport.agent() as agent:
        for tool, arguments, detail in [
            ("exec", {"command": "true"}, {"request": "tool exec"}),
            ("template_run", {"id": "none", "cwd": "/tmp"},
             {"request": "tool template_run", "face": "core", "cwd": "/tmp", "template": {"id": "none", "parameters": {}}}),
        ]:
            start = position(served)
            answer = await agent.call(tool, **arguments)
            assert answer.is_error, answer
            [entry] = entries(served, start)
            assert (entry["event"], entry["detail"]) == ("refused", detail) and answer.code.startswith(entry["code"])


def test_what_no_other_event_tells_is_recorded_with_who_did_it(served):
    """Signals, pauses, cleared output and removals, over REST and over the command line."""
    installation = served.installation
    me = ask(served, "user", "GET", "/api/v1/audit?limit=1")[1]["entries"][0]["by"]["principal"]
    start = position(served)
    run = {"command": argv("sh", "-c", "trap 'echo caught; exit' USR1; echo ready; while :; do sleep 0.1; done"), "cwd": "/tmp"}
    id = ask(served, "user", "POST", "/api/v1/executions", run)[1]["id"]
    wait = f"/api/v1/executions/{id}/wait"
    assert ask(served, "user", "POST", wait, {"until": "pattern", "pattern": "ready", "at_most_ms": 20000})[0] == 200
    assert ask(served, "user", "DELETE", f"/api/v1/executions/{id}/output")[0] == 200
    for action in ("pause", "resume"):
        assert ask(served, "user", "POST", f"/api/v1/executions/{id}/{action}")[0] in {200, 204}
    assert ask(served, "user", "POST", f"/api/v1/executions/{id}/signal", {"signal": "SIGUSR1"})[0] == 204
    assert ask(served, "user", "POST", wait, {"until": "exit", "at_most_ms": 20000})[0] == 200
    cleared = ask(served, "user", "DELETE", f"/api/v1/executions/{id}/output")[1]["dropped_bytes"]
    assert ask(served, "user", "DELETE", f"/api/v1/executions/{id}")[0] == 204
    assert ask(served, "user", "DELETE", f"/api/v1/executions/{id}")[0] == 404
    done = [entry for entry in entries(served, start) if entry["event"] == "requested"]
    assert [entry["action"] for entry in done] == [
        {"kind": "clear_output", "bytes": len("ready\n")}, {"kind": "signal", "signal": 10},
        {"kind": "clear_output", "bytes": cleared}, {"kind": "remove"},
    ]
    assert {entry["event_by"] for entry in done} == {me} and len({entry["execution"] for entry in done}) == 1
    paused = [(entry["event"], entry["event_by"]) for entry in entries(served, start) if entry["event"] in {"paused", "resumed"}]
    assert paused == [("paused", me), ("resumed", me)]
    shown = installation.cli("events", "--no-follow", "--since-cursor", str(start)).stdout.decode()
    for text in (f"SIGUSR1 sent by {me}", f"output cleared by {me}", f"removed by {me}"):
        assert text in shown, shown
    installation.cli("audit", "verify")
