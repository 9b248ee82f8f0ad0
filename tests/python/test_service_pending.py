"""Services that wait for a dependency while no call waits for them."""

import time

import anyio
import pytest

from harness import until
from harness.installation import ASK_TOUCH
from harness.service_client import ServiceClient

pytestmark = pytest.mark.anyio

#: `db` is ready once the file `gate` exists.
MANIFEST = """
[services.db]
command = "while [ ! -e gate ]; do sleep 0.05; done; echo open; exec sleep 300"
ready_pattern = "open"
[services.web]
command = "exec sleep 300"
depends_on = ["db"]
[services.api]
command = "exec sleep 300"
depends_on = ["web"]
"""


@pytest.fixture
def workspace(installation):
    (installation.work / "ostler.toml").write_text(MANIFEST)
    return installation


def rows(reply):
    """The services of an answer, by name."""
    return {row["name"]: row for row in reply.structured.get("services", [reply.structured])}


@pytest.mark.parametrize("call", [{"action": "up"}, {"action": "up", "name": "web"}, {"action": "start", "name": "web"},
                                  {"action": "ensure", "name": "web"}], ids=str)
async def test_a_call_waits_no_longer_than_it_says_and_the_start_goes_on(workspace, call):
    async with ServiceClient.open("mcp", workspace) as client:
        began = time.monotonic()
        reply = await client.agent.must("service", wait_ms=300, **call)
        assert time.monotonic() - began < 15, "far below the maximum of a call"
        found = rows(reply)
        assert found["db"]["event"] == "service_started" and found["db"]["id"], reply
        web = found["web"]
        assert (web["event"], web["status"], web["pending"]) == ("service_pending", "pending", "'db' to be ready"), web
        assert "id" not in web
        assert "web is pending: it waits for 'db' to be ready" in reply.text, reply
        listed = rows(await client.agent.must("service", action="list"))
        assert listed["web"]["status"] == "pending" and listed["web"]["pending"] == "'db' to be ready"
        why = await client.agent.must("service", action="why", name="web")
        assert "it waits for 'db' to be ready" in why.text, why
        (workspace.work / "gate").touch()
        client.settled("web", "ready", "running")


async def test_the_same_call_waits_on(workspace):
    async with ServiceClient.open("mcp", workspace) as client:
        await client.agent.must("service", action="up", name="web", wait_ms=0)
        (workspace.work / "gate").touch()
        reply = await client.agent.must("service", action="up", name="web", wait_ms=20_000)
        events = {name: row["event"] for name, row in rows(reply).items()}
        assert events == {"db": "service_ready", "web": "service_ready"}, reply
        assert "pending" not in reply.text, reply


async def test_a_pending_service_is_stopped(workspace):
    async with ServiceClient.open("mcp", workspace) as client:
        await client.agent.must("service", action="up", wait_ms=0)
        stopped = await client.agent.must("service", action="stop", name="web")
        assert (stopped.structured["event"], stopped.structured["status"]) == ("service_stopped", "stopped"), stopped
        client.settled("api", "stopped")
        (workspace.work / "gate").touch()
        client.settled("db", "ready", "running")
        for name in ("web", "api"):
            service = client.service(name)
            assert service["status"] == "stopped" and not service.get("execution"), service
            assert "it was stopped before it started" in " ".join(service.get("notes", [])), service


async def test_a_stop_ends_the_call_that_waits(workspace):
    async with ServiceClient.open("mcp", workspace) as client:
        replies = []

        async def start():
            replies.append(await client.agent.call("service", action="up", name="web"))

        async with anyio.create_task_group() as calls:
            calls.start_soon(start)
            await anyio.to_thread.run_sync(lambda: client.settled("web", "pending"))
            workspace.cli("service", "stop", "web")
        assert replies[0].is_error and "it was stopped before it started" in replies[0].text, replies


async def test_nothing_starts_for_a_session_that_ended(workspace):
    async with ServiceClient.open("mcp", workspace) as client:
        await client.agent.must("service", action="up", wait_ms=0)
    # The end of the client is the end of its session.
    client.settled("web", "stopped")
    (workspace.work / "gate").touch()
    client.settled("db", "ready", "running")
    for name in ("web", "api"):
        service = client.service(name)
        assert service["status"] == "stopped" and not service.get("execution"), service


