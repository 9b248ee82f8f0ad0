"""Contexts: a directory with options, variables and secrets that executions of one project and user share."""

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import Installation, serve_two_principals, until
from harness.disk import fill
from harness.installation import ProblemError, is_root

VALUE = "c0nt3xt-s3cr3t-v4lu3-5521"
PATH = "/api/v1/contexts"
UNKNOWN = "ctx-000000000000"


def opened(installation, project="demo", session=None, **fields):
    installation.cli("ps")
    return installation.rest("POST", PATH, {"project": project, **fields}, session=session)


def listed(installation):
    return installation.rest("GET", PATH)["contexts"]


def show(installation, id):
    return installation.rest("GET", f"{PATH}/{id}")


def start(installation, context, script, **options):
    body = {"command": {"shell": {"shell": "/bin/sh", "script": script}}, "cwd": context["directory"],
            "context": context["id"], **options}
    return installation.rest("POST", "/api/v1/executions", body)["id"]


def ended(installation, id):
    return installation.rest("POST", f"/api/v1/executions/{id}/wait", {"until": "exit", "at_most_ms": 20_000})["info"]


def output(installation, context, script, **options):
    id = start(installation, context, script, **options)
    ended(installation, id)
    return installation.cli("logs", "--no-time", id).stdout.decode()


def refused(installation, method, path, body=None):
    with pytest.raises(ProblemError) as error:
        installation.rest(method, path, body)
    return error.value.status, json.dumps(error.value.problem)


def directories(installation):
    """Where directories of contexts are created: beside the state directory."""
    return installation.state.with_name("ostler-contexts")


def gone(installation, id):
    until(lambda: id not in [it["id"] for it in listed(installation)], 20, f"the end of {id}")


def test_a_context_is_created_used_again_and_removed_with_its_files(each_installation):
    installation = each_installation
    id = installation.cli("context", "create", "demo", "-e", "COLOUR=blue").stdout.decode().strip()
    first = installation.cli("context", "run", id, "--", "sh", "-c", "echo $COLOUR > kept; mkdir -p a/b; ln -s / a/b/root; pwd")
    directory = directories(installation) / id
    assert first.stdout.decode().strip() == str(directory)
    assert installation.cli("context", "create", "demo").stdout.decode().strip() == id, "it is warm"
    assert installation.cli("context", "run", id, "--", "cat", "kept").stdout == b"blue\n"
    assert installation.cli("context", "run", id, "--", "sh", "-c", "exit 7", check=False).returncode == 7
    listed_ids = [line.split()[0] for line in installation.cli("context", "list").stdout.decode().splitlines()[1:]]
    assert listed_ids == [id]
    shown = installation.json("context", "show", id)
    assert (shown["status"], shown["variables"], shown["directory_created"]) == ("idle", ["COLOUR"], True)
    assert (shown["idle_timeout_ms"], shown["timeout_ms"]) == (1_800_000, 3_600_000)
    installation.cli("context", "rm", id)
    assert not directory.exists() and listed(installation) == []
    missing = installation.cli("context", "show", id, check=False)
    assert missing.returncode == 66 and b"not found" in missing.stderr


def test_a_directory_that_was_there_stays(installation):
    (installation.work / "file").write_text("kept")
    context = opened(installation, cwd=str(installation.work))
    assert not context["directory_created"]
    assert output(installation, context, "cat file; echo") == "kept\n"
    installation.rest("DELETE", f"{PATH}/{context['id']}")
    assert (installation.work / "file").read_text() == "kept"
    (installation.work / "link").symlink_to(".")
    here, named = (installation.cli("context", "create", *words).stdout for words in ((), ("./link",)))
    assert here == named, "both are this directory"
    of_project = opened(installation, project=str(installation.work))
    assert of_project["directory"] == str(installation.work) and not of_project["directory_created"]


def test_requests_at_once_get_the_same_one(installation):
    installation.cli("ps")
    with ThreadPoolExecutor(8) as pool:
        ids = {context["id"] for context in pool.map(lambda _: opened(installation), range(16))}
    assert len(ids) == 1
    assert [path.name for path in directories(installation).iterdir()] == [*ids]


