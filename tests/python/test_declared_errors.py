"""The errors that the OpenAPI document declares: a request for each pair of status and code of each route that is answered with it,
and no pair besides."""

import contextlib
import ctypes
import inspect
import json
import os
import re
import shutil
import socket
import threading
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from harness import HttpDaemon, Installation, procs, until
from harness.api_surface import DOCUMENT, documented
from harness.installation import ProblemError, is_root
from harness.page import SESSION, Page, link
from harness.ws_recorder import WsRecorder

V1 = "/api/v1"
EXECUTION = f"{V1}/executions/{{id}}"
#: What every route declares, unless it answers everybody.
EVERYWHERE = {(400, "value_error"), (401, "permission_error"), (403, "permission_error"), (403, "security_error"), (413, "value_error"),
              (422, "value_error"), (429, "quota_exceeded"), (507, "storage_error")}
#: Routes that answer everybody.
DOCS = ("GET", "/api/docs")
SIGN_IN, SIGN_OUT = ("POST", SESSION), ("DELETE", SESSION)
PUBLIC = {DOCS, SIGN_IN, SIGN_OUT}
UNKNOWN = {"contexts": "ctx-000000000000", "interactions": "i999"}
UUID = "01920000-0000-7000-8000-00000000ffff"
UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
#: Needs an overlay, which an ordinary user of some machines has not.
OVERLAY = {"isolation": "high", "confine": {"overlay": True}}
LIBC = ctypes.CDLL(None, use_errno=True)
#: Requests of ptrace(2).
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
#: Seconds until a stop is given up.
STUBBORN_SECONDS = 40


def command(*words):
    return {"argv": {"program": words[0], "args": list(words[1:])}}


def declared():
    """`{(method, path): {(status, code)}}` of the document."""
    responses = json.loads(DOCUMENT.read_text())["components"]["responses"]
    pairs = {}
    for route, operation in documented().items():
        pairs[route] = found = set()
        for status, response in operation["responses"].items():
            if "$ref" in response:
                shared = responses[response["$ref"].rsplit("/", 1)[-1]]
                schema = shared["content"]["application/problem+json"]["schema"]
                found |= {(int(status), code) for code in schema["properties"]["code"]["enum"]}
    return pairs


DECLARED = declared()
#: The names of the tests that have run.
RAN = set()
ROUTES = [route for route in DECLARED if route not in PUBLIC]


#: Pairs that a request reaches at a moment that no client can choose, and why: they need not be provoked.
RACES = {
    ("DELETE", f"{V1}/contexts/{{id}}", 409, "process_control_error"):
        "a context that is listed and whose directory is not created yet: `ContextRefusal::Creating`",
    ("GET", f"{V1}/interactions/{{id}}", 503, "initialization_error"):
        "a wait for an answer when the daemon ends: the question is cancelled, too, and either comes first",
    ("GET", f"{EXECUTION}/terminal", 503, "initialization_error"): "the screen is ready at once, or the end of the daemon comes first",
    ("POST", f"{EXECUTION}/shell/run", 503, "initialization_error"): "the driver of the shell ends with the daemon, before it or after",
}


class Client:
    """Asks a daemon, and records the problems that it answers."""

    def __init__(self, daemon, secret, seen):
        self.daemon, self.secret, self.seen = daemon, secret, seen

    def ask(self, method, path, body=None, headers=None, **fields):
        """The status and the JSON of a response to a request for a route; `fields` go into its path."""
        route = (method, path.split("?")[0])
        for name, value in fields.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        connection = self.daemon.connect(STUBBORN_SECONDS)
        content = json.dumps(body) if isinstance(body, dict) else body
        with contextlib.closing(connection):
            connection.request(method, path, content, {"Authorization": f"Bearer {self.secret}", **(headers or {})})
            response = connection.getresponse()
            is_stream = "event-stream" in (response.headers["Content-Type"] or "") or response.status == 101
            text = "null" if is_stream else response.read().decode(errors="replace")
        return response.status, self.note(route, response.status, text)

    def note(self, route, status, text):
        try:
            answer = json.loads(text or "null")
        except json.JSONDecodeError:
            return text
        if status >= 400:
            assert (status, answer["code"]) in DECLARED[route], f"{route} does not declare {status}: {answer}"
            self.seen.setdefault(route, set()).add((status, answer["code"]))
        return answer

    def must(self, *args, **options):
        status, answer = self.ask(*args, **options)
        assert status < 300, (args, status, answer)
        return answer

    def start(self, *words, **options):
        options.setdefault("cwd", str(self.daemon.installation.work))
        return self.must("POST", f"{V1}/executions", {"command": command(*words), **options})["id"]

    def ended(self, *words, **options):
        identifier = self.start(*words, **options)
        self.wait(identifier)
        return identifier

    def wait(self, identifier):
        self.must("POST", f"{EXECUTION}/wait", {"until": "exit", "at_most_ms": 20_000}, id=identifier)


