"""What is started again stays in its project, and keeps its labels."""

import json
from urllib.parse import quote

import pytest

from harness import HttpDaemon, until
from harness.installation import ProblemError

LABELS = ["nightly", "team:a"]


@pytest.fixture
def host(installation):
    """A daemon with a token of one project; who asks over the socket names none."""
    project = str(installation.work.resolve())
    words = ("token", "new", "shop", "--scope", "sessions:all", "--scope", f"project:write={project}", "--json")
    installation.token = json.loads(installation.cli(*words).stdout)["token"]
    installation.project = project
    installation.http = HttpDaemon(installation)
    yield installation
    installation.end_commands()
    installation.shut_down()
    installation.http.process.wait(timeout=20)


def ask(host, method, path, body=None, in_project=False):
    """One request: with the token of the project, or over the socket, without any."""
    if not in_project:
        return host.rest(method, path, body)
    headers = {"Authorization": f"Bearer {host.token}", "Content-Type": "application/json"}
    connection = host.http.connect()
    connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
    response = connection.getresponse()
    data = json.loads(response.read() or b"null")
    connection.close()
    if response.status >= 400:
        raise ProblemError(response.status, data)
    return data


def service(host, **fields):
    body = {"command": {"argv": {"program": "/bin/sleep", "args": ["600"]}}, "cwd": str(host.work), "name": "worker",
            "labels": LABELS, "restart": "never", **fields}
    return ask(host, "POST", "/api/v1/services", body, in_project=True)


def listed(host):
    """The executions of the project, newest first."""
    return ask(host, "GET", f"/api/v1/projects/{quote(host.project, safe='')}/executions")["executions"]


def running(host):
    return [it for it in ask(host, "GET", "/api/v1/executions?status=running")["executions"]]


def check(host, expected):
    """What runs is `expected`, in the project with its labels, by each list that shows it."""
    one, = running(host)
    assert one["id"] == expected["id"] and one.get("project") == host.project and one["labels"] == LABELS, one
    assert [it["id"] for it in ask(host, "GET", "/api/v1/executions?status=running&label=nightly")["executions"]] == [one["id"]]
    shown = [it["execution"] for it in ask(host, "GET", "/api/v1/services")["services"] if it.get("execution")]
    assert [(it["id"], it.get("project"), it["labels"]) for it in shown] == [(one["id"], host.project, LABELS)]
    until(lambda: one["id"] in json.dumps(listed(host)) or one["uuid"] in json.dumps(listed(host)), 10, "the list of the project")


def started(body):
    """The execution of a service."""
    return body.get("service", body)["execution"]


def test_a_service_that_ended_is_started_again_in_its_project(host):
    first = started(service(host))
    check(host, first)
    for kill in (False, True):
        ask(host, "POST", "/api/v1/services/worker/stop", {})
        if kill:
            host.kill_daemon()
            host.cli("ps")
        again = started(ask(host, "POST", "/api/v1/services/worker/restart"))
        assert again["id"] != first["id"]
        check(host, again)


def test_a_living_service_stays_where_it_is(host):
    first = started(service(host))
    for _ in range(2):
        again = started(ask(host, "POST", "/api/v1/services/worker/restart"))
        check(host, again)
    assert again["id"] == first["id"]


def test_a_service_of_the_command_line_and_of_a_file_too(host):
    (host.work / "ostler.toml").write_text('[services.worker]\ncommand = "sleep 600"\n')
    host.give(host.work)
    body = {"cwd": str(host.work), "names": ["worker"]}
    ask(host, "POST", "/api/v1/services/up", body, in_project=True)
    first, = running(host)
    assert first["project"] == host.project
    for _ in range(2):
        host.cli("service", "stop", "worker")
        host.cli("service", "restart", "worker")
        again, = running(host)
        assert again["id"] != first["id"] and again["project"] == host.project


def test_a_command_that_is_started_again_stays_in_its_project(host):
    body = {"command": {"argv": {"program": "/bin/sleep", "args": ["600"]}}, "cwd": str(host.work), "labels": LABELS}
    execution = ask(host, "POST", "/api/v1/executions", body, in_project=True)
    for _ in range(2):
        execution = ask(host, "POST", f"/api/v1/executions/{execution['id']}/again", {"stop": True})
        one, = running(host)
        assert one["id"] == execution["id"] and one["project"] == host.project and one["labels"] == LABELS


def test_a_definition_keeps_the_labels_it_was_given(host):
    body = {"command": {"argv": {"program": "/bin/sleep", "args": ["600"]}}, "cwd": str(host.work), "labels": LABELS}
    ask(host, "PUT", "/api/v1/services/worker", body, in_project=True)
    for _ in range(2):
        again = started(ask(host, "POST", "/api/v1/services/worker/restart", in_project=True))
        one, = running(host)
        assert one["id"] == again["id"] and one["labels"] == LABELS and one["project"] == host.project
        ask(host, "POST", "/api/v1/services/worker/stop", {})
