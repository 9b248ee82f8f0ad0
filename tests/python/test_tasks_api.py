"""Tasks, as the container engine's API names executions."""

import concurrent.futures
import json
import sys
from urllib.parse import quote

import pytest

from harness.installation import ProblemError


def execute(installation, command, *args, project=None, **fields):
    project = quote(str(installation.work) if project is None else project, safe="")
    installation.cli("ps")
    return installation.rest("POST", f"/api/v1/projects/{project}/execute", {"command": command, "args": list(args), **fields})


def task(installation, started, tail="", body=None):
    method = "GET" if tail in ("", "/events", "/resources") else "POST"
    return installation.rest(method, f"/api/v1/tasks/{started['task_id']}{tail}", body)


def test_a_task_is_asked_and_answered_at_its_terminal(installation):
    program = "import sys; print(sys.stdin.isatty()); print('hello ' + input('name? '))"
    started = execute(installation, sys.executable, "-c", program)
    assert set(started) == {"task_id", "events_url"}
    assert task(installation, started, "/input", {"input": "Ann"})["taken"] == len("Ann\r")
    installation.cli("wait", started["task_id"])
    printed = installation.cli("logs", started["task_id"]).stdout.decode()
    assert "True" in printed and "hello Ann" in printed, printed
    assert started["events_url"] == f"/api/v1/tasks/{started['task_id']}/events"
    assert task(installation, started)["status"] == "completed"
    assert installation.json("history", "show", started["task_id"])["project"] == str(installation.work)


def test_without_a_terminal_its_input_is_a_pipe(installation):
    started = execute(installation, sys.executable, "-c", "import sys; print(sys.stdin.isatty())", interactive=False)
    installation.cli("wait", started["task_id"])
    assert installation.cli("logs", "--raw", started["task_id"]).stdout == b"False\n"


