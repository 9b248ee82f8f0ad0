"""A task is a command: it outlives the daemon, and its answer is the tool's."""

import json

import httpx2
import pytest

from harness import HttpDaemon, until

REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
#: Declared by clients that know tasks.
TASKS = {"extensions": {f"{PREFIX}tasks": {}}}


def ask(http_daemon, method, **params):
    """One request of the newest revision; its result."""
    name = params.get("name") or params.get("taskId")
    params["_meta"] = {f"{PREFIX}protocolVersion": REVISION, f"{PREFIX}clientCapabilities": TASKS}
    headers = {
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method, "Mcp-Name": name,
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    text = httpx2.post(http_daemon.url, json=message, headers=headers, timeout=30).text
    lines = (line.removeprefix("data:").strip() for line in text.splitlines())
    answer = next(json.loads(line) for line in lines if line.startswith("{"))
    assert "result" in answer, answer
    return answer["result"]


def over(http_daemon, task):
    """The task, once it is over."""

    def state():
        found = ask(http_daemon, "tasks/get", taskId=task)
        return None if found["status"] == "working" else found

    return until(state, 30, "the end of the task")


@pytest.fixture
def task_call(installation):
    """A daemon, and a call that became a task: it continues until `go` exists."""
    http_daemon = HttpDaemon(installation, "--no-token")
    script = "echo begun; until [ -e go ]; do sleep 0.05; done; echo done; exit 4"
    call = ask(http_daemon, "tools/call", name="exec", arguments={"script": script, "cwd": str(installation.work)})
    assert call["resultType"] == "task" and call["status"] == "working", call
    return http_daemon, call["taskId"]


def test_a_long_call_becomes_a_task_and_ends_as_the_tool_answers(installation, task_call):
    http_daemon, task = task_call
    (installation.work / "go").touch()
    ended = over(http_daemon, task)
    assert ended["status"] == "completed", ended
    assert ended["ttlMs"] > 60_000, "how long after its start it is removed"
    text = ended["result"]["content"][0]["text"]
    assert text.startswith(f"[{task} exit 4") and "begun\ndone" in text, text
    http_daemon.end()


def test_a_task_survives_the_daemons_death(installation, task_call):
    http_daemon, task = task_call
    http_daemon.process.kill()
    http_daemon.process.wait(timeout=20)
    again = HttpDaemon(installation, "--no-token")
    assert ask(again, "tasks/get", taskId=task)["status"] == "working"
    (installation.work / "go").touch()
    ended = over(again, task)
    assert ended["status"] == "completed", ended
    assert "begun\ndone" in ended["result"]["content"][0]["text"], ended
    again.end()


def test_a_cancelled_task_is_cancelled_and_its_command_gone(installation, task_call):
    http_daemon, task = task_call
    ask(http_daemon, "tasks/cancel", taskId=task)
    assert over(http_daemon, task)["status"] == "cancelled"
    http_daemon.end()
