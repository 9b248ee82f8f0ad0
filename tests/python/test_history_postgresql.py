"""The history in a server of PostgreSQL: what it answers in a file, it answers here; and no failure of the server costs an
execution, a row, or more than lateness."""

import json
import subprocess
import time

import pytest

from harness import Installation, until
from harness.http_daemon import HttpDaemon
from harness.installation import ProblemError
from harness.postgres import PASSWORD, ROLE, PostgresServer
from test_history import (  # noqa: F401  The same tests, with the history in a server.
    every_row, ids, page, run, start,
    test_a_command_is_remembered_after_its_files_are_gone,
    test_a_session_sees_its_own_rows,
    test_an_agent_searches_the_history,
    test_an_unknown_execution_is_not_found,
    test_how_a_command_usually_ends_is_told_from_the_fifth_end_on,
    test_how_it_usually_ends_is_told_while_it_runs,
    test_no_row_is_lost_or_doubled_by_kills_in_a_burst,
    test_searches_select_and_continue,
)

pytestmark = pytest.mark.anyio

#: How long an answer may take while the server does not answer, in seconds.
SOON = 10


@pytest.fixture(scope="module")
def server():
    server = PostgresServer()
    try:
        yield server
    finally:
        server.close()


def configure(installation, url, password=PASSWORD, **more):
    """Configures an installation; returns the file of the password."""
    directory = installation.dir / "config" / "ostler"
    directory.mkdir(parents=True, exist_ok=True)
    secret = directory / "history.password"
    secret.write_text(f"{password}\n")
    secret.chmod(0o600)
    settings = {"database": url, "password_file": "history.password", **more}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (directory / "config.toml").write_text("\n".join(["[history]", *lines, ""]))
    return secret


@pytest.fixture
def installation(make_installation, server):
    """An installation with a database of its own."""
    installation = make_installation()
    installation.database = server.create_database()
    configure(installation, server.url(installation.database))
    yield installation
    assert not (installation.state / "history.db").exists()


def reason(installation):
    """Why the history is unavailable; none while it is."""
    try:
        page(installation)
    except ProblemError as error:
        assert error.status == 503, error
        return error.problem["message"]
    return None


def unavailable(installation, *words):
    """Waits until the history says that it is unavailable, by every interface, with all words."""
    said = until(lambda: reason(installation), 30, "the reason")
    assert all(word in said for word in words), said
    refused = installation.cli("history", check=False)
    assert refused.returncode == 69, refused
    assert all(word in refused.stderr.decode() for word in words), refused.stderr
    return said


def assert_whole(installation, started, seconds=90):
    """Every execution is in the history, once, ended."""
    until(lambda: reason(installation) is None, seconds, "the history")
    until(lambda: not page(installation).get("behind") and not ids(installation, "status=running"), seconds, "the ends")
    rows = list(every_row(installation))
    assert sorted(row["id"] for row in rows) == sorted(started)
    assert {row["exit_code"] for row in rows} == {0}


def test_commands_run_while_the_server_is_absent_and_are_in_the_history_later(installation, server):
    server.stop()
    try:
        started = [run(installation, "echo", str(number)) for number in range(3)]
        unavailable(installation, "cannot be used now")
        assert "usual" not in installation.json("info", started[0])
        with pytest.raises(ProblemError) as refused:
            installation.rest("POST", "/api/v1/history/rebuild")
        assert refused.value.status == 503, refused.value
    finally:
        server.start()
    assert_whole(installation, started)


def cut(server):
    server.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'")


def restart(server):
    server.kill()
    server.start()


@pytest.mark.limit(180)
@pytest.mark.parametrize("harm", [
    pytest.param(restart, id="killed and restarted"),
    pytest.param(cut, id="connections cut", marks=pytest.mark.full),
])
def test_no_row_is_lost_or_doubled_while_the_server_fails_in_a_burst(installation, server, harm):
    count = 200
    script = f"for i in $(seq {count}); do $0 run -d -- true || exit 1; done"
    words = ["sh", "-c", script, installation.argv()[0]]
    burst = subprocess.Popen(words, cwd=installation.work, env=installation.env(), stdout=subprocess.PIPE, text=True)
    started = []
    for number, line in enumerate(burst.stdout):
        started.append(line.strip())
        if number % 40 == 20:
            reason(installation)
            harm(server)
    assert burst.wait() == 0 and len(started) == count
    assert_whole(installation, started)
    assert installation.cli("audit", "verify").returncode == 0