def test_one_that_differs_is_told_not_changed(installation):
    context = opened(installation, task="one", env=[["A", "1"]])
    assert opened(installation)["id"] == context["id"]
    assert opened(installation, task="one", env=[["A", "1"]])["id"] == context["id"]
    for fields, named in (({"task": "two"}, "task"), ({"task": "one", "env": [["A", "2"]]}, "options"),
                          ({"task": "one", "cwd": "/tmp", "env": [["A", "1"]]}, "cwd")):
        status, text = refused(installation, "POST", PATH, {"project": "demo", **fields})
        assert status == 422 and context["id"] in text and named in text, text
    other = installation.rest("POST", PATH, {"project": "demo"}, session="mine")
    assert other["id"] != context["id"] and other["session"] == "mine", "a session has its own"


def test_tasks_of_a_project_run_in_its_context(installation):
    installation.cli("ps")
    path = "/api/v1/projects/demo/execute"
    write = {"command": "touch", "args": ["made"], "context": True, "interactive": False}
    ended(installation, installation.rest("POST", path, write)["task_id"])
    [context] = listed(installation)
    read = {"command": "ls", "context": context["id"], "interactive": False}
    task = installation.rest("POST", path, read)["task_id"]
    ended(installation, task)
    assert installation.cli("logs", "--no-time", task).stdout == b"made\n"
    status, text = refused(installation, "POST", "/api/v1/projects/other/execute", read)
    assert status == 422 and "'demo'" in text
    status, text = refused(installation, "POST", path, {**read, "context": 7})
    assert status == 422 and "the id of one" in text
    status, text = refused(installation, "POST", path, {"command": "ls"})
    assert status == 422 and "cwd" in text, "without a context, as before"


def test_commands_get_the_ids_of_project_and_task(make_installation):
    for prefix, config in (("CLAUDE_", {}), ("JOB_", {"OSTLER_CONTEXTS_ENVIRONMENT_PREFIX": "JOB_"})):
        installation = make_installation()
        installation.cli("ps", env=config)
        context = opened(installation, task="t 7")
        text = output(installation, context, f'echo "${prefix}PROJECT_ID/${prefix}TASK_ID"', env=[[f"{prefix}PROJECT_ID", "forged"]])
        assert text == "demo/t 7\n"
        plain = opened(installation, project="no task")
        assert output(installation, plain, f'echo "${prefix}PROJECT_ID/$${{{prefix}TASK_ID-unset}}"'.replace("$$", "$")) == "no task/unset\n"
    bad = installation.cli("--set", "contexts.environment_prefix=A=B", "ps", check=False)
    assert bad.returncode == 78 and b"contexts.environment_prefix" in bad.stderr


def test_executions_have_a_time_limit_and_limits(each_installation):
    installation = each_installation
    context = opened(installation)
    info = ended(installation, start(installation, context, "true"))
    isolation = info["isolation"]
    assert info["timeout"] == 3_600
    assert isolation["limits"]["memory_bytes"] == 512 * 1024 * 1024
    assert (isolation["limits"]["cpu_millis"], isolation["limits"]["disk_bytes"]) == (800, 1024 * 1024 * 1024)
    told = {it["ability"] for it in isolation["missing"]} | set(isolation["in_force"])
    assert {"memory_limit", "cpu_limit", "disk_limit"} <= told, "each is in force, or reported as missing"
    warned = {it["ability"] for it in isolation.get("warnings", [])}
    assert {it["ability"] for it in isolation["missing"]} - warned <= {"own_cgroup", "pids_limit"}, isolation
    own = ended(installation, start(installation, context, "sleep 60", timeout_ms=50))
    assert own["status"] == "terminated" and own["timeout"] == 0.05, own
    short = opened(installation, project="short", timeout_ms=50)
    assert ended(installation, start(installation, short, "sleep 60"))["status"] == "terminated"
    plain = installation.rest("POST", "/api/v1/executions", {
        "command": {"argv": {"program": "true", "args": []}}, "cwd": str(installation.work)})
    assert "memory_bytes" not in plain["isolation"]["limits"] and plain.get("timeout") is None, "as before"