async def test_a_question_about_a_later_service_is_noted(installation):
    installation.write_policy(ASK_TOUCH)
    (installation.work / "ostler.toml").write_text(MANIFEST.replace('"exec sleep 300"\ndepends_on = ["db"]', '["touch", "made"]\ndepends_on = ["db"]'))
    async with ServiceClient.open("mcp", installation) as client:
        await client.agent.must("service", action="up", name="web", wait_ms=0)
        (installation.work / "gate").touch()
        note = until(lambda: " ".join(client.service("web").get("notes", [])), 20, "a note")
        assert "ask-touch" in note, note
        question = installation.rest("GET", "/api/v1/interactions")["interactions"]
        assert len(question) == 1 and question[0]["id"] in note, (question, note)
        assert not (installation.work / "made").exists()
        installation.cli("approve", question[0]["id"])
        await client.agent.must("service", action="up", name="web", wait_ms=20_000)
        until((installation.work / "made").exists, 20, "its start")


#: A command of its own that depends on `db`.
OWN = {"command": ["sleep", "300"], "depends_on": ["db"]}


@pytest.mark.parametrize("action", ["start", "ensure"])
@pytest.mark.parametrize("name", ["own", None])
async def test_a_command_with_dependencies_waits_no_longer_either(workspace, action, name):
    named = {"name": name} if name else {}
    async with ServiceClient.open("mcp", workspace) as client:
        began = time.monotonic()
        reply = await client.agent.must("service", action=action, wait_ms=300, **named, **OWN)
        assert time.monotonic() - began < 15, "far below the maximum of a call"
        row = reply.structured
        assert (row["name"], row["event"], row["status"]) == (name or "sleep", "service_pending", "pending"), reply
        assert row["pending"] == "'db' to be ready" and "id" not in row, reply
        listed = rows(await client.agent.must("service", action="list"))
        assert listed[row["name"]]["status"] == "pending", listed
        (workspace.work / "gate").touch()
        client.settled(row["name"], "ready", "running")
        again = await client.agent.call("service", action=action, wait_ms=20_000, name=row["name"], **OWN)
        if action == "ensure":
            assert again.structured["event"] == "service_ready" and again.structured["reused"], again
        else:
            assert again.is_error and "runs" in again.text, again
        assert len([it for it in workspace.rest("GET", "/api/v1/services")["services"] if it["name"] == row["name"]]) == 1


@pytest.mark.parametrize("action", ["start", "ensure"])
async def test_the_same_command_waits_on_for_its_one_start(workspace, action):
    async with ServiceClient.open("mcp", workspace) as client:
        first = await client.agent.must("service", action=action, name="own", wait_ms=0, **OWN)
        assert first.structured["event"] == "service_pending", first
        replies = []

        async def wait_on(action):
            replies.append(await client.agent.call("service", action=action, name="own", wait_ms=20_000, **OWN))

        async with anyio.create_task_group() as calls:
            calls.start_soon(wait_on, action)
            calls.start_soon(wait_on, "ensure")
            client.settled("own", "pending")
            (workspace.work / "gate").touch()
        events = [it.structured["event"] for it in replies]
        assert events == ["service_ready", "service_ready"], replies
        assert len({it.structured["id"] for it in replies}) == 1, replies


async def test_other_commands_without_a_name_are_other_starts(workspace):
    async with ServiceClient.open("mcp", workspace) as client:
        for seconds in ("300", "301"):
            await client.agent.must("service", action="ensure", wait_ms=0, command=["sleep", seconds], depends_on=["db"])
        (workspace.work / "gate").touch()

        def commands():
            rows = workspace.rest("GET", "/api/v1/services")["services"]
            return {it["command"] for it in rows if it["status"] == "running" or it["status"] == "ready"}
        until(lambda: {"sleep 300", "sleep 301"} <= commands(), 20, "both")


async def test_a_pending_command_is_stopped(workspace):
    async with ServiceClient.open("mcp", workspace) as client:
        await client.agent.must("service", action="start", name="own", wait_ms=0, **OWN)
        stopped = await client.agent.must("service", action="stop", name="own")
        assert stopped.structured["event"] == "service_stopped", stopped
        (workspace.work / "gate").touch()
        client.settled("db", "ready", "running")
        rows = workspace.rest("GET", "/api/v1/services")["services"]
        assert not [it for it in rows if it["name"] == "own" and it.get("execution")], rows


#: `db` fails once the file `gate` exists.
FAILING = MANIFEST.replace("exec sleep 300", "exit 3", 1).replace("echo open", "echo no disk")