def test_its_command_knows_the_ids_of_project_and_task(make_installation):
    for prefix, config in (("CLAUDE_", {}), ("JOB_", {"OSTLER_CONTEXTS_ENVIRONMENT_PREFIX": "JOB_"})):
        installation = make_installation()
        installation.cli("ps", env=config)

        def printed(id, prefix=prefix, installation=installation):
            installation.cli("wait", id)
            return installation.cli("logs", "--raw", id).stdout.decode()

        script = f'echo "${{{prefix}PROJECT_ID-unset}}/${{{prefix}TASK_ID-unset}}"'
        given = {"cwd": str(installation.work), "interactive": False}
        for context in (None, True):
            started = execute(installation, "sh", "-c", script, project="garden", context=context, **given)
            assert printed(started["task_id"]) == f"garden/{started['task_id']}\n", context
            given.pop("cwd", None)
        installation.cli("context", "create", "shed", "--task", "t 7")
        started = execute(installation, "sh", "-c", script, project="shed", context=True, interactive=False)
        assert printed(started["task_id"]) == "shed/t 7\n"
        # What is no task has neither.
        body = {"command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(installation.work)}
        assert printed(installation.rest("POST", "/api/v1/executions", body)["id"]) == "unset/unset\n"


def test_it_knows_them_when_it_is_started_again(installation):
    started = execute(installation, "sh", "-c", 'echo "$CLAUDE_PROJECT_ID/$CLAUDE_TASK_ID"', project="garden",
                      cwd=str(installation.work), interactive=False)
    installation.cli("wait", started["task_id"])
    short = installation.cli("restart", started["task_id"]).stdout.decode().strip()
    installation.cli("wait", short)
    again = installation.rest("GET", f"/api/v1/executions/{short}")
    printed = installation.cli("logs", "--raw", short).stdout.decode()
    project, task = printed.strip().split("/")
    assert project == "garden" and task != started["task_id"] and task.startswith("0"), printed
    assert again["project"] == "garden"


def test_it_is_listed_with_its_project(installation):
    started = execute(installation, "true", project="garden", cwd=str(installation.work), interactive=False)
    installation.cli("wait", started["task_id"])
    execute(installation, "false")
    rows = installation.rest("GET", "/api/v1/projects/garden/executions")["executions"]
    assert [row["uuid"] for row in rows] == [started["task_id"]]


@pytest.mark.parametrize("script, code", [("exec sleep 600", None), ("trap 'exit 7' INT; while :; do sleep .05; done", 7)])
def test_cancel_interrupts_and_says_so(installation, script, code):
    started = execute(installation, "sh", "-c", f"echo up; {script}")
    installation.rest("POST", f"/api/v1/executions/{started['task_id']}/wait", {"until": "pattern", "pattern": "up", "at_most_ms": 9000})
    answer = task(installation, started, "/cancel")
    assert answer["cancelled"] is True and answer["task_id"] == started["task_id"] and answer.get("exit_code") == code, answer
    again = task(installation, started, "/cancel")
    assert again == {**answer, "cancelled": False}
    shown = installation.rest("GET", f"/api/v1/executions/{started['task_id']}")
    assert answer["status"] == "terminated" and shown["stop_reason"] == "cancelled", (answer, shown)


CLEANS_UP = "trap 'sleep 1; echo cleaned; exit 9' INT; echo up; while :; do sleep .05; done"


def test_a_second_cancel_leaves_the_first_its_time(installation):
    started = execute(installation, "sh", "-c", CLEANS_UP, interactive=False)
    installation.rest("POST", f"/api/v1/executions/{started['task_id']}/wait", {"until": "pattern", "pattern": "up", "at_most_ms": 9000})
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = [it.result(30) for it in [pool.submit(task, installation, started, "/cancel") for _ in range(3)]]
    assert {it["exit_code"] for it in answers} == {9}, answers
    assert installation.cli("logs", "--raw", started["task_id"]).stdout.endswith(b"cleaned\n")


def test_a_cancel_continues_what_is_paused(installation):
    started = execute(installation, "sh", "-c", CLEANS_UP, interactive=False)
    installation.rest("POST", f"/api/v1/executions/{started['task_id']}/wait", {"until": "pattern", "pattern": "up", "at_most_ms": 9000})
    task(installation, started, "/pause")
    assert task(installation, started, "/cancel")["exit_code"] == 9


def test_who_ignores_the_interrupt_is_stopped(installation):
    started = execute(installation, "sh", "-c", "trap '' INT; echo up; while :; do sleep .05; done", interactive=False)
    installation.rest("POST", f"/api/v1/executions/{started['task_id']}/wait", {"until": "pattern", "pattern": "up", "at_most_ms": 9000})
    answer = task(installation, started, "/cancel")
    assert answer["cancelled"] is True and answer["status"] == "terminated", answer


def test_a_cancel_goes_on_without_its_client(installation):
    started = execute(installation, "sh", "-c", "trap 'echo caught' INT; echo up; while :; do sleep .05; done", interactive=False)
    wait = f"/api/v1/executions/{started['task_id']}/wait"
    installation.rest("POST", wait, {"until": "pattern", "pattern": "up", "at_most_ms": 9000})
    request = installation.connect()
    request.request("POST", f"/api/v1/tasks/{started['task_id']}/cancel")
    installation.rest("POST", wait, {"until": "pattern", "pattern": "caught", "at_most_ms": 9000})
    request.close()
    ended = installation.rest("POST", wait, {"until": "exit", "at_most_ms": 20_000})
    assert task(installation, started)["status"] == "terminated", ended


def test_pause_resume_and_resources(installation):
    # The kernel charges pages in batches: what uses next to nothing may use 0 bytes.
    started = execute(installation, "python3", "-c", "x = bytearray(8 << 20); print('up', flush=True); input()")
    wait = f"/api/v1/executions/{started['task_id']}/wait"
    installation.rest("POST", wait, {"until": "pattern", "pattern": "up", "at_most_ms": 9000})
    assert task(installation, started, "/pause")["paused"] is True
    assert task(installation, started, "/resources")["memory_bytes"] > 0
    assert task(installation, started, "/resume")["paused"] is False
    task(installation, started, "/cancel")


@pytest.mark.parametrize("fields, word", [
    ({"command": "true", "timeout": 0}, "timeout"), ({"command": "true", "project": "garden"}, "cwd"), ({"args": []}, "command"),
    ({"command": "true", "template_id": "x"}, "template_id"), ({"command": "/no/such"}, "no/such")])
def test_bad_tasks_are_refused_and_nothing_starts(installation, fields, word):
    project = quote(fields.pop("project", str(installation.work)), safe="")
    installation.cli("ps")
    with pytest.raises(ProblemError) as refused:
        installation.rest("POST", f"/api/v1/projects/{project}/execute", fields)
    assert word in json.dumps(refused.value.problem), refused.value.problem
    assert installation.json("ps", "-a") == [] or word == "no/such"


@pytest.mark.parametrize("tail", ["", "/input", "/cancel", "/events", "/pause", "/resume", "/resources"])
def test_an_unknown_task_is_not_found(installation, tail):
    installation.cli("ps")
    with pytest.raises(ProblemError) as refused:
        task(installation, {"task_id": "nothing"}, tail, {"input": "x"} if tail == "/input" else None)
    assert refused.value.status == 404, refused.value