def test_settings_decide_the_defaults(installation):
    installation.cli("ps", env={"OSTLER_CONTEXTS_IDLE_SECONDS": "7", "OSTLER_CONTEXTS_TIMEOUT_SECONDS": "9",
                                "OSTLER_CONTEXTS_MEMORY": "64M", "OSTLER_CONTEXTS_CPUS": "1.5", "OSTLER_CONTEXTS_DISK": "8M",
                                "OSTLER_CONTEXTS_DIRECTORY": str(installation.dir / "elsewhere")})
    context = opened(installation)
    assert (context["idle_timeout_ms"], context["timeout_ms"]) == (7_000, 9_000)
    limits = {"memory_bytes": 64 << 20, "cpu_millis": 1_500, "disk_bytes": 8 << 20}
    assert context["limits"] == limits
    assert os.path.dirname(context["directory"]) == str(installation.dir / "elsewhere")


def test_an_idle_context_ends_and_one_in_use_does_not(installation):
    context = opened(installation, idle_timeout_ms=3_000)
    id = start(installation, context, "read line; echo got $line", stdin="open")
    other = opened(installation, project="other", idle_timeout_ms=1)
    gone(installation, other["id"])
    assert show(installation, context["id"])["status"] == "busy"
    installation.rest("POST", f"/api/v1/executions/{id}/input", b"it\n")
    gone(installation, context["id"])
    assert [*directories(installation).iterdir()] == []
    assert opened(installation)["id"] != context["id"]


def test_starts_race_with_the_idle_end(installation):
    """A start gets in before the end, or is told that there is no context: never a removed directory."""
    installation.cli("ps")

    def race(number):
        context = opened(installation, project=f"p{number}", idle_timeout_ms=1 + number % 7)
        try:
            return output(installation, context, "touch here && ls")
        except ProblemError as error:
            assert error.status in (404, 409), error
            return "here\n"

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(race, range(24))) == {"here\n"}
    until(lambda: not listed(installation) and not [*directories(installation).iterdir()], 20, "the end of all")


def test_removal_of_one_in_use_is_refused_unless_forced(installation):
    context = opened(installation)
    ids = [start(installation, context, "trap '' TERM; sleep 1000" if at else "sleep 1000") for at in range(2)]
    status, text = refused(installation, "DELETE", f"{PATH}/{context['id']}")
    assert status == 409 and all(id in text for id in ids), text
    assert installation.cli("context", "rm", context["id"], check=False).returncode == 71
    assert show(installation, context["id"])["executions"] == ids
    installation.rest("DELETE", f"{PATH}/{context['id']}?force=true")
    assert not os.path.exists(context["directory"])
    for id in ids:
        assert installation.rest("GET", f"/api/v1/executions/{id}")["status"] == "terminated"
    status, text = refused(installation, "POST", f"/api/v1/executions/{ids[0]}/again", {})
    assert status in (404, 422), "what ran in it cannot run again without it"


OVERLAY = {"isolation": "high", "confine": {"overlay": True}}


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("decision", ["commit", "discard"])
def test_undecided_changes_keep_their_context(installation, decision, killed):
    """They are of files that go with it."""
    context = opened(installation, idle_timeout_ms=5_000)
    id = start(installation, context, "echo precious > result", **OVERLAY)
    ended(installation, id)
    if killed:
        installation.kill_daemon()
        installation.cli("ps")
    assert show(installation, context["id"])["executions"] == [id]
    status, text = refused(installation, "DELETE", f"{PATH}/{context['id']}")
    assert status == 409 and id in text and "overlay" in text, text
    installation.rest("POST", f"/api/v1/executions/{id}/workspace/{decision}", {})
    until(lambda: not listed(installation), 20, "the idle end")


def test_undecided_changes_go_with_a_context_removed_by_force(installation):
    context = opened(installation)
    ids = [start(installation, context, "echo precious > result; sleep " + rest, **OVERLAY) for rest in ("0", "1000")]
    ended(installation, ids[0])
    until(lambda: installation.json("workspace", ids[1])["totals"]["created"], 20, "the change of what runs")
    installation.rest("DELETE", f"{PATH}/{context['id']}?force=true")
    assert listed(installation) == []
    for id in ids:
        assert installation.rest("GET", f"/api/v1/executions/{id}/workspace")["fate"] == "discarded"