def made(installation, name, *scopes):
    words = [word for scope in scopes for word in ("--scope", scope)]
    return json.loads(installation.cli("token", "new", name, *words, "--json").stdout)["token"]


@contextlib.contextmanager
def serving(binary, seen, *args, env=None):
    """A daemon, and a client of it with all scopes; `limited` is the secret of a token for one project."""
    installation = Installation(binary)
    try:
        secret = made(installation, "all", "sessions:all", "daemon:stop")
        limited = made(installation, "limited", "sessions:all", "project:write=/nowhere")
        if env:
            own = installation.env
            installation.env = lambda **more: own(**{**env, **more})
        daemon = HttpDaemon(installation, *args)
        client = Client(daemon, secret, seen)
        client.limited = limited
        yield client
        daemon.end()
    finally:
        installation.close()


@pytest.fixture(autouse=True)
def remember(request):
    RAN.add(request.node.originalname)


@pytest.fixture(scope="module")
def seen():
    """What was provoked so far: `{route: {(status, code)}}`."""
    return {}


@pytest.fixture(scope="module", autouse=True)
def stubborn(binary, seen):
    """Stops that are given up after fifteen seconds, because the shims that should do it are traced and halted, which nobody
    but the tracer ends. They are under way while the other tests run; returns what waits for them."""
    requests = [("POST", f"{V1}/services/{{name}}/stop", {"force": True}), ("POST", f"{EXECUTION}/stop", {"force": True}),
                ("POST", "/api/process/{id}/stop", {"force": True}), ("POST", f"{V1}/tasks/{{id}}/cancel"),
                ("POST", f"{EXECUTION}/again", {"stop": True})]
    with serving(binary, seen) as client:
        shims = [shim_of_new(client, is_service=number == 0) for number in range(len(requests))]
        for _, shim in shims:
            trace(PTRACE_SEIZE, shim)
            trace(PTRACE_INTERRUPT, shim)
            until(lambda shim=shim: procs.status(shim, "State") == "t", 10, "the shim halted")
        waiting = [threading.Thread(target=client.ask, args=request, kwargs={"id": identifier, "name": "stubborn"})
                   for request, (identifier, _) in zip(requests, shims, strict=True)]
        try:
            for thread in waiting:
                thread.start()
            yield lambda: [thread.join() for thread in waiting]
        finally:
            for _, shim in shims:
                trace(PTRACE_DETACH, shim)