@pytest.mark.limit(180)
def test_a_server_that_does_not_answer_holds_nothing_up(installation, server):
    first = run(installation, "true")
    assert ids(installation) == [first]
    with server.paused():
        begin = time.monotonic()
        second = run(installation, "true")
        assert installation.json("ps", "-a")[0]["id"] == second
        assert time.monotonic() - begin < SOON
        unavailable(installation, "does not answer")
        begin = time.monotonic()
        assert not installation.shut_down()
        assert time.monotonic() - begin < SOON
    assert run(installation, "true") and len(ids(installation)) == 3


def test_a_locked_table_is_waited_for_in_vain_and_then_it_goes_on(installation, server):
    first = run(installation, "true")
    assert ids(installation) == [first]
    with server.session("BEGIN; LOCK TABLE ostler.execution IN ACCESS EXCLUSIVE MODE", installation.database):
        second = run(installation, "true")
        unavailable(installation, "lock timeout")
    until(lambda: reason(installation) is None and ids(installation) == [second, first], 30, "the history")


def test_a_wrong_password_is_reported_without_it_and_can_be_corrected(installation, server):
    secret = configure(installation, server.url(installation.database), password="not-the-password")
    started = [run(installation, "true")]
    said = [unavailable(installation, "password authentication failed")]
    secret.chmod(0o644)
    said.append(unavailable(installation, "can be read by others"))
    secret.unlink()
    said.append(unavailable(installation, "history.password"))
    secret = configure(installation, server.url(installation.database))
    assert_whole(installation, started)
    # Neither of them is anywhere but in its file.
    explained = installation.cli("config", "explain").stdout.decode()
    everywhere = [*said, explained, *(installation.cli(*verb).stdout.decode() for verb in (["history"], ["doctor"]))]
    for path in installation.dir.rglob("*"):
        if path.is_file() and path not in (secret, installation.binary):
            everywhere.append(path.read_bytes().decode(errors="replace"))
    assert not [text for text in everywhere if PASSWORD in text or "not-the-password" in text]


def test_a_command_at_level_high_does_not_read_the_password(installation, server):
    secret = installation.work / "history.password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    configure(installation, server.url(installation.database), password_file=str(secret))
    words = ["run", "--isolation", "high", "--", "cat"]
    assert PASSWORD.encode() not in installation.cli(*words, str(secret), check=False).stdout
    (installation.work / "neighbour").write_text("seen")
    assert installation.cli(*words, "neighbour").stdout == b"seen"


async def test_an_agent_is_told_why_the_history_is_unavailable(installation, server):
    server.stop()
    try:
        async with installation.agent(args=["--tools", "core,history"]) as agent:
            assert (await agent.must("exec", command=["echo", "goes on"])).value("id")
            refused = await agent.call("history_search")
            assert refused.is_error and "cannot be used now" in refused.text, refused
    finally:
        server.start()


def test_a_missing_database_is_reported_and_used_once_it_is_there(make_installation, server):
    installation, name = make_installation(), server.new_name()
    configure(installation, server.tcp_url(name))
    started = [run(installation, "true")]
    unavailable(installation, name, "does not exist")
    server.create_database(name)
    assert_whole(installation, started)


def test_newer_tables_are_left_alone(installation, server):
    first = run(installation, "true")
    assert ids(installation) == [first]
    server.psql("INSERT INTO ostler.migration VALUES (99)", installation.database)
    second = run(installation, "true")
    unavailable(installation, "schema version 99", "off until the newer program runs")
    assert server.psql("SELECT count(*) FROM ostler.execution", installation.database) == "1"
    server.psql("DELETE FROM ostler.migration WHERE version = 99", installation.database)
    assert_whole(installation, [first, second])


def test_a_schema_that_is_dropped_is_made_anew(installation, server):
    started = [run(installation, "echo", str(number)) for number in range(5)]
    assert len(ids(installation)) == 5
    server.psql("DROP SCHEMA ostler CASCADE", installation.database)
    started.append(run(installation, "echo", "later"))
    assert_whole(installation, started)
    assert ids(installation, "text=later") == [started[-1]]


def test_daemons_share_a_database_and_see_their_own_rows(make_installation, server):
    database = server.create_database()
    one, two, apart = make_installation(), make_installation(), make_installation()
    for installation, schema in ((one, "ostler"), (two, "ostler"), (apart, "apart")):
        configure(installation, server.url(database), schema=schema)
    started = {}
    for installation, count in ((one, 3), (two, 5), (apart, 2)):
        started[installation] = [run(installation, "echo", str(number)) for number in range(count)]
    for installation, pids in started.items():
        assert_whole(installation, pids)
    assert server.psql("SELECT count(*) FROM ostler.execution", database) == "8"
    assert server.psql("SELECT count(*) FROM apart.execution", database) == "2"
    for stranger in started[two]:
        with pytest.raises(ProblemError) as refused:
            one.rest("GET", f"/api/v1/history/{stranger}")
        assert refused.value.status == 404, refused.value
    one.cli("history", "rebuild")
    # Another ledger in the place of one: its rows are made anew, and only those.
    two.shut_down()
    for path in (two.state / "ledger").iterdir():
        path.unlink()
    later = run(two, "true")
    assert_whole(two, [later])
    assert_whole(one, started[one])
    assert_whole(apart, started[apart])