def test_an_overlay_without_changes_keeps_no_context(installation):
    context = opened(installation)
    ended(installation, start(installation, context, "true", **OVERLAY))
    installation.rest("DELETE", f"{PATH}/{context['id']}")
    second = opened(installation, idle_timeout_ms=5_000)
    ended(installation, start(installation, second, "true", **OVERLAY))
    until(lambda: not listed(installation), 20, "the idle end")


def test_removed_changes_keep_no_context(installation):
    context = opened(installation, idle_timeout_ms=5_000)
    id = start(installation, context, "echo precious > result", **OVERLAY)
    ended(installation, id)
    installation.rest("DELETE", f"/api/v1/executions/{id}")
    until(lambda: not listed(installation), 20, "the idle end")


def recorded(installation, id):
    """What the audit log says of a context: state, reason and details, oldest first."""
    entries = installation.rest("GET", "/api/v1/audit?limit=1000")["entries"]
    about = [it for it in entries if it["event"] == "context" and it["context"] == id]
    return [(it["state"], it.get("reason"), it.get("detail", {})) for it in about]


def test_the_audit_log_tells_who_created_a_context_and_why_it_ended(installation):
    context = opened(installation, task="t-1")
    assert context["id"] == opened(installation, task="t-1")["id"], "its second use is no creation"
    id = start(installation, context, "sleep 1000")
    refused(installation, "DELETE", f"{PATH}/{context['id']}")
    installation.rest("DELETE", f"{PATH}/{context['id']}?force=true")
    ended(installation, id)
    created = {"project": "demo", "task": "t-1", "directory": context["directory"]}
    assert recorded(installation, context["id"]) == [
        ("created", None, created), ("ending", "its removal was requested", {}), ("ended", "its removal was requested", {})]
    other = opened(installation, project="other", idle_timeout_ms=1)
    until(lambda: len(recorded(installation, other["id"])) == 3, 20, "the record of its end")
    assert [it[:2] for it in recorded(installation, other["id"])][1:] == [("ending", "it was idle"), ("ended", "it was idle")]
    shown = installation.cli("events", "--no-follow").stdout.decode()
    assert f"{other['id']} ended: it was idle" in shown
    assert installation.cli("audit", "verify").returncode == 0


def test_a_daemon_that_dies_loses_no_context(each_installation):
    installation = each_installation
    used, idle = opened(installation), opened(installation, project="idle")
    id = start(installation, used, "sleep 1000")
    installation.kill_daemon()
    assert opened(installation)["id"] == used["id"]
    assert opened(installation, project="idle")["id"] == idle["id"]
    assert show(installation, used["id"])["executions"] == [id]
    assert refused(installation, "DELETE", f"{PATH}/{used['id']}")[0] == 409
    installation.rest("POST", f"/api/v1/executions/{id}/stop", {"force": True})
    until(lambda: show(installation, used["id"])["status"] == "idle", 20, "the end of its use")
    installation.rest("DELETE", f"{PATH}/{used['id']}")
    assert [path.name for path in directories(installation).iterdir()] == [idle["id"]]


def test_a_use_that_ended_while_no_daemon_ran_counts(installation):
    context = opened(installation)
    os.mkfifo(installation.work / "release")
    id = start(installation, context, f"read line < {installation.work}/release; echo precious > result")
    until(lambda: installation.rest("GET", f"/api/v1/executions/{id}")["status"] == "running", 20, "its start")
    installation.kill_daemon()
    # The beginning of its use is more than the idle time ago.
    contexts = json.loads((installation.state / "contexts.json").read_text())
    for record in contexts["contexts"]:
        record["used_at"] = "2026-01-01T00:00:00Z"
    (installation.state / "contexts.json").write_text(json.dumps(contexts))
    (installation.work / "release").write_text("now\n")
    [directory] = [path for path in installation.executions() if (path / "events.jsonl").exists()]
    until((directory / "exit").exists, 20, "its end")
    installation.cli("ps")
    assert ended(installation, id)["exit_code"] == 0
    assert show(installation, context["id"])["status"] == "idle"
    assert (Path(context["directory"]) / "result").read_text() == "precious\n"


def stored(installation):
    return json.loads((installation.state / "contexts.json").read_text())


