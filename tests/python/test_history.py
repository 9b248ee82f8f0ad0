"""The history: every execution once, whatever happens to the daemon and to the database."""

import contextlib
import json
import resource
import sqlite3
import subprocess
import urllib.error
import urllib.request
from urllib.parse import quote

import pytest

from harness import Installation, until
from harness.disk import fill, mounted
from harness.http_daemon import serve_two_principals
from harness.installation import ProblemError


def start(installation, *command, **options):
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return installation.cli("run", "-d", *words, "--", *command).stdout.decode().strip()


def run(installation, *command, **options):
    pid = start(installation, *command, **options)
    installation.cli("wait", pid, check=False)
    return pid


def page(installation, query="", **options):
    return installation.rest("GET", f"/api/v1/history?limit=500&{query}", **options)


def every_row(installation):
    """The rows of all pages."""
    answer = page(installation)
    while True:
        yield from answer["executions"]
        if "next" not in answer:
            return
        answer = page(installation, f"before={answer['next']}")


def ids(installation, query="", **options):
    return [row["id"] for row in page(installation, query, **options)["executions"]]


def database(installation):
    return installation.state / "history.db"


def test_a_command_is_remembered_after_its_files_are_gone(installation):
    pid = run(installation, "sh", "-c", "echo printed; exit 3", label="nightly")
    installation.cli("rm", pid)
    row = installation.json("history", "show", pid)
    assert (row["status"], row["exit_code"], row["cause"]) == ("failed", 3, "exited"), row
    assert row["command"] == "sh -c 'echo printed; exit 3'" and row["labels"] == ["nightly"]
    assert row["totals"]["output_bytes"] == len("printed\n") and row["totals"]["max_rss_bytes"] > 0
    assert row["cwd"] == str(installation.work) and row["client"] == "cli" and row["attempts"] == 1
    assert row["created_at"] <= row["started_at"] <= row["ended_at"]
    shown = installation.cli("history", "show", row["uuid"]).stdout.decode()
    assert "failed, exit code 3" in shown and "nightly" in shown, shown


def test_a_label_that_is_given_twice_is_one(installation):
    words = [word for label in ("a", "b", "a") for word in ("--label", label)]
    id_ = installation.cli("run", "-d", *words, "--", "true").stdout.decode().strip()
    installation.cli("wait", id_)
    assert next(row["labels"] for row in every_row(installation) if row["id"] == id_) == ["a", "b"]


def test_how_a_command_usually_ends_is_told_from_the_fifth_end_on(installation):
    for number in range(4):
        pid = run(installation, "sh", "-c", f"test {number} != 2")
    assert "usual" not in installation.json("history", "show", pid)
    pid = run(installation, "sh", "-c", "test 9 != 2")
    usual = installation.json("history", "show", pid)["usual"]
    assert (usual["runs"], usual["failures"]) == (5, 1), usual
    assert "1 of 5 failed" in installation.cli("history", "show", pid).stdout.decode()


async def test_how_it_usually_ends_is_told_while_it_runs(installation):
    words = ["sh", "-c", "until test -e go; do sleep .02; done"]
    (installation.work / "go").touch()
    for _ in range(5):
        run(installation, *words)
    (installation.work / "go").unlink()
    other, pid = start(installation, "sleep", "600"), start(installation, *words)
    # The history follows the start after a moment.
    known = until(lambda: installation.json("info", pid).get("usual"), 20, "the statistics")
    assert (known["runs"], known["failures"]) == (5, 0), known
    listed = {row["id"]: row.get("usual") for row in installation.json("ps")}
    assert listed == {other: None, pid: known}
    table = installation.cli("ps").stdout.decode().splitlines()
    assert "USUALLY" in table[0] and len(table) == 3, table
    assert "none of 5 failed" in installation.cli("info", pid).stdout.decode()
    async with installation.agent() as agent:
        reply = await agent.must("exec", command=words, wait_ms=0)
        mine = reply.text[1:9]
        for _ in range(100):
            if "usually" in reply.text:
                break
            reply = await agent.must("process", action="wait", ids=[mine], wait_ms=200)
        assert "[note: the command usually takes" in reply.text and "none of 5 failed" in reply.text, reply
        (installation.work / "go").touch()
        assert "usually" not in (await agent.must("process", action="wait", ids=[mine], wait_ms=9000)).text
    installation.cli("wait", pid)
    assert "usual" not in installation.json("info", pid)
    installation.end_commands()


def test_searches_select_and_continue(installation):
    names = [f"needle-{number}" for number in range(7)]
    pids = [run(installation, "echo", name) for name in names]
    lasting = start(installation, "sleep", "600")
    assert ids(installation, "text=NEEDLE-3") == [pids[3]]
    assert ids(installation, "status=running") == [lasting]
    found, query = [], "/api/v1/history?text=needle&limit=3"
    following = installation.rest("GET", query)
    while True:
        found += [row["id"] for row in following["executions"]]
        if "next" not in following:
            break
        run(installation, "echo", "needle-later")
        following = installation.rest("GET", f"{query}&before={following['next']}")
    assert found == pids[::-1]
    shown = installation.cli("history", "--text", "needle-5").stdout.decode().splitlines()
    assert len(shown) == 2 and "echo needle-5" in shown[1], shown
    installation.end_commands()


