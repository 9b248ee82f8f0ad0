"""Requests made from a schema: what is sent of them, and how many."""

import json

from hypothesis import HealthCheck, Phase, given, settings

from .procs import until

#: Requests of each kind for each operation.
EXAMPLES = 4
EXAMPLES_FULL = 300
#: The program of every command that a request starts.
HARMLESS = "true"
#: The longest wait in a request, in milliseconds.
WAIT_MS = 5
#: Texts that are run: each stands for a command or a script.
RUN = {"program", "script", "command", "shell"}
#: How long a request, or a command that only prints, may take.
SECONDS = 20


def run_to_its_end(http_daemon, options):
    """The id of an execution that printed something and has ended."""
    body = {"command": {"argv": {"program": "echo", "args": ["printed"]}}, "cwd": str(http_daemon.installation.work), **options}
    info = ask(http_daemon, "POST", "/api/v1/executions", body)
    until(lambda: ask(http_daemon, "GET", f"/api/v1/executions/{info['id']}")["phase"] == "finished", SECONDS, "its end")
    return info["id"]


def ask(http_daemon, method, path, body=None):
    connection = http_daemon.connect()
    connection.request(method, path, body and json.dumps(body), http_daemon.headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    assert response.status < 300, answer
    return answer


def tame(value, work):
    """The same body with harmless commands, an existing directory, and short waits; what is no text or number stays."""
    if isinstance(value, list):
        return [tame(item, work) for item in value]
    if not isinstance(value, dict):
        return value
    tamed = {}
    for name, item in value.items():
        is_text = isinstance(item, str) or (isinstance(item, dict) and set(item) == {"base64"})
        if name in RUN and is_text:
            tamed[name] = "/bin/sh" if name == "shell" else HARMLESS
        elif name in ("exec", "command") and isinstance(item, list):
            tamed[name] = [HARMLESS]
        elif name in ("cwd", "directory") and is_text:
            tamed[name] = work
        elif name.endswith("_ms") and isinstance(item, int) and not isinstance(item, bool):
            tamed[name] = min(item, WAIT_MS)
        elif name == "follow_seconds" and isinstance(item, int):
            tamed[name] = min(item, 0)
        else:
            tamed[name] = tame(item, work)
    return tamed


def try_all(strategy, send, examples, **options):
    """Sends so many cases; the first that fails is reported as it was made."""

    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False, **options)
    @given(case=strategy)
    def run(case):
        send(case)

    run()
