"""`grep` finds lines as they are shown: colours and the carriage returns of terminals do not hide them."""

import pytest

from harness import HttpDaemon
from harness.mcp_http import McpHttpClient

COLOURED = r'printf "\033[31mFAIL\033[0m: 1\n\033[32mok\033[0m\n"'


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def ended(host, script, terminal=False):
    body = {"command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(host.work)}
    body |= {"pty": {"cols": 80, "rows": 24}} if terminal else {}
    execution = host.rest("POST", "/api/v1/executions", body)["id"]
    host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "exit", "at_most_ms": 15_000})
    return execution


def grepped(host, execution, pattern):
    done = host.cli("logs", "-g", pattern, execution)
    return done.stdout.decode()


@pytest.mark.parametrize("pattern", ["^FAIL: 1$", "FAIL: 1", "L: [0-9]"])
def test_colours_do_not_hide_a_line(host, pattern):
    found = grepped(host, ended(host, COLOURED), pattern)
    assert "1" in found and "ok" not in found, found


def test_an_end_of_line_is_found_on_a_terminal(host):
    execution = ended(host, 'echo "tests: 3 failed"; echo PASS', terminal=True)
    assert "PASS" in grepped(host, execution, "PASS$")
    assert "3 failed" in grepped(host, execution, "^tests: [0-9]+ failed$")
    assert grepped(host, execution, "^failed") == ""


def test_agents_find_what_they_are_shown(installation):
    daemon = HttpDaemon(installation, "--no-token")
    client = McpHttpClient(daemon.base)
    answer = client.call("exec", script=COLOURED + '; echo "tests: 3 failed"; echo PASS', input="tty", cwd=str(installation.work))
    name = answer.split()[0].strip("[]")
    for pattern, shown in (("PASS$", "PASS"), ("^FAIL: 1$", "FAIL: 1")):
        found = client.call("process", action="output", id=name, grep=pattern)
        assert shown in found and "failed" not in found, found
    daemon.end()
