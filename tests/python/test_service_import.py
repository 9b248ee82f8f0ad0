"""`ostler service import`: what other runners read, taken over and really run."""

import json
import tomllib
import urllib.request

import pytest

from harness.services import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.limit(120)]

SERVE = "python3 -m http.server {port} --bind 127.0.0.1"


@pytest.fixture
def workspace(make_installation):
    """An installation with a workspace; its services are ended afterwards."""
    installation = make_installation()
    yield installation
    installation.cli("service", "down", check=False)


def add(installation, name, text):
    path = installation.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def imported(installation, *args):
    done = installation.cli("service", "import", *args)
    return done.stdout.decode(), done.stderr.decode()


def answers(port):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/", timeout=30) as answer:
        return answer.read()


def test_two_processes_of_a_procfile_run(workspace):
    ports = [free_port(), free_port()]
    lines = [f"{name}: {SERVE.format(port=port)}" for name, port in zip(("web", "api"), ports, strict=True)]
    add(workspace, "index.html", "hello from a Procfile")
    add(workspace, "Procfile", "release: ./migrate\n" + "\n".join(lines) + "\n")
    printed, left = imported(workspace, "Procfile")
    assert printed.startswith("[services.web]\n") and not (workspace.work / "ostler.toml").exists()
    assert "not taken over: Procfile:1: release: " in left
    imported(workspace, "--write", "Procfile")
    assert (workspace.work / "ostler.toml").read_text() == printed
    workspace.cli("service", "up")
    for port in ports:
        assert b"hello from a Procfile" in answers(port)


def test_the_port_that_its_runner_would_give_is_a_free_one(workspace):
    add(workspace, "index.html", "hello from $PORT")
    add(workspace, "Procfile", "web: python3 -m http.server $PORT --bind 127.0.0.1\n")
    imported(workspace, "--write", "Procfile")
    workspace.cli("service", "up")
    web = workspace.rest("GET", f"/api/v1/services/web?cwd={workspace.work}")
    ports = workspace.json("info", web["execution"]["id"])["service"]["ports"]
    port = next(it["port"] for it in ports if it["main"])
    assert b"hello from $PORT" in answers(port)


def test_a_script_of_a_package_runs(workspace):
    port = free_port()
    scripts = {"start": SERVE.format(port=port), "build": "true"}
    add(workspace, "web/package.json", json.dumps({"name": "web", "scripts": scripts}))
    add(workspace, "web/index.html", "hello from a package")
    _, left = imported(workspace, "--write", "web/package.json")
    assert "web/package.json:1: build: starts no server that is known" in left
    assert 'cwd = "web"' in (workspace.work / "ostler.toml").read_text()
    workspace.cli("service", "up")
    assert b"hello from a package" in answers(port)


def test_services_of_a_compose_file_run_in_order(workspace):
    port = free_port()
    add(workspace, "site/index.html", "hello from compose")
    add(workspace, "compose.yaml", f"""\
services:
  db:
    image: postgres:16
  prepare:
    image: alpine
    command: sh -c "echo $$NAME > site/prepared"
    environment: {{NAME: done}}
  web:
    image: python:3
    working_dir: /srv
    volumes: ["./site:/srv"]
    command: {SERVE.format(port=port)}
    ports: ["{port}:{port}"]
    depends_on:
      prepare: {{condition: service_completed_successfully}}
      db: {{condition: service_healthy}}
""")
    _, left = imported(workspace, "--write", "compose.yaml")
    assert "compose.yaml:3: db: has no command: it is what the image postgres:16 runs" in left
    assert "web.depends_on: 'db' is not taken over" in left
    workspace.cli("service", "up")
    assert b"hello from compose" in answers(port)
    assert (workspace.work / "site/prepared").read_text() == "done\n"


def test_what_is_defined_already_is_not_overwritten(workspace):
    add(workspace, "ostler.toml", '[services.web]\ncommand = "mine"')
    add(workspace, "Procfile", "web: theirs\napi: theirs\n")
    done = workspace.cli("service", "import", "--write", "Procfile", check=False)
    assert done.returncode != 0 and b"defines web already" in done.stderr
    assert (workspace.work / "ostler.toml").read_text() == '[services.web]\ncommand = "mine"'
    imported(workspace, "--write", "Procfile", "api")
    text = '[services.web]\ncommand = "mine"\n\n[services.api]\ncommand = "theirs"\n'
    assert (workspace.work / "ostler.toml").read_text() == text


@pytest.mark.parametrize("name, text, position", [
    ("compose.yml", "services:\n  web:\n    command: [a\n", "compose.yml:4:1: "),
    ("package.json", '{"scripts": {,}}', "package.json:1:14: "),
    ("docker-compose.yaml", "web: {}\n", "docker-compose.yaml:1:1: there are no 'services'"),
])
def test_a_bad_file_is_reported_with_its_place(workspace, name, text, position):
    add(workspace, name, text)
    done = workspace.cli("service", "import", name, check=False)
    assert done.returncode not in (0, 1) and position in done.stderr.decode(), done


def test_variables_of_env_files_keep_lines_and_escapes_and_what_is_left_out_is_reported(workspace):
    key = "-----BEGIN KEY-----\nabc=\n-----END KEY-----"
    text = f'\ufeffHOST=h\r\nKEY="{key}"\r\nURL=http://${{HOST}}/\nTAB="a\\tb"\nnot a variable\nOPEN="x\n'
    add(workspace, ".env", text)
    add(workspace, "Procfile", "\ufeffweb: sh -c 'echo; sleep 9'\n")
    printed, left = imported(workspace, "Procfile")
    variables = tomllib.loads(printed)["services"]["web"]["env"]
    assert variables == {"HOST": "h", "KEY": key, "URL": "http://${HOST}/", "TAB": "a\tb"}
    for line, reason in [
        (5, "URL: is written as it stands"), (7, "a line: is not NAME=value"),
        (8, "OPEN: has a quote that is not closed"),
    ]:
        assert f"not taken over: .env:{line}: {reason}" in left, left


def test_an_env_file_that_cannot_be_read_is_reported(workspace):
    (workspace.work / ".env").write_bytes("A=1\n".encode("utf-16"))
    service = "services:\n  web:\n    command: sleep 9\n    env_file: [big.env, {path: none.env, required: false}]\n"
    add(workspace, "compose.yaml", service)
    add(workspace, "big.env", "A=" + "x" * 300_000 + "\n")
    printed, left = imported(workspace, "compose.yaml")
    assert "env" not in tomllib.loads(printed)["services"]["web"]
    assert "not taken over: .env:1: all variables: the file cannot be read" in left, left
    assert "web.env_file: cannot be read: it is longer than" in left, left
    assert "none.env" not in left


def test_a_lock_file_decides_the_package_manager_whatever_is_in_it(workspace):
    add(workspace, "package.json", '\ufeff{"scripts": {"dev": "vite"}}')
    (workspace.work / "bun.lockb").write_bytes(b"\xff\xfe" * 400_000)
    printed, left = imported(workspace, "package.json")
    assert tomllib.loads(printed)["services"]["dev"]["command"] == "bun run dev"
    assert "not taken over" not in left and "files of variables" not in left