def with_stored(installation, change):
    """Changes the file of contexts while no daemon runs."""
    installation.shut_down()
    contexts = stored(installation)
    change(contexts)
    (installation.state / "contexts.json").write_text(json.dumps(contexts))
    installation.cli("ps")


def test_what_a_dead_daemon_began_is_finished(installation):
    ids = [opened(installation, project=name)["id"] for name in ("made", "unmade", "filled", "ending")]

    def interrupted(contexts):
        for context in contexts["contexts"]:
            if context["project"] == "ending":
                context["stage"] = "stopping"
                continue
            context["stage"], context["created"] = "creating", {"inode": None}
            if context["project"] == "unmade":
                os.rmdir(context["directory"])
            if context["project"] == "filled":
                open(os.path.join(context["directory"], "somebody's"), "w").close()

    with_stored(installation, interrupted)
    for id in ids:
        gone(installation, id)
    left = [path.name for path in directories(installation).iterdir()]
    assert left == [ids[2]], "nothing ran in it: what is in it is not ours"
    assert stored(installation)["contexts"] == []


def test_a_damaged_file_is_set_aside_and_a_newer_one_is_refused(installation):
    context = opened(installation)
    installation.shut_down()
    (installation.state / "contexts.json").write_text('{"version": 1, "contexts": [{"id": "../../etc"')
    assert opened(installation)["id"] != context["id"]
    assert (installation.state / "contexts.json.damaged").exists()
    assert os.path.isdir(context["directory"]), "what is not known is not removed"
    installation.shut_down()
    (installation.state / "contexts.json").write_text('{"version": 9, "contexts": {}}')
    assert b"version 9 is newer" in installation.cli("ps", check=False).stderr
    (installation.state / "contexts.json").unlink()


@pytest.mark.parametrize("way", ["link", "directory", "nothing"])
def test_a_directory_that_was_replaced_is_left_alone(installation, way):
    """Its link is not followed and another directory is not removed; the next request gets a new context."""
    precious = installation.work / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    contexts = [opened(installation, project=name) for name in ("checked", "removed")]
    for context in contexts:
        place = directories(installation) / context["id"]
        shutil.rmtree(place)
        if way == "link":
            place.symlink_to(precious)
        if way == "directory":
            shutil.copytree(precious, place)
    with pytest.raises(ProblemError) as error:
        start(installation, contexts[0], "touch here")
    assert error.value.status == 409 and "directory" in str(error.value.problem)
    replacing = opened(installation, project="checked")
    assert replacing["id"] != contexts[0]["id"]
    assert output(installation, replacing, "touch here && ls") == "here\n"
    installation.rest("DELETE", f"{PATH}/{contexts[1]['id']}")
    gone(installation, contexts[0]["id"])
    assert [path.name for path in precious.iterdir()] == ["file"]
    for context in contexts:
        place = directories(installation) / context["id"]
        assert os.path.lexists(place) == (way != "nothing")
        assert way != "directory" or (place / "file").read_text() == "kept"


@pytest.mark.skipif(not is_root(), reason="an ordinary user mounts nothing")
def test_what_is_mounted_or_of_others_is_kept_and_told(installation):
    precious = installation.work / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    context = opened(installation)
    place = directories(installation) / context["id"]
    (place / "mounted").mkdir()
    (place / "ours").write_text("")
    (place / "theirs").write_text("")
    os.chown(place / "theirs", 65_534, 65_534)
    subprocess.run(["mount", "--bind", precious, place / "mounted"], check=True)
    try:
        status, text = refused(installation, "DELETE", f"{PATH}/{context['id']}")
        assert status == 409 and "mounted" in text and "theirs" in text, text
        assert show(installation, context["id"])["status"] == "failed"
        with pytest.raises(ProblemError):
            start(installation, context, "true")
        assert opened(installation)["id"] != context["id"]
    finally:
        subprocess.run(["umount", place / "mounted"], check=True)
    assert (precious / "file").read_text() == "kept"
    assert sorted(path.name for path in place.iterdir()) == ["mounted", "theirs"]
    (place / "theirs").unlink()
    installation.rest("DELETE", f"{PATH}/{context['id']}")
    assert not place.exists()


