"""Bindings of secrets: an unbound one is for the local user of the socket, and every refusal is the same whether
or not the secret exists."""

import http.client
import json
import re
import subprocess
from urllib.parse import urlsplit

import pytest

from harness import Installation, ClientTransport, serve_two_principals, token

pytestmark = pytest.mark.anyio

VALUE = "b0und-s3cr3t-v4lu3-4471"
NAMES = ("PLAIN", "ANNS", "SHARED", "HERE", "MISSING", "ANNS_MISSING")
#: Which exist, and to whom they are bound.
ENV = {f"OSTLER_SECRET_{name}": f"{VALUE}-{name}" for name in ("PLAIN", "ANNS", "SHARED", "HERE")}
CONFIG = """
[secrets.ANNS]
principals = ["token:ann"]
[secrets.ANNS_MISSING]
principals = ["token:ann"]
[secrets.SHARED]
principals = ["local", "token:ann", "token:bob"]
[secrets.HERE]
principals = ["local", "token:ann"]
projects = ["{project}"]
"""
SCRIPT = 'test -n "${NAME}" && echo g"o"t ${#NAME}'


@pytest.fixture(scope="module")
def daemon_with_secrets(binary):
    """A daemon with secrets, bound and unbound, and three tokens: one speaks for the user itself."""
    installation = Installation(binary)
    plain = installation.env
    installation.env = lambda **more: plain(**{**ENV, **more})
    config = installation.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (installation.work / "app").mkdir()
    (config / "config.toml").write_text(CONFIG.format(project=installation.work / "app"))
    with serve_two_principals(installation) as http_daemon:
        http_daemon.tokens["self"] = token(installation, "self")
        yield http_daemon


def script(name):
    return SCRIPT.replace("NAME", name)


