"""Verbs that take several names or ids: an error about one keeps no other from it, is reported with its name, and decides
the exit code."""

import json

import pytest

from harness.installation import ProblemError

ASKS = """
default = "ask"
"""


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def failed(host, *words, names):
    """The lines that the verb prints, which fails and names each of these in an error of its own."""
    done = host.cli(*words, check=False)
    errors = [line for line in done.stderr.decode().splitlines() if line.startswith("error[")]
    assert done.returncode not in (0, 141) and len(errors) == len(names), done
    assert all(name in error for name, error in zip(names, errors, strict=True)), done
    return done.stdout.decode().splitlines()


def test_every_token_is_revoked(host):
    for name in ("one", "two", "kept"):
        host.cli("token", "new", name)
    failed(host, "token", "revoke", "one", "absent", "two", "missing", names=["'absent'", "'missing'"])
    assert [it["name"] for it in json.loads(host.cli("token", "list", "--json").stdout)] == ["kept"]


def test_every_context_is_removed(host):
    one, two = (host.rest("POST", "/api/v1/contexts", {"project": name})["id"] for name in ("one", "two"))
    unknown = "ctx-000000000000"
    assert failed(host, "context", "rm", one, unknown, "none", two, names=[unknown, "none"]) == [one, two]
    assert host.rest("GET", "/api/v1/contexts")["contexts"] == []


def test_every_question_is_cancelled(host):
    one, two = (host.rest("POST", "/api/v1/interactions", {"kind": "input_request", "message": "Which?"})["id"] for _ in range(2))
    lines = failed(host, "interactions", "cancel", two, "i999", one, names=["i999"])
    assert [line.split()[:2] for line in lines] == [[two, "cancelled"], [one, "cancelled"]]
    assert host.rest("GET", "/api/v1/interactions")["interactions"] == []


@pytest.mark.parametrize("deny", [False, True])
def test_every_approval_is_decided(make_installation, deny):
    host = make_installation()
    host.write_policy(ASKS)
    host.cli("ps")

    def approval(word):
        body = {"command": {"argv": {"program": "echo", "args": [word]}}, "cwd": str(host.work), "base_env": [["PATH", "/usr/bin:/bin"]]}
        with pytest.raises(ProblemError) as refused:
            host.rest("POST", "/api/v1/executions", body)
        return refused.value.problem["approval"]

    one, two = approval("one"), approval("two")
    verb = "denied" if deny else "approved"
    lines = failed(host, "approve", *(["--deny"] if deny else []), one, "i999", two, names=["i999"])
    assert lines == [f"{one} {verb}: echo one", f"{two} {verb}: echo two"]
    assert json.loads(host.cli("approvals", "--json").stdout) == []


def test_every_service_is_restarted(host):
    host.cli("service", "start", "--name", "web", "--no-wait", "--", "sleep", "1000")
    before = host.rest("GET", "/api/v1/services/web")["execution"]["os_pid"]
    lines = failed(host, "service", "restart", "absent", "web", "missing", names=["absent", "missing"])
    assert any("web" in line for line in lines), lines
    assert host.rest("GET", "/api/v1/services/web")["execution"]["os_pid"] != before
    failed(host, "service", "restart", "absent", "missing", names=["absent", "missing"])
    host.cli("service", "stop", "--force", "web")