def test_there_is_a_limit_on_contexts(installation):
    installation.cli("ps", env={"OSTLER_CONTEXTS_MAX_PER_PRINCIPAL": "2"})
    first = opened(installation, project="one")
    opened(installation, project="two")
    status, text = refused(installation, "POST", PATH, {"project": "three"})
    assert status == 429 and "at most 2" in text
    assert opened(installation, project="one")["id"] == first["id"]
    installation.rest("DELETE", f"{PATH}/{first['id']}")
    opened(installation, project="three")


def test_a_full_disk_refuses_a_context_and_leaves_nothing(small_disk):
    installation = small_disk
    opened(installation, project="first", cwd=str(installation.work))
    with open(installation.disk / "filler", "wb") as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(1 << 16))
            filler.flush()
    status, text = refused(installation, "POST", PATH, {"project": "demo"})
    assert status == 507 and "contexts.json" in text, text
    assert [it["project"] for it in listed(installation)] == ["first"]
    assert not directories(installation).exists() or [*directories(installation).iterdir()] == []
    (installation.disk / "filler").unlink()
    opened(installation)


def test_a_removal_on_a_full_disk_is_refused_or_lasts(small_disk):
    installation = small_disk
    kept, made = opened(installation, project="kept", cwd=str(installation.work)), opened(installation, project="made")
    filler = fill(installation.disk)
    status, text = refused(installation, "DELETE", f"{PATH}/{kept['id']}")
    assert status == 507 and "contexts.json" in text, text
    # What takes space is removed all the same.
    installation.rest("DELETE", f"{PATH}/{made['id']}")
    assert not os.path.lexists(made["directory"])
    assert [it["id"] for it in listed(installation)] == [kept["id"]]
    installation.kill_daemon()
    installation.cli("ps")
    gone(installation, made["id"])
    assert show(installation, kept["id"])["status"] == "idle"
    filler.unlink()
    installation.rest("DELETE", f"{PATH}/{kept['id']}")
    installation.kill_daemon()
    installation.cli("ps")
    assert listed(installation) == []


@pytest.mark.parametrize("event", ["an end", "a removal"])
def test_a_removal_that_a_full_disk_refused_is_stored_once_there_is_room(small_disk, event):
    installation = small_disk
    made = opened(installation)
    old = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", old)
    filler = fill(installation.disk)
    installation.rest("DELETE", f"{PATH}/{made['id']}")
    assert made["id"] in (installation.disk / "contexts.json").read_text(), "the disk is full"
    filler.unlink()
    installation.cli(*{"an end": ("run", "--", "true"), "a removal": ("rm", old)}[event])
    until(lambda: made["id"] not in (installation.disk / "contexts.json").read_text(), 20, "the file without it")
    installation.kill_daemon()
    installation.cli("ps")
    assert listed(installation) == []


@pytest.mark.parametrize(("fields", "named"), [
    ({}, "project"), ({"project": ""}, "empty"), ({"project": "a\x1b[31mb"}, "control character"),
    ({"project": "a\0b"}, "control character"), ({"project": "x" * 5_000}, "at most 1024"),
    ({"project": "p", "task": "\n"}, "control character"), ({"project": "p", "cwd": "relative"}, "not absolute"),
    ({"project": "p", "cwd": "/no/such"}, "no such directory"), ({"project": "/no/such"}, "no such directory"),
    ({"project": "p", "idle_timeout_ms": 0}, "more than 0"), ({"project": "p", "idle_timeout_ms": 1 << 63}, "idle time"),
    ({"project": "p", "timeout_ms": 0}, "timeout"), ({"project": "p", "env": [["A=B", "x"]]}, "contains '='"),
    ({"project": "p", "secrets": ["no-name"]}, "letters, digits"), ({"project": "p", "pty": {"cols": 1, "rows": 1}}, "unknown field"),
    ({"project": "p", "limits": {"memory_bytes": 0}}, "memory"), ({"project": 7}, "project"),
])
def test_bad_requests_are_told_and_create_nothing(bad_requests, fields, named):
    status, text = refused(bad_requests, "POST", PATH, fields)
    assert status == 422 and named in text and "\x1b" not in text, text
    assert listed(bad_requests) == [] and len(text) < 3_000


