"""Secrets are bound: one that is nobody's in particular is for the local user of the socket, and
every refusal is the same whether or not there is one."""

import http.client
import json
import subprocess
from urllib.parse import urlsplit

import pytest

from harness import Installation, ClientTransport, serving_two_principals, token

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
def bound(binary):
    """A daemon with secrets, bound and unbound, and three tokens: one speaks for the user itself."""
    place = Installation(binary)
    plain = place.env
    place.env = lambda **more: plain(**{**ENV, **more})
    config = place.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (place.work / "app").mkdir()
    (config / "config.toml").write_text(CONFIG.format(project=place.work / "app"))
    with serving_two_principals(place) as serving:
        serving.tokens["self"] = token(place, "self")
        yield serving


def script(name):
    return SCRIPT.replace("NAME", name)


def by_rest(serving, who, name, cwd):
    """What a token is answered: whether the command had the secret, and everything that was said."""
    where = urlsplit(serving.base)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    body = {"command": {"shell": {"shell": "/bin/sh", "script": script(name)}}, "cwd": str(cwd), "secrets": [name]}
    headers = {"Authorization": f"Bearer {serving.tokens[who]}", "Content-Type": "application/json"}

    def ask(method, path, body=None):
        connection.request(method, path, body=json.dumps(body) if body else None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    try:
        status, text = ask("POST", "/api/v1/executions", body)
        if status >= 400:
            is_absent = (who, name) == ("ann", "ANNS_MISSING")
            assert status == (422 if is_absent else 403), (status, text)
            return False, text
        pid = json.loads(text)["id"]
        ask("POST", f"/api/v1/executions/{pid}/wait", {"until": "exit", "at_most_ms": 30_000})
        _, output = ask("GET", f"/api/v1/executions/{pid}/raw")
        return f"got {len(VALUE) + 1 + len(name)}" in output, output
    finally:
        connection.close()


async def by_mcp(serving, who, name, cwd):
    way = ClientTransport("http", "auto", serving.place, serving, headers={"Authorization": f"Bearer {serving.tokens[who]}"})
    async with way.agent() as agent:
        reply = await agent.call("exec", script=script(name), cwd=str(cwd), secrets=[name], wait_ms=30_000)
    return f"got {len(VALUE) + 1 + len(name)}" in reply.text, reply.text


def by_cli(serving, _who, name, cwd):
    done = serving.place.cli("run", "--secret", name, "--cwd", cwd, "--", "sh", "-c", script(name), check=False)
    text = (done.stdout + done.stderr).decode()
    return f"got {len(VALUE) + 1 + len(name)}" in text, text


#: Who is given what in the project's directory; what is not named is refused.
GIVEN = {
    "ann": {"ANNS", "SHARED", "HERE"},
    "bob": {"SHARED"},
    "self": set(),
    "local": {"PLAIN", "SHARED", "HERE"},
}


async def asked(serving, face, who, name, cwd):
    if face == "mcp":
        return await by_mcp(serving, who, name, cwd)
    return {"rest": by_rest, "cli": by_cli}[face](serving, who, name, cwd)


CASES = [(face, who) for who in ("ann", "bob", "self") for face in ("rest", "mcp")] + [("cli", "local")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("face", "who"), CASES)
async def test_a_secret_is_given_to_whom_it_is_bound(bound, face, who, name):
    given, text = await asked(bound, face, who, name, bound.place.work / "app")
    assert given == (name in GIVEN[who]), text
    assert VALUE not in text, text
    if not given:
        assert name in text and "got" not in text.split(), text


@pytest.mark.parametrize(("face", "who"), [("rest", "ann"), ("mcp", "ann"), ("cli", "local")])
async def test_a_secret_of_a_project_is_given_there_alone(bound, face, who):
    outside = bound.place.work
    given, text = await asked(bound, face, who, "HERE", outside)
    assert not given and VALUE not in text, text
    link = outside / f"link-{face}"
    link.symlink_to("/tmp")
    (bound.place.work / "app" / f"out-{face}").symlink_to("/tmp")
    for way_out in (link, bound.place.work / "app" / f"out-{face}"):
        given, text = await asked(bound, face, who, "HERE", way_out)
        assert not given and VALUE not in text, text


@pytest.mark.parametrize("face", ["rest", "mcp"])
@pytest.mark.parametrize("who", ["bob", "self"])
async def test_a_refusal_does_not_tell_whether_there_is_one(bound, face, who):
    app = bound.place.work / "app"
    said = {}
    for name in ("ANNS", "PLAIN", "MISSING", "ANNS_MISSING"):
        given, text = await asked(bound, face, who, name, app)
        assert not given
        said[name] = text.replace(name, "NAME")
    assert len(set(said.values())) == 1, said


#: Other ways to start something with a secret: path and what the body has besides.
WAYS_IN = {
    "/api/v1/services": {"command": {"argv": {"program": "sleep", "args": ["30"]}}, "name": "bound"},
    "/api/v1/services/ensure": {"command": {"argv": {"program": "sleep", "args": ["31"]}}, "name": "ensured"},
    "/api/v1/shells": {"kind": "bash"},
}


@pytest.mark.parametrize("path", WAYS_IN)
def test_services_and_shells_are_starts_too(bound, path):
    where = urlsplit(bound.base)
    headers = {"Authorization": f"Bearer {bound.tokens['bob']}", "Content-Type": "application/json"}

    def ask(path, body):
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
        try:
            connection.request("POST", path, body=json.dumps(body), headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    body = {"cwd": str(bound.place.work / "app"), **WAYS_IN[path]}
    before = len(bound.place.executions())
    status, text = ask(path, {**body, "secrets": ["PLAIN"]})
    assert status == 403 and "PLAIN" in text, (status, text)
    assert len(bound.place.executions()) == before
    status, text = ask(path, {**body, "secrets": ["SHARED"]})
    assert status in (200, 201), (status, text)
    name = body.get("name")
    stop = f"/api/v1/services/{name}/stop" if name else f"/api/v1/executions/{json.loads(text)['id']}/stop"
    assert ask(stop, {"force": True})[0] < 300


def test_a_refused_start_starts_nothing_and_is_on_record(bound):
    before = len(bound.place.executions())
    given, _text = by_rest(bound, "bob", "ANNS", bound.place.work / "app")
    assert not given and len(bound.place.executions()) == before
    record = b"".join(path.read_bytes() for path in bound.place.state.rglob("*ledger*") if path.is_file())
    record += b"".join(path.read_bytes() for path in (bound.place.state / "ledger").rglob("*") if path.is_file())
    assert b"not given to this caller" in record and VALUE.encode() not in record


def test_bindings_are_explained(bound):
    said = bound.place.cli("config", "explain").stdout.decode()
    assert "secret ANNS: for token:ann" in said, said
    assert f"secret HERE: for local, token:ann, in {bound.place.work / 'app'}" in said, said
    assert VALUE not in said


@pytest.mark.parametrize("value", ['["ann"]', '["uid:"]', "7", '[["local"]]'])
def test_a_binding_that_is_none_is_refused_with_its_line(make_place, value):
    place = make_place()
    config = place.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (config / "config.toml").write_text(f"\n[secrets.TOKEN]\nprincipals = {value}\n")
    done = subprocess.run(place.argv("run", "--", "true"), cwd=place.work, env=place.env(), capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert done.returncode != 0 and b"config.toml:3" in done.stderr and b"token:NAME" in done.stderr, done.stderr