def by_rest(http_daemon, user, name, cwd):
    """The response to a token: whether the command had the secret, and the whole text."""
    where = urlsplit(http_daemon.base)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    body = {"command": {"shell": {"shell": "/bin/sh", "script": script(name)}}, "cwd": str(cwd), "secrets": [name]}
    headers = {"Authorization": f"Bearer {http_daemon.tokens[user]}", "Content-Type": "application/json"}

    def ask(method, path, body=None):
        connection.request(method, path, body=json.dumps(body) if body else None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    try:
        status, text = ask("POST", "/api/v1/executions", body)
        if status >= 400:
            is_absent = (user, name) == ("ann", "ANNS_MISSING")
            assert status == (422 if is_absent else 403), (status, text)
            return False, text
        pid = json.loads(text)["id"]
        ask("POST", f"/api/v1/executions/{pid}/wait", {"until": "exit", "at_most_ms": 30_000})
        _, output = ask("GET", f"/api/v1/executions/{pid}/raw")
        return f"got {len(VALUE) + 1 + len(name)}" in output, output
    finally:
        connection.close()


async def by_mcp(http_daemon, user, name, cwd):
    headers = {"Authorization": f"Bearer {http_daemon.tokens[user]}"}
    transport = ClientTransport("http", "auto", http_daemon.installation, http_daemon, headers=headers)
    async with transport.agent() as agent:
        reply = await agent.call("exec", script=script(name), cwd=str(cwd), secrets=[name], wait_ms=30_000)
    return f"got {len(VALUE) + 1 + len(name)}" in reply.text, reply.text


def by_cli(http_daemon, _user, name, cwd):
    done = http_daemon.installation.cli("run", "--secret", name, "--cwd", cwd, "--", "sh", "-c", script(name), check=False)
    text = (done.stdout + done.stderr).decode()
    return f"got {len(VALUE) + 1 + len(name)}" in text, text


#: Which secrets are granted in the project's directory; all others are refused.
GIVEN = {
    "ann": {"ANNS", "SHARED", "HERE"},
    "bob": {"SHARED"},
    "self": set(),
    "local": {"PLAIN", "SHARED", "HERE"},
}


async def request_secret(http_daemon, interface, user, name, cwd):
    if interface == "mcp":
        return await by_mcp(http_daemon, user, name, cwd)
    return {"rest": by_rest, "cli": by_cli}[interface](http_daemon, user, name, cwd)


CASES = [(interface, user) for user in ("ann", "bob", "self") for interface in ("rest", "mcp")] + [("cli", "local")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("interface", "user"), CASES)
async def test_a_secret_is_given_to_whom_it_is_bound(daemon_with_secrets, interface, user, name):
    granted, text = await request_secret(daemon_with_secrets, interface, user, name, daemon_with_secrets.installation.work / "app")
    assert granted == (name in GIVEN[user]), text
    assert VALUE not in text, text
    if not granted:
        assert name in text and "got" not in text.split(), text


@pytest.mark.parametrize(("interface", "user"), [("rest", "ann"), ("mcp", "ann"), ("cli", "local")])
async def test_a_secret_of_a_project_is_given_there_alone(daemon_with_secrets, interface, user):
    outside = daemon_with_secrets.installation.work
    granted, text = await request_secret(daemon_with_secrets, interface, user, "HERE", outside)
    assert not granted and VALUE not in text, text
    link = outside / f"link-{interface}"
    link.symlink_to("/tmp")
    (daemon_with_secrets.installation.work / "app" / f"out-{interface}").symlink_to("/tmp")
    for way_out in (link, daemon_with_secrets.installation.work / "app" / f"out-{interface}"):
        granted, text = await request_secret(daemon_with_secrets, interface, user, "HERE", way_out)
        assert not granted and VALUE not in text, text


@pytest.mark.parametrize("interface", ["rest", "mcp"])
@pytest.mark.parametrize("user", ["bob", "self"])
async def test_a_refusal_does_not_tell_whether_there_is_one(daemon_with_secrets, interface, user):
    app = daemon_with_secrets.installation.work / "app"
    texts = {}
    for name in ("ANNS", "PLAIN", "MISSING", "ANNS_MISSING"):
        granted, text = await request_secret(daemon_with_secrets, interface, user, name, app)
        assert not granted
        # The id of the request differs.
        texts[name] = re.sub(r'"request_id": ?"[^"]*"', "", text.replace(name, "NAME"))
    assert len(set(texts.values())) == 1, texts


#: Other ways to start something with a secret: path and what the body has besides.
WAYS_IN = {
    "/api/v1/services": {"command": {"argv": {"program": "sleep", "args": ["30"]}}, "name": "bound"},
    "/api/v1/services/ensure": {"command": {"argv": {"program": "sleep", "args": ["31"]}}, "name": "ensured"},
    "/api/v1/shells": {"kind": "bash"},
}


@pytest.mark.parametrize("path", WAYS_IN)
def test_services_and_shells_are_starts_too(daemon_with_secrets, path):
    where = urlsplit(daemon_with_secrets.base)
    headers = {"Authorization": f"Bearer {daemon_with_secrets.tokens['bob']}", "Content-Type": "application/json"}

    def ask(path, body):
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
        try:
            connection.request("POST", path, body=json.dumps(body), headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    body = {"cwd": str(daemon_with_secrets.installation.work / "app"), **WAYS_IN[path]}
    before = len(daemon_with_secrets.installation.executions())
    status, text = ask(path, {**body, "secrets": ["PLAIN"]})
    assert status == 403 and "PLAIN" in text, (status, text)
    assert len(daemon_with_secrets.installation.executions()) == before
    status, text = ask(path, {**body, "secrets": ["SHARED"]})
    assert status in (200, 201), (status, text)
    name = body.get("name")
    stop = f"/api/v1/services/{name}/stop" if name else f"/api/v1/executions/{json.loads(text)['id']}/stop"
    assert ask(stop, {"force": True})[0] < 300


def test_a_refused_start_starts_nothing_and_is_on_record(daemon_with_secrets):
    before = len(daemon_with_secrets.installation.executions())
    granted, _text = by_rest(daemon_with_secrets, "bob", "ANNS", daemon_with_secrets.installation.work / "app")
    assert not granted and len(daemon_with_secrets.installation.executions()) == before
    record = b"".join(path.read_bytes() for path in daemon_with_secrets.installation.state.rglob("*ledger*") if path.is_file())
    record += b"".join(path.read_bytes() for path in (daemon_with_secrets.installation.state / "ledger").rglob("*") if path.is_file())
    assert b"not given to this caller" in record and VALUE.encode() not in record


def test_bindings_are_explained(daemon_with_secrets):
    texts = daemon_with_secrets.installation.cli("config", "explain").stdout.decode()
    assert "secret ANNS: for token:ann" in texts, texts
    assert f"secret HERE: for local, token:ann, in {daemon_with_secrets.installation.work / 'app'}" in texts, texts
    assert VALUE not in texts


@pytest.mark.parametrize("value", ['["ann"]', '["uid:"]', "7", '[["local"]]'])
def test_a_binding_that_is_none_is_refused_with_its_line(make_installation, value):
    installation = make_installation()
    config = installation.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (config / "config.toml").write_text(f"\n[secrets.TOKEN]\nprincipals = {value}\n")
    done = subprocess.run(installation.argv("run", "--", "true"), cwd=installation.work, env=installation.env(), capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert done.returncode != 0 and b"config.toml:3" in done.stderr and b"token:NAME" in done.stderr, done.stderr