@pytest.fixture(scope="module")
def bad_requests(binary):
    installation = Installation(binary)
    installation.cli("ps")
    yield installation
    installation.shut_down()
    installation.close()


def test_bad_starts_are_told(installation):
    context = opened(installation)
    command = {"argv": {"program": "true", "args": []}}
    for fields, status, named in (({"cwd": "/tmp"}, 422, "and below"), ({"context": UNKNOWN}, 404, "not found"),
                                  ({"context": "ctx-../../etc"}, 422, "no id of a context"),
                                  ({"restart": "never"}, 422, "a service does not run"), ({"cwd": context["directory"] + "/.."}, 422, "and below")):
        body = {"command": command, "cwd": context["directory"], "context": context["id"], **fields}
        answer = refused(installation, "POST", "/api/v1/executions", body)
        assert answer[0] == status and named in answer[1], answer
    assert show(installation, context["id"])["status"] == "idle", "a refused start uses nothing"
    again = {"id": "0190aaaa-0000-7000-8000-00000000000a"}
    status, text = refused(installation, "POST", f"{PATH}", {"project": "demo", **again})
    assert status == 422 and "unknown field `id`" in text


@pytest.fixture(scope="module")
def token_daemon(binary):
    """A daemon that asks for tokens, with two principals."""
    with serve_two_principals(Installation(binary)) as http_daemon:
        yield http_daemon