@pytest.mark.parametrize("name", ["own", None])
async def test_a_command_that_fails_in_the_background_is_listed(installation, name):
    named = {"name": name} if name else {}
    (installation.work / "ostler.toml").write_text(FAILING)
    async with ServiceClient.open("mcp", installation) as client:
        shown = (await client.agent.must("service", action="start", wait_ms=0, **named, **OWN)).structured["name"]
        (installation.work / "gate").touch()
        note = until(lambda: " ".join(client.service(shown).get("notes", [])), 20, "a note")
        assert "its start at" in note and "'db'" in note and "no disk" in note, note
        row = rows(await client.agent.must("service", action="list"))[shown]
        assert row["status"] == "stopped" and "id" not in row, row
        assert "no disk" in (await client.agent.must("service", action="why", name=shown)).text
        if not name:
            installation.cli("service", "dismiss", shown)
            assert shown not in rows(await client.agent.must("service", action="list"))
            return
        (installation.work / "ostler.toml").write_text(MANIFEST)
        await client.agent.must("service", action="start", name=name, wait_ms=20_000, **OWN)
        listed = [it for it in installation.rest("GET", "/api/v1/services")["services"] if it["name"] == name]
        assert len(listed) == 1 and not listed[0].get("notes"), listed


@pytest.mark.parametrize("end", ["kill", "shutdown"])
async def test_a_start_that_ended_with_the_daemon_is_told(workspace, end):
    workspace.cli("ps")  # Starts the daemon.
    own = {"command": {"argv": {"program": "sleep", "args": ["300"]}}, "cwd": str(workspace.work), "name": "own",
           "depends_on": [{"name": "db", "condition": "ready"}], "wait_ms": 0}
    assert workspace.rest("POST", "/api/v1/services", own)["service"]["status"] == "pending"
    up = {"cwd": str(workspace.work), "names": ["web"], "wait_ms": 0}
    assert workspace.rest("POST", "/api/v1/services/up", up)["pending"]
    if end == "kill":
        workspace.kill_daemon()
    else:
        daemon = workspace.daemon()
        workspace.rest("POST", "/api/v1/shutdown")
        assert daemon.gone(20)
        daemon.close()
    workspace.cli("ps")
    listed = {it["name"]: it for it in workspace.rest("GET", f"/api/v1/services?cwd={workspace.work}")["services"]}
    for name in ("own", "web"):
        assert listed[name]["status"] == "stopped", listed[name]
        assert "the daemon ended while it was pending; start it again" in " ".join(listed[name]["notes"]), listed[name]
    assert not listed["db"].get("notes"), listed["db"]
    (workspace.work / "gate").touch()
    client = ServiceClient(workspace)
    assert workspace.rest("POST", "/api/v1/services/up", {**up, "wait_ms": 20_000})["services"]
    client.settled("web", "ready", "running")
    assert not client.service("web").get("notes")
    workspace.kill_daemon()
    workspace.cli("ps")
    assert not client.service("web").get("notes"), "it runs since"


@pytest.mark.parametrize("action", ["start", "ensure"])
async def test_a_dependency_that_fails_is_told_at_once(installation, action):
    (installation.work / "ostler.toml").write_text('[services.db]\ncommand = "echo no disk; exit 3"\nready_pattern = "open"\n')
    async with ServiceClient.open("mcp", installation) as client:
        began = time.monotonic()
        reply = await client.agent.call("service", action=action, name="own", wait_ms=40_000, **OWN)
        assert time.monotonic() - began < 20
        assert reply.is_error and "db" in reply.text and "no disk" in reply.text, reply


@pytest.mark.parametrize("path", ["/api/v1/services", "/api/v1/services/ensure"])
async def test_rest_answers_for_a_pending_command(workspace, path):
    workspace.cli("ps")  # Starts the daemon.
    body = {"command": {"argv": {"program": "sleep", "args": ["300"]}}, "cwd": str(workspace.work), "name": "own",
            "depends_on": [{"name": "db", "condition": "ready"}]}
    response = workspace.rest("POST", path, {**body, "wait_ms": 300})
    service = response["service"]
    assert (service["name"], service["status"], service["waits_for"]) == ("own", "pending", "'db' to be ready"), response
    assert response["message"] == "own is pending: it waits for 'db' to be ready", response
    (workspace.work / "gate").touch()
    client = ServiceClient(workspace)
    client.settled("own", "ready", "running")
    assert workspace.rest("POST", "/api/v1/services/ensure", {**body, "wait_ms": 20_000})["reused"]


async def test_rest_waits_no_longer_either(workspace):
    workspace.cli("ps")  # Starts the daemon.
    body = {"cwd": str(workspace.work), "names": ["web"], "wait_ms": 300}
    response = workspace.rest("POST", "/api/v1/services/up", body)
    assert [it["service"]["name"] for it in response["services"]] == ["db"], response
    assert [(it["name"], it["status"], it["waits_for"]) for it in response["pending"]] == [
        ("web", "pending", "'db' to be ready")], response
    (workspace.work / "gate").touch()
    client = ServiceClient(workspace)
    client.settled("web", "ready", "running")