@pytest.mark.parametrize("query", ["status=done", "limit=0", "limit=501", "offset=10001", "since=soon", "before=-1", "x=1",
                                   "text=%00abc", "text=" + "a" * 5000])
def test_bad_searches_name_what_is_allowed(installation, query):
    installation.cli("ps")
    with pytest.raises(ProblemError) as refused:
        installation.rest("GET", f"/api/v1/history?{query}")
    assert refused.value.status == 422 or refused.value.status == 400, refused.value
    assert query.split("=")[0] in str(refused.value.problem), refused.value.problem


def test_an_unknown_execution_is_not_found(installation):
    installation.cli("ps")
    for unknown in ("nothing", "01a209ea-6ad1-76f2-b9bb-cea95dc7cd86"):
        with pytest.raises(ProblemError) as refused:
            installation.rest("GET", f"/api/v1/history/{unknown}")
        assert (refused.value.status, refused.value.problem["code"]) == (404, "process_not_found")


@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=[pytest.mark.full, pytest.mark.limit(1800)])])
def test_no_row_is_lost_or_doubled_by_kills_in_a_burst(installation, count):
    script = f"for i in $(seq {count}); do $0 run -d -- true || exit 1; done"
    words = ["sh", "-c", script, installation.argv()[0]]
    burst = subprocess.Popen(words, cwd=installation.work, env=installation.env(), stdout=subprocess.PIPE, text=True)
    started, kills = [], {int(count * part) for part in (0.16, 0.36, 0.364, 0.68)}
    for number, line in enumerate(burst.stdout):
        started.append(line.strip())
        if number in kills:
            # Another one serves by now, or is started.
            installation.cli("ps")
            installation.kill_daemon()
    assert burst.wait() == 0 and len(started) == count
    until(lambda: not ids(installation, "status=running"), 30, "the ends")
    # The history is behind for a while, and says so.
    rows = until(lambda: len(rows := list(every_row(installation))) >= count and rows, 60, "the rows")
    assert sorted(row["id"] for row in rows) == sorted(started)
    assert {row["exit_code"] for row in rows} == {0}
    assert installation.cli("audit", "verify").returncode == 0


def damage(path):
    data = bytearray(path.read_bytes())
    data[200:] = b"\xff" * (len(data) - 200)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), damage, lambda path: path.write_bytes(b"no database\n" * 999)],
                         ids=["deleted", "damaged", "replaced"])
@pytest.mark.parametrize("running", [True, False], ids=["under the daemon", "between two daemons"])
def test_a_database_that_is_gone_is_made_anew(installation, harm, running):
    pids = [run(installation, "echo", str(number)) for number in range(5)]
    assert ids(installation) == pids[::-1]
    if not running:
        installation.shut_down()
    harm(database(installation))
    if not running:
        installation.cli("ps")
        assert ids(installation) == pids[::-1]
    pids.append(run(installation, "echo", "later"))
    until(lambda: sorted(ids(installation)) == sorted(pids), 30, "the history")


def test_damage_that_only_a_search_meets_is_mended(installation):
    run(installation, "echo", "needle")
    assert len(ids(installation, "text=needle")) == 1
    installation.cli("shutdown")
    # The index of texts is damaged: nothing is written to it before something is searched.
    with contextlib.closing(sqlite3.connect(database(installation))) as harmed:
        harmed.execute("UPDATE command_text_data SET block = x'ffffffff' WHERE id > 10")
        harmed.commit()
    installation.cli("ps")
    assert len(ids(installation, "text=needle")) == 1
    assert len(ids(installation)) == 1


