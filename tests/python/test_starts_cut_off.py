"""The daemon is killed or shut down while commands start: what was answered is true, and the history ends."""

import random
import threading

import pytest

from harness import until
from harness.installation import ProblemError

ENV = [["PATH", "/usr/bin:/bin"]]
STARTERS = 6
ROUNDS = 6


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def start(host, answers):
    """Starts commands until the daemon is gone."""
    body = {"command": {"argv": {"program": "sleep", "args": ["300"]}}, "cwd": str(host.work), "base_env": ENV}
    while True:
        try:
            answers.append((201, host.rest("POST", "/api/v1/executions", body)["id"]))
        except ProblemError as problem:
            answers.append((problem.status, problem.problem["type"]))
            if problem.status != 429:
                return
        except OSError:
            return


def interrupted_starts(host, end):
    """What starts were answered that were under way when the daemon ended."""
    answers = []
    threads = [threading.Thread(target=start, args=(host, answers)) for _ in range(STARTERS)]
    for thread in threads:
        thread.start()
    until(lambda: len(answers) > random.uniform(0, 40), 30, "starts")
    end()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a start was not answered"
    return answers


def of_status(host, path, status):
    return {row["id"] for row in host.rest("GET", f"/api/v1/{path}?status={status}&limit=500")["executions"]}


def check(host, answers):
    host.cli("ps")
    running = of_status(host, "executions", "running")
    started = {id_ for status, id_ in answers if status == 201}
    assert started, answers
    assert started <= running, "was answered as running and is not"
    until(lambda: of_status(host, "history", "running") == of_status(host, "executions", "running"), 30, "the history")
    host.end_commands()
    until(lambda: not of_status(host, "history", "running"), 30, "the ends")


@pytest.mark.limit(240)
def test_a_kill_during_starts_leaves_no_command_running_in_the_history(host):
    for _ in range(ROUNDS):
        check(host, interrupted_starts(host, host.kill_daemon))


@pytest.mark.limit(240)
def test_a_shutdown_during_starts_stops_only_what_it_refused(host):
    for _ in range(ROUNDS):
        answers = interrupted_starts(host, lambda: host.rest("POST", "/api/v1/shutdown"))
        assert {status for status, _ in answers} <= {201, 429, 503}, answers
        check(host, answers)
