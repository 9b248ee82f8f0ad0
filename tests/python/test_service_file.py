"""`ostler.toml` over its life: renamed and broken files, names that other services have, one that cannot start beside
others, directories made anew, attempts that cannot be launched, waits across restarts and edits."""

import contextlib
import json
import subprocess

import pytest

from harness import until
from harness.installation import ProblemError
from harness.services import free_port
from harness.service_client import SERVER
from harness.wire import RawMcpClient


def toml(value):
    """A value in the syntax of TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(it)}" for key, it in value.items()) + " }"
    return json.dumps(value)


class Workspace:
    """The directory of an installation, with its `ostler.toml`."""

    def __init__(self, installation):
        self.installation = installation
        self.file = installation.work / "ostler.toml"

    def define(self, **commands):
        """Writes the file: a command, or a table, for each name."""
        sections = []
        for name, command in commands.items():
            table = command if isinstance(command, dict) else {"command": command}
            lines = "\n".join(f"{key} = {toml(value)}" for key, value in table.items())
            sections.append(f"[services.{name}]\n{lines}\n")
        self.file.write_text("\n".join(sections))
        self.installation.give(self.file)

    def service(self, *words, code=0):
        """Runs `ostler service …` in the directory; returns its output and notes."""
        done = self.installation.cli("service", *words, check=False)
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == code, (words, done.returncode, text)
        return text

    @contextlib.contextmanager
    def begun(self, *words):
        """Begins `ostler service …` in the directory, and ends it with the test where it still runs."""
        command = self.installation.argv("service", *words)
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen(command, cwd=self.installation.work, env=self.installation.env(), **pipes) as process:
            try:
                yield process
            finally:
                process.kill()

    def until_tries(self, count):
        """Waits until this many attempts of the gated service began."""
        file = self.installation.work / "tries"
        until(lambda: file.exists() and len(file.read_text().splitlines()) == count, 20, f"{count} attempts")

    def open_gate(self):
        """Lets the gated service become ready."""
        (self.installation.work / "go").touch()

    def rows(self):
        listed = json.loads(self.installation.cli("service", "ps", "--all", "--json").stdout)
        rows = listed["services"] if isinstance(listed, dict) else listed
        return {row["name"]: row for row in rows}


@pytest.fixture
def workspace(installation):
    return Workspace(installation)


SLEEP = "exec sleep 300"

#: Ready once the test makes the file `go`.
GATED = {"command": "echo first >> tries; exec sleep 300", "ready": {"exec": ["test", "-e", "go"]}}


def test_a_renamed_service_keeps_nothing_from_starting(workspace):
    workspace.define(old=SLEEP)
    workspace.service("up")
    workspace.service("stop", "old")
    workspace.define(new=SLEEP)
    text = workspace.service("up")
    assert "old" not in text, text
    assert workspace.rows()["new"]["living"]
    # Emptied, it is no longer the file of anything.
    workspace.file.write_text("")
    text = workspace.service("up", code=64)
    assert "defines no services" in text, text


def test_one_started_by_hand_under_a_defined_name_is_reported(workspace):
    workspace.service("start", "--name", "web", "--no-wait", "--", "sleep", "301")
    workspace.define(web=SLEEP)
    text = workspace.service("up")
    assert "another command" in text and "stop it first" in text, text
    text = workspace.service("down")
    assert "web" in text, text
    assert not workspace.rows()["web"]["living"]
    workspace.service("up")
    assert workspace.rows()["web"]["command"] == SLEEP


def test_one_that_cannot_start_hides_none_that_did(workspace):
    workspace.define(bad=["/no/such/program"], good=SLEEP)
    text = workspace.service("up", code=71)
    assert "good:" in text and "bad: Failed to start service: /no/such/program" in text, text
    done = workspace.installation.cli("service", "up", "--json", check=False)
    assert done.returncode == 71, done
    good, bad = json.loads(done.stdout)
    assert good["service"]["name"] == "good" and good["reused"], good
    assert bad["name"] == "bad" and bad["code"] and "/no/such/program" in bad["message"], bad
    why = workspace.service("why", "bad")
    assert "its start at" in why and "/no/such/program" in why, why
    with RawMcpClient(workspace.installation, ["--tools", "core"]) as wire:
        wire.shake()
        answer = wire.answer(wire.call("service", action="up", cwd=str(workspace.installation.work)))["result"]
        text = answer["content"][0]["text"]
        assert "bad: Failed to start service: /no/such/program" in text, text
        assert [it["name"] for it in answer["structuredContent"]["failures"]] == ["bad"], answer
        assert [it["name"] for it in answer["structuredContent"]["services"]] == ["good"], answer


def test_a_defined_service_that_was_never_started_is_stopped_and_restarts(workspace):
    workspace.define(web=SLEEP)
    workspace.service("stop", "web")
    assert not workspace.rows()["web"]["living"]
    workspace.service("restart", "web")
    assert workspace.rows()["web"]["living"]


def test_a_broken_file_hides_no_service_of_others(workspace):
    workspace.service("start", "--name", "own", "--no-wait", "--", "sleep", "301")
    workspace.file.write_text("[services.web]\ncomand = 1\n")
    workspace.installation.give(workspace.file)
    text = workspace.service("ps")
    assert "own" in text and "comand" in text, text
    workspace.service("why", "own")
    text = workspace.service("why", "web", code=64)
    assert "comand" in text, text
    workspace.service("stop", "own")


def test_an_attempt_that_cannot_be_launched_is_not_told_as_the_one_before(workspace):
    program = workspace.installation.work / "server.py"
    program.write_text("#!/usr/bin/env python3\n" + SERVER.read_text())
    program.chmod(0o755)
    workspace.installation.give(program)
    port = free_port()
    workspace.define(web={"command": [str(program), "plain", str(port)], "restart": "always"})
    workspace.service("up")
    row = workspace.rows()["web"]
    assert row["execution"]["service"]["url"], row
    program.unlink()
    subprocess.run(["kill", "-9", str(row["execution"]["os_pid"])], check=True)
    row = until(
        lambda: next((it for it in [workspace.rows()["web"]] if "could not start" in str(it)), None), 20, "a failed attempt")
    service = row["execution"]["service"]
    assert "could not start" in service["last_end"], service
    assert not service["url"] and not service["ports"] and not service["evidence"], service
    assert row["execution"]["os_pid"] is None, row
    why = workspace.service("why", "web")
    assert "could not start" in why, why


def test_the_log_of_a_replaced_service_is_followed_further(workspace):
    workspace.define(web="echo first; exec sleep 300")
    workspace.service("up")
    installation = workspace.installation
    command = installation.argv("service", "logs", "-f", "--no-time", "web")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=installation.work, env=installation.env(), **pipes) as follower:
        assert follower.stdout.readline().strip() == "first"
        workspace.define(web="echo second; exec sleep 300")
        assert follower.stdout.readline().strip() == "second"
        workspace.service("stop", "web")
        assert follower.wait(20) == 0
        assert "web was replaced" in follower.stderr.read()


def test_the_hint_about_a_port_names_the_service_of_another_workspace_by_its_id(workspace):
    """Both workspaces have a service of that name; only the other one runs."""
    installation, port = workspace.installation, free_port()
    table = {"command": ["python3", "-m", "http.server", "--bind", "127.0.0.1", str(port)], "port": port}
    workspace.define(web=table)
    workspace.service("up")
    other = installation.work / "other"
    other.mkdir()
    (other / "ostler.toml").write_bytes(workspace.file.read_bytes())
    for path in (other, other / "ostler.toml"):
        installation.give(path)

    def service(*words):
        argv = installation.argv("service", *words)
        done = subprocess.run(argv, cwd=other, env=installation.env(), capture_output=True, timeout=60, check=False)
        return done.returncode, (done.stdout + done.stderr).decode()

    code, text = service("up")
    id = workspace.rows()["web"]["execution"]["id"]
    assert code != 0 and f"stop '{id}' first" in text, text
    assert service("stop", "web") == (0, "web was never started\n")
    assert workspace.rows()["web"]["living"]
    for words in (("stop", id), ("up",), ("stop", "web")):
        code, text = service(*words)
        assert code == 0, (words, text)


def test_a_file_with_a_cycle_is_not_put_into_force(workspace):
    workspace.define(db="exec sleep 300", web={"command": SLEEP, "depends_on": ["db:started"]})
    workspace.service("up")
    before = {name: row["execution"]["id"] for name, row in workspace.rows().items()}
    workspace.define(
        db={"command": "exec sleep 301", "depends_on": ["web:started"]}, web={"command": SLEEP, "depends_on": ["db:started"]})
    until(lambda: "cannot be used" in str(workspace.rows()), 20, "a note")
    rows = workspace.rows()
    assert "db -> web -> db" in str(rows) or "web -> db -> web" in str(rows), rows
    assert {name: row["execution"]["id"] for name, row in rows.items()} == before and rows["db"]["living"]
    workspace.define(db="exec sleep 302", web={"command": SLEEP, "depends_on": ["db:started"]})
    until(lambda: workspace.rows()["db"]["execution"]["id"] != before["db"], 20, "the next version in force")


def test_a_definition_of_another_directory_is_not_replaced(installation):
    """A name is one definition, wherever it is used: another agent would start what it never wrote."""
    installation.cli("ps")
    body = {"command": {"shell": {"shell": "/bin/sh", "script": "exec sleep 300"}}, "cwd": str(installation.work)}
    installation.rest("PUT", "/api/v1/services/web", body)
    installation.rest("PUT", "/api/v1/services/web", {**body, "description": "the same one"})
    with pytest.raises(ProblemError) as refused:
        installation.rest("PUT", "/api/v1/services/web", {**body, "cwd": "/"})
    assert refused.value.status == 422 and str(installation.work) in str(refused.value.problem), refused.value.problem
    installation.rest("DELETE", "/api/v1/services/web")
    installation.rest("PUT", "/api/v1/services/web", {**body, "cwd": "/"})
def test_a_restart_during_a_start_lets_other_waits_continue(workspace):
    workspace.define(slow=GATED)
    with workspace.begun("up", "slow") as up:
        workspace.until_tries(1)
        with workspace.begun("restart", "slow") as restart:
            workspace.until_tries(2)
            assert up.poll() is None, up.stdout.read()
            workspace.open_gate()
            for process in (up, restart):
                text = process.communicate(timeout=20)[0]
                assert process.returncode == 0 and "Status: ready" in text, text


def test_an_edit_during_a_start_has_the_wait_continue_with_the_replacement(workspace):
    workspace.define(slow=GATED)
    with workspace.begun("up", "--json", "slow") as up:
        workspace.until_tries(1)
        first = workspace.rows()["slow"]["execution"]["id"]
        workspace.define(slow=GATED | {"command": "echo second >> tries; exec sleep 300"})
        workspace.until_tries(2)
        workspace.open_gate()
        text = up.communicate(timeout=20)[0]
        assert up.returncode == 0, text
        second = json.loads(text)["service"]["execution"]["id"]
        assert second == workspace.rows()["slow"]["execution"]["id"] != first


def test_a_replacement_that_fails_ends_the_wait_with_its_failure(workspace):
    workspace.define(slow=GATED)
    with workspace.begun("up", "slow") as up:
        workspace.until_tries(1)
        workspace.define(slow=GATED | {"command": "exit 3"})
        text = up.communicate(timeout=20)[0]
        assert up.returncode == 1 and "exit code 3 before it was ready" in text, text


def test_one_that_was_ready_and_ended_is_not_said_to_have_failed_before(workspace):
    installation = workspace.installation
    workspace.define(slow=GATED)
    workspace.open_gate()
    workspace.service("up")
    workspace.service("stop", "slow")
    id = workspace.rows()["slow"]["execution"]["id"]
    done = installation.cli("wait", "--ready", id, check=False)
    expected = "Service was ready and is no longer: stopped"
    assert done.returncode == 1 and expected in done.stderr.decode(), done
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake()
        wire.answer(wire.call("service", action="ensure", name="slow"))
        wire.answer(wire.call("service", action="stop", name="slow"))
        answer = wire.answer(wire.call("service", action="status", name="slow", wait_ms=500))["result"]
        text = answer["content"][0]["text"]
        assert text.startswith(expected) and "before it was ready" not in text, text


def test_no_process_is_reported_between_two_attempts(workspace):
    text = workspace.service("start", "--restart", "always", "--", "sh", "-c", "echo boom; exit 3", code=1)
    assert "It will be started again: ID " in text and ", pid " not in text, text


def test_only_defined_services_are_offered_for_an_undefined_name(workspace):
    workspace.define(web=SLEEP)
    workspace.service("define", "z7", "--", "sleep", "300")
    workspace.service("start", "--name", "adhoc", "--no-wait", "--", "sleep", "301")
    workspace.service("define", "gone", "--", "sleep", "300")
    workspace.service("ensure", "--no-wait", "gone")
    workspace.service("forget", "gone")
    workspace.service("stop", "gone")
    text = workspace.service("ensure", "gone", code=66)
    assert "no service 'gone'; known: web, z7\n" in text and "did you mean" not in text and "adhoc" not in text, text
    text = workspace.service("forget", "gone", code=66)
    assert "no service 'gone'; known: z7\n" in text and "did you mean" not in text and "web" not in text, text
    # The hint is about the name that is unknown, not about the first one.
    text = workspace.service("up", "web", "z77", code=66)
    assert "did you mean z7?" in text, text


def test_a_number_of_restarts_without_restarts_is_refused(workspace):
    workspace.define(web={"command": SLEEP, "restart": {"policy": "never", "max": 3}})
    text = workspace.service("up", code=64)
    assert "line 3: services.web.restart.max does not go with the policy \"never\"" in text, text
    workspace.service("start", "--restart", "never:5", "--", "sleep", "300", code=64)


@pytest.mark.parametrize("name", ["up", "ensure"])
def test_a_service_may_have_the_name_of_an_action(workspace, name):
    workspace.define(**{name: "sleep 300"})
    workspace.service("up", name, "--no-wait")
    assert name in workspace.service("why", name)
    host, cwd = workspace.installation, workspace.installation.work
    path = f"/api/v1/services/{name}"
    assert host.rest("GET", f"{path}?cwd={cwd}")["name"] == name
    workspace.service("stop", name)
    defined = {"command": {"argv": {"program": "true", "args": []}}, "cwd": str(cwd)}
    host.rest("PUT", path, defined)
    host.rest("DELETE", path)
    with pytest.raises(ProblemError) as error:
        host.rest("DELETE", path)
    assert error.value.status == 404, error.value.problem


@pytest.mark.parametrize("name", ["UP", "my app", "a/b", "é", "@x", "-x", "a" * 64])
def test_no_file_is_proposed_for_a_name_that_it_cannot_have(installation, name):
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake()
        told = wire.text(wire.call("service", action="ensure", name=name))
    assert f"no service can be named '{name}': a name begins with a lower-case letter" in told, told
    assert "[services" not in told, told


def test_a_pattern_of_readiness_is_refused_with_the_syntax_that_holds_for_it(installation):
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake()
        for pattern, problem in (("(", "unclosed group"), ("(?=x)y", "is not supported")):
            call = wire.call("service", action="start", name="web", command="sleep 60", ready_pattern=pattern)
            told = wire.text(call)
            assert f"ready_pattern '{pattern}': it is no regular expression" in told and problem in told, told
            assert "Perl" not in told, told


def test_a_service_that_waits_for_another_is_stopped(installation):
    workspace = Workspace(installation)
    never = {"command": "sleep 300", "port": free_port(), "ready_pattern": "never printed"}
    workspace.define(db=never, web={"command": "sleep 300", "depends_on": ["db"]})
    options = ["--tools", "core", "--session", "both"]
    with RawMcpClient(installation, options) as starter, RawMcpClient(installation, options) as other:
        starter.shake()
        other.shake()
        pending = starter.call("service", action="up")
        until(lambda: "'db' to be ready" in other.text(other.call("service", action="list")), 20, "web, which waits")
        told = other.text(other.call("service", action="stop", name="web"))
        assert '"status":"stopped"' in told, told
        assert "'db' to be ready" not in other.text(other.call("service", action="list"))
        other.text(other.call("service", action="stop", name="db", force=True))
        told = starter.text(pending)
        assert "it was stopped before it started" in told, told