def test_commands_go_on_while_the_database_is_locked(installation):
    first = run(installation, "true")
    assert ids(installation) == [first]
    with contextlib.closing(sqlite3.connect(database(installation), isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        second = run(installation, "true")
        until(lambda: page(installation).get("behind_reason"), 30, "the reason")
        locked = page(installation)
        assert [row["id"] for row in locked["executions"]] == [first] and locked["behind"] > 0
        assert "locked" in locked["behind_reason"], locked
        # What is not there yet is not said to be unknown.
        with pytest.raises(ProblemError) as early:
            installation.rest("GET", f"/api/v1/history/{second}")
        assert early.value.status == 503 and early.value.problem["retryable"], early.value
        assert "lacks" in early.value.problem["message"] and "locked" in early.value.problem["message"], early.value
        assert b"ask again later" in installation.cli("history", "show", second, check=False).stderr
        holder.execute("ROLLBACK")
    until(lambda: ids(installation) == [second, first], 30, "the history")
    assert installation.rest("GET", f"/api/v1/history/{second}")["id"] == second
    with pytest.raises(ProblemError) as unknown:
        installation.rest("GET", "/api/v1/history/zzzzzzzz")
    assert unknown.value.status == 404 and not unknown.value.problem["retryable"], unknown.value


@pytest.mark.small_disk
def test_a_full_disk_costs_lateness_only(make_installation):
    installation = make_installation()
    installation.state.mkdir(parents=True, exist_ok=True)
    with mounted(installation.state, 24, installation) as disk:
        ended = start(installation, "sh", "-c", "until [ -e go ]; do sleep .02; done; exit 4")
        assert ids(installation) == [ended]
        filler = fill(disk.outside)
        (installation.work / "go").touch()
        assert installation.cli("wait", ended, check=False).returncode == 4
        filler.unlink()
        later = run(installation, "true")
        until(lambda: ids(installation, "status=failed") == [ended], 30, "the end in the history")
        assert ids(installation) == [later, ended]
        assert "behind_reason" not in page(installation)
        installation.shut_down()


def test_a_session_sees_its_own_rows(installation):
    installation.cli("ps")
    body = {"command": {"argv": {"program": "true", "args": []}}, "cwd": str(installation.work)}
    mine, other = (installation.rest("POST", "/api/v1/executions", body, session=name)["id"] for name in ("mine", "other"))
    assert ids(installation, session="mine") == [mine]
    assert ids(installation, session="other") == [other]
    assert ids(installation, "session=other", session="mine") == []
    with pytest.raises(ProblemError) as refused:
        installation.rest("POST", "/api/v1/history/rebuild", session="mine")
    assert refused.value.status == 403, refused.value
    installation.cli("history", "rebuild")
    assert sorted(ids(installation)) == sorted([mine, other])


async def test_an_agent_searches_the_history(installation):
    async with installation.agent(args=["--tools", "core,history"]) as agent:
        for number in range(6):
            last = (await agent.must("exec", command=["sh", "-c", f"test {number} != 3"])).value("id")
        await agent.must("exec", command=["echo", "x" * 5_000])
        found = await agent.must("history_search", text="test", limit=4)
        assert [entry["status"] for entry in found.value("executions")] == ["succeeded", "succeeded", "failed", "succeeded"]
        more = await agent.must("history_search", text="test", cursor=found.value("next"))
        assert len(more.value("executions")) == 2 and more.value_or("next") is None, more
        detail = await agent.must("history_search", id=last)
        assert (detail.value("usual")["runs"], detail.value("usual")["failures"]) == (6, 1), detail
        assert len((await agent.must("history_search", text="xxx")).text) < 2_000
        for arguments, word in (({"status": "good"}, "succeeded"), ({"id": "nothing"}, "no execution"), ({"limit": 0}, "limit")):
            refused = await agent.call("history_search", **arguments)
            assert refused.is_error and word in refused.text, refused
    async with installation.agent(session="other", args=["--tools", "history"]) as other:
        assert (await other.must("history_search")).value("executions") == []


def test_a_principal_sees_its_own_rows_of_a_project(binary):
    with serve_two_principals(Installation(binary)) as served:
        def ask(name, method, path, body=None):
            request = urllib.request.Request(served.base + path, method=method, data=body and json.dumps(body).encode())
            request.add_header("Authorization", f"Bearer {served.tokens[name]}")
            request.add_header("Content-Type", "application/json")
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                raise ProblemError(error.code, json.load(error)) from error

        def found(name):
            """Its row, once the history has it: on a busy machine it is behind for a while, and says so."""
            def read():
                try:
                    return ask(name, "GET", f"/api/v1/history/{made[name]['id']}")
                except ProblemError as problem:
                    assert problem.status == 503, problem
                    return None
            return until(read, 30, "the row")

        body = {"command": {"argv": {"program": "true", "args": []}}, "cwd": str(served.installation.work)}
        made = {name: ask(name, "POST", "/api/v1/executions", body) for name in ("ann", "bob")}
        for name in ("ann", "bob"):
            project = found(name)["project"]
            rows = ask(name, "GET", f"/api/v1/projects/{quote(project, safe='')}/executions?limit=50&offset=0")
            assert [row["id"] for row in rows["executions"]] == [made[name]["id"]]
            assert ask(name, "GET", "/api/v1/projects/field/executions")["executions"] == []
        with pytest.raises(ProblemError) as refused:
            ask("bob", "GET", f"/api/v1/history/{made['ann']['uuid']}")
        assert refused.value.status == 404


def test_where_few_files_may_be_open_no_history_is_kept_and_it_is_said(installation):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    installation.cli("run", "--", "true", preexec_fn=few)
    refused = installation.cli("history", check=False)
    assert refused.returncode == 74 and b"4096" in refused.stderr, refused
    assert not database(installation).exists()