def test_a_copy_of_a_state_directory_does_not_write_to_the_rows_of_the_original(installation, server, make_installation):
    first = run(installation, "true")
    assert ids(installation) == [first]
    copy = make_installation()
    copy.state.mkdir(parents=True, exist_ok=True)
    (copy.state / "history.id").write_bytes((installation.state / "history.id").read_bytes())
    configure(copy, server.url(installation.database))
    run(copy, "true")
    said = until(lambda: page(copy).get("behind_reason"), 30, "the reason")
    assert "another daemon writes" in said and "history.id" in said
    assert ids(installation) == [first]


def test_a_rebuild_finds_everything_again(installation, server):
    started = [run(installation, "echo", str(number)) for number in range(20)]
    assert len(ids(installation)) == 20
    server.psql("UPDATE ostler.execution SET command = 'forged', code = 9", installation.database)
    assert ids(installation, "text=forged")
    installation.cli("history", "rebuild")
    assert_whole(installation, started)
    assert not ids(installation, "text=forged")


def test_a_token_of_one_project_finds_its_rows_only(installation):
    projects = {}
    for name in ("alpha", "beta"):
        projects[name] = str((installation.work / name).resolve())
        (installation.work / name).mkdir()
    made = {name: json.loads(installation.cli(
        "token", "new", name, "--scope", "sessions:all", "--scope", f"project:write={path}", "--json").stdout)["token"]
        for name, path in projects.items()}
    daemon = HttpDaemon(installation)

    def ask(name, method, path, body=None):
        connection = daemon.connect()
        headers = {"Authorization": f"Bearer {made[name]}", "Content-Type": "application/json"}
        connection.request(method, path, body=body and json.dumps(body), headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)

    started = {}
    for name, path in projects.items():
        body = {"command": {"argv": {"program": "echo", "args": [name]}}, "cwd": path}
        status, answer = ask(name, "POST", "/api/v1/executions", body)
        assert status in (200, 201, 202), answer
        started[name] = answer["id"]
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        # A query waits a second for the fold, which may be busy with its first connection.
        until(lambda name=name: ask(name, "GET", "/api/v1/history")[1]["executions"], 20, "the row of its project")
        _, answer = ask(name, "GET", "/api/v1/history")
        assert [row["id"] for row in answer["executions"]] == [started[name]]
        assert ask(name, "GET", f"/api/v1/history?text=echo&project={projects[other]}")[1]["executions"] == []
        assert ask(name, "GET", f"/api/v1/history/{started[name]}")[0] == 200
        assert ask(name, "GET", f"/api/v1/history/{started[other]}")[0] == 404
        assert ask(name, "POST", "/api/v1/history/rebuild")[0] == 403
    daemon.end()


@pytest.mark.parametrize(("url", "word"), [
    ("postgresql://ann:canary-in-the-url@127.0.0.1/history", "history.password_file"),
    ("postgresql://ann@127.0.0.1/history?password=canary-in-the-url", "history.password_file"),
    ("postgresql://ann@db.example/canary-in-the-url", "without TLS"),
    ("postgresql://ann@127.0.0.1/canary-in-the-url?sslmode=require", "requires TLS"),
    ("mysql://ann@127.0.0.1/canary-in-the-url", "neither"),
])
def test_an_address_that_is_not_allowed_is_refused_without_repeating_it(binary, url, word):
    installation = Installation(binary)
    try:
        for refused in (installation.cli("run", "--", "true", check=False, env={"OSTLER_HISTORY_DATABASE": url}),
                        installation.cli("config", "explain", "--set", f"history.database={url}", check=False)):
            output = (refused.stdout + refused.stderr).decode()
            assert refused.returncode == 78 and word in output and "/run/postgresql" in output, refused
            assert "canary-in-the-url" not in output
    finally:
        installation.shut_down()
        installation.close()


def test_the_settings_are_explained(installation, server):
    explained = {line.split()[0]: line for line in installation.cli("config", "explain").stdout.decode().splitlines() if line}
    assert server.url(installation.database) in explained["history.database"]
    assert "history.password" in explained["history.password_file"] and "ostler" in explained["history.schema"]