def ask(http_daemon, name, method, path, body=None):
    connection = http_daemon.connect()
    headers = {"Authorization": f"Bearer {http_daemon.tokens[name]}", "Content-Type": "application/json",
               "X-Request-Id": "same-in-all"}
    try:
        connection.request(method, path, body=json.dumps(body) if body else None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_two_users_of_a_project_have_a_context_each_and_see_no_other(token_daemon):
    opened_by = {}
    for name in ("ann", "bob"):
        status, text = ask(token_daemon, name, "POST", PATH, {"project": "shared"})
        assert status == 201, text
        opened_by[name] = json.loads(text)
    hers, his = opened_by["ann"], opened_by["bob"]
    assert hers["id"] != his["id"] and hers["directory"] != his["directory"]
    assert ask(token_daemon, "ann", "POST", PATH, {"project": "shared"})[0] == 200, "warm"
    assert hers["id"] not in ask(token_daemon, "bob", "GET", PATH)[1]
    start_in = {"command": {"argv": {"program": "true", "args": []}}, "cwd": hers["directory"]}
    for method, path, body in (("GET", f"{PATH}/ID", None), ("DELETE", f"{PATH}/ID?force=true", None),
                               ("DELETE", f"{PATH}/ID?what=this", None),
                               ("POST", "/api/v1/executions", {**start_in, "context": "ID"}),
                               ("POST", "/api/v1/projects/shared/execute", {"command": "true", "context": "ID"})):
        answers = [ask(token_daemon, "bob", method, path.replace("ID", id), body and {**body, "context": id}) for id in (hers["id"], UNKNOWN)]
        assert answers[0][0] == 404 and answers[0] == answers[1], answers
    assert ask(token_daemon, "ann", "GET", f"{PATH}/{hers['id']}")[0] == 200
    assert os.path.isdir(hers["directory"])


def test_a_secret_reaches_commands_and_nothing_else(make_installation):
    """The value comes from a variable with another prefix than the default ones."""
    installation = make_installation()
    plain = installation.env
    installation.env = lambda **more: plain(**{"OSTLER_SECRETS_PREFIX": "MINE_", "MINE_TOKEN": VALUE, **more})
    id = installation.cli("context", "create", "demo", "--secret", "TOKEN").stdout.decode().strip()
    context = show(installation, id)
    assert context["secrets"] == ["TOKEN"]
    script = "test ${#TOKEN} = LENGTH && echo given; echo $TOKEN; env | grep ^MINE_; true".replace("LENGTH", str(len(VALUE)))
    said = [installation.cli("context", "run", id, "--", "sh", "-c", script).stdout]
    execution = start(installation, context, script)
    ended(installation, execution)
    said.append(installation.cli("logs", "--no-time", execution).stdout)
    for text in said:
        assert text.splitlines()[0] == b"given" and b"MINE_" not in text, text
    failing = [installation.cli("context", "run", id, "--", VALUE, check=False),
               installation.cli("context", "run", id, "--secret", "OTHER", "--", "true", check=False)]
    assert all(it.returncode for it in failing)
    texts = [*said, *(it.stdout + it.stderr for it in failing)]
    for words in (("context", "list", "--json"), ("context", "show", id), ("info", execution), ("ps", "-a", "--json"), ("events", "--json", "--limit", "100")):
        texts.append(installation.cli(*words, check=False).stdout)
    for path in (PATH, f"{PATH}/{id}", "/api/v1/executions", "/api/v1/events?cursor=0", "/api/v1/audit"):
        texts.append(installation.rest("GET", path, raw=True))
    installation.shut_down()
    texts += [path.read_bytes() for path in installation.state.rglob("*") if path.is_file()]
    assert not [text for text in texts if VALUE.encode() in text]


@pytest.mark.skipif(not is_root(), reason="level high is tested as root elsewhere, too")
def test_level_high_may_write_to_the_directory_of_its_context_alone(installation):
    one, other = (opened(installation, project=name, isolation="high") for name in ("one", "other"))
    (directories(installation) / other["id"] / "file").write_text("hidden")
    text = output(installation, one, f"touch here && ls; cat {other['directory']}/file || echo none")
    assert text.splitlines()[0] == "here" and "hidden" not in text and "none" in text


@pytest.mark.anyio
async def test_agents_use_contexts_too(installation):
    async with installation.agent("one", args=["--tools", "context"]) as agent, installation.agent("two", args=["--tools", "context"]) as other:
        names = [tool.name for tool in (await agent.client.list_tools()).tools]
        assert names == ["context_create", "context_list", "context_run", "context_close"]
        context = (await agent.must("context_create", project="demo", task="t", env={"A": "1"}, timeout=9, idle_timeout=60)).structured
        assert context["new"] and context["timeout_ms"] == 9_000 and context["idle_timeout_ms"] == 60_000
        id = context["id"]
        assert not (await agent.must("context_create", project="demo")).structured["new"]
        ran = await agent.must("context_run", id=id, command="echo $A $CLAUDE_PROJECT_ID $CLAUDE_TASK_ID; mkdir deep; pwd")
        assert "1 demo t" in ran.text and context["directory"] in ran.text
        assert "deep" in (await agent.must("context_run", id=id, command=["pwd"], cwd="deep")).text
        outside = await agent.call("context_run", id=id, command="true", cwd="../..")
        assert outside.is_error and "and below" in outside.text
        assert (await agent.must("context_list")).structured["contexts"][0]["id"] == id
        assert (await other.must("context_list")).structured["contexts"] == []
        for tool, more in (("context_list", {}), ("context_run", {"command": "true"}), ("context_close", {"force": True})):
            foreign, unknown = [await other.call(tool, id=it, **more) for it in (id, UNKNOWN)]
            assert foreign.is_error and "not found" in foreign.text and foreign.text == unknown.text
        running = await agent.must("context_run", id=id, command="sleep 1000", wait_ms=0)
        refused_close = await agent.call("context_close", id=id)
        assert refused_close.is_error and "in use" in refused_close.text, running.text
        assert (await agent.must("context_close", id=id, force=True)).structured["closed"]
    assert not os.path.exists(context["directory"])


@pytest.mark.anyio
async def test_what_goes_on_names_only_tools_that_the_profile_has(installation):
    async with installation.agent(args=["--tools", "context"]) as agent:
        context = await agent.must("context_create", project="demo", cwd=str(installation.work))
        running = await agent.must("context_run", id=context.value("id"), command="exec sleep 300", wait_ms=100)
    assert "profile core has" in running.text and "process_control" not in running.text, running


@pytest.mark.anyio
async def test_profile_service_goes_on_with_its_own_tool(installation):
    script = "echo ready; exec sleep 300"
    async with installation.agent(args=["--tools", "service"]) as agent:
        await agent.must("service", action="start", name="web", command=script, ready_when="quiet:1")
        logs = await agent.must("service", action="logs", name="web")
        await agent.must("service", action="stop", name="web", force=True)
    assert 'service status, name "web"' in logs.text and "process wait" not in logs.text, logs
