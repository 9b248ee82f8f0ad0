"""Steps of the clock, forward and back, while commands run."""

import json
import time

import pytest

from harness import until
from harness.clock import stepping_clock

pytestmark = pytest.mark.root

HOUR = 3_600
DAY = 24 * HOUR


@pytest.fixture
def stepped(make_installation):
    """An installation, and its clock."""
    installation = make_installation()
    with stepping_clock(installation) as clock:
        yield installation, clock
        installation.shut_down()


def start(installation, script, **options):
    body = {"command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(installation.work),
            "base_env": [["PATH", "/usr/bin:/bin"]], **options}
    return installation.rest("POST", "/api/v1/executions", body)["id"]


def wait(installation, id, **options):
    return installation.rest("POST", f"/api/v1/executions/{id}/wait", {"at_most_ms": 20_000, **options})


def took(action):
    begin = time.monotonic()
    result = action()
    return result, time.monotonic() - begin


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_what_runs_and_who_waits_notice_nothing(stepped, step):
    """Time limits, waits, restarts and questions last as long as without the step, and no output is out of order."""
    installation, clock = stepped
    installation.cli("ps")
    begin = time.monotonic()
    limited = start(installation, "sleep 300", timeout_ms=5_000)
    silent = start(installation, "echo up; sleep 300", idle_ms=5_000)
    talker = start(installation, "echo before; read -r line; echo after", stdin="open")
    wait(installation, talker, until="pattern", pattern="before")
    question = installation.rest("POST", "/api/v1/interactions", {"kind": "input_request", "message": "Well?", "timeout_ms": 5_000})
    failing = start(installation, "exit 1", restart={"on_failure": {"max": 2}})
    before = json.loads(installation.cli("run", "--", "date", "+%s").stdout)
    clock.step(step)
    after = json.loads(installation.cli("run", "--", "date", "+%s").stdout)
    assert abs(after - before - step) < 60, "commands have the same clock"
    waited, seconds = took(lambda: wait(installation, talker, at_most_ms=500))
    assert waited["why"] == "at_most" and 0.4 < seconds < 10
    for id in (limited, silent):
        ended, seconds = took(lambda id=id: wait(installation, id))
        assert ended["error"]["code"] == "command_timeout" and seconds < 10, ended
        assert time.monotonic() - begin > 4.9, "not before its time"
    shown, seconds = took(lambda: installation.rest("GET", f"/api/v1/interactions/{question['id']}?wait_ms=20000"))
    assert shown["status"] == "timed_out" and seconds < 10, shown
    assert time.monotonic() - begin > 4.9, "not before its time"
    ended, seconds = took(lambda: wait(installation, failing))
    assert ended["why"] == "exit" and ended["info"]["attempt"] == 3 and seconds < 15, ended
    installation.rest("POST", f"/api/v1/executions/{talker}/input", b"go\n")
    assert wait(installation, talker)["info"]["exit_code"] == 0
    assert installation.cli("logs", "--raw", talker).stdout == b"before\nafter\n"
    assert installation.cli("logs", "--no-time", "--tail", "1", talker).stdout == b"after\n"
    # The next daemon knows all of it.
    listed = {it["id"] for it in installation.json("ps", "-a")}
    installation.kill_daemon()
    assert {it["id"] for it in installation.json("ps", "-a")} == listed
    assert installation.cli("audit", "verify", check=False).returncode == 0


def test_the_audit_log_is_kept_for_ninety_days(stepped):
    installation, clock = stepped

    def days():
        installation.cli("run", "--", "true")
        installation.shut_down()
        clock.step(DAY)
        installation.cli("run", "--", "true")

    def oldest():
        return sorted(int(path.stem) for path in (installation.state / "ledger").glob("*.seg"))[0]

    days()
    assert oldest() == 0 and len(list((installation.state / "ledger").glob("*.seg"))) > 1
    installation.shut_down()
    clock.step(88 * DAY)
    installation.cli("ps")
    assert oldest() == 0, "89 days are not too long"
    installation.shut_down()
    clock.step(2 * DAY)
    installation.cli("ps")
    until(lambda: oldest() > 0, 10, "the end of the oldest entries")
    report = json.loads(installation.cli("audit", "verify", "--json").stdout)
    assert report["findings"] == [], report