def trace(request, pid):
    """ptrace(2), by this thread."""
    if LIBC.ptrace(request, ctypes.c_int(pid), ctypes.c_void_p(0), ctypes.c_void_p(0)) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace request {request:#x} of {pid}")


def shim_of_new(client, is_service):
    """A new execution and its shim."""
    if is_service:
        client.must("POST", f"{V1}/services", {"name": "stubborn", "cwd": "/", "command": command("sleep", "1000")})
        identifier = client.must("GET", f"{V1}/services/{{name}}", name="stubborn")["execution"]["id"]
    else:
        identifier = client.start("sleep", "1000", cwd="/")
    pid = client.must("GET", EXECUTION, id=identifier)["os_pid"]
    return identifier, int(re.search(r"PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


@pytest.fixture(scope="module")
def client(binary, seen):
    with serving(binary, seen) as client:
        yield client


def of_route(route):
    """The path of a route, with ids that nothing has."""
    kind = next((kind for kind in UNKNOWN if f"/{kind}/" in route[1]), None)
    return re.sub(r"\{\w+\}", UNKNOWN.get(kind, "zzzzzzzz"), route[1])


def raw(client, route, head, body=b"", cut=False):
    """One request as it is written, noted with its answer."""
    address = urlsplit(client.daemon.base)
    method, _ = route
    lines = [f"{method} {of_route(route)} HTTP/1.1", f"Host: {address.netloc}", "Connection: close", *head, "", ""]
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall("\r\n".join(lines).encode() + body)
        if cut:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while data := connection.recv(1 << 16):
            answer += data
    status = int(answer.split(b" ", 2)[1])
    return status, client.note(route, status, answer.split(b"\r\n\r\n", 1)[1].decode())


def test_every_route_refuses_what_no_route_takes(client, seen):
    """Credentials, scopes, origins, values, and bodies that are cut or too large."""
    bearer = f"Authorization: Bearer {client.secret}"
    limited = f"Authorization: Bearer {client.limited}"
    for route in [*ROUTES, *PUBLIC]:
        raw(client, route, [bearer, "Origin: http://other.example.org"])
        if route in PUBLIC:
            continue
        raw(client, route, [])
        raw(client, route, [limited, "Ostler-Project: foreign"])
        raw(client, route, [bearer, "Ostler-Project: any"])
        raw(client, route, [bearer, f"Content-Length: {1 << 40}"])
        raw(client, route, [bearer, "Content-Length: 10"], b"{", cut=True)
        cut = EVERYWHERE - {(429, "quota_exceeded"), (507, "storage_error")} - seen[route]
        assert not cut, (route, cut)
    assert seen[DOCS] == {(403, "security_error")} == DECLARED[DOCS]


def test_every_route_is_refused_while_tokens_cannot_be_read(client, seen):
    tokens = client.daemon.installation.state / "tokens.json"
    tokens.chmod(0o666)
    for route in ROUTES:
        assert raw(client, route, [f"Authorization: Bearer {client.secret}"])[0] == 507, route
    tokens.chmod(0o600)


def test_every_route_counts_as_a_request(binary, seen):
    with serving(binary, seen, env={"OSTLER_HTTP_RATE_LIMIT": "1"}) as client:
        for route in ROUTES:
            until(lambda route=route: raw(client, route, [f"Authorization: Bearer {client.limited}"])[0] == 429, 10, f"a refusal of {route}")


def test_signing_in_and_out(binary, seen):
    """Everybody may ask for it: values, credentials, bodies that are too large or do not come, attempts, tokens that cannot be read."""
    origin = "Sec-Fetch-Site: same-origin"
    with serving(binary, seen) as client:
        waiting = [threading.Thread(target=raw, args=(client, route, [origin, "Content-Length: 10"], b"{")) for route in (SIGN_IN, SIGN_OUT)]
        for thread in waiting:
            thread.start()
        for route in (SIGN_IN, SIGN_OUT):
            raw(client, route, [origin, f"Content-Length: {1 << 40}"])
            client.ask(route[0], f"{route[1]}?x=1")
        page = Page(client.daemon)
        page.sign_in(code=link(client.daemon.installation)[1])
        tokens = client.daemon.installation.state / "tokens.json"
        known = tokens.read_text()
        tokens.write_text("no tokens")
        client.ask(*SIGN_IN, {"token": client.secret})
        client.note(SIGN_OUT, *page_answer(page, *SIGN_OUT))
        tokens.write_text(known)
        for _ in range(11):
            client.ask(*SIGN_IN, {"token": "unknown"})
        for thread in waiting:
            thread.join()


def page_answer(page, method, path):
    status, _, body = page.ask(method, path)
    return status, json.dumps(body)


def test_a_daemon_without_http_has_no_page(make_installation, seen):
    installation = make_installation()
    installation.cli("ps")
    for route, body in ((SIGN_IN, {"token": "x"}), (SIGN_OUT, None), (("POST", f"{V1}/web/codes"), None)):
        with pytest.raises(ProblemError) as refused:
            installation.rest(*route, body)
        Client(None, None, seen).note(route, refused.value.status, json.dumps(refused.value.problem))


def test_a_machine_that_cannot_be_examined(binary, seen):
    with serving(binary, seen, env={"TMPDIR": "/dev/null"}) as client:
        client.ask("GET", f"{V1}/doctor")


def test_what_is_unknown_is_told(client, seen):
    """Ids in paths, and in bodies and queries."""
    upgrading = [f"{name}: {value}" for name, value in UPGRADE.items()]
    for route in ROUTES:
        if "{" in route[1]:
            raw(client, route, [f"Authorization: Bearer {client.secret}", *upgrading])
    client.ask("GET", f"{V1}/events?id=zzzzzzzz")
    start = {"command": command("true"), "cwd": "/"}
    client.ask("POST", f"{V1}/executions", {**start, "context": UNKNOWN["contexts"]})
    client.ask("POST", f"{V1}/projects/{{id}}/execute", {"command": "true", "cwd": "/", "context": UNKNOWN["contexts"]}, id="p")
    client.ask("POST", f"{V1}/projects/{{id}}/execute", {"template_id": "none", "cwd": "/"}, id="p")
    client.ask("POST", f"{V1}/interactions", {"kind": "confirmation", "message": "m", "execution": "zzzzzzzz"})
    client.ask("POST", f"{V1}/services/ensure", {**start, "name": "none", "command": command("")})
    manifest = client.daemon.installation.work / "none"
    manifest.mkdir()
    (manifest / "ostler.toml").write_text("[services.a]\ncommand = \"true\"\n")
    client.ask("POST", f"{V1}/services/up", {"cwd": str(manifest), "names": ["none"]})
    for route in (("GET", f"{EXECUTION}/terminal"), ("GET", f"{V1}/interactions/events")):
        client.ask(*route, id=client.start("cat", pty={"cols": 80, "rows": 24}))


def test_programs_that_are_not_there(client, seen):
    installation = client.daemon.installation
    missing = {"command": command("no-such-program"), "cwd": str(installation.work)}
    client.ask("POST", f"{V1}/executions", missing)
    client.ask("POST", f"{V1}/projects/{{id}}/execute", {"command": "no-such-program", "cwd": "/", "interactive": False}, id="p")
    for verb in ("", "/ensure"):
        client.ask("POST", f"{V1}/services{verb}", {**missing, "name": f"missing{len(verb)}"})
    manifest = installation.work / "missing"
    manifest.mkdir()
    (manifest / "ostler.toml").write_text("[services.bad]\ncommand = [\"no-such-program\"]\n")
    client.ask("POST", f"{V1}/services/up", {"cwd": str(manifest)})
    client.must("PUT", f"{V1}/services/{{name}}", missing, name="defined")
    client.ask("POST", f"{V1}/services/{{name}}/restart", name="defined")
    program = installation.work / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    ended = client.ended(str(program))
    program.unlink()
    client.ask("POST", f"{EXECUTION}/again", {}, id=ended)
    shell = next(kind for kind in ("fish", "zsh", "bash") if shutil.which(kind) is None or kind == "bash")
    client.ask("POST", f"{V1}/shells", {"kind": shell, "cwd": "/", "base_env": [["PATH", "/nowhere"]]})


def test_what_the_state_of_a_command_does_not_allow(client, seen):
    terminal = {"pty": {"cols": 80, "rows": 24}}
    running, ended = client.start("sleep", "100"), client.ended("true")
    ended_terminal = client.ended("true", **terminal)
    client.ask("POST", "/api/process/{id}/clean", id=running)
    client.ask("DELETE", EXECUTION, id=running)
    for verb in ("pause", "resume"):
        client.ask("POST", f"{EXECUTION}/{verb}", id=ended)
        client.ask("POST", f"{V1}/tasks/{{id}}/{verb}", id=ended)
    client.ask("POST", f"{EXECUTION}/signal", {"signal": "SIGTERM"}, id=ended)
    client.ask("POST", f"{EXECUTION}/input", "x", id=ended)
    client.ask("POST", f"{V1}/tasks/{{id}}/input", {"input": "x"}, id=ended)
    client.ask("POST", f"{EXECUTION}/keys", {"pieces": [{"text": "x"}]}, id=ended_terminal)
    client.ask("POST", f"{EXECUTION}/resize", {"cols": 80, "rows": 24}, id=ended_terminal)
    shell = client.must("POST", f"{V1}/shells", {"kind": "bash", "cwd": "/"})["id"]
    client.must("POST", f"{EXECUTION}/shell/run", {"script": "sleep 100", "at_most_ms": 100}, id=shell)
    client.ask("POST", f"{EXECUTION}/shell/run", {"script": "true"}, id=shell)
    client.must("POST", f"{EXECUTION}/stop", {"force": True}, id=shell)
    client.ask("POST", f"{EXECUTION}/shell/run", {"script": "true", "id": UUID, "again": True}, id=shell)


def test_services_that_are_in_the_way(client, seen):
    work = str(client.daemon.installation.work)
    service = {"command": command("sleep", "100"), "cwd": work, "name": "runs"}
    client.must("POST", f"{V1}/services", service)
    client.ask("POST", f"{V1}/services", service)
    client.ask("POST", f"{V1}/services/{{name}}/dismiss", name="runs")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = {**service, "port": port, "command": command("python3", "-m", "http.server", str(port))}
        client.ask("POST", f"{V1}/services/ensure", {**taken, "name": "taken"})
        manifest = client.daemon.installation.work / "taken"
        manifest.mkdir()
        (manifest / "ostler.toml").write_text(f"[services.up]\ncommand = \"python3 -m http.server {port}\"\nport = {port}\n")
        client.ask("POST", f"{V1}/services/up", {"cwd": str(manifest)})
        client.must("PUT", f"{V1}/services/{{name}}", {key: value for key, value in taken.items() if key != "name"}, name="later")
        client.ask("POST", f"{V1}/services/{{name}}/restart", name="later")


def test_contexts_and_questions_that_are_not_open(client, seen):
    opened = client.must("POST", f"{V1}/contexts", {"project": "used"})
    client.start("sleep", "100", cwd=opened["directory"], context=opened["id"])
    client.ask("DELETE", f"{V1}/contexts/{{id}}", id=opened["id"])
    for project, asked in (("a", "executions"), ("b", "execute"), ("c", "again")):
        sick = client.must("POST", f"{V1}/contexts", {"project": project})
        within = {"context": sick["id"], "cwd": sick["directory"]}
        before = client.ended("true", **within)
        shutil.rmtree(sick["directory"])
        if asked == "executions":
            client.ask("POST", f"{V1}/executions", {"command": command("true"), **within})
        elif asked == "execute":
            client.ask("POST", f"{V1}/projects/{{id}}/execute", {"command": "true", "interactive": False, **within}, id=project)
        else:
            client.ask("POST", f"{EXECUTION}/again", {}, id=before)
    client.ask("POST", f"{V1}/interactions", {"kind": "choice_selection", "message": "m"})
    client.ask("POST", f"{V1}/interactions", {"kind": "confirmation", "message": "m", "execution": client.ended("true")})
    open_one = client.must("POST", f"{V1}/interactions", {"kind": "confirmation", "message": "m"})["id"]
    client.ask("POST", f"{V1}/interactions/{{id}}/answer", {"value": "perhaps"}, id=open_one)
    terminal = client.start("cat", pty={"cols": 80, "rows": 24})
    question = client.must("POST", f"{V1}/interactions", {"kind": "input_request", "message": "m", "execution": terminal})["id"]
    held = WsRecorder(client.daemon, terminal, headers={"Authorization": f"Bearer {client.secret}"})
    held.say(type="take", take_over=True)
    held.wait_message("lease")
    client.ask("POST", f"{V1}/interactions/{{id}}/answer", {"value": "x"}, id=question)
    held.close()
    client.must("POST", f"{V1}/interactions/{{id}}/cancel", id=question)
    for verb, body in (("answer", {"value": "x"}), ("cancel", {})):
        client.ask("POST", f"{V1}/interactions/{{id}}/{verb}", body, id=question)


@pytest.mark.skipif(not is_root(), reason="an overlay needs what an ordinary user of some machines has not")
def test_workspaces_that_still_change(client, seen):
    directory = client.daemon.installation.work / "overlay"
    directory.mkdir()
    running = client.start("sleep", "100", cwd=str(directory), **OVERLAY)
    for verb in ("commit", "discard"):
        client.ask("POST", f"{EXECUTION}/workspace/{verb}", {}, id=running)


def directory(client, identifier):
    uuid = client.must("GET", EXECUTION, id=identifier)["uuid"]
    return client.daemon.installation.state / "executions" / uuid


def harm(client, identifier, suffixes):
    """Replaces files of an execution by directories, which cannot be read as files."""
    for file in directory(client, identifier).iterdir():
        if file.name.endswith(suffixes):
            file.unlink()
            file.mkdir()


def test_output_that_cannot_be_read(binary, seen):
    with serving(binary, seen) as client:
        broken = client.ended("sh", "-c", "seq 3; echo error: no >&2")
        for kind in ((".seg",), (".idx",)):
            harm(client, broken, kind)
            for path in ("output", "output/lines", "output/find?q=x", "output/failures", "output/shape", "raw", "report?format=sarif",
                         "report", "export?format=text", "export?format=jsonl", "network"):
                client.ask("GET", f"{EXECUTION}/{path}", id=broken)
            client.ask("GET", "/api/process/{id}/output", id=broken)
            client.ask("GET", f"{V1}/tasks/{{id}}/events", id=broken)
            client.ask("POST", f"{EXECUTION}/wait", {"until": "pattern", "pattern": "x", "at_most_ms": 1000}, id=broken)
            client.ask("DELETE", f"{EXECUTION}/output", id=broken)
            client.ask("DELETE", "/api/process/{id}/output", id=broken)
        for path in ("executions/{id}/raw", "tasks/{id}/events"):
            gone = client.ended("true")
            shutil.rmtree(directory(client, gone))
            client.ask("GET", f"{V1}/{path}", id=gone)
        terminal = client.ended("seq", "3", pty={"cols": 80, "rows": 24})
        harm(client, terminal, (".seg", ".idx"))
        for path in ("screen", "terminal/output"):
            client.ask("GET", f"{EXECUTION}/{path}", id=terminal)
        client.ask("GET", f"{EXECUTION}/terminal", headers=UPGRADE, id=terminal)
        listed = client.ended("true", isolation="high", confine={"network": ["example.org"]}) if is_root() else broken
        harm(client, listed, ("network", "egress.jsonl", "egress.log", "network.jsonl"))
        client.ask("GET", f"{EXECUTION}/network", id=listed)
        ledger = client.daemon.installation.state / "ledger"
        for file in ledger.iterdir():
            if file.is_file():
                file.unlink()
                file.mkdir()
        client.ask("GET", f"{V1}/audit")
        client.ask("GET", f"{V1}/audit/verify")
        client.ask("GET", f"{V1}/events?cursor=0")


#: Bodies of requests that a daemon which shuts down refuses.
CLOSING_BODIES = {
    "executions": {"command": command("true"), "cwd": "/"}, "services": {"command": command("true"), "cwd": "/", "name": "n"},
    "ensure": {"command": command("true"), "cwd": "/", "name": "n"}, "shells": {"kind": "bash", "cwd": "/"}, "contexts": {"project": "p"},
    "execute": {"command": "true", "cwd": "/", "interactive": False}, "interactions": {"kind": "confirmation", "message": "m"},
    "run": {"script": "sleep 100", "at_most_ms": 20_000}, "wait": {"at_most_ms": 20_000},
}
#: Waits that the shutdown ends.
WAITS = {f"{EXECUTION}/shell/run": "", f"{V1}/interactions/{{id}}": "?wait_ms=20000", f"{EXECUTION}/resources/history": "?wait_ms=20000&since=2999-01-01T00:00:00Z",
         f"{V1}/tasks/{{id}}/resources/history": "?wait_ms=20000&since=2999-01-01T00:00:00Z"}
#: A request that is refused once the engine has ended.
LAST = ("GET", f"{V1}/audit")
PROBES = 60


def send(connection, rest):
    # One that was refused without its body is closed.
    with contextlib.suppress(OSError):
        connection.sendall(rest.encode())


def finish(client, route, connection, rest=""):
    """Sends the rest of a request; the status of the answer, which is noted. Zero where none came."""
    answer = b""
    send(connection, rest)
    with contextlib.suppress(OSError), connection:
        while b"\r\n\r\n" not in answer or (b"503" in answer[:20] and not answer.endswith(b"}")):
            data = connection.recv(1 << 16)
            if not data:
                break
            answer += data
    status = int(answer.split(b" ", 2)[1]) if answer else 0
    if status >= 400:
        client.note(route, status, answer.split(b"\r\n\r\n", 1)[1].decode())
    return status


def test_requests_in_flight_while_the_daemon_shuts_down(binary, seen):
    """Each has sent all but the last byte of its body when the shutdown begins; the waits have sent all of it."""
    with serving(binary, seen) as client:
        ids = {"pipe": client.start("cat", stdin="open"), "terminal": client.start("cat", pty={"cols": 80, "rows": 24}),
               "shell": client.must("POST", f"{V1}/shells", {"kind": "bash", "cwd": "/"})["id"]}
        context = client.must("POST", f"{V1}/contexts", {"project": "p"})["id"]
        question = client.must("POST", f"{V1}/interactions", {"kind": "confirmation", "message": "m", "execution": ids["pipe"]})["id"]
        for name, seconds in (("svc", "100"), ("ended", "0")):
            client.must("POST", f"{V1}/services", {"command": command("sleep", seconds), "cwd": "/", "name": name, "wait_ms": 0})
        until(lambda: client.must("GET", f"{V1}/services/{{name}}", name="ended")["living"] is False, 10, "its end")
        manifest = client.daemon.installation.work / "up"
        manifest.mkdir()
        (manifest / "ostler.toml").write_text("[services.up]\ncommand = \"sleep 100\"\n")
        address, held = urlsplit(client.daemon.base), []
        closing = [route for route in ROUTES if (503, "initialization_error") in DECLARED[route]]
        for method, path in closing + [LAST] * PROBES:
            of_kind = {"contexts": [context], "interactions": [question], "services": ["svc", "ended"], "projects": ["p"]}
            named = next((values for kind, values in of_kind.items() if f"/{kind}/" in path), [ids["pipe"], ids["terminal"], ids["shell"]])
            last = path.rsplit("/", 1)[-1]
            body = json.dumps({"cwd": str(manifest)} if last == "up" else CLOSING_BODIES.get(last, {}))
            for identifier in named if "{" in path else [""]:
                where = re.sub(r"\{\w+\}", identifier, path) + WAITS.get(path, "")
                upgrading = [f"{name}: {value}" for name, value in UPGRADE.items()] if path.endswith("/terminal") else []
                head = [f"{method} {where} HTTP/1.1", f"Host: {address.netloc}", f"Authorization: Bearer {client.secret}", *upgrading,
                        "Expect: 100-continue", f"Content-Length: {len(body)}", "", ""]
                connection = socket.create_connection((address.hostname, address.port), timeout=20)
                connection.sendall("\r\n".join(head).encode())
                # It is under way: its body is awaited.
                assert connection.recv(1 << 10).startswith(b"HTTP/1.1 100"), (method, path)
                connection.sendall(body[:-1].encode())
                rest = body[-1:]
                if path in WAITS:
                    connection.sendall(rest.encode())
                    rest = ""
                held.append(((method, path), connection, rest))
        client.must("POST", f"{V1}/shutdown")
        probes = held[-PROBES:]
        until(lambda: finish(client, *probes.pop()) == 503, 10, "the end of the engine")
        for _, connection, rest in held[:-PROBES]:
            send(connection, rest)
        for route, connection, _ in held[:-PROBES]:
            finish(client, route, connection)
        for _, connection, _ in probes:
            connection.close()


def test_the_rest_is_none(request, seen, stubborn):
    """Last: every declared pair was provoked above; here, where this test is run alone."""
    for name, test in list(globals().items()):
        if name.startswith("test_") and name not in RAN:
            test(**{argument: request.getfixturevalue(argument) for argument in inspect.signature(test).parameters})
    stubborn()
    left = {(*route, *pair) for route, pairs in DECLARED.items() for pair in pairs - seen.get(route, set())} - set(RACES)
    if not is_root():
        left = {pair for pair in left if not pair[1].endswith(("/workspace/commit", "/workspace/discard", "/network"))}
    assert not left, "\n".join(map(str, sorted(left)))
