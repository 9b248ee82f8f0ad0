"""The disk limit of a context holds for its directory: for all of its executions together, one after the other or at once."""

import json

import pytest

from harness.protected_env import USERS

MB = 1 << 20
ENV = [["PATH", "/usr/bin:/bin"]]


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def opened(host, **fields):
    return host.rest("POST", "/api/v1/contexts", {"project": "demo", "limits": {"disk_bytes": 8 * MB}, **fields})


def start(host, context, script, **options):
    body = {"command": {"shell": {"shell": "sh", "script": script}}, "cwd": context["directory"], "context": context["id"],
            "base_env": ENV, **options}
    return host.rest("POST", "/api/v1/executions", body)["id"]


def ended(host, id_):
    return host.rest("POST", f"/api/v1/executions/{id_}/wait", {"until": "exit", "at_most_ms": 20_000})["info"]


def run(host, context, script, **options):
    return ended(host, start(host, context, script, **options))


def writes(name, megabytes, then="sleep 30"):
    """Writes a file; then a command that is only ended by a limit."""
    return f"dd if=/dev/zero of={name} bs=1M count={megabytes} 2>/dev/null && sync; {then}"


def over(info):
    return info["status"] == "terminated" and info["stop_reason"] == "its workspace grew beyond the limit"


def test_commands_one_after_the_other_share_the_limit(host):
    context = opened(host)
    first = run(host, context, writes("one", 5, then="true"))
    assert first["exit_code"] == 0, first
    second = run(host, context, writes("two", 5))
    assert over(second), (second["status"], second.get("stop_reason"), second.get("error_message"))
    removed = run(host, context, "rm -f one two; sleep 0.6; ls")
    assert removed["exit_code"] == 0, "what frees space runs, also beyond the limit"
    again = run(host, context, writes("three", 5, then="sleep 0.6"))
    assert again["exit_code"] == 0, again


def test_a_directory_below_counts_and_what_was_there_before_does_not(host):
    project = host.work / "project"
    (project / "sub").mkdir(parents=True)
    (project / "before").write_bytes(b"x" * 12 * MB)
    host.give(project)
    context = opened(host, project=str(project))
    assert run(host, context, writes("one", 5, then="sleep 0.6"), cwd=str(project / "sub"))["exit_code"] == 0
    second = run(host, context, writes("two", 5))
    assert over(second), second
    (project / "sub" / "one").unlink()
    (project / "two").unlink(missing_ok=True)
    assert run(host, context, writes("three", 5, then="sleep 0.6"))["exit_code"] == 0


def test_executions_at_the_same_time_share_the_limit(host):
    context = opened(host)
    ids = [start(host, context, writes(f"file{number}", 5)) for number in range(2)]
    assert any(over(ended(host, id_)) for id_ in ids)
    for id_ in ids:
        host.rest("POST", f"/api/v1/executions/{id_}/stop", {"force": True})


def test_a_start_may_ask_for_less_and_gets_no_more(host):
    context = opened(host)
    less = run(host, context, writes("one", 3), limits={"disk_bytes": 2 * MB})
    assert over(less) and less["isolation"]["limits"]["disk_bytes"] == 2 * MB
    more = run(host, context, writes("two", 12), limits={"disk_bytes": 64 * MB})
    assert over(more) and more["isolation"]["limits"]["disk_bytes"] == 8 * MB


def test_the_limit_holds_after_the_daemon_was_killed(host):
    context = opened(host)
    assert run(host, context, writes("one", 5, then="true"))["exit_code"] == 0
    host.kill_daemon()
    host.cli("ps")
    assert over(run(host, context, writes("two", 5)))


@pytest.mark.parametrize("user", USERS[:1])
def test_an_overlay_counts_with_its_directory_and_has_what_the_context_has(protected_envs, user):
    host = protected_envs.of(user)
    host.cli("ps")
    shown = host.dir / "shown"
    shown.mkdir()
    (shown / "data").write_text("seen")
    host.give(shown)
    context = opened(host, env=[["COLOUR", "blue"]], confine={"network": "none", "read": [str(shown)]}, isolation="high")
    assert run(host, context, writes("one", 5, then="true"))["exit_code"] == 0
    script = f"echo $COLOUR $CLAUDE_PROJECT_ID; pwd; ls; cat {shown}/data; echo changed > new"
    seen = start(host, context, script, confine={"overlay": True})
    info = ended(host, seen)
    assert info["exit_code"] == 0, info
    printed = host.cli("logs", "--no-time", seen).stdout.decode().split("\n")
    assert printed[:4] == ["blue demo", context["directory"], "one", "seen"], printed
    assert info["isolation"]["confinement"]["overlay"], info
    listed = run(host, context, "test ! -e new")
    assert listed["exit_code"] == 0, "the change waits for a decision"
    assert over(run(host, context, writes("two", 5), confine={"overlay": True}))
    host.rest("POST", f"/api/v1/executions/{seen}/workspace/discard", {})
